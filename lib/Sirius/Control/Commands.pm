package Sirius::Control::Commands;

use strict;
use warnings;

use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Control::Channels;
use Sirius::OS::Title;
use Sirius::Profile::Collector;
use Sys::Hostname ();

use constant LOOK       => 0.05;           # seconds between two checks for those who wait
use constant MEMORY     => 4 * 1024**2;    # bytes of different stacks, and of those of all workers
use constant HOLDS_NONE => 'the server holds no connections: start it with --hold';

my %COMMAND = (
    channels => \&_channels,
    figures  => \&_figures,
    profile  => \&_profile,
    publish  => \&_publish,
    reload   => \&_reload,
    status   => \&_status,
    stop     => \&_stop,
    workers  => \&_workers,
);

# The answer, once that is possible
my %DONE = (
    channels => sub { $_[1]->done                       && $_[1]->answer },
    drained  => sub { $_[0]->_drained                   && $_[0]->_reloaded( $_[1] ) },
    workers  => sub { $_[1]{workers} == $_[0]->_serving && $_[1] },
);

# Answers the clients that use --wait once their condition holds
sub act {
    my $self = shift;
    my @still;
    for my $entry ( @{ $self->{later} } ) {
        my ( $what, $reply, $answer ) = @$entry;
        my $done = $DONE{$what}->( $self, $answer );
        if   ($done) { $reply->($done) }
        else         { push @still, $entry }
    }
    $self->{later} = \@still;
    $self->_take_samples if $self->_profiles;
    return;
}

# Nothing reports that workers have come or gone, so this looks
sub due {
    my $self = shift;
    return ( $self->{profile} ? $self->{profile}{collector}->due : () ),
        @{ $self->{later} } ? now() + LOOK : ();
}

sub later {
    my ( $self, $what, $reply, $answer ) = @_;
    push @{ $self->{later} }, [ $what, $reply, $answer ];
    return;
}

sub new {
    my ( $class, $supervisor, %parts ) = @_;
    my $self = bless { later => [], stops => [], supervisor => $supervisor, %parts }, $class;
    weaken $self->{$_} for qw(edge supervisor);
    return $self;
}

sub pending {
    my $self = shift;
    return @{ $self->{later} } + ( $self->{profile} ? 1 : 0 );
}

sub run {
    my ( $self, $request, $reply, $from, $waits ) = @_;
    my $name = $request->{command};
    my $code = $COMMAND{$name} or return $reply->( { ok => 0, error => "unknown command '$name'" } );
    return $reply->( { ok => 0, error => 'the server is stopping' } )
        if $self->{supervisor}->is_stopping && $name !~ /\A(?:publish|status|stop)\z/;
    my $why = defined $from ? "sirius ctl $name $from" : "sirius ctl $name";
    return $self->$code( $request, $reply, $why, $waits );
}

sub stopped {
    my $self = shift;
    $_->( { ok => 1, text => 'stopped' } ) for splice @{ $self->{stops} };
    return;
}

# Edges answer when they come to it
sub _channels {
    my ( $self, $request, $reply ) = @_;
    return $reply->( { ok => 0, error => HOLDS_NONE } ) if !$self->{conf}{hold};
    return $self->later( channels => $reply, Sirius::Control::Channels->new( $self->{edge}->channels ) );
}

# Whether the old generations are gone, the files of certificates are read, and no edge is about to take over
sub _drained {
    my ( $all, $edge ) = @{ +shift }{qw(generations edge)};
    return
           !grep( { $_->is_draining } $all->all )
        && !( $edge->keeper && $edge->keeper->reads )
        && $edge->settled;
}

# What /status.json of the admin port has, but for the memory that processes do not share, which takes long to
# find out
sub _figures {
    my ( $self, $request, $reply ) = @_;
    my $snapshot = $self->{scoreboard}->snapshot;
    my %about    = (
        app       => Sirius::OS::Title->app( $self->{conf} ),
        host      => Sys::Hostname::hostname(),
        listeners => [ map { $_->url } @{ $self->{listeners} } ],
        pid       => $$,
        started   => $self->{started},
        uptime    => time - $self->{started},
        version   => Sirius->VERSION,
    );
    return $reply->( { ok => 1, status => { %$snapshot, %about } } );
}

sub _generation {
    my $generation = shift;
    return {
        ( map { $_ => $generation->$_ } qw(number pid since) ),
        state => $generation->is_draining ? 'draining' : $generation->is_ready ? 'serving' : 'starting',
    };
}

# The kernel may let nobody but the ancestors of a worker look into it. An application can write any PID into
# its row
sub _profile {
    my ( $self, $request, $reply, undef, $waits ) = @_;
    my %which     = map { defined $request->{$_} ? ( $_ => $request->{$_} ) : () } qw(hz path seconds worker);
    my $collector = eval {
        Sirius::Profile::Collector->new(
            board  => $self->{scoreboard},
            memory => MEMORY,
            only   => sub { $self->{generations}->ours(shift) },
            reader => 'the server',
            %which
        );
    };
    return $reply->( { ok => 0, error   => $@ =~ s/\n\z//r } )                  if !$collector;
    return $reply->( { ok => 1, workers => $collector->dump(MEMORY) } )         if $request->{dump};
    return $reply->( { ok => 0, error   => 'another profile is being taken' } ) if $self->_profiles;
    $self->{profile} = { collector => $collector, reply => $reply, waits => $waits };
    return;
}

# Whether samples are taken. They are not if the client that has asked for them is gone
sub _profiles {
    my $self = shift;
    delete $self->{profile} if $self->{profile} && $self->{profile}{waits} && !$self->{profile}{waits}->();
    return $self->{profile};
}

sub _publish {
    my ( $self, $request, $reply ) = @_;
    my $error
        = $self->{conf}{hold}
        ? $self->{edge}->publish( @{ $request->{items} } )
        : HOLDS_NONE;
    return $reply->(
        defined $error ? { ok => 0, status => 503, error => $error } : { ok => 1, text => 'Published' } );
}

sub _reload {
    my ( $self, $request, $reply, $why ) = @_;
    my $all = $self->{generations};
    if ( $request->{abort} ) {
        return $reply->( { ok => 0, error => 'no reload is in progress' } ) if !$all->abort($why);
        return $reply->( { ok => 1, text  => 'reload aborted' } );
    }
    $all->reload( $request->{wait} ? $reply : undef, $why );
    $reply->( { ok => 1, text => 'reload started' } ) if !$request->{wait};
    return;
}

# An operator who has renewed a certificate wants to know that it is not in use, although the application has
# loaded
sub _reloaded {
    my ( $self, $answer ) = @_;
    my $edge  = $self->{edge};
    my $fault = ( $edge->keeper && $edge->keeper->fault ) // $edge->fault;
    return defined $fault ? { ok => 0, error => "$answer->{text}, but $fault" } : $answer;
}

# How many workers of the current generation serve
sub _serving {
    my $self    = shift;
    my $current = $self->{generations}->current or return 0;
    return
        scalar grep { $_->{generation} == $current->number && $_->{state} =~ /\A(?:idle|busy)\z/ }
        $self->{scoreboard}->table;
}

sub _status {
    my ( $self, $request, $reply ) = @_;
    my ( $all, $board, $edge )     = @{$self}{qw(generations scoreboard edge)};
    my ( $loading, $keeper )       = ( $all->loading, $edge->keeper );
    my %status = (
        beside             => [ $self->{companions}->status ],
        calls              => $board->calls,
        certificates       => [ $keeper ? $keeper->certificates : () ],
        certificates_fault => $keeper && $keeper->fault,
        edge_fault         => $edge->fault,
        crls               => [ $keeper ? $keeper->crls : () ],
        exceptions         => $board->exceptions,
        edges              => [ map { $board->edge($_) } 0 .. $board->edges - 1 ],
        lanes              => $board->lanes,
        loading            => $loading && { map { $_ => $loading->$_ } qw(number since) },
        generations        => [ map { _generation($_) } $all->all ],
        last_reload        => $all->last_reload,
        listeners          => [ map { $_->url } @{ $self->{listeners} } ],
        now                => now(),
        pid                => $$,

        # the name under which it is published
        rows    => [ map { +{ slot => delete $_->{row}, %$_ } } grep { $_->{pid} > 0 } $board->table ],
        time    => time,
        state   => $self->{supervisor}->is_stopping ? 'stopping' : 'running',
        version => Sirius->VERSION,
        workers => $board->workers,
    );
    return $reply->( { ok => 1, status => \%status } );
}

sub _stop {
    my ( $self, $request, $reply, $why ) = @_;
    $self->{supervisor}->stop( 'TERM', $why );
    if ( $request->{wait} ) { push @{ $self->{stops} }, $reply }
    else                    { $reply->( { ok => 1, text => 'stopping' } ) }
    return;
}

sub _take_samples {
    my $self = shift;
    my ( $collector, $reply ) = @{ $self->{profile} }{qw(collector reply)};
    $collector->act;
    return if !$collector->ended;
    delete $self->{profile};
    my $samples = $collector->samples;
    my %facts   = map { $_ => $samples->$_ } qw(cut failed folded hz left_out seconds taken);
    return $reply->( { ok => 1, %facts } );
}

sub _workers {
    my ( $self, $request, $reply, $why ) = @_;
    my $most = $self->{supervisor}->workers_most;
    return $reply->( {
        ok    => 0,
        error =>
            "only $most workers are possible, not $request->{workers}; for more, restart the server with a higher "
            . '--workers, or with --workers MIN:MAX'
    } )
        if $request->{workers} > $most;
    my $number = $self->{supervisor}->set_workers( $request->{workers}, $why );
    my $answer = { ok => 1, text => "$number workers", workers => $number };
    return $request->{wait} ? $self->later( workers => $reply, $answer ) : $reply->($answer);
}

1;

=encoding utf8

=head1 NAME

Sirius::Control::Commands - the commands of sirius ctl, as the supervisor runs them

=head1 SYNOPSIS

  use Sirius::Control::Commands;

  my $commands = Sirius::Control::Commands->new( $supervisor, %parts );
  $commands->run( { command => 'reload', wait => 1 }, sub { my $answer = shift } );

=head1 DESCRIPTION

The commands of L<Sirius::CLI::Ctl>, as they arrive over the socket of L<Sirius::Control::Server>: C<status>,
C<channels>, C<reload>, C<stop> and C<workers>, C<profile> of L<Sirius::CLI::Profile>, and C<publish> (L<Sirius::Control::HTTP>). An answer is a hash with C<ok> and C<text>, or with C<error> and, if a reload has
failed, C<said>: what the new generation has printed. With C<wait>, C<reload> is answered when the new generation
serves, the old one is gone, the files of certificates are read and edges are renewed, which is a failure if those are not used or these
were not, C<workers> when that many serve, and C<stop> at the very end.

=head1 METHODS

=head2 act

Answers the commands that are done.

=head2 due

When L</act> has to look again.

=head2 later

  $commands->later( drained => $reply, $answer );

Answers when the old generations are gone.

=head2 new

  my $commands = Sirius::Control::Commands->new( $supervisor, %parts );

C<companions>, C<edge>, C<generations> (L<Sirius::Process::Reload>), C<listeners> and C<scoreboard> of the server; C<started>: when it
was, in seconds since 1970.

=head2 pending

The number of commands that wait for an answer.

=head2 run

  $commands->run( \%request, $reply, $from, $waits );

C<$reply> is called once, now or later. C<$from> says who has asked; C<< $waits->() >> whether that client still waits. For a client that
is gone no samples are taken.

=head2 stopped

Answers the commands that wait for the end of the server.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Control::Server>, L<Sirius::Control::Client>.

=cut
