package Sirius::Process::SlowLog;

use strict;
use warnings;

use Errno       qw(EPERM);
use Sirius::Log ();
use Sirius::OS::Proc;
use Sirius::OS::Sampler;
use Sirius::Profile::Label;

use constant FRAMES_MAX => 50;

my $OWN = 'Sirius::Worker::run';    # the sub of the server that has called the application

sub frames {
    my ( $class, $pid ) = @_;
    my $sampler  = Sirius::OS::Sampler->of_child($pid) or return;
    my ($labels) = $sampler->stack                     or return;
    my @frames;
    for my $label ( reverse @$labels ) {
        last if $label =~ /\A$OWN /;
        push @frames, _frame($label);
    }
    splice @frames, FRAMES_MAX, @frames, '...' if @frames > FRAMES_MAX;
    return \@frames;
}

# What the edge says of it: the ns at which it was complete, by which it can be told from the next one, and a
# text
sub hear {
    my ( $self, $worker, $said ) = @_;
    my ( $ready_at, $text )   = $said =~ /\A(\d+) (.+)\z/s or return;
    my ( $where,    @frames ) = $self->_look( $worker, $ready_at / 1e9 );
    Sirius::Log->warn( join "\n\t", 'worker ' . $worker->pid . ": $text; $where", @frames );
    return;
}

sub new {
    my ( $class, $board, %how ) = @_;
    return bless { %how, board => $board }, $class;
}

# A line without a stack, for a worker that nobody can look into
sub without {
    my ( $class, $pid, $said, $why ) = @_;
    Sirius::Log->warn( "worker $pid: " . $said =~ s/\A\d+ //r . "; no stack: $why" );
    return;
}

sub _count {
    my ( $shown, $times, $again, $what ) = @_;
    pop @$shown if $again;
    push @$shown, "($times $what)";
    return;
}

# For somebody who works on the application: without the calls of Plack and the server, which are the same in
# each stack, and those of a recursion
sub _folded {
    my @frames = @_;
    my ( @shown, $times, $before );
    for my $frame (@frames) {
        my $kind    = $frame =~ /\A(?:Plack(?!::Sandbox\b)|Sirius)::/ ? '' : $frame;
        my $is_next = defined $before && $before eq $kind;
        $before = $kind;
        $times  = $is_next ? $times + 1 : 1;
        if ( !length $kind ) {
            _count( \@shown, $times, $times > 1,
                $times == 1 ? 'call in Plack and Sirius' : 'calls in Plack and Sirius' );
        } elsif ( !$is_next ) {
            push @shown, $frame;
        } else {
            _count( \@shown, $times - 1, $times > 2, 'more of it' );
        }
    }
    return @shown;
}

# Nothing for a function in C, and for what has no place
sub _frame {
    my $label = shift;
    return '(calls that come and go)' if $label eq '(moved)';
    my ( $name, $file, $line ) = Sirius::Profile::Label->parts($label);
    return if $name eq '(main program)';
    return $name =~ /[)]\z/ ? () : $name if !defined $file;
    $name =~ s/\[.*\]\z//s;
    $name = 'require' if $name eq '(require)';
    return Sirius::Profile::Label->shown($name) . " at $file line $line";
}

sub _is_at {
    my ( $self, $worker, $ready_at ) = @_;
    my $row = $self->{board}->row( $worker->row );
    return $row->{pid} == $worker->pid && $row->{began} && abs( $row->{began} - $ready_at ) < 1e-6;
}

# The worker keeps running: checks before and after that it still serves that request
sub _look {
    my ( $self, $worker, $ready_at ) = @_;
    my $pid = $worker->pid;
    return 'it ended before its stack was read' if !$self->_is_at( $worker, $ready_at );
    my $frames = $self->frames($pid);
    my $error  = $!;
    my ($call) = map { /\Ait is (in the system call \S+|stopped)\z/ ? $1 : () } Sirius::OS::Proc->waits($pid);
    return 'it ended before its stack was read' if !$self->_is_at( $worker, $ready_at );
    return 'no stack: ' . _why($error)          if !$frames;
    return 'it runs no code of the application' if !@$frames;
    return ( defined $call ? "it is $call:" : 'its stack:' ), $self->{folds} ? _folded(@$frames) : @$frames;
}

sub _why {
    my $error = shift;
    return "$error (see kernel.yama.ptrace_scope)" if $error == EPERM;
    return Sirius::OS::Sampler->impossible($error) // $error;
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::SlowLog - logs requests that run for long, with their stack

=head1 SYNOPSIS

  my $slow_log = Sirius::Process::SlowLog->new( $scoreboard, folds => $bool );

With C<folds>, which C<sirius dev> sets, calls in the code of Plack and the server are counted only.
  $slow_log->hear( $worker, "$ready_at slow request: GET / from 192.0.2.7:33330 has run for 2.0 s ..." );

=head1 DESCRIPTION

The edge notices that a request runs for longer than C<--slow-log>, and tells the supervisor, which tells the generation of the
worker (F<src/edge/slow.h>). The generation reads the stack from the memory of the worker (L<Sirius::OS::Sampler>), which
neither stops nor interrupts it, and writes the lines to the error log.

=head1 METHODS

=head2 frames

  my $frames = Sirius::Process::SlowLog->frames($pid) or warn $!;
  print "$_\n" for @$frames;    # main::handler at app.psgi line 12

The subs of Perl in which a child of this process is, innermost first: at most 50 lines of text in printable ASCII, then C<...> if
there are more. What the server has called the application from is left out. What changes too quickly is one line, C<(calls that
come and go)>. Undef if the memory of the process cannot be read; C<$!> says why.

=head2 hear

  $slow_log->hear( $worker, $said );

Logs the request that the L<Sirius::Process::WorkerHandle> runs. C<$said> is the monotonic time in nanoseconds at which the request
was complete, and the text of the edge. If the request has ended meanwhile, the line says so, and has no stack.

=head2 new

  my $slow_log = Sirius::Process::SlowLog->new($scoreboard);

=head2 without

  Sirius::Process::SlowLog->without( $pid, $said, $why );

Logs the request without a stack, and why there is none.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Process::Pool>.

=cut
