package Sirius::Process::Renewal;

use strict;
use warnings;

use Sirius;
use Sirius::Admin::Port;
use Sirius::Control::Server;
use Sirius::Listen::Listener;
use Sirius::Log ();
use Sirius::Log::Access;
use Sirius::Log::Pipe;
use Sirius::OS::Child;
use Sirius::OS::Inherit;
use Sirius::OS::Invocation;
use Sirius::OS::Loop;
use Sirius::OS::Title;
use Sirius::Process::Generation;
use Sirius::Process::Pool;
use Sirius::Scoreboard;
use Sirius::Service::PidFile;
use Sirius::Service::Privileges;
use Sirius::Service::Notify;

use constant VARIABLE => 'SIRIUS_RENEWAL';

sub become {
    my ( $class, $program, %parts ) = @_;
    eval {
        my ( $state, @descriptors ) = $class->_state(%parts);
        my $text = Sirius::OS::Inherit->give( $state, @descriptors );
        Sirius::OS::Invocation->run_module( $program, 'resume', VARIABLE() => $text );
    };
    Sirius::OS::Inherit->take_back;    # before there is another child
    die $@;                            ## no critic (RequireCarping)
}

sub generation { return shift->{generation} }

sub say {
    my $self   = shift;
    my $before = $self->{version};
    my $now    = Sirius->VERSION;
    return Sirius::Log->info("the supervisor now runs the installed code, Sirius $now")
        if !defined $before || $before eq $now;
    return Sirius::Log->note("the supervisor was updated from Sirius $before to $now");
}

sub take {
    my $class = shift;
    my $state = Sirius::OS::Inherit->take(VARIABLE) or die "sirius: nothing to resume\n";
    my $fh    = sub { Sirius::OS::Inherit->take_handle(shift) };
    Sirius::OS::Invocation->restore( $state->{command} );
    $0 = join ' ', $^X, Sirius::OS::Invocation->words;    ## no critic (RequireLocalizedPunctuationVars)
    my @log = ( $state->{conf}, @{ $state->{owner} } );
    Sirius::Log->inherit(@log);
    Sirius::Log->lost( $state->{lines_lost} );
    my $log_pipe   = $state->{log_pipe} && Sirius::Log::Pipe->restore( @{$state}{qw(conf log_pipe)} );
    my $access_log = defined $state->{log}    # for the edge; the command of a pipe has its handle already
        ? Sirius::Log::Access->restore(
        $state->{conf},
        $log_pipe ? $log_pipe->fh : $fh->( $state->{log} ),
        @{ $state->{owner} }
        )
        : Sirius::Log::Access->for_reopen(@log);
    my %generation = %{ $state->{generation} };
    my $child      = Sirius::OS::Child->new( delete $generation{pid}, since => delete $generation{since} );
    $generation{news} = $fh->( $generation{news} );
    my $self = bless {
        generation => Sirius::Process::Generation->new( $child, %generation ),
        version    => $state->{version}
    }, $class;
    return (
        $self,
        ( map { $_ => $state->{$_} } qw(alerts companions conf edge fixed reload) ),
        access_log      => $access_log,
        control         => $state->{control}  && Sirius::Control::Server->restore( $state->{control} ),
        pid_file        => $state->{pid_file} && Sirius::Service::PidFile->restore( $state->{pid_file} ),
        log_pipe        => $log_pipe,
        privileges      => Sirius::Service::Privileges->new( $state->{conf} ),
        lifeline        => $fh->( $state->{lifeline} // $state->{alive} ),
        admin           => Sirius::Admin::Port->restore( $state->{admin} ),
        announced       => 1,
        sleepers        => $fh->( $state->{sleepers} ),
        lifeline_writer => $fh->( $state->{lifeline_writer} // $state->{life} ),
        listeners       => [ map { Sirius::Listen::Listener->restore($_) } @{ $state->{listeners} } ],
        scoreboard      => Sirius::Scoreboard->adopt( $state->{scoreboard} ),
        loop            => Sirius::OS::Loop->new( Sirius::Process::Pool->signals ),
        systemd         => Sirius::Service::Notify->restore( $state->{systemd} ),
    );
}

sub tried {
    my ( $class, $layout ) = @_;
    require Sirius::Admin::App;    # what a child of the supervisor will need
    my $ours = Sirius::Scoreboard->layout;
    return 1 if $layout eq $ours;
    die
        "sirius: the scoreboard of this server has layout $layout, and the installed version of Sirius layout $ours; restart the server\n";
}

# Starts a child that finds out whether the installed code can be loaded
sub try {
    my ( $class, $program, $loop ) = @_;
    my $code = sub {
        $loop->hand_over( {} );
        eval {
            Sirius::OS::Invocation->run_module( $program, sprintf q{tried('%s')},
                Sirius::Scoreboard->layout );
        };
        Sirius::Log->pass("sirius: $@");
    };
    return Sirius::OS::Child->fork($code);
}

# Without code and lists, which only generations and the start need; with the name of the application
sub _conf {
    my $conf = shift;
    return {
        ( map { $_ => $conf->{$_} } grep { !ref $conf->{$_} } keys %$conf ),
        app => Sirius::OS::Title->app($conf)
    };
}

# What can be serialized, and its descriptors. Code is only needed by generations, which run the original
# command
sub _state {
    my ( $class, %parts ) = @_;
    my ($current)  = $parts{reload}->all;
    my $generation = $current->state;
    my %service    = map { $_ => $parts{$_}->state } grep { $parts{$_} } qw(control edge log_pipe pid_file);
    my @plain      = ( @parts{qw(lifeline lifeline_writer sleepers)}, $generation->{news} );
    my @listeners  = map { $_->state } @{ $parts{listeners} };
    my @board      = $parts{scoreboard}->descriptor;
    my $log        = $parts{access_log};
    my %state      = (
        %service,
        ( map { $_ => $parts{$_}->state } qw(admin alerts companions reload systemd) ),
        ( map { $_ => fileno $parts{$_} } qw(lifeline lifeline_writer sleepers) ),
        lines_lost => Sirius::Log->lost,
        command    => Sirius::OS::Invocation->state,
        conf       => _conf( $parts{conf} ),
        generation => $generation,
        listeners  => \@listeners,
        owner      => [ $parts{privileges}->owner ],
        fixed      => $parts{fixed},
        scoreboard => $board[0],
        log        => $parts{edge} && $log && $log->fd,
        version    => Sirius->VERSION,
    );
    my @sockets
        = ( @listeners, @{ $state{admin}{listeners} }, map { $_ || () } @service{qw(control pid_file)} );
    push @plain, map { $_->{output} ? $_->{output}{handle} : () } @{ $state{companions}{each} };
    push @plain, @{ $service{log_pipe} }{qw(read write)} if $service{log_pipe};
    push @plain, $parts{edge}->descriptors               if $service{edge};
    push @plain, $state{log}                             if defined $state{log} && !$service{log_pipe};
    return ( \%state, @plain, @board, map { $_->{fd} } @sockets );
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Renewal - replaces the supervisor with its installed version

=head1 SYNOPSIS

  use Sirius::Process::Renewal;

  Sirius::Process::Renewal->become( 'Sirius::Process::Supervisor', %parts );    # does not return

=head1 DESCRIPTION

A reload starts a new generation, which is a new program with the code that is installed now. The supervisor must keep
its PID, so it becomes the new program itself by C<exec> when the reload is done and nothing else is under way. Its
children stay its children; its descriptors are passed by number, the rest of its state as text. Before that a child
tries whether the code loads.

This also frees the memory of the application, which the supervisor had loaded for the first generation.

=head1 METHODS

=head2 become

  Sirius::Process::Renewal->become( $program, %parts );

Runs C<resume> of this class in a new program, with these parts of the supervisor. Dies if it cannot; then nothing has changed.

=head2 generation

The L<Sirius::Process::Generation> that serves.

=head2 say

Logs that the supervisor was replaced, and its versions if they differ.

=head2 take

  my ( $renewal, %args ) = Sirius::Process::Renewal->take;

In the new program: what L<Sirius::Process::Supervisor/new> is to get. The program calls C<resume> of the supervisor's class.

=head2 try

  my $child = Sirius::Process::Renewal->try( $program, $loop );

Starts a perl that loads this code and exits with status 0, or another one if that fails. Returns its L<Sirius::OS::Child>.

=head2 tried

The work of that perl. Its argument is the layout of the scoreboard of the running server: a supervisor that could not
read it would end the server.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::OS::Inherit>, L<Sirius::OS::Invocation>.

=cut
