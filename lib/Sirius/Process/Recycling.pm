package Sirius::Process::Recycling;

use strict;
use warnings;

use Sirius::Base::Clock qw(now);
use Sirius::Log         ();
use Sirius::OS::Proc;

use constant {
    GRACE   => 1,    # seconds a worker has after the deadline of its request to say where it is
    LOOK    => 5,    # seconds between two checks of the workers' memory
    OVERDUE => 'its request ran for too long',
};

sub act {
    my ( $self, @workers ) = @_;
    my $now  = now();
    my @stay = grep { !$_->recycle_reason && !$_->is_retiring } @workers;
    for my $worker ( grep { defined $_->expires && $_->expires <= $now } @stay ) {
        $worker->recycle( sprintf 'max-lifetime (%d s)', $now - $worker->since );
    }
    return if !$self->{conf}{max_rss} || $now < $self->{looked_at} + LOOK;
    $self->{looked_at} = $now;
    for my $worker ( grep { !$_->recycle_reason } @stay ) {
        my $bytes = Sirius::OS::Proc->resident( $worker->pid );
        my $limit = $self->{conf}{max_rss};
        $worker->recycle( sprintf 'max-rss (%.1f MiB, the limit is %g MiB)',
            map { $_ / 2**20 } $bytes, $limit )
            if $bytes > $limit;
    }
    return;
}

# A worker has started. Its lifetime is spread, so that workers of one age do not end at once
sub begin {
    my ( $self, $worker ) = @_;
    my $lifetime = $self->{conf}{max_lifetime};
    $worker->expire_at( $worker->since + $lifetime * ( 1 - rand 0.1 ) ) if $lifetime;
    return;
}

# The worker has reported something impossible, so its memory is corrupt. Its request was answered already
sub broken {
    my ( $self, $worker, $what ) = @_;
    Sirius::Log->error( 'worker ' . $worker->pid . " $what; it will be replaced" );
    $worker->recycle('its memory is corrupt');
    $worker->signal('KILL');
    return;
}

sub due {
    my ( $self, @workers ) = @_;
    my @stay = grep { !$_->recycle_reason && !$_->is_retiring } @workers;
    my @due  = grep {defined} map { $_->expires } @stay;
    push @due, $self->{looked_at} + LOOK if $self->{conf}{max_rss} && @stay;
    return @due;
}

sub new {
    my ( $class, $conf, $board ) = @_;
    return bless { board => $board, conf => $conf, looked_at => now() }, $class;
}

# Its request has run longer than --request-timeout. The client has its answer; the worker can't be saved
sub overdue {
    my ( $self, $worker, $what ) = @_;
    Sirius::Log->error( 'worker ' . $worker->pid . ": $what" );
    $self->{board}->ask_place( $worker->row );
    $worker->asked_to_trace;    # it says where it is, if Perl still runs
    $worker->recycle(OVERDUE);
    my $end = sub {
        $self->_tell_place($worker) if !$worker->has_traced;
        $worker->signal('KILL');
    };
    $worker->child->limit( overdue => now() + GRACE, $end );
    return;
}

# It has not said where it is: it is in C code that signals do not interrupt, or that does not return to perl
sub _tell_place {
    my ( $self, $worker ) = @_;
    my ( $file, $line )   = $self->{board}->place( $worker->row );
    my $text = join ', ', Sirius::OS::Proc->waits( $worker->pid ),
        defined $file ? 'called from ' . $file =~ s/[^\x20-\x7e]/?/gr . " line $line" : ();
    Sirius::Log->note( 'worker '
            . $worker->pid
            . ' wrote no stack trace: '
            . ( length $text ? $text : 'the kernel does not say where it is' ) );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Recycling - decides which workers are recycled, and when

=head1 SYNOPSIS

  use Sirius::Process::Recycling;

  my $recycling = Sirius::Process::Recycling->new( $conf, $scoreboard );
  $recycling->begin($worker);
  $recycling->look(@workers);    # sets $worker->{recycle}, a reason

=head1 DESCRIPTION

A worker is recycled when it has served enough requests, has grown too large, or is too old. The worker itself counts its
requests and checks its memory after each of them. This module checks from outside what an idle worker cannot see: its
age, and its memory every 5 seconds. A worker whose request ran for longer than C<--request-timeout> is asked for a
stack trace and killed one second later (L</overdue>).

Workers are L<Sirius::Process::WorkerHandle> objects.

=head1 METHODS

=head2 act

  $recycling->act(@workers);

Recycles workers whose time is over, or that need too much memory.

=head2 begin

  $recycling->begin($worker);

Sets the lifetime of the worker at random, between 90 and 100 % of C<--max-lifetime>.

=head2 broken

  $recycling->broken( $worker, $what );

The worker has written something impossible to the edge: logs that, and kills it at once.

=head2 due

  my @times = $recycling->due(@workers);

The monotonic times at which L</act> would find something.

=head2 new

  my $recycling = Sirius::Process::Recycling->new( $conf, $scoreboard );

=head2 overdue

  $recycling->overdue( $worker, $what );

The request of the worker has timed out: logs that, asks the worker for a stack trace, and has it replaced and killed.

If the worker has written no stack trace before it is killed, the log says what can be learned from outside: the system
call in which it waits, and the line of Perl that called it.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Process::Pool>.

=cut
