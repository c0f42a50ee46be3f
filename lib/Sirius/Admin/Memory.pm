package Sirius::Admin::Memory;

use strict;
use warnings;

use List::Util          qw(max sum);
use Sirius::Base::Clock qw(now);
use Sirius::OS::Proc;

# LEAST: seconds between two samples of a process. SHARE: sampling may take at most this fraction (1/SHARE) of
# the time
use constant { LEAST => 1, SHARE => 50 };

sub add {
    my ( $self, @workers ) = @_;
    my $known = $self->{known};
    my $now   = $self->{clock}->();
    my $every = max LEAST, SHARE * ( sum( map { $_->{cost} } values %$known ) || 0 );
    my ( %alive, @untold );
    for my $worker (@workers) {
        my $pid = $worker->{pid};
        my $was = $known->{$pid};
        if ( !$was || $now - $was->{at} >= $every ) {
            $was = $known->{$pid} = $self->_look($pid);
            push @untold, $was if !defined $was->{bytes};
        }
        $alive{$pid} = $was;
    }
    $self->_ask(@untold) if @untold && $self->{line};
    $_->{private}  = $alive{ $_->{pid} }{bytes} for @workers;
    $self->{known} = \%alive;
    return;
}

sub new {
    my ( $class, %args ) = @_;
    return bless { clock => \&now, known => {}, read => sub { Sirius::OS::Proc->private(shift) }, %args },
        $class;
}

# Of the supervisor, which may know more than this process: it has kept its user
sub _ask {
    my ( $self, @samples ) = @_;
    my $began  = $self->{clock}->();
    my $answer = $self->{line}->ask('memory') // q();
    my %bytes  = $answer =~ /(\d+) (\d+)/g;
    my $cost   = ( $self->{clock}->() - $began ) / @samples;
    for my $sample (@samples) {
        $sample->{bytes} = $bytes{ $sample->{pid} };
        $sample->{cost} += $cost;
    }
    return;
}

sub _look {
    my ( $self, $pid ) = @_;
    my $began = $self->{clock}->();
    my $bytes = $self->{read}->($pid);
    my $end   = $self->{clock}->();
    return { at => $end, bytes => $bytes, cost => $end - $began, pid => $pid };
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Memory - the private memory of the workers, not looked up too often

=head1 SYNOPSIS

  use Sirius::Admin::Memory;

  my $memory = Sirius::Admin::Memory->new;
  $memory->add( @{ $snapshot->{workers} } );
  print $snapshot->{workers}[0]{private};

=head1 DESCRIPTION

What a worker shares with nobody (L<Sirius::OS::Proc/private>). The kernel walks through all pages of a process to tell it: 0.3 ms
for 21 MB of Perl, 0.9 ms for 56 MB. So it is asked when somebody looks, for each process at most once a second, and so that it takes at most a fiftieth of the time
of one processor, however many workers there are and however large they are.

After a change of the user (C<--user>) the kernel tells it neither to the process itself that answers on the admin port nor to any other
of that user. The supervisor has kept its rights, so it is asked (L<Sirius::Admin::Line>).

=head1 METHODS

=head2 add

  $memory->add(@workers);

Sets C<private> of each worker to bytes that are at most as old as said above, or to undef where the kernel does not tell.

=head2 new

  my $memory = Sirius::Admin::Memory->new( line => Sirius::Admin::Line->new($socket) );

With a line to the supervisor, that is asked about processes of which the kernel does not tell this one.

=head1 SEE ALSO

L<Sirius::Admin::App>, L<Sirius::Admin::Line>, L<Sirius::Scoreboard>.

=cut
