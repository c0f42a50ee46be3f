use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use POSIX      ();
use Socket     qw(AF_UNIX SOCK_STREAM pack_sockaddr_un);
use Test::More;
use Sirius::Test;

# Who may do what with the files and sockets of a server: their modes, temporary files, links that somebody
# else has put there, and who is let in at the control socket and the admin port

my $root  = $Sirius::Test::Server::ROOT;
my $top   = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $hello = "sub { [ 200, [], ['hello'] ] }\n";
my ( $dir, $cases ) = ( '', 0 );
chmod 0755, "$top" or die $!;    # for the other user

sub slurp { return Sirius::Test::Server::slurp(shift) }

sub case {
    mkdir $dir = "$top/" . ++$cases or die $!;
    chmod 0755, $dir or die $!;
    return;
}

sub mode {
    my $mode = ( lstat "$dir/" . shift )[2];
    return defined $mode ? sprintf '%04o', $mode & oct 7777 : 'not there';
}

# Status and words of a server that does not start
sub refused {
    my @args = @_;
    my $app  = spew( "$dir/app.psgi", $hello );
    my $got  = Sirius::Test::Server->spawn( app => $app, args => [ qw(--workers 1), @args ] );
    return 'it runs' if !defined $got->wait_exit(30);
    my $log = $got->log =~ s/^\[sirius \d+\] starting Sirius \S+: .*\n//mr;    # no word of why
    return join ': ', $got->exited, $log =~ s/\n\z//r;
}

subtest 'Modes, with every mask' => sub {
    for my $mask ( oct 0, oct 22, oct 27, oct 77 ) {
        case ();
        my $before = umask $mask;
        my $server = start_server(
            $hello,                      qw(--workers 1 --listen 127.0.0.1:0 --listen),
            "$dir/plain",                '--listen',
            "unix:$dir/given?mode=0666", '--control',
            "$dir/control",              '--admin',
            "unix:$dir/admin",           '--pid',
            "$dir/pid",                  '--access-log',
            "$dir/access.log"
        );
        umask $before;
        my %want = (
            'access.log' => oct(640) & ~$mask,
            'admin'      => oct 600,
            'control'    => oct 600,
            'given'      => oct 666,
            'pid'        => oct(644) & ~$mask,
            'plain'      => oct(777) & ~$mask,
        );
        my %got = map { $_ => mode($_) } keys %want;
        is_deeply \%got, { map { $_ => sprintf '%04o', $want{$_} } keys %want }, sprintf 'umask %04o', $mask;
        $server->stop;
    }
};

subtest '--umask is for what the application makes; the socket options are for sockets' => sub {
    case ();
    chmod 0777, $dir or die $!;
    my $before = umask oct 22;
    my $server = start_server(
        "sub { open my \$out, '>', '$dir/made' or die \$!; [ 200, [], [ sprintf '%04o', umask ] ] }\n",
        qw(--workers 1 --umask 0007 --socket-mode 0620 --listen 127.0.0.1:0 --listen),
        "$dir/socket",
        '--access-log',
        "$dir/access.log"
    );
    umask $before;
    is $server->ask('GET /')->body, '0007', 'the mask of the application';
    is mode('made'),                '0660', 'what it makes';
    is mode('socket'),              '0620', 'the socket';
    is mode('access.log'),          '0640', 'the log, which was there before';
    $server->stop;
};

# As a directory that has no O_TMPFILE is asked for by another call, all that is sure is what is there at the
# end
subtest 'Temporary files have no name' => sub {
    case ();
    mkdir "$dir/tmp" or die $!;
    my $app = <<'APP';
sub {
    my ($fd) = grep { ( readlink "/proc/self/fd/$_" || '' ) =~ m{\ADIR/tmp/} } 3 .. 255;
    return [ 200, [], ['in memory'] ] if !defined $fd;
    my @stat = stat "/proc/self/fd/$fd";
    return [ 200, [], [ sprintf '%04o, %d links', $stat[2] & 07777, $stat[3] ] ];
}
APP
    my $server
        = start_server( $app =~ s/DIR/$dir/r, qw(--workers 1 --body-memory 4096 --tmpdir), "$dir/tmp" );
    my $body   = 'x' x 100_000;
    my $client = $server->connect;
    $client->send( "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" . substr $body, 0, 50_000 );
    my @pids  = $server->owners;
    my $blind = $> && $server->edges;    # nobody but root may look into an edge
    ok $blind || until_true( 10, sub { slurp_links(@pids) =~ m{\Q$dir\E/tmp/} } ), 'half a body is in a file';
    is_deeply [ glob "$dir/tmp/* $dir/tmp/.*" ], [ "$dir/tmp/.", "$dir/tmp/.." ], 'whose directory is empty';
    $client->send( substr $body, 50_000 );
    is $client->response->body, '0600, 0 links', 'nobody else may read it, and it has no name';
    $server->stop;
};

sub slurp_links {
    return join ' ', map {
        my $pid = $_;
        map { readlink "/proc/$pid/fd/$_" || () } 3 .. 255
    } @_;
}

subtest 'Links that somebody has put there' => sub {
    for my $what (
        [ '--pid',     'is not followed' ],
        [ '--control', 'not a socket' ],
        [ '--listen',  'not a socket' ]
        )
    {
        my ( $option, $why ) = @$what;
        case ();
        my $target = spew( "$dir/target", "1\n" );
        symlink $target, "$dir/link" or die $!;
        like refused( $option, "$dir/link" ), qr/\Aexit 1: sirius: .*\Q$dir\E\/link: .*$why\z/,
            "$option: a link to a file is refused";
        is slurp($target), "1\n", 'which stays as it was';
        symlink "$dir/nowhere", "$dir/broken" or die $!;
        like refused( $option, "$dir/broken" ), qr/\Aexit 1: sirius: .*\Q$dir\E\/broken: /,
            'one to nowhere, too';
        ok !-e "$dir/nowhere" && !-S "$dir/nowhere", 'and nothing is made there';
    }
    for my $option (qw(--access-log --error-log)) {
        case ();
        symlink "$dir/nowhere", "$dir/broken" or die $!;
        like refused( $option, "$dir/broken" ), qr/\Aexit 1: sirius: $option \Q$dir\E\/broken: /,
            "$option: a link to nowhere is refused";
        ok !-e "$dir/nowhere", 'and nothing is made there';
        next if $>;
        my $target = spew( "$dir/target", '' );
        symlink $target, "$dir/link" or die $!;
        POSIX::lchown( 65532, 65533, "$dir/link" ) or next;
        like refused( $option, "$dir/link" ), qr/\Aexit 1: sirius: $option .*: Permission denied\z/,
            "one of another user's is refused";
        ok -z $target, 'and nothing is written there';
    }
};

# A file that was led to another place between two reopenings of it
subtest 'A log that has become a link' => sub {
    plan skip_all => 'for root' if $>;
    case ();
    my $target = spew( "$dir/target", '' );
    my $server = start_server( $hello, qw(--workers 1 --access-log), "$dir/access.log" );
    rename "$dir/access.log", "$dir/access.log.1" or die $!;
    symlink $target, "$dir/access.log" or die $!;
    plan skip_all => 'this root can give nothing away' if !POSIX::lchown( 65532, 65533, "$dir/access.log" );
    $server->signal('USR1');
    ok $server->wait_log(
        qr/--access-log .*: Permission denied; logging continues in the file that was open before/, 20
        ),
        'is not followed';
    is $server->ask('GET /')->body, 'hello', 'asked';
    ok until_true( 10, sub { -s "$dir/access.log.1" } ), 'the log goes on where it was';
    ok -z $target,                                       'and nothing is written there';
    $server->stop;
};

sub answer {
    my ( $path, $uid ) = @_;
    pipe my $read, my $write or die $!;
    my $pid = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        $uid && ( POSIX::setgid($uid) && POSIX::setuid($uid) || POSIX::_exit(1) );
        my $said = 'no connection';
        socket my $fh, AF_UNIX, SOCK_STREAM, 0 or POSIX::_exit(1);
        if ( connect $fh, pack_sockaddr_un($path) ) {
            alarm 30;
            local $SIG{PIPE} = q(IGNORE);    # the answer may be there before the question
            syswrite $fh, qq({"command":"stop"}\n);
            $said = join '', readline $fh;
        }
        syswrite $write, $said;
        POSIX::_exit(0);
    }
    close $write;
    my $said = join '', readline $read;
    waitpid $pid, 0;
    return $said;
}

subtest 'The control socket' => sub {
    case ();
    my $server = start_server( $hello, qw(--workers 1 --control), "$dir/control" );
SKIP: {
        skip 'for root, where there are other users', 2 if $> || answer( "$dir/control", 65532 ) eq '';
        is answer( "$dir/control", 65532 ), 'no connection', 'another user is not let in';
        chmod 0666, "$dir/control" or die $!;
        like answer( "$dir/control", 65532 ), qr/"user 65532 may not control this server"/,
            'not even when somebody has opened it for all';
    }
    is $server->ask('GET /')->body, 'hello', 'the server goes on';
    like answer("$dir/control"), qr/"ok":1/, 'who has started it may stop it';
    is $server->wait_exit, 'exit 0', 'which it does';
    $server->stop;
};

subtest 'The admin port' => sub {
    case ();
    for my $address (qw(0.0.0.0:0 *:0 [::]:0 :0 10.0.0.1:0 [fe80::1]:0 192.168.1.1:9000)) {
        is refused( '--admin', $address ),
            "exit 2: sirius: --admin $address: other machines can reach this address; use a loopback address or a unix socket, or add --admin-public",
            "$address is refused";
    }
    my $server = start_server( $hello, qw(--workers 1 --admin 0.0.0.0:0 --admin-public) );
    ok $server->wait_log(qr{admin on http://0\.0\.0\.0:\d+/}), 'asked for twice, it is there'
        or diag $server->log;
    $server->stop;
    plan skip_all => 'for root' if $>;
    case ();
    $server = start_server( $hello, qw(--workers 1 --admin), "unix:$dir/admin" );
    like answer( "$dir/admin", 65532 ), qr/\A(?:no connection)?\z/, 'another user is not let in';
    $server->stop;
};

done_testing;
