package Sirius::Process::WorkerHandle;

use strict;
use warnings;

use Sirius::Base::Clock qw(now);

# The reports of a worker, and what each changes here
my %HEARS = (
    done   => sub { my ( $self, $why ) = @_; $self->{done} = length $why ? $why : 1 },
    hook   => sub { my ( $self, $name ) = @_; $self->_in_hook( $name eq 'none' ? undef : $name ) },
    ready  => sub { my $self = shift; $self->{ready} = 1; $self->{child}->unlimited('load') },
    soon   => sub { my ( $self, $why ) = @_; $self->{recycle} ||= $why },
    traced => sub { my $self = shift; $self->{traced} = 1 },
);

sub age { return shift->{child}->age }

sub asked_to_trace {
    my $self = shift;
    delete $self->{traced};
    return $self->signal('USR2');
}

sub child { return shift->{child} }

sub done { return shift->{done} }

sub expire_at {
    my ( $self, $at ) = @_;
    $self->{expires} = $at;
    return;
}

sub expires { return shift->{expires} }

sub has_traced { return shift->{traced} }

sub heard {
    my ( $self, $what, $why ) = @_;
    my $code = $HEARS{$what} or return;
    $code->( $self, $why );
    return;
}

sub hung { return shift->{hung} }

sub is_ready { return shift->{ready} }

sub is_retiring { return shift->{retiring} }

sub new {
    my ( $class, $child, %args ) = @_;
    my $self = bless { child => $child, %args }, $class;
    $self->_load;
    return $self;
}

sub pid { return shift->{child}->pid }

# It serves until its successor is ready
sub recycle {
    my ( $self, $why ) = @_;
    $self->{recycle} = $why;
    return;
}

sub recycle_reason { return shift->{recycle} }

sub retire {
    my $self = shift;
    $self->{retiring} = 1;
    return $self->signal('TERM');
}

sub row { return shift->{row} }

sub signal {
    my ( $self, $name ) = @_;
    return $self->{child}->signal($name);
}

sub since { return shift->{child}->since }

# While a hook runs, its own time limit applies, not that of loading
sub _in_hook {
    my ( $self, $name ) = @_;
    my $child = $self->{child};
    $child->unlimited('hook');
    return $self->_load if !defined $name;
    $child->unlimited('load');
    return $self->_limit( hook => now(), "--$name ran for more than" =~ tr/_/-/r );
}

# A worker that hangs in code of the application can only be killed
sub _limit {
    my ( $self, $name, $since, $words ) = @_;
    my $limit = $self->{load_timeout} or return;
    my $hung  = sub {
        $self->{hung} = sprintf '%s %g s (--load-timeout)', $words, $limit;
        shift->signal('KILL');
    };
    return $self->{child}->limit( $name => $since + $limit, $hung );
}

sub _load {
    my $self = shift;
    return if $self->{ready} || $self->{hung};
    return $self->_limit( load => $self->since, 'it was not ready within' );
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::WorkerHandle - a worker, as the process that has forked it sees it

=head1 SYNOPSIS

  my $worker = Sirius::Process::WorkerHandle->new( $child, row => 3, load_timeout => 300 );
  $worker->heard('ready');
  $worker->retire if $worker->recycle_reason;

=head1 DESCRIPTION

What the worker itself does is in L<Sirius::Worker>. One that is not ready C<load_timeout> seconds after its fork, or is in a hook for
that long, is killed.

=head1 METHODS

=head2 age

Seconds since its fork.

=head2 asked_to_trace

Asks it for a stack trace (C<USR2>): L</has_traced> is true when it has written one.

=head2 child

Its L<Sirius::OS::Child>.

=head2 done

Why it ends, if it has told that.

=head2 expires, expire_at

  $worker->expire_at($time);

When its time of life is over.

=head2 has_traced

True if it has written the stack trace that it was asked for.

=head2 heard

  $worker->heard( $what, $why );

What it has told, or the edge about it.

=head2 hung

Why it was killed, if it was for want of time.

=head2 is_ready, is_retiring

Whether it serves; whether it was told to end.

=head2 new

  my $worker = Sirius::Process::WorkerHandle->new( $child, row => $number, load_timeout => $seconds );

=head2 pid

The PID of the worker.

=head2 recycle, recycle_reason

  $worker->recycle('max-rss (300.2 MiB, the limit is 300 MiB)');

Has it replaced, for this reason, when another is ready; the reason.

=head2 retire

Tells it to end (C<TERM>).

=head2 row

The number of its row in the scoreboard.

=head2 signal

  $worker->signal('TERM');

=head2 since

When it was forked, in monotonic seconds.

=head1 SEE ALSO

L<Sirius::Process::Pool>, L<Sirius::Process::Recycling>, L<Sirius::Worker>.

=cut
