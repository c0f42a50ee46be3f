package Sirius::OS::ExitStatus;

use strict;
use warnings;

use Config qw(%Config);
use Sirius::OS::Memory;

my @NAME = split ' ', $Config{sig_name};

# Signals that mean a fault in the process itself
my %FAULT = map { $_ => 1 } qw(ABRT BUS FPE ILL SEGV SYS TRAP);

# A process that lacked memory has ended, after the line "Out of memory!" of perl
use constant NO_MEMORY => 'perl ran out of memory';

# How reasons begin, and the cause under which they are counted
my @REASONS = (
    [ 'fewer'            => 'fewer-workers' ],
    [ 'harakiri'         => 'harakiri' ],
    [ '--'               => 'load-timeout' ],
    [ 'it was not ready' => 'load-timeout' ],
    [ 'its request'      => 'request-timeout' ],
    ['max-lifetime'],
    ['max-requests'],
    ['max-rss'],
    [ 'timeout' => 'request-timeout' ],
    [ 'drained' => 'stop' ],
    [ 'stopped' => 'stop' ],
);

sub exiting {
    my ( $class, $status ) = @_;
    return NO_MEMORY if Sirius::OS::Memory->over;
    return "the application called exit (status $status)";
}

sub kind {
    my ( $class, $status, $why, $stopping, $killed, $oom ) = @_;
    my $name = $NAME[ $status & 127 ];
    return 'out-of-memory'    if $name eq 'KILL' && $oom || $why eq NO_MEMORY;
    return 'crash'            if $status & 127   && $FAULT{$name};
    return 'graceful-timeout' if $name eq 'KILL' && $killed;
    my ($reason) = grep { index( $why, $_->[0] ) == 0 } @REASONS;
    return $reason->[-1]
        if $reason && ( !( $status & 127 ) || $name ne 'KILL' || $reason->[-1] =~ /timeout/ );
    return $name =~ /\A(?:INT|QUIT|TERM)\z/ && $stopping ? 'stop' : 'killed' if $status & 127;
    return $stopping                        && !$status  ? 'stop' : 'exit';
}

sub signal {
    my ( $class, $number ) = @_;
    return $NAME[$number];
}

sub words {
    my ( $class, $status, $why ) = @_;
    my $signal = $status & 127;
    return "was killed by signal $signal ($NAME[$signal])" if $signal;
    return "exited with status @{[ $status >> 8 ]}: $why"  if $status && $why eq NO_MEMORY;
    return 'exited with status ' . ( $status >> 8 )        if $status;
    return "exited with $why"                              if $why eq 'status 0';
    return length $why ? "exited: $why" : 'exited with status 0 inside the application';
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::ExitStatus - exit statuses in words

=head1 SYNOPSIS

  use Sirius::OS::ExitStatus;

  my $words = Sirius::OS::ExitStatus->words( $?, '' );    # was killed by signal 9 (KILL)

=head1 METHODS

=head2 exiting

  END { my $why = Sirius::OS::ExitStatus->exiting($?); ... }

Why this process ends: C<the application called exit (status 2)>, or C<perl ran out of memory>. For END blocks of
a process that has called L<Sirius::OS::Memory/watch>. The constant C<NO_MEMORY> is the second of these.

=head2 kind

  my $cause = Sirius::OS::ExitStatus->kind( $status, $why, $stopping, $killed, $oom );

The cause under which the end of a worker is counted (L<Sirius::Scoreboard/exited>). C<$why> is why it was asked to end, or
what it has said itself, or ''. C<$stopping> is true when its generation stops, C<$killed> when it was killed then because
it did not end in time, C<$oom> when the kernel has killed it because memory ran out.

=head2 signal

  my $name = Sirius::OS::ExitStatus->signal(9);    # KILL

The name of a signal.

=head2 words

  my $words = Sirius::OS::ExitStatus->words( $status, $why );

Words for a wait status, and for a reason that the process itself has given, or ''.

=head1 SEE ALSO

L<Sirius::Process::Pool>, L<Sirius::Process::Reload>.

=cut
