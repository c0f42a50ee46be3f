package Sirius::Admin::Sampling;

use strict;
use warnings;

use JSON::PP            ();
use List::Util          qw(max);
use Sirius::Base::Clock qw(now);
use Sirius::Profile::Collector;

use constant {
    CHUNK   => 128 * 1024,  # bytes of an answer
    HZ      => 99,
    KEEP    => 60,          # seconds for which samples wait to be asked for, and somebody looks at their page
    MEMORY  => 8 * 1024 * 1024,    # bytes of different stacks
    SECONDS => 10,
    STACK   => 48 * 1024,    # bytes of the names in a stack: a message has a limit, and JSON may double them
};

my $json = JSON::PP->new->canonical->ascii;

sub act {
    my $self = shift;
    delete @{$self}{qw(done until)} if $self->{until} && now() >= $self->{until};
    my $collector = $self->{collector} or return;
    $collector->act;
    return if !$collector->ended;
    delete $self->{collector};
    my $samples = $collector->samples;
    my %facts   = map { $_ => $samples->$_ } qw(cut failed hz left_out seconds taken);
    $self->{done}  = $json->encode( { %facts, workers => $collector->workers } ) . "\n" . $samples->folded;
    $self->{until} = now() + KEEP;
    return;
}

sub begin {
    my $self = shift;
    return 'running' if $self->{collector};
    delete @{$self}{qw(done until)};
    $self->{collector} = $self->_collector( hz => HZ, memory => MEMORY, seconds => SECONDS );
    return 'begun ' . SECONDS;
}

sub due {
    my $self = shift;
    return ( $self->{collector} ? $self->{collector}->due : () ), grep {defined} $self->{until};
}

sub new {
    my ( $class, %parts ) = @_;
    return bless {%parts}, $class;
}

sub pending {
    my $self = shift;
    return $self->{collector} || $self->{until} ? 1 : 0;
}

sub samples {
    my ( $self, $from ) = @_;
    return 'running' if $self->{collector};
    my $text = $self->{done} // return 'none';
    my $part = $from < length $text ? substr $text, $from, CHUNK : '';
    my $left = max 0, length($text) - $from - length $part;
    delete $self->{done} if !$left;
    return "left $left $part";
}

sub stack {
    my ( $self, $pid ) = @_;
    my ($worker) = grep { $_->{pid} == $pid } @{ $self->_collector( worker => $pid )->dump(STACK) };
    die "there is no worker $pid\n" if !$worker;
    return $json->encode($worker);
}

sub _collector {
    my ( $self, %which ) = @_;
    return Sirius::Profile::Collector->new(
        board  => $self->{board},
        only   => $self->{only},
        reader => 'the server',
        %which
    );
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Sampling - stacks and samples of the workers, which the supervisor takes for the admin port

=head1 SYNOPSIS

  use Sirius::Admin::Sampling;

  my $sampling = Sirius::Admin::Sampling->new( board => $scoreboard, only => sub { my $pid = shift; return is_ours($pid) } );
  $loop->add($sampling);
  Sirius::Admin::Line->answer( $socket, stack => sub { $sampling->stack(shift) }, ... );

=head1 DESCRIPTION

The answers to L<Sirius::Admin::Line/ask>. They are for L<Sirius::Admin::Profile>, in a process that may not look into others.

Who can open the status page can ask for samples again and again, so they are bounded: ten seconds, one at a time, 8 MiB of different
stacks, and 3200 stacks in a second, with fewer samples of each worker where there are many. An application can write any PID into its row
of the scoreboard, so only processes for which C<only> is true are looked at.

=head1 METHODS

=head2 act

Takes samples that are due.

=head2 begin

  my $answer = $sampling->begin;

Begins to take samples: C<begun 10>, or C<running> if they are being taken. Dies with a line that says why the kernel forbids it.

=head2 due

When L</act> has something to do, in monotonic seconds.

=head2 new

  my $sampling = Sirius::Admin::Sampling->new( board => $scoreboard, only => $sub );

=head2 pending

Whether samples are being taken, or were in the last minute: their page is lost when the supervisor becomes another program.

=head2 samples

  my $answer = $sampling->samples($from);

C<running>, C<none>, or C<left>, the number of bytes that are left after these, and the bytes from C<$from> on: a line of JSON about the samples, and
L<Sirius::Profile::Samples/folded>. They are forgotten with the last ones, and after a minute.

=head2 stack

  my $json = $sampling->stack($pid);

What a worker does now, as L<Sirius::Profile::Collector/dump> tells; of a stack with very long names the inner part. Dies with a line if there is none, or if the kernel forbids it.

=head1 SEE ALSO

L<Sirius::Admin::Port>, L<Sirius::Control::Commands>.

=cut
