use strict;
use warnings;
use Fcntl      qw(FD_CLOEXEC F_GETFD F_GETFL O_ACCMODE O_APPEND O_NONBLOCK O_RDWR O_WRONLY);
use File::Temp qw(tempdir);
use POSIX      ();
use Test::More;
use Sirius::Log::File;

my $dir  = tempdir( CLEANUP => 1 );
my $file = "$dir/log";

sub flags {
    my $flags = fcntl shift, F_GETFL, 0;
    return $flags & ( O_ACCMODE | O_APPEND | O_NONBLOCK );
}

subtest 'A new file' => sub {
    my $before = umask oct 22;
    my $fh     = Sirius::Log::File->open($file);
    umask $before;
    is sprintf( '%o', ( stat $file )[2] & oct 7777 ), '640',       'not for everybody';
    is flags($fh),               O_WRONLY | O_APPEND | O_NONBLOCK, 'to its end, without waiting';
    is fcntl( $fh, F_GETFD, 0 ), FD_CLOEXEC,                       'closed on exec';
    POSIX::mkfifo( "$dir/fifo", oct 600 ) or die $!;
    is flags( Sirius::Log::File->open("$dir/fifo") ), O_RDWR | O_APPEND | O_NONBLOCK,
        'a FIFO needs no reader';
    $fh = Sirius::Log::File->open("$dir/other");
    syswrite $fh, "a\n";
    $fh = Sirius::Log::File->open($file);
    syswrite $fh, "b\n";
    is -s $file,        2, 'one file';
    is -s "$dir/other", 2, 'the other';
};

subtest 'A FIFO that may not be read' => sub {
    plan skip_all => 'for root' if $>;
    chmod oct 755, $dir;
    POSIX::mkfifo( "$dir/writable", oct 600 ) or die $!;
    chmod oct 222, "$dir/writable";
    local $> = 65534;
    is scalar Sirius::Log::File->open("$dir/writable"), undef, 'nobody reads it: it cannot be opened';
    ok $!{ENXIO}, 'right error';
    local $> = 0;
    sysopen my $reader, "$dir/writable", O_NONBLOCK or die $!;
    local $> = 65534;
    my $fh = Sirius::Log::File->open("$dir/writable");
    is flags($fh), O_WRONLY | O_APPEND | O_NONBLOCK, 'with a reader it can';
};

subtest 'The owner' => sub {
    plan skip_all => 'for root' if $>;
    Sirius::Log::File->open( $file, owner => [ 65534, 65533 ] );
    is join( ':', ( stat $file )[ 4, 5 ] ), '0:' . ( $( + 0 ), 'of a file that is there stays';
    Sirius::Log::File->open( "$dir/new", owner => [ 65534, 65533 ] );
    is join( ':', ( stat "$dir/new" )[ 4, 5 ] ), '65534:65533', 'a new one is given away';
    Sirius::Log::File->open( "$dir/group", owner => [ -1, 65533 ] );
    is join( ':', ( stat "$dir/group" )[ 4, 5 ] ), '0:65533', 'to a group';
};

subtest 'Not to be opened' => sub {
    is scalar Sirius::Log::File->open("$dir/no/log"), undef, 'no directory';
    ok $!{ENOENT}, 'right error';
    is scalar Sirius::Log::File->open($dir), undef, 'a directory';
    ok $!{EISDIR}, 'right error';
    symlink 'nowhere/log', "$dir/link" or die $!;
    is scalar Sirius::Log::File->open("$dir/link"), undef, 'a link to nowhere';
};

# As fs.protected_symlinks has it, but in any directory
subtest 'A symbolic link' => sub {
    my ( $target, $link ) = ( "$dir/target", "$dir/followed" );
    open my $out, '>', $target or die $!;
    close $out;
    symlink $target, $link or die $!;
    my $try = sub {
        my $fh = Sirius::Log::File->open($link);
        return $fh ? fileno $fh > 2 ? 'open' : 'low' : "$!{EACCES}" ? 'EACCES' : "$!";
    };
    is $try->(), 'open', 'of this user is followed';
    return if $>;
    POSIX::lchown( 65534, 65533, $link ) or die $!;
    is $try->(), 'EACCES', 'of somebody else is not';
    ok -z $target, 'nothing was written';
    unlink $target or die $!;
    is $try->(), 'EACCES', 'nor one to nowhere';
    ok !-e $target, 'nothing was made';
    open $out, '>', $target or die $!;
    close $out;
    POSIX::lchown( 0, 0, $link ) or die $!;
    is $try->(), 'open', "root's is followed";
};

# As a shell leaves them: closed, and perl has handles for them all the same
subtest 'Closed standard descriptors' => sub {
    pipe my $read, my $write or die $!;
    my $pid = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        POSIX::close($_) for 0 .. 2;
        my $fh    = Sirius::Log::File->open($file);
        my @taken = grep { -e "/proc/self/fd/$_" } 0 .. 2;
        syswrite $write, join ' ', fileno $fh > 2 ? 'high' : 'low', @taken;
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    close $write;
    is readline $read, 'high', 'stay closed';
};

done_testing;
