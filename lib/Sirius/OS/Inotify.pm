package Sirius::OS::Inotify;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has _open, _watch and _unwatch
use Sirius::OS::Inherit;

# From linux/inotify.h; the same on all machines
my %BIT = (
    attributes => 0x4,
    closed     => 0x8,           # after it was open for writing
    moved_from => 0x40,
    moved_to   => 0x80,
    created    => 0x100,
    deleted    => 0x200,
    gone       => 0x400,         # the folder itself
    moved      => 0x800,
    unmounted  => 0x2000,
    overflow   => 0x4000,
    ignored    => 0x8000,
    folder     => 0x4000_0000,
);
use constant { EXCL_UNLINK => 0x400_0000, ONLYDIR => 0x100_0000, ROOM => 65_536 };

my $WANTED = ONLYDIR | EXCL_UNLINK;
$WANTED |= $BIT{$_} for qw(attributes closed moved_from moved_to created deleted gone moved);

# Its number, or undef with errno
sub add {
    my ( $self, $folder ) = @_;
    utf8::encode($folder) if utf8::is_utf8($folder);
    my $number = Sirius::OS::Inotify->_watch( fileno $self->{fh}, $folder, $WANTED );
    return $number < 0 ? undef : $number;
}

sub handle { return shift->{fh} }

sub new {
    my $class = shift;
    my $fd    = Sirius::OS::Inotify->_open;
    return if $fd < 0;
    return bless { fh => Sirius::OS::Inherit->take_handle($fd) }, $class;
}

# All that is there
sub read {
    my $self = shift;
    my @events;
    while ( sysread $self->{fh}, my $bytes, ROOM ) {
        while ( length $bytes ) {
            my ( $number, $mask, $cookie, $length ) = unpack 'iIII', $bytes;
            my $name = substr( $bytes, 16, $length ) =~ s/\0.*//sr;
            substr $bytes, 0, 16 + $length, '';
            push @events,
                {
                map( { $mask & $BIT{$_} ? ( $_ => 1 ) : () } keys %BIT ),
                name   => $name,
                number => $number
                };
        }
    }
    return @events;
}

sub remove {
    my ( $self, $number ) = @_;
    Sirius::OS::Inotify->_unwatch( fileno $self->{fh}, $number );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Inotify - tells what changes in folders

=head1 SYNOPSIS

  my $inotify = Sirius::OS::Inotify->new or die "inotify: $!\n";
  my $number  = $inotify->add('/srv/app/lib');
  $loop->watch( $inotify->handle );
  for my $event ( $inotify->read ) {
      print "$event->{name}\n" if $event->{number} == $number && $event->{closed};
  }

=head1 DESCRIPTION

inotify(7) for folders. A file is named by its folder: an editor that saves by a rename replaces the file, and a watch of
the file itself would be lost with it.

=head1 METHODS

=head2 add

  my $number = $inotify->add($folder);

Watches a folder, not those in it. Returns undef with C<$!> if that is not possible: C<ENOSPC> at the limit
F</proc/sys/fs/inotify/max_user_watches>.

=head2 handle

A handle that is readable when L</read> has something. It does not block.

=head2 new

Returns undef with C<$!> at the limit F</proc/sys/fs/inotify/max_user_instances>.

=head2 read

The events that have come, as hashes: C<number> of the watch, C<name> of the file in the folder or the empty string, and what
has happened, each key with a true value: C<attributes>, C<closed> (after it was open for writing), C<created>, C<deleted>,
C<moved_from>, C<moved_to>; C<gone> and C<moved> of the folder itself; C<unmounted>, C<overflow> (events were lost),
C<ignored> (the watch is gone). C<folder>: what C<name> names is a folder.

=head2 remove

  $inotify->remove($number);

=head1 SEE ALSO

L<Sirius::Dev::Watcher>, inotify(7).

=cut
