package Sirius::Process::StopDelay;

use strict;
use warnings;

use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Log         ();

# Seconds: enough for a client that has connected to send, and less than a client waits until it repeats its
# SYN
use constant GATE => 0.25;

sub act {
    my $self  = shift;
    my $steps = $self->{steps};
    while ( @$steps && $steps->[0][0] <= now() ) {
        my $step = shift @$steps;
        $step->[1]->($self);
    }
    return;
}

sub due {
    return map { $_->[0] } @{ shift->{steps} };
}

sub holds {
    my ( $self, $signal, $why ) = @_;
    if ( $signal ne 'TERM' || !$self->{seconds} ) {
        @$self{qw(seconds steps)} = ( 0, [] );
        return 0;
    }
    return 1 if $self->{end};
    my $seconds = $self->{seconds};
    $self->{why} = $why;
    Sirius::Log->note("stopping in $seconds s (--drain-delay), /readyz answers 503 until then: $why");
    $self->{scoreboard}->stop_soon;
    $self->{edge}->close;
    $self->{end}   = now() + $seconds;
    $self->{steps} = [
        [ $self->{end} - ( $seconds > 2 * GATE ? GATE : $seconds / 2 ), \&_shut_gate ],
        [ $self->{end},                                                 \&_end ],
    ];
    return 1;
}

sub lasts { return scalar @{ shift->{steps} } }

sub new {
    my ( $class, %args ) = @_;
    my $self = bless { steps => [], %args }, $class;
    weaken $self->{edge};
    return $self;
}

# All processes share the sockets: clients that wait for a worker are refused at once, instead of being reset
# at the end
sub _end {
    my $self = shift;
    $self->{seconds} = 0;
    shutdown $_, 2 for $self->_sockets;
    return $self->{over}->("--drain-delay is over, after $self->{why}");
}

sub _shut_gate {
    my $self = shift;
    $_->shut_gate for @{ $self->{listeners} };
    return;
}

sub _sockets {
    return map { $_->bound_tcp } @{ shift->{listeners} };
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::StopDelay - the time between TERM and the stop, for load balancers

=head1 SYNOPSIS

  use Sirius::Process::StopDelay;

  my $delay = Sirius::Process::StopDelay->new( seconds => 5, over => sub {...}, ... );
  return if $delay->holds('TERM');    # the sub is called when the time is over

=head1 DESCRIPTION

A server that stops as soon as it is told to loses requests: until its next health check a load balancer goes on
sending them, on new connections and on kept ones. With C<--drain-delay SECONDS>, the first C<TERM> (C<QUIT>, C<sirius
ctl stop>) begins a time in which

=over 4

=item *

C</readyz> of the admin port is 503: C<not ready: the server is stopping>;

=item *

all requests are served as before, also those on new connections, and each response says C<Connection: close>;

=item *

no reload begins.

=back

In the last quarter of a second new connections are kept out, so that their clients try again a second later, while
connections in the kernel's queue are accepted (F<src/net/gate.h>). Then they are refused, so that a load balancer can
send any request to another server, and the stop goes on as without this option: see
L<Sirius::Process::Supervisor/SIGNALS>. This holds for TCP addresses that the server has bound itself. Sockets of
systemd and of Server::Starter stay open, and new connections wait there for the next server. If the kernel lets only
root attach a filter to a socket, new connections are accepted to the end, and those of the last milliseconds may be
reset.

C<INT>, or a second C<TERM>, does not wait.

The time must be longer than the load balancer needs to notice: the interval of its checks times the number of checks
that must fail. Whatever stops the server must wait for C<--drain-delay> and C<--graceful-timeout> together, and 2
seconds more: C<TimeoutStopSec> of systemd, C<terminationGracePeriodSeconds> of Kubernetes, C<stop_grace_period> of
Docker Compose.

=head1 METHODS

=head2 act

Does what is due.

=head2 due

The monotonic times at which L</act> has something to do.

=head2 holds

  my $bool = $delay->holds($signal);

True if a stop by this signal has to wait. The first C<TERM> begins the time, any other signal ends it.

=head2 lasts

True while a stop has to wait.

=head2 new

  my $delay = Sirius::Process::StopDelay->new(%args);

C<seconds>, which may be 0; C<over>, called with the reason of the stop when they are over; C<edge>, C<listeners> and C<scoreboard>
of the server.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Admin::App>, F<deploy/README.md>.

=cut
