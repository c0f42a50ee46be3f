use strict;
use warnings;
use lib 't/lib';
use Fcntl      qw(FD_CLOEXEC F_GETFD);
use File::Temp qw(tempdir);
use POSIX      ();
use Test::More;
use Sirius::Service::PidFile;
use Sirius::Test::Server;

my $dir  = tempdir( CLEANUP => 1 );
my $path = "$dir/sirius.pid";

sub content {
    open my $fh, '<', shift or return;
    local $/ = undef;
    return scalar readline $fh;
}

sub error {
    my $file = shift;
    return eval { Sirius::Service::PidFile->new($file); 1 } ? '' : $@;
}

# A process that has the file and the lock until its pipe is closed
sub other_server {
    my ($code) = @_;
    pipe my $hold,  my $holder or die $!;
    pipe my $ready, my $told   or die $!;
    my $pid = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        close $holder;
        my $file = Sirius::Service::PidFile->new($path);
        $code->($file) if $code;
        syswrite $told, '.';
        sysread $hold, my $nothing, 1;
        POSIX::_exit(0);
    }
    sysread $ready, my $nothing, 1;
    return ( $pid, $holder );
}

subtest 'Made and removed' => sub {
    my $file = Sirius::Service::PidFile->new($path);
    is content($path), "$$\n", 'the PID';
    ok fcntl( $file->{fh}, F_GETFD, 0 ) & FD_CLOEXEC, 'closed on exec';
    is error($path),   "sirius: --pid $path: a server with PID $$ is running\n", 'not twice';
    is 0 + $!,         1,                                                        'right exit status';
    is content($path), "$$\n",                                                   'not touched by that';
    $file->remove;
    ok !-e $path, 'removed';
    $file->remove;
    pass 'removed again';
    undef $file;

    chdir $dir or die $!;
    $file = Sirius::Service::PidFile->new('relative.pid');
    chdir '/' or die $!;
    $file->remove;
    ok !-e "$dir/relative.pid", 'removed from another directory';
};

subtest 'A stale file with the PID of a living process does not stop a server' => sub {
    for my $text ( getppid() . "\n", "1\n", "123456\n\n\n", '', ' ' ) {
        Sirius::Test::Server::spew( $path, $text );
        my $file = Sirius::Service::PidFile->new($path);
        is content($path), "$$\n", 'taken over';
        $file->remove;
    }
};

subtest 'A living server is not disturbed' => sub {
    my ( $pid, $holder ) = other_server();
    is error($path),   "sirius: --pid $path: a server with PID $pid is running\n", 'right error';
    is content($path), "$pid\n",                                                   'not touched';
    kill KILL => $pid;
    waitpid $pid, 0;
    ok -e $path, 'left behind';
    is error($path), '', 'and taken over';
    unlink $path;

    ( $pid, $holder ) = other_server( sub { truncate shift->{fh}, 0 } );
    is error($path), "sirius: --pid $path: a server is running\n", 'before it has written its PID';
    close $holder;
    waitpid $pid, 0;
    unlink $path;
};

subtest 'Children' => sub {
    my $file = Sirius::Service::PidFile->new($path);
    my $pid  = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        $file->remove;
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    is content($path), "$$\n", 'a child does not remove it';
    like error($path), qr/is running/, 'nor does it unlock it';
    $file->remove;

    # Its child lives on
    pipe my $read, my $write or die $!;
    my ( $server, $holder ) = other_server( sub {
        my $file  = shift;
        my $child = fork;
        die $! if !defined $child;
        syswrite $write, "$child\n" and return if $child;
        $file->release;
        sleep 600;
        POSIX::_exit(0);
    } );
    my $child = readline $read;
    kill KILL => $server;
    waitpid $server, 0;
    my $error;
    for ( 1 .. 500 ) {
        last if !( $error = error($path) );    # the child may not have got there yet
        select undef, undef, undef, 0.02;
    }
    is $error, '', 'a child that has released it does not keep it';
    kill KILL => $child;
    unlink $path;
};

subtest 'Removed while somebody waits for it' => sub {
    my $file = Sirius::Service::PidFile->new($path);
    unlink $path;
    my $next = Sirius::Service::PidFile->new($path);
    ok $next, 'a new file';
    $file->remove;
    is content($path), "$$\n", 'which the old server does not remove';
    $next->remove;

    # flock as it is when the owner removes the file between our open and our lock
    $file = Sirius::Service::PidFile->new($path);
    no warnings 'redefine';
    my $identity = \&Sirius::Service::PidFile::_identity;
    my $calls    = 0;
    my $racing   = sub {
        unlink $path if !$calls++;
        return $identity->(@_);
    };
    $file->release;
    local *Sirius::Service::PidFile::_identity = $racing;
    $file = Sirius::Service::PidFile->new($path);
    is content($path), "$$\n", 'tried again';
    is $calls,         4,      'once';
    $file->remove;
};

subtest 'What is no pid file' => sub {
    Sirius::Test::Server::spew( "$dir/passwd", "root:x:0:0\n" );
    is error("$dir/passwd"),   "sirius: --pid $dir/passwd: the file exists and is not a PID file\n", 'a text';
    is content("$dir/passwd"), "root:x:0:0\n", 'not touched';
    like error($dir), qr/\Asirius: --pid \Q$dir\E: Is a directory\n/, 'a directory';
    POSIX::mkfifo( "$dir/fifo", oct 600 ) or die $!;
    like error("$dir/fifo"),  qr/is not a PID file/,                                           'a pipe';
    like error("$dir/no/no"), qr{\Asirius: --pid \Q$dir\E/no/no: No such file or directory\n}, 'no directory';
};

subtest 'A server that may not delete it any more' => sub {
    plan skip_all => 'for root' if $>;
    mkdir "$dir/run" or die $!;
    chmod 0755, $dir;
    my $mine = "$dir/run/pid";
    my $pid  = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        my $file = Sirius::Service::PidFile->new($mine);
        $> = 65534;
        $file->remove;
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    is content($mine), '', 'empties it';
};

subtest 'A symbolic link' => sub {
    my $link = "$dir/link.pid";
    Sirius::Test::Server::spew( "$dir/target", "1\n" );
    for my $target ( "$dir/target", "$dir/nowhere" ) {
        symlink $target, $link or die $!;
        is error($link), "sirius: --pid $link: the file is a symbolic link, which is not followed\n",
            'is not followed';
        is 0 + $!, 1, 'right exit status';
        unlink $link or die $!;
    }
    is content("$dir/target"), "1\n", 'the file stays as it was';
    ok !-e "$dir/nowhere", 'and none is made';
};

done_testing;
