package Sirius::Service::Notify;

use strict;
use warnings;

use Sirius::Base::Clock qw(now);
use Sirius::Log         ();
use Socket              qw(AF_UNIX MSG_DONTWAIT MSG_NOSIGNAL SOCK_DGRAM pack_sockaddr_un);

my @VARIABLES = qw(NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID);

sub act {
    my $self = shift;
    my $now  = now();
    return if !defined $self->{due} || $now < $self->{due};
    $self->{due} = $now + $self->{interval};
    my $fine = !$self->{if} || $self->{if}->();
    Sirius::Log->error('no edge serves: the watchdog of systemd is not notified until one does')
        if !$fine && !$self->{said}++;
    return if !$fine;
    delete $self->{said};
    return $self->notify('WATCHDOG=1');
}

sub due {
    my $self = shift;
    return defined $self->{due} ? $self->{due} : ();
}

sub forget {
    delete @ENV{@VARIABLES};
    return;
}

sub new {
    my $class = shift;
    my ( $socket, $interval, $pid ) = delete @ENV{@VARIABLES};
    return bless {}, $class if !defined $socket || $socket !~ m{\A[/\@].{1,106}\z}s;    # sun_path
    my $self = bless { address => pack_sockaddr_un( $socket =~ s/\A\@/\0/r ) }, $class;
    return $self if defined $pid && $pid ne $$ || !defined $interval || $interval !~ /\A[1-9]\d*\z/;

    # As sd_watchdog_enabled(3) recommends: twice as often as required
    $self->{interval} = $interval / 2e6;
    $self->{due}      = now() + $self->{interval};
    return $self;
}

sub notify {
    my ( $self, @lines ) = @_;
    return if !defined $self->{address};
    tr/\n/ / for @lines;
    my $text = join "\n", @lines;
    utf8::encode($text) if utf8::is_utf8($text);

    # Opened for each message and closed before the next fork. It is systemd that notices a missing message
    local $!;
    socket my $fh, AF_UNIX, SOCK_DGRAM, 0 or return;
    send $fh, $text, MSG_DONTWAIT | MSG_NOSIGNAL, $self->{address};
    return;
}

# Tells the watchdog only while this code returns true
sub only_if {
    my ( $self, $code ) = @_;
    $self->{if} = $code;
    return;
}

sub restore {
    my ( $class, $state ) = @_;
    return bless {%$state}, $class;
}

sub state {
    my %state = %{ +shift };
    delete $state{if};
    return \%state;
}

1;

=encoding utf8

=head1 NAME

Sirius::Service::Notify - notifications to systemd

=head1 SYNOPSIS

  use Sirius::Service::Notify;

  my $systemd = Sirius::Service::Notify->new;
  $systemd->notify( 'READY=1', "MAINPID=$$", 'STATUS=serving' );

=head1 DESCRIPTION

The protocols of sd_notify(3) and sd_watchdog_enabled(3). Without systemd it does nothing. The variables are removed from the
environment when they are read, because children must not notify in the name of the server.

A unit that uses all of it:

  [Service]
  Type=notify-reload
  ExecStart=/usr/bin/sirius /srv/app.psgi
  WatchdogSec=30
  TimeoutStopSec=40

C<RELOADING=1> is sent when a reload begins and C<READY=1> when it ends, whether it succeeded or failed, so C<systemctl
reload> returns when the new code serves. The main process never changes. C<TimeoutStopSec> must be more than
C<--graceful-timeout>.

=head1 METHODS

=head2 act

  $systemd->act;

Sends C<WATCHDOG=1> when it is due, which is after half of C<WATCHDOG_USEC>.

=head2 due

  my ($time) = $systemd->due;

When the next L</act> is due, in seconds of the monotonic clock. Nothing without a watchdog.

=head2 forget

  Sirius::Service::Notify->forget;

Removes these variables from the environment, for a process that has inherited them.

=head2 new

  my $systemd = Sirius::Service::Notify->new;

Reads C<NOTIFY_SOCKET>, a path or C<@name>, and C<WATCHDOG_USEC>, which counts only when C<WATCHDOG_PID> is not set or this
process.

=head2 notify

  $systemd->notify(@lines);

Sends one message. A line break inside a line becomes a space. Never waits and never dies.

=head2 only_if

  $systemd->only_if( sub { ... } );

From now on L</act> leaves C<WATCHDOG=1> out while this code returns false, and says so in the log: systemd then acts as the unit says.

=head2 restore

  my $systemd = Sirius::Service::Notify->restore($state);

In the next program of the same process, from L</state>.

=head2 state

The state as plain data, for the next program.

=head1 SEE ALSO

L<Sirius::Service::Activation>, L<Sirius::Process::Supervisor>.

=cut
