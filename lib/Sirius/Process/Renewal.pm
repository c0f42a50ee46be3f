package Sirius::Process::Renewal;

use strict;
use warnings;

use POSIX ();
use Sirius;
use Sirius::Admin::Port;
use Sirius::Listen::Listener;
use Sirius::Log ();
use Sirius::Log::Access;
use Sirius::Log::Pipe;
use Sirius::OS::Inherit;
use Sirius::OS::Invocation;
use Sirius::OS::Title;
use Sirius::Service::PidFile;
use Sirius::Service::Privileges;

use constant VARIABLE => 'SIRIUS_RENEWAL';

sub become {
    my ( $class, $supervisor ) = @_;
    eval {
        my ( $state, @descriptors ) = $class->_state($supervisor);
        my $text = Sirius::OS::Inherit->give( $state, @descriptors );
        Sirius::OS::Invocation->run_module( $class, 'resume', VARIABLE() => $text );
    };
    Sirius::OS::Inherit->take_back;    # before there is another child
    die $@;                            ## no critic (RequireCarping)
}

sub resume {
    my $class = shift;
    my $state = Sirius::OS::Inherit->take(VARIABLE) or die "sirius: nothing to resume\n";
    my $fh    = sub { Sirius::OS::Inherit->take_handle(shift) };
    Sirius::OS::Invocation->restore( $state->{command} );
    $0 = join ' ', $^X, Sirius::OS::Invocation->words;    ## no critic (RequireLocalizedPunctuationVars)
    require Sirius::Process::Supervisor;                  # which uses this module
    my $supervisor = Sirius::Process::Supervisor->new(
        ( map { $_ => $state->{$_} } qw(conf fixed generations watch) ),
        access_log => Sirius::Log::Access->for_reopen( $state->{conf}, @{ $state->{owner} } ),
        privileges => Sirius::Service::Privileges->new( $state->{conf} ),
        alive      => $fh->( $state->{alive} ),
        admin      => Sirius::Admin::Port->restore( $state->{admin} ),
        announced  => 1,
        sleepers   => $fh->( $state->{sleepers} ),
        life       => $fh->( $state->{life} ),
        listeners  => [ map { Sirius::Listen::Listener->restore($_) } @{ $state->{listeners} } ],
        scoreboard => Sirius::Scoreboard->adopt( $state->{scoreboard} ),
        signals    => Sirius::OS::Signals->new( Sirius::Process::Pool->signals ),
        systemd    => Sirius::Service::Systemd->restore( $state->{systemd} ),
    );
    $supervisor->{control}  = Sirius::Control::Server->restore( $state->{control} )   if $state->{control};
    $supervisor->{pid_file} = Sirius::Service::PidFile->restore( $state->{pid_file} ) if $state->{pid_file};
    $supervisor->{log_pipe} = Sirius::Log::Pipe->restore( @{$state}{qw(conf log_pipe)} )
        if $state->{log_pipe};
    Sirius::Log->inherit( $state->{conf}, @{ $state->{owner} } );
    Sirius::OS::Title->set( $state->{conf}, 'supervisor' );
    my $before = $state->{version};
    my $now    = Sirius->VERSION;

    if ( !defined $before || $before eq $now ) {
        Sirius::Log->info("the supervisor now runs the installed code, Sirius $now");
    } else {
        Sirius::Log->note("the supervisor was updated from Sirius $before to $now");
    }
    if ( defined $state->{log} ) {    # for an edge; the command of a pipe has a handle already
        my $handle = $supervisor->{log_pipe} ? $supervisor->{log_pipe}->fh : $fh->( $state->{log} );
        $supervisor->{access_log}
            = Sirius::Log::Access->restore( $state->{conf}, $handle, @{ $state->{owner} } );
    }
    $supervisor->{edge} = Sirius::Edge::Group->restore( $supervisor, $state->{edge} ) if $state->{edge};
    my %generation = %{ $state->{generation} };
    $supervisor->{admin}->start($supervisor);    # anew; the process of before ends by itself
    $supervisor->{generations}->started( { %generation, news => $fh->( $generation{news} ) } );
    $supervisor->serve;
    return;
}

# Does the code that is installed now load at all? The PID of a child that finds out
sub try {
    my ( $class, $signals ) = @_;
    my $pid = fork;
    return $pid if !defined $pid || $pid;
    $signals->hand_over;
    eval { Sirius::OS::Invocation->run_module( $class, sprintf q{tried('%s')}, Sirius::Scoreboard->layout ) };
    Sirius::Log->pass("sirius: $@");
    return POSIX::_exit(1);
}

sub tried {
    my ( $class, $layout ) = @_;
    require Sirius::Process::Supervisor;
    require Sirius::Admin::App;    # what its child will need
    return 1 if $layout eq Sirius::Scoreboard->layout;
    die "sirius: the installed version has a different scoreboard; restart the server\n";
}

# Without code and lists, which are for generations and for the start; and the name that is found there
sub _conf {
    my $conf = shift;
    return {
        ( map { $_ => $conf->{$_} } grep { !ref $conf->{$_} } keys %$conf ),
        app => Sirius::OS::Title->app($conf)
    };
}

# What can be written down, and the descriptors in it. Code is for generations, which have the original command
sub _state {
    my ( $class, $supervisor ) = @_;
    my $all       = $supervisor->{generations};
    my ($current) = $all->all;
    my %service   = map { $_ => $supervisor->{$_}->state }
        grep { $supervisor->{$_} } qw(control edge log_pipe pid_file);
    my @listeners = map { $_->state } @{ $supervisor->{listeners} };
    my @board     = $supervisor->{scoreboard}->descriptor;
    my %state     = (
        %service,
        admin      => $supervisor->{admin}->state,
        alive      => fileno $supervisor->{alive},
        command    => Sirius::OS::Invocation->state,
        conf       => _conf( $supervisor->{conf} ),
        sleepers   => fileno $supervisor->{sleepers},
        generation => {
            ( map { $_ => $current->{$_} } qw(number pid since ready up) ),
            news => fileno $current->{news},
        },
        life        => fileno $supervisor->{life},
        listeners   => \@listeners,
        owner       => [ $supervisor->{privileges}->owner ],
        fixed       => $supervisor->{fixed},
        generations => { map { $_ => $all->{$_} } qw(last_number last_reload reloads usual) },
        scoreboard  => $board[0],
        log         => $supervisor->{edge} && $supervisor->{access_log} && $supervisor->{access_log}->fd,
        version     => Sirius->VERSION,
        watch       => $supervisor->{watch}->state,
        systemd     => $supervisor->{systemd}->state,
    );
    my @plain = ( @{$supervisor}{qw(alive life sleepers)}, $current->{news} );
    my @sockets
        = ( @listeners, @{ $state{admin}{listeners} }, map { $_ || () } @service{qw(control pid_file)} );
    push @plain, @{ $service{log_pipe} }{qw(read write)} if $service{log_pipe};
    push @plain, $supervisor->{edge}->descriptors        if $service{edge};
    push @plain, $state{log}                             if defined $state{log} && !$service{log_pipe};
    return ( \%state, @plain, @board, map { $_->{fd} } @sockets );
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Renewal - replaces the supervisor with its installed version

=head1 SYNOPSIS

  use Sirius::Process::Renewal;

  Sirius::Process::Renewal->become($supervisor);    # does not return

=head1 DESCRIPTION

A reload starts a new generation, which is a new program with the code that is installed now. The supervisor must keep
its PID, so it becomes the new program itself by C<exec> when the reload is done and nothing else is under way. Its
children stay its children; its descriptors are passed by number, the rest of its state as text. Before that a child
tries whether the code loads.

This also frees the memory of the application, which the supervisor had loaded for the first generation.

=head1 METHODS

=head2 become

  Sirius::Process::Renewal->become($supervisor);

Dies if it cannot; then nothing has changed.

=head2 resume

What the new program calls.

=head2 try

  my $pid = Sirius::Process::Renewal->try($signals);

Starts a perl that loads this code and exits with status 0, or another one if that fails.

=head2 tried

The work of that perl. Its argument is the layout of the scoreboard of the running server: a supervisor that could not
read it would end the server.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::OS::Inherit>, L<Sirius::OS::Invocation>.

=cut
