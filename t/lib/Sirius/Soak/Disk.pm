package Sirius::Soak::Disk;

# A small file system that can be filled. Needs root

use strict;
use warnings;
use File::Temp ();

use constant SIZE => 2**30;

# Returns nothing if it can't be mounted
sub new {
    my $class = shift;
    return if $>;
    my $dir = File::Temp::tempdir( 'sirius-disk-XXXXXX', TMPDIR => 1 );
    return bless { dir => $dir, owner => $$ }, $class
        if _run( 'mount', '-t', 'tmpfs', '-o', 'size=' . SIZE, 'none', $dir );
    rmdir $dir;
    return;
}

sub dir { return shift->{dir} }

# True once not one more byte fits. Files grow meanwhile, so it tries again
sub fill {
    my $self = shift;
    for ( 1 .. 5 ) {
        my ($used) = `df -B1 --output=used $self->{dir}` =~ /(\d+)\s*\z/ or return 0;
        return 1 if $self->_resize( $used || 4096 );
    }
    return 0;
}

sub free { return shift->_resize(SIZE) }

sub _resize {
    my ( $self, $bytes ) = @_;
    return _run( 'mount', '-o', "remount,size=$bytes", $self->{dir} );
}

# True if the command succeeds; its output is thrown away
sub _run {
    my @command = @_;
    local $?;
    return system("@command 2>/dev/null") == 0;
}

sub DESTROY {
    my $self = shift;
    return if $self->{owner} != $$;
    _run( 'umount', '-l', $self->{dir} );
    rmdir $self->{dir};
    return;
}

1;
