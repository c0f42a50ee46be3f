use strict;
use warnings;

# What the file is like when the socket begins to listen
my @at_listen;

BEGIN {
    no warnings 'once';
    *CORE::GLOBAL::listen = sub (*$) {
        my ( $fh, $backlog ) = @_;
        my ($path) = eval { Socket::unpack_sockaddr_un( getsockname $fh ) };
        push @at_listen, join ' ', map { $_->[2] & 07777, @{$_}[ 4, 5 ] } [ stat $path ]
            if defined $path && $path !~ m{\A\0} && -e $path;
        return CORE::listen( $fh, $backlog );
    };
}

use Errno      qw(EACCES EAGAIN ECONNREFUSED);
use Fcntl      qw(F_GETFL F_SETFL LOCK_EX O_NONBLOCK);
use File::Temp qw(tempdir);
use POSIX      ();
use Socket     qw(AF_UNIX SOCK_DGRAM SOCK_STREAM pack_sockaddr_un unpack_sockaddr_un);
use Test::More;
use Time::HiRes qw(alarm sleep time);
use Sirius::Listen::Unix;

my $dir = tempdir( CLEANUP => 1 );
chmod 0755, $dir or die $!;    # other users have to get at what is in it

# Bound, and then forgotten by a process that was killed
sub leave_behind {
    my $path = shift;
    socket my $fh, AF_UNIX, SOCK_STREAM, 0 or die "socket: $!";
    bind $fh, pack_sockaddr_un($path) or die "bind: $!";
    CORE::listen( $fh, 1 ) or die "listen: $!";
    return;
}

# 0 or the error, as a number
sub failure {
    my $path = shift;
    socket my $fh, AF_UNIX, SOCK_STREAM, 0 or die "socket: $!";
    fcntl $fh, F_SETFL, O_NONBLOCK;
    return connect( $fh, pack_sockaddr_un($path) ) ? 0 : 0 + $!;
}

sub try_open {
    my ( $path, %want ) = @_;
    return eval { Sirius::Listen::Unix->open( $path, 16, %want ) } || "$@";
}

# What the code returns in a child, a number
sub in_child {
    my $code = shift;
    my $pid  = fork;
    die "fork: $!"            if !defined $pid;
    POSIX::_exit( $code->() ) if !$pid;
    waitpid $pid, 0;
    return $? >> 8;
}

sub rights { return sprintf '%04o', ( stat shift )[2] & 07777 }

subtest 'The mode is there from the first moment' => sub {
    for my $umask ( 0, 022, 0777 ) {
        my $before = umask $umask;
        my $path   = "$dir/mode-$umask";
        @at_listen = ();
        my $unix = try_open( $path, mode => 0620 );
        is rights($path), '0620', sprintf 'mode 0620 with umask %04o', $umask;
        is( ( split ' ', $at_listen[0] )[0], 0620, 'when it begins to listen' );
        is umask($before), $umask, 'umask is as before';
        $unix->remove;
    }
    my $before = umask 027;
    my $unix   = try_open("$dir/umask");
    umask $before;
    is rights("$dir/umask"), '0750', 'without a mode: the umask';
    $unix->remove;
};

subtest 'Owner and group are there before anybody can connect' => sub {
    my ( @bound, $path );
    my ( $uid, $gid ) = $> ? ( $>, $) + 0 ) : ( 65_534, 65_533 );
    my $lchown = \&POSIX::lchown;
    no warnings 'redefine';
    local *POSIX::lchown = sub { push @bound, rights( $_[2] ); return $lchown->(@_) };
    for my $stale ( 0, 1 ) {
        $path = "$dir/owner-$stale";
        leave_behind($path) if $stale;
        ( @bound, @at_listen ) = ();
        my $unix = try_open( $path, mode => 0660, owner => $uid, group => $gid );
        is_deeply \@bound,     ['0660'],                'bound with the mode';
        is_deeply \@at_listen, [ 0660 . " $uid $gid" ], 'it listens when it is its owner\'s';
        is join( ' ', ( stat $path )[ 4, 5 ] ), "$uid $gid", 'and stays it';
        $unix->remove;
    }
    like try_open( "$dir/none", owner => 'no-such-user' ), qr/\Athere is no user no-such-user$/,
        'right error';
    ok !-e "$dir/none", 'nothing is left';
};

subtest 'Connect as another user' => sub {
    plan skip_all => 'needs root' if $>;
    my %as = ( owner => [ 65_534, 60_000 ], group => [ 60_000, 65_533 ], other => [ 60_000, 60_000 ] );
    for my $case (
        [ 0660, 'owner', 0 ],
        [ 0660, 'group', 0 ],
        [ 0660, 'other', EACCES ],
        [ 0666, 'other', 0 ],
        [ 0600, 'group', EACCES ]
        )
    {
        my ( $mode, $who, $want ) = @$case;
        my $unix = try_open( "$dir/users", mode => $mode, owner => 65_534, group => 65_533 );
        my $got  = in_child( sub {
            my ( $uid, $gid ) = @{ $as{$who} };
            $) = "$gid $gid";
            POSIX::setgid($gid);
            POSIX::setuid($uid);
            return failure("$dir/users");
        } );
        is $got, $want, sprintf '%s with mode %04o', $who, $mode;
        $unix->remove;
    }
};

subtest 'An owner that may not be given' => sub {
    plan skip_all => 'is for root to test' if $>;
    my $error = in_child( sub {
        my $own = "$dir/own";
        mkdir $own or return 2;
        chown 65_534, 65_534, $own;
        POSIX::setuid(65_534);
        return 3 if try_open( "$own/sock", owner => 'root' ) ne "owner root: Operation not permitted\n";
        return -e "$own/sock" ? 4 : 0;
    } );
    is $error, 0, 'right error, and nothing is left';
};

subtest 'What is in the way' => sub {
    my $path = "$dir/way";
    my $unix = try_open($path);
    is ref $unix, 'Sirius::Listen::Unix', 'nothing is';
    like try_open($path), qr/\Aalready in use by this server: it is given twice\n\z/,
        'a socket that is alive';
    is failure($path), 0, 'and stays so';
    $unix->remove;
    ok !-e $path, 'removed';

    $unix = Sirius::Listen::Unix->open( $path, 1 );
    my @clients;
    for ( 1 .. 50 ) {
        socket my $client, AF_UNIX, SOCK_STREAM, 0 or die $!;
        fcntl $client, F_SETFL, O_NONBLOCK;
        connect $client, pack_sockaddr_un($path) or last;
        push @clients, $client;
    }
    cmp_ok scalar @clients, '<=', 2, 'the backlog counts';
    like try_open($path), qr/\Aalready in use by this server: it is given twice\n\z/,
        'one whose queue is full';
    $unix->remove;

    socket my $datagram, AF_UNIX, SOCK_DGRAM, 0 or die $!;
    bind $datagram, pack_sockaddr_un($path) or die $!;
    like try_open($path), qr/\Acannot check the socket that is there: \w/, 'one of another type';
    unlink $path;

    leave_behind($path);
    symlink $path, "$dir/link" or die $!;
    is ref try_open("$dir/link"), 'Sirius::Listen::Unix', 'a link to a stale one';
    ok -S $path,        'which is not touched';
    ok !-l "$dir/link", 'the link is replaced';

    open my $out, '>', "$dir/file" or die $!;
    is try_open("$dir/file"), "the path exists and is not a socket\n", 'a file';
    is try_open($dir),        "the path exists and is not a socket\n", 'a directory';
    symlink "$dir/nowhere", "$dir/broken" or die $!;
    is try_open("$dir/broken"), "the path exists and is not a socket\n", 'a broken link';
    is try_open("$dir/none/a"), "No such file or directory\n",           'no directory';
};

subtest 'A stale socket is replaced without a gap' => sub {
    my $path = "$dir/stale";
    leave_behind($path);
    pipe my $ready, my $go or die $!;
    my $until = time + 30;
    my $pid   = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {    # 0 when it always found the path
        my %seen;
        syswrite $go, 'x';
        while ( time < $until && !-e "$dir/enough" ) { $seen{ failure($path) }++ }
        delete @seen{ 0, ECONNREFUSED, EAGAIN };
        POSIX::_exit( ( sort keys %seen )[0] || 0 );
    }
    sysread $ready, my $byte, 1;
    my $served = 0;
    for ( 1 .. 200 ) {
        last if time > $until;
        my $unix = Sirius::Listen::Unix->open( $path, 128, mode => 0666 );
        $served++ if !failure($path);
    }
    open my $enough, '>', "$dir/enough" or die $!;
    waitpid $pid, 0;
    is $? >> 8, 0, 'a client found it at any time' or diag do { local $! = $? >> 8; "$!" };
    cmp_ok $served, '>', 0, 'and a server';
    is_deeply [ glob "$path.*" ], [], 'nothing else is left';
};

subtest 'One of those that start at the same moment' => sub {
    my $path = "$dir/race";
    for my $stale ( 0, 1 ) {
        for my $round ( 1 .. 5 ) {
            unlink $path;
            leave_behind($path) if $stale;
            pipe my $wait, my $go   or die $!;
            pipe my $end,  my $hold or die $!;
            pipe my $read, my $tell or die $!;
            my @pids;
            for ( 1 .. 6 ) {
                my $pid = fork;
                die "fork: $!" if !defined $pid;
                if ( !$pid ) {
                    alarm 60;
                    close $_ for $go, $hold;
                    sysread $wait, my $nothing, 1;
                    my $got = try_open($path);
                    syswrite $tell, ref $got ? "serves\n" : $got;
                    sysread $end, $nothing, 1;
                    POSIX::_exit(0);
                }
                push @pids, $pid;
            }
            close $_ for $tell, $go;
            my @said = map { scalar readline $read } @pids;
            is join( '', sort map {s/ by \S+ \(PID \d+\)$//mr} @said ), "already in use\n" x 5 . "serves\n",
                ( $stale ? 'stale' : 'new' ) . ", round $round";
            is failure($path), 0, 'it is that one';
            close $hold;
            waitpid $_, 0 for @pids;
        }
    }
};

subtest 'A directory that somebody else has locked' => sub {
    mkdir "$dir/locked" or die $!;
    open my $lock, '<', "$dir/locked" or die $!;
    flock $lock, LOCK_EX or die $!;
    is ref try_open("$dir/locked/a"), 'Sirius::Listen::Unix', 'does not stop us';
};

subtest 'Removed by whom, and when' => sub {
    my $path = "$dir/removed";
    my $unix = try_open($path);
    in_child( sub { $unix->remove; 0 } );
    ok -S $path, 'not by a child';
    my $state = $unix->state;
    in_child( sub { Sirius::Listen::Unix->restore( $state, undef )->remove; 0 } );
    ok -S $path, 'not by a child with the same state';
    Sirius::Listen::Unix->restore( $state, undef )->remove;
    ok !-e $path, 'by the same process as another program';
    $unix = try_open($path);
    unlink $path;
    my $other = try_open($path);
    $unix->remove;
    ok -S $path, q(another's is not);
    $other->remove;
    ok !-e $path, 'ours is';
    $other->remove;

    my $cwd = POSIX::getcwd();
    chdir $dir or die $!;
    $unix = try_open('relative');
    chdir '/' or die $!;
    $unix->remove;
    chdir $cwd or die $!;
    ok !-e "$dir/relative", 'a relative path, from another directory';
};

subtest 'Long paths' => sub {
    for my $length ( 107, 103, 98 ) {
        my $path = "$dir/" . 'x' x ( $length - 1 - length $dir );
        my $unix = try_open($path);
        is ref $unix, 'Sirius::Listen::Unix', "$length bytes";
        undef $unix;
        is ref try_open($path), 'Sirius::Listen::Unix', 'replaced';
        is_deeply [ glob "$path*" ], [$path], 'nothing else is left';
        unlink $path;
    }
    is try_open( '/' . 'x' x 107 ), "the path has 108 bytes, the maximum is 107\n", 'right error';
};

subtest 'Abstract' => sub {
    plan skip_all => 'Linux only' if $^O ne 'linux';
    my $name = "\0sirius-test-$$";
    my $unix = try_open($name);
    is ref $unix,                                       'Sirius::Listen::Unix',     'it listens';
    is unpack_sockaddr_un( getsockname $unix->handle ), $name,                      'right name';
    is failure($name),                                  0,                          'connected';
    is try_open($name),                                 "Address already in use\n", 'in use';
    $unix->remove;
    undef $unix;
    is failure($name),                   ECONNREFUSED,           'gone with its socket';
    is ref try_open( "\0" . 'x' x 107 ), 'Sirius::Listen::Unix', 'the longest name';
    like try_open( "\0" . 'x' x 108 ), qr/the maximum is 107/, 'right error';
};

done_testing;
