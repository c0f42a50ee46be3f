package Sirius::Worker;

use strict;
use warnings;

# The engine that is serving, for the application that calls exit
my $serving;

# Options the engine takes as they are
my @ENGINE = qw(body_memory body_rate body_timeout header_timeout keepalive keepalive_timeout max_body
    max_header_bytes max_header_fields max_keepalive_reqs max_request_line tmpdir write_timeout);

sub handlers {
    my $self  = shift;
    my $drain = sub { $self->_ask('drain') };

    # Subs, not 'IGNORE': a program started by the application would inherit that
    return (
        HUP  => sub { },
        INT  => sub { $self->_ask('stop') },
        PIPE => sub { },
        QUIT => $drain,
        TERM => $drain,
    );
}

sub new {
    my ( $class, %args ) = @_;
    return bless {%args}, $class;
}

sub run {
    my $self = shift;
    srand;
    my $app    = $self->{builder} ? $self->{builder}->() : $self->{app};
    my $engine = $self->{engine} = Sirius::Engine->new( $self->_engine_conf );
    $self->{on_ready}->();

    # A signal that came while there was no engine
    my $asked = $self->{asked};
    $serving = $engine;
    my $why = !$asked ? $engine->serve($app) : $asked eq 'drain' ? 'drained' : 'stopped';
    undef $serving;

    my $hook = $self->{conf}{child_exit};
    $hook->( $self, $app ) if $hook;
    delete $self->{engine};
    return $why;
}

# A second request to drain is a request to stop
sub _ask {
    my ( $self, $what ) = @_;
    $what = 'stop' if $self->{asked};
    $self->{asked} = $what;
    $self->{engine}->$what if $self->{engine};
    return;
}

sub _engine_conf {
    my $self = shift;
    my $conf = $self->{conf};
    return {
        ( map { $_ => $conf->{$_} } @ENGINE ),
        control_fd   => $self->{control} ? fileno $self->{control} : -1,
        listeners    => [ map { [ $_->fd, $_->name, $_->port, $_->is_unix ] } @{ $self->{listeners} } ],
        max_requests => $self->_max_requests,
        multiprocess => $self->{multiprocess} ? 1 : 0,
        scoreboard   => $self->{scoreboard},
        server       => $conf->{server_software},
        slot         => $self->{slot},
    };
}

# Spread, so that workers of one age do not retire in one moment
sub _max_requests {
    my $self = shift;
    return 0 if !$self->{multiprocess};
    my ( $min, $max ) = @{ $self->{conf} }{qw(min_reqs_per_child max_reqs_per_child)};
    return $min ? $max - int rand( $max - $min + 1 ) : $max;
}

END {
    local $?;
    $serving->abandon('the application called exit') if $serving;
}

1;

=encoding utf8

=head1 NAME

Sirius::Worker - one worker: an engine, an application, and the signals between them

=head1 SYNOPSIS

  use Sirius::Worker;

  my $worker = Sirius::Worker->new(
      app        => $app,
      conf       => Sirius::Options->parse({}),
      listeners  => \@listeners,
      on_ready   => sub {...},
      scoreboard => Sirius::Scoreboard->new(1),
      slot       => 0,
  );
  my %handlers = $worker->handlers;
  local @SIG{ keys %handlers } = values %handlers;
  my $why = $worker->run;

=head1 DESCRIPTION

Builds a C<Sirius::Engine>, lets it serve the application until it is done, runs the C<child_exit> hook. The same object
serves in a forked worker and, with C<--workers 0>, in the process itself.

=head1 SIGNALS

C<TERM> and C<QUIT> drain: what was accepted is finished. C<INT>, or any of them a second time, stops as soon as no
application call is running. C<HUP> is the supervisor's business and does nothing here.

An application that calls C<exit> ends the process; its client gets a 500 first.

=head1 METHODS

=head2 handlers

  my %handlers = $worker->handlers;

The C<%SIG> handlers for L</SIGNALS>. They may be installed before L</run>: what comes early is not forgotten.

=head2 new

  my $worker = Sirius::Worker->new(%args);

C<app>, or C<builder> (a sub that returns the application, called in L</run>); C<conf>, a hash from L<Sirius::Options>;
C<control>, a handle whose end of file tells that the supervisor is gone; C<listeners>, L<Sirius::Listener> objects;
C<multiprocess>; C<on_ready>, called when connections are served from now on; C<scoreboard> and C<slot>.

=head2 run

  my $why = $worker->run;

Serves, and returns why it ended: C<drained>, C<stopped>, C<max-requests> or C<harakiri>.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Supervisor>.

=cut
