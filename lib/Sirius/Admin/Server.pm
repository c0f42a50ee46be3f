package Sirius::Admin::Server;

use strict;
use warnings;

use IO::Handle ();
use Sirius;
use Sirius::Admin::App;
use Sirius::Admin::History;
use Sirius::Admin::Line;
use Sirius::Base::Clock qw(now);
use Sirius::Listen::Listener;
use Sirius::Log ();
use Sirius::OS::Inherit;
use Sirius::OS::Title;
use Sirius::Scoreboard;
use Sirius::Service::Daemon;
use Sirius::Service::Privileges;
use Sirius::Service::Activation;
use Sirius::Service::Notify;
use Sirius::Worker;
use Time::HiRes qw(ITIMER_REAL setitimer);

# The program that Sirius::Admin::Port runs
sub serve {
    my ( $class, $variable ) = @_;
    my $state = Sirius::OS::Inherit->take($variable) or die "sirius: nothing to serve\n";
    $_->forget for qw(Sirius::Service::Activation Sirius::Service::Notify);
    my $conf       = $state->{conf};
    my $privileges = Sirius::Service::Privileges->new($conf);
    my $lifeline   = Sirius::OS::Inherit->take_handle( $state->{lifeline} // $state->{alive} );
    my $board      = Sirius::Scoreboard->adopt( $state->{scoreboard} );
    Sirius::Log->inherit( $conf, $privileges->owner );
    my $line = Sirius::OS::Inherit->take_handle( $state->{line} );
    $line->blocking(0);
    my $admin = Sirius::Admin::App->new(
        %{ $state->{admin} },
        line     => Sirius::Admin::Line->new($line),
        past     => [ $board->kept, now() ],
        snapshot => sub { $board->snapshot }
    );
    my $worker = Sirius::Worker->new(
        app        => $admin->to_app,
        conf       => $conf,
        listeners  => [ map { Sirius::Listen::Listener->described($_) } @{ $state->{listeners} } ],
        scoreboard => Sirius::Scoreboard->new(1),
        sleepers   => Sirius::OS::Inherit->take_handle( $state->{sleepers} ),
        row        => 0,
        tell       => sub {''},    # workers would report the same trouble, so this process need not
    );
    $SIG{USR1} = { $worker->handlers }->{USR1};
    $privileges->drop;
    Sirius::Service::Daemon->restore->detach if $conf->{daemonize};
    Sirius::OS::Title->set( { proctitle => 1 }, 'admin' );    # otherwise ps would show a perl -e
    $class->_remember( $admin, $board, $class->_end_if_orphaned( $worker, $lifeline ) );
    $worker->run;
    return;
}

# The edge lets this process end once the supervisor has ended. An edge that was killed as well does not, so
# this process ends by itself when its pipe has been closed for as long as an edge may take
sub _end_if_orphaned {
    my ( $class, $worker, $lifeline ) = @_;
    my $times = 0;
    return sub {
        vec( my $read = '', fileno $lifeline, 1 ) = 1;
        return if 1 > select $read, undef, undef, 0;    # nothing is ever written to it
        return if $times++ < 1;
        return { $worker->handlers }->{TERM}->('TERM');
    };
}

# Takes samples of the server, so that the page has a history. This wakes up no other process
sub _remember {
    my ( $class, $admin, $board, $besides ) = @_;
    my $look = sub {
        local ( $@, $! );
        $besides->() if $besides;
        eval { $board->keep( $admin->look( $board->snapshot( quick => 1 ) ) ) };
    };
    $SIG{ALRM} = $look;    ## no critic (RequireLocalizedPunctuationVars)
    my $every = Sirius::Admin::History->EVERY;
    setitimer( ITIMER_REAL, $every, $every );
    return $look->();
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Server - the process that answers on the addresses of --admin

=head1 SYNOPSIS

  perl -MSirius::Admin::Server -e "Sirius::Admin::Server->serve('SIRIUS_ADMIN_PORT')"

=head1 DESCRIPTION

A program of its own, started by L<Sirius::Admin::Port>. It serves L<Sirius::Admin::App> as a worker of an edge that has no other,
reads the scoreboard of the server, and has one with a single row for itself. With C<--user> it has the rights of the workers.

Every 5 seconds it takes a sample of the scoreboard (L<Sirius::Admin::History>). When nobody asks, nothing else wakes
it, and it wakes no other process. The samples are kept in the scoreboard for its successor.

=head1 METHODS

=head2 serve

  Sirius::Admin::Server->serve($variable);

Takes what L<Sirius::Admin::Port> has given it under this name (L<Sirius::OS::Inherit>), serves, and returns at the end.

=head1 SEE ALSO

L<Sirius::Admin::Port>, L<Sirius::Admin::App>, L<Sirius::Worker>.

=cut
