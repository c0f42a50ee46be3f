use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Errno qw(EACCES EAGAIN ECONNREFUSED);
use File::Temp;
use POSIX       ();
use Socket      qw(AF_UNIX SOCK_STREAM pack_sockaddr_un);
use Time::HiRes qw(sleep time);
use Sirius::Test;

# Unix sockets: their rights, their neighbours, and clients that come while servers come and go

my $APP = "sub { [ 200, [], [ join '|', \@{ \$_[0] }{qw(SERVER_NAME SERVER_PORT REMOTE_ADDR)} ] ] }\n";
my $dir = File::Temp->newdir;
chmod 0755, "$dir" or die $!;    # for other users

sub rights {
    my @stat = stat shift;
    return sprintf '%04o %d %d', $stat[2] & 07777, @stat[ 4, 5 ];
}

# 0 or the error of a connect, as a number
sub failure {
    my $path = shift;
    socket my $fh, AF_UNIX, SOCK_STREAM, 0 or die "socket: $!";
    return connect( $fh, pack_sockaddr_un($path) ) ? 0 : 0 + $!;
}

# The same as another user
sub failure_as {
    my ( $uid, $gid, $path ) = @_;
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        $) = "$gid $gid";
        POSIX::setgid($gid);
        POSIX::setuid($uid);
        POSIX::_exit( failure($path) );
    }
    waitpid $pid, 0;
    return $? >> 8;
}

# A client that connects all the time until it is told to stop, and then says how often which error came
sub client {
    my $path = shift;
    pipe my $read, my $tell or die "pipe: $!";
    pipe my $hear, my $stop or die "pipe: $!";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        close $stop;
        my ( %seen, $until );
        $until = time + 60;
        while ( time < $until ) {
            $seen{ failure($path) }++;
            vec( my $bits = '', fileno $hear, 1 ) = 1;
            last if select $bits, undef, undef, 0.001;
        }
        syswrite $tell, join '', map {"$_ $seen{$_}\n"} sort keys %seen;
        POSIX::_exit(0);
    }
    close $tell;
    return sub {
        close $stop;
        my %seen = map { split / / } readline $read;
        waitpid $pid, 0;
        return map { $_ => $seen{$_} + 0 } keys %seen;
    };
}

subtest 'mode, owner and group' => sub {
    my ( $uid, $gid ) = $> ? ( $>, $) + 0 ) : ( 65_534, 65_533 );
    my $server = start_server( $APP, '--listen', "unix:$dir/a?mode=0660&owner=$uid&group=$gid",
        '--listen', "$dir/b", '--listen', "$dir/c?mode=0600", '--socket-mode', '0666', '--workers', 2 );
    is_deeply [ $server->listeners ], [ map {"unix:$dir/$_"} qw(a b c) ], 'the paths are shown';
    is rights("$dir/a"), "0660 $uid $gid", 'as the address says';
    is rights("$dir/b") =~ s/ .*//r, '0666', 'as --socket-mode says';
    is rights("$dir/c") =~ s/ .*//r, '0600', 'the address is stronger';
    for my $name (qw(a b c)) {
        my $answer = $server->connect( to => "unix:$dir/$name" )->ask('GET /');
        is $answer->body, 'localhost|80|127.0.0.1', "$name serves, with a name, a port and a peer";
    }
SKIP: {
        skip 'needs root', 3 if $>;
        is failure_as( 60_000, 65_533, "$dir/a" ), 0,      'the group may connect';
        is failure_as( 60_000, 60_000, "$dir/a" ), EACCES, 'others may not';
        is failure_as( 60_000, 60_000, "$dir/b" ), 0,      'with mode 0666 they may';
    }
    $server->stop;
    is_deeply [ glob "$dir/*" ], [], 'all are removed';
};

subtest 'wrong rights are named' => sub {
    my %wrong = (
        "$dir/a?mode=rw"                => [ 'exit 2', qr/--listen: .*mode rw is not octal/ ],
        "$dir/a?mod=0660"               => [ 'exit 2', qr/--listen: .*'mod=0660'/ ],
        "$dir/a?owner=no-such-user"     => [ 'exit 2', qr/--listen: .*no user no-such-user/ ],
        "\@name?mode=0660"              => [ 'exit 2', qr/--listen: .*abstract/ ],
        "$dir/no-such-directory/a.sock" => [ 'exit 1', qr/cannot listen on .*No such file/ ],
    );
    for my $spec ( sort keys %wrong ) {
        my $server = Sirius::Test::Server->spawn( app => $APP, args => [ '--listen', $spec ] );
        my ( $how, $named ) = @{ $wrong{$spec} };
        is $server->wait_exit, $how, $spec =~ s/\Q$dir//r;
        like $server->log, qr/\Asirius: $named.*\n\z/, 'in one line';
    }
};

subtest 'a killed server is replaced: a client never misses the path' => sub {
    my $path   = "$dir/killed";
    my $server = start_server( $APP, '--listen', $path, '--workers', 1 );
    my $client = client($path);
    for ( 1 .. 3 ) {
        $server->kill_hard;
        $server = start_server( $APP, '--listen', $path, '--workers', 1 );
        is $server->ask('GET /')->status, 200, 'the next one serves';
    }
    my %seen = $client->();
    cmp_ok delete $seen{0}, '>', 0, 'it has connected';
    delete @seen{ ECONNREFUSED(), EAGAIN() };    # nobody listened
    is_deeply \%seen, {}, 'no other error' or diag explain \%seen;
    $server->stop;
    ok !-e $path, 'removed at the end';
};

subtest 'reload with a connecting client: nothing is refused' => sub {
    my $path   = "$dir/reload";
    my $server = start_server( $APP, '--listen', $path, '--workers', 2 );
    my ($old)  = $server->generations;
    my $inode  = ( stat $path )[1];
    my $client = client($path);
    for my $round ( 1 .. 3 ) {
        $server->signal('HUP');
        ok until_true( 20, sub { my @now = $server->generations; @now == 1 && $now[0] != $old } ),
            "reload $round";
        ($old) = $server->generations;
    }
    my %seen = $client->();
    is_deeply [ keys %seen ], [0], 'no ENOENT, no ECONNREFUSED' or diag explain \%seen;
    is( ( stat $path )[1], $inode, 'it is the same socket' );
    is $server->ask('GET /')->status, 200, 'which serves';
    $server->stop;
    ok !-e $path, 'removed at the end, and only there';
};

subtest 'a path in the directory of the start' => sub {
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => [
            $^X,    '-e', 'chdir shift or die $!; exec @ARGV or die $!',
            "$dir", $^X,  "$Sirius::Test::Server::ROOT/bin/sirius",
            '-E',   'deployment'
        ],
        args => [ '--listen', './relative.sock' ],
    );
    is $server->connect( to => "unix:$dir/relative.sock" )->ask('GET /')->status, 200, 'it serves';
    $server->stop;
    ok !-e "$dir/relative.sock", 'removed';
};

done_testing;
