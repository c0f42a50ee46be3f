package Sirius::OS::Reaper;

use strict;
use warnings;

use POSIX  qw(WNOHANG);
use Sirius ();            # xs/Sirius.xs has adopt

sub act {
    my $self = shift;
    $_->act for $self->children;
    return;
}

sub add {
    my ( $self, $child ) = @_;
    $self->{by_pid}{ $child->pid } = $child;
    return $child;
}

sub children { return values %{ shift->{by_pid} } }

sub due {
    return map { $_->due } shift->children;
}

sub forked {
    my $self = shift;
    $self->{by_pid} = {};
    return;
}

sub new {
    my ( $class, $unknown ) = @_;
    return bless { by_pid => {}, unknown => $unknown }, $class;
}

sub reap {
    my $self = shift;
    local $?;
    while ( ( my $pid = waitpid -1, WNOHANG ) > 0 ) {
        my $status = $?;
        if    ( my $child = delete $self->{by_pid}{$pid} ) { $child->ended($status) }
        elsif ( $self->{unknown} )                         { $self->{unknown}->( $pid, $status ) }
    }
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Reaper - waits for all children of this process

=head1 SYNOPSIS

  use Sirius::OS::Reaper;

  my $reaper = Sirius::OS::Reaper->new( sub { my ( $pid, $status ) = @_; ... } );
  $reaper->add($child);
  $loop->add($reaper);
  ...
  $reaper->reap if grep { $_ eq 'CHLD' } $loop->wait;

=head1 DESCRIPTION

Knows which L<Sirius::OS::Child> each PID is, and keeps it until it has ended. It is a member of the loop (L<Sirius::OS::Loop/add>) for
the limits of all of them.

=head1 METHODS

=head2 act

Does what the limits of the children say that have passed.

=head2 add

  $reaper->add($child);

Returns it.

=head2 adopt

  Sirius::OS::Reaper->adopt;

Makes this process the new parent of descendants whose parent ends. False: the system has no such thing.

=head2 children

Those that have not been waited for.

=head2 due

The times of their limits.

=head2 forked

In a child: they are none of its own.

=head2 new

  my $reaper = Sirius::OS::Reaper->new($code);

The code is called with PID and status of a child that was not added: an orphan, or a child of the application.

=head2 reap

  $reaper->reap;

Waits for all that have ended, and tells each of its end.

=head1 SEE ALSO

L<Sirius::OS::Child>.

=cut
