package Sirius::Process::Launch;

use strict;
use warnings;

use POSIX ();
use Sirius::App::Forked;
use Sirius::Config::Values;
use Sirius::Edge::Keeper;
use Sirius::Edge::Setup;
use Sirius::Listen::Listener;
use Sirius::Log ();
use Sirius::Log::Access;
use Sirius::OS::Child;
use Sirius::OS::Inherit;
use Sirius::OS::Invocation;
use Sirius::Process::Generation;
use Sirius::Process::Pool;
use Sirius::Service::Activation;
use Sirius::Service::Notify;
use Sirius::Service::Privileges;
use Socket qw(AF_UNIX PF_UNSPEC SOCK_STREAM);

use constant VARIABLE => 'SIRIUS_GENERATION';

# The original command, which stops where it would load the application (Sirius::Dev::Base). handles: passed
# on besides
sub base {
    my ( $self, $handles ) = @_;
    my $code = sub {
        eval { $self->_become($handles) };
        Sirius::Log->pass("sirius: $@");
    };
    return Sirius::OS::Child->fork($code) || die 'cannot fork: ' . Sirius::OS::Child->failure . "\n";
}

# For an application that is loaded in this process
sub here {
    my ( $self, $number ) = @_;
    my $parent = $$;
    my ( $news, $report ) = eval { $self->pair } or Sirius::Log->fail( $@ =~ s/\n\z//r );
    my $code = sub {
        close $news;
        Sirius::OS::Child->end_with($parent);
        exit Sirius::Process::Pool->new( $self->{forked}->(), number => $number, supervisor => $report )->run;
    };
    my $child = Sirius::OS::Child->fork($code)
        or Sirius::Log->fail( 'cannot fork: ' . Sirius::OS::Child->failure );
    return Sirius::Process::Generation->new( $child, number => $number, news => $news );
}

sub new {
    my ( $class, %inherited ) = @_;
    return bless {%inherited}, $class;
}

# Both directions: the generation reports its progress, the supervisor passes on what the edges say of workers
sub pair {
    socketpair my $news, my $report, AF_UNIX, SOCK_STREAM, PF_UNSPEC
        or die "cannot create a socket pair: $!\n";
    return $news, $report;
}

# Runs the original command, and passes it our descriptors
sub program {
    my ( $self, $number ) = @_;
    my ( $news, $report ) = $self->pair;
    pipe my $stderr, my $said or die "cannot create a pipe: $!\n";
    my $parent = $$;
    my $code   = sub {
        Sirius::OS::Child->end_with($parent);
        eval {
            my $copy = POSIX::dup(2);    # by number: an application may have tied STDERR
            my $ours = Sirius::OS::Inherit->take_handle( defined $copy ? $copy : die "STDERR: $!\n" );
            Sirius::Log->close;          # the supervisor's STDERR has the layer already
            defined POSIX::dup2( fileno $said, 2 ) or die "STDERR: $!\n";
            $self->_become( { news => $report, stderr => $ours }, number => $number );
        };
        Sirius::Log->pass("sirius: $@");
    };
    my $child = Sirius::OS::Child->fork($code) or die 'cannot fork: ' . Sirius::OS::Child->failure . "\n";
    return Sirius::Process::Generation->new(
        $child,
        number => $number,
        news   => $news,
        stderr => $stderr,
        said   => ''
    );
}

# In the new program, its handler is reached in the same way as at the start
sub take {
    my ( $class, %args ) = @_;
    my $state = Sirius::OS::Inherit->take(VARIABLE) or return;
    $_->forget for qw(Sirius::Service::Activation Sirius::Service::Notify);
    Sirius::App::Forked->exit_child( $state->{pid}, 'while it was loaded' )
        ;    # before it has any descriptor of ours
    my $fh  = sub { Sirius::OS::Inherit->take_handle(shift) };
    my $log = $fh->( $state->{stderr} );
    defined POSIX::dup2( fileno $log, 2 ) or die "sirius: STDERR: $!\n"; # until now it went to the supervisor
    STDERR->autoflush(1);
    my @unchanged = $class->_unchanged( $state->{fixed} || {}, $args{conf} );
    $class->_keep_user( $state->{fixed} || {}, \%args );
    my $access = Sirius::Log::Access->adopt( $args{conf}, $state->{log}, $args{privileges}->owner );
    $access->forget if $access;                                          # the edges have it
    my $is = $args{conf}{access_log} // q();
    push @unchanged, [ '--access-log', $state->{edge_log}, $is ]
        if defined $state->{edge_log} && $is ne $state->{edge_log};
    return Sirius::Process::Pool->new(
        %args,
        lifeline   => $fh->( $state->{lifeline} // $state->{alive} ),
        sleepers   => $fh->( $state->{sleepers} ),
        listeners  => [ map { Sirius::Listen::Listener->described($_) } @{ $state->{listeners} } ],
        access_log => $access,
        audience   => $state->{live},
        number     => $state->{number},
        reload     => 1,
        scoreboard => Sirius::Scoreboard->adopt( $state->{scoreboard} ),
        supervisor => $fh->( $state->{news} ),
        unchanged  => \@unchanged,
        defined $state->{edge_log}
        ? ( edge => [ Sirius::Edge::Setup->of( $args{conf} ), Sirius::Edge::Keeper->words( $args{conf} ) ]
            )
        : (),
    );
}

sub _become {
    my ( $self, $handles, %plain ) = @_;
    $self->{loop}->hand_over( {} );
    my @listeners   = map { $_->description } @{ $self->{listeners} };
    my @descriptors = $self->{scoreboard}->descriptor;
    my ( $lifeline, $pipe, $sleepers ) = @{$self}{qw(lifeline log_pipe sleepers)};
    my $text = Sirius::OS::Inherit->give(
        {   %plain,
            ( map { $_ => fileno $handles->{$_} } keys %$handles ),
            lifeline   => fileno $lifeline,
            edge_log   => $self->{conf}{access_log} // '',
            sleepers   => fileno $sleepers,
            fixed      => $self->{fixed},
            listeners  => \@listeners,
            log        => $pipe && fileno $pipe->fh,
            pid        => POSIX::getpid(),
            scoreboard => $descriptors[0],
        },
        $lifeline,
        $sleepers,
        values %$handles,
        ( $pipe ? $pipe->fh : () ),
        @descriptors
    );
    return Sirius::OS::Invocation->run( VARIABLE() => $text );
}

# Workers of another user could not use what the edges have opened, and without the option they would be
# root's
sub _keep_user {
    my ( $class, $were, $args ) = @_;
    return if grep { !defined $were->{$_} } qw(group user);    # it was another version that started this one
    my $conf = $args->{conf};
    return if !grep { $were->{$_} ne ( $conf->{$_} // q() ) } qw(group user);
    $conf->{$_} = length $were->{$_} ? $were->{$_} : undef for qw(group user);
    $args->{privileges} = Sirius::Service::Privileges->new($conf);
    return;
}

# What the file of --config sets otherwise than at the start, and only a start can change
sub _unchanged {
    my ( $class, $were, $conf ) = @_;
    my $are = Sirius::Config::Values->fixed($conf);
    return map { [ '--' . tr/_/-/r, $were->{$_}, $are->{$_} ] }
        grep { defined $were->{$_} && $were->{$_} ne $are->{$_} } sort keys %$are;
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Launch - starts a generation

=head1 SYNOPSIS

  use Sirius::Process::Launch;

  my $launch     = Sirius::Process::Launch->new(%inherited);
  my $generation = $launch->program(2);

=head1 DESCRIPTION

The first generation is a fork of the supervisor, which has loaded the application. Every other generation is the
original command, run again (L<Sirius::OS::Invocation>). A variable in its environment says what it inherits
(L<Sirius::OS::Inherit>): the names of the listening sockets, the sleepers, the scoreboard, a socket for its reports, and a pipe
whose end of file says that the supervisor is gone. Its STDERR is a pipe while it loads, so that the supervisor can say
why a reload has failed.

=head1 METHODS

=head2 base

  my $child = $launch->base( { base => $socket } );

A L<Sirius::OS::Child> that becomes the original command, which stops where it would load the application; C<sirius dev> forks
generations from it. The handles are in its state under these names.

=head2 here

  my $generation = $launch->here($number);

A L<Sirius::Process::Generation>. Dies when there can be no child.

=head2 new

C<conf>, C<fixed>, C<lifeline>, C<listeners>, C<log_pipe>, C<loop>, C<scoreboard> and C<sleepers> are what a generation inherits or what
it is told; C<forked>, called in a fork of the supervisor, gives up what a generation does not need, and returns the arguments of
L<Sirius::Process::Pool/new>.

=head2 pair

  my ( $news, $report ) = Sirius::Process::Launch->pair;

The sockets by which the supervisor and a generation tell each other what is new.

=head2 program

  my $generation = $launch->program($number);

The same, with a STDERR of its own.

=head2 take

  my $generation = Sirius::Process::Launch->take(%args);

In the new program: the L<Sirius::Process::Pool> that it is to run, or nothing when it was started by an operator.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Process::Pool>.

=cut
