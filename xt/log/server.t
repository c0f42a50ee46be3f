use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;
use Time::HiRes qw(sleep);

# The server's own log: a line for each request, whole, with what was really sent, whatever became of it

my $dir = File::Temp->newdir;
my $app = <<'APP';
my %do = (
    '/big'    => sub { [ 200, [], [ 'x' x 8_000_000 ] ] },
    '/die'    => sub { die "on purpose\n" },
    '/sleep'  => sub { select undef, undef, undef, 0.3; [ 200, [], ['late'] ] },
    '/stuck'  => sub { sleep 30; [ 200, [], [] ] },
    '/user'   => sub { $_[0]{REMOTE_USER} = 'me'; [ 404, [ 'X-Own' => 'o' ], ['none'] ] },
    '/cut'    => sub { my $env = shift; sub { my $w = $_[0]->( [ 200, [] ] ); $w->write('begun'); die "cut\n" } },
    '/stream' => sub { sub { my $w = $_[0]->( [ 200, [] ] ); $w->write( 'x' x 100 ) for 1 .. 3; $w->close } },
    '/loud'   => sub { $_[0]{REMOTE_USER} = bless {}, 'Loud'; [ 200, [], ['ok'] ] },
);
package Loud { use overload '""' => sub { die "never\n" }, fallback => 1; }
sub { my $do = $do{ $_[0]{PATH_INFO} }; $do ? &$do : [ 200, [ 'Content-Type' => 'text/plain' ], ['ok'] ] }
APP

my $number = 0;

sub logged {
    my ( $format, @args ) = @_;
    my $file = "$dir/log." . ++$number;
    my $server
        = start_server( $app, '--access-log', $file, '--access-log-format', $format,
        @args ? @args : qw(--workers 1) );
    return ( $server, $file );
}

# The lines, when there are so many
sub lines {
    my ( $file, $count ) = @_;
    my $read = sub { split /^/m, -e $file ? Sirius::Test::Server::slurp($file) : '' };
    until_true( 20, sub { $count <= ( my @all = $read->() ) } );
    return map {s/\n\z//r} $read->();
}

subtest 'what the lines say' => sub {
    my ( $server, $file ) = logged('%m %U%q %H %>s %b %X %k %u "%{User-Agent}i" "%{X-Own}o"');
    my $client = $server->connect;
    $client->ask( 'GET /?a=1', 'User-Agent: test' );
    $client->ask('HEAD /x');
    $client->ask('GET /user');
    $client->ask('GET /die');
    $client->ask('GET /stream');
    $server->ask('GET /cut');
    $server->ask('GET /loud');
    $client->ask( 'GET /last', 'Connection: close' );
    my @want = (
        'GET /?a=1 HTTP/1.1 200 2 + 0 - "test" "-"',
        'HEAD /x HTTP/1.1 200 0 + 1 - "-" "-"',
        'GET /user HTTP/1.1 404 4 + 2 me "-" "o"',
        'GET /die HTTP/1.1 500 22 + 3 - "-" "-"',
        qr{\AGET /stream HTTP/1.1 200 3\d\d \+ 4 - "-" "-"\z},    # with the frames of its chunks
        qr{\AGET /cut HTTP/1.1 200 \d+ X 0 - "-" "-"\z},
        'GET /loud HTTP/1.1 200 2 + 0 - "-" "-"',
        'GET /last HTTP/1.1 200 2 - 5 - "-" "-"',
    );
    my @got = lines( $file, scalar @want );
    is scalar @got, scalar @want, 'a line each';
    for my $i ( 0 .. $#want ) {
        ref $want[$i] ? like( $got[$i], $want[$i], $got[$i] ) : is( $got[$i], $want[$i], $want[$i] );
    }
    $server->stop;
};

subtest 'requests that the application never saw' => sub {
    my ( $server, $file ) = logged( '"%r" %>s %b', qw(--workers 1 --max-body 10 --header-timeout 0.5) );
    my %sent = (
        "GET / HTTP/1.1\r\n\r\n"                                      => '"GET / HTTP/1.1" 400 16',
        "junk\x01\"\r\n\r\n"                                          => '"junk\x01"" 400 16',
        "GET / HTTP/1.1\r\nHost: a\r\nX\x00: 1\r\n\r\n"               => '"GET / HTTP/1.1" 400 16',
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"   => '"POST /p HTTP/1.1" 413 22',
        "GET /late HTTP/1.1\r\nHost: a\r\n"                           => '"GET /late HTTP/1.1" 408 20',
        "HEAD /n HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"    => '"HEAD /n HTTP/1.1" 400 0',
        "GET /" . 'l' x 17_000 . " HTTP/1.1\r\nHost: a\r\n\r\n"       => '"GET /' . 'l' x 1019 . '" 414 17',
        "BREW /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: y\r\n\r\n" => '"BREW /t HTTP/1.1" 501 20',
    );
    for my $bytes ( sort keys %sent ) {
        my $client = $server->connect;
        $client->send($bytes);
        $client->response;
    }
    is_deeply [ sort( lines( $file, scalar keys %sent ) ) ], [ sort values %sent ],
        'are logged with what they said';
    $server->stop;
};

subtest 'times, and what was sent' => sub {
    my ( $server, $file ) = logged('%U %D %{queue}D %{app}D %B %O');
    my $waiter  = $server->connect;
    my $sleeper = $server->connect;    # open until the end: who closes is not served
    $server->board;                    # its reader is there
    $sleeper->send( request('GET /sleep') );
    $server->wait_busy( 1, qr{/sleep} );
    is $waiter->ask('GET /after')->status, 200, 'one that had to wait';
    $server->ask('GET /big');
    my %line = map { my ( $path, @rest ) = split; $path => \@rest } lines( $file, 3 );
    my ( $total, $queue, $in_app ) = @{ $line{'/sleep'} };
    ok $total >= 300_000 && $in_app >= 300_000 && $queue < 300_000, 'its time was the application\'s'
        or diag "@{ $line{'/sleep'} }";
    ( $total, $queue, $in_app ) = @{ $line{'/after'} };
    ok $queue > 100_000 && $in_app < $queue && $total >= $queue, 'the other has waited'
        or diag "@{ $line{'/after'} }";
    is $line{'/big'}[3], 8_000_000, 'all bytes of the body';
    cmp_ok $line{'/big'}[4], '>', 8_000_000, 'and the head';
    $server->stop;
};

subtest 'a client that leaves' => sub {
    my ( $server, $file ) = logged('%U %>s %B %X');
    my $client = $server->connect( rcvbuf => 8192 );
    $client->send( request('GET /big') );
    sysread $client->socket, my $bytes, 1000;
    close $client->socket;
    my ($line) = lines( $file, 1 );
    my ( $path, $status, $sent, $end ) = split / /, $line;
    is "$path $status $end", '/big 200 X', 'is logged as cut';
    ok $sent > 0 && $sent < 8_000_000, 'with what the kernel took';
    $server->stop;
};

subtest 'one that takes too long' => sub {
    my ( $server, $file ) = logged( '%m %U %>s %h', qw(--workers 1 --request-timeout 0.5) );
    is $server->ask('GET /stuck')->status, 504, 'its client is told';
    like + ( lines( $file, 1 ) )[0], qr{\AGET /stuck 504 127[.]0[.]0[.]1\z},
        'is logged before its worker is killed';
    is $server->ask('GET /')->status, 200, 'its successor serves';
    like + ( lines( $file, 2 ) )[1], qr{\AGET / 200 }, 'and logs';
    $server->stop;
};

subtest 'only slow ones, only errors' => sub {
    my ( $slow,   $slow_file )   = logged( '%U', qw(--workers 1 --access-log-min-time 0.2) );
    my ( $errors, $errors_file ) = logged( '%U', qw(--workers 1 --access-log-errors-only) );
    for my $server ( $slow, $errors ) {
        $server->ask("GET $_") for qw(/ /sleep /user /die /);
        $server->stop;
    }
    is_deeply [ lines( $slow_file,   1 ) ], ['/sleep'],          'slower than that';
    is_deeply [ lines( $errors_file, 2 ) ], [ '/user', '/die' ], '4xx and 5xx';
};

subtest 'rotation and reload under load' => sub {
    my ( $server, $file ) = logged( '%U %>s', qw(--workers 3) );
    my ( $pid,    $sent ) = ( fork, 3000 );
    defined $pid or die "fork: $!";
    if ( !$pid ) {
        my @client = map { $server->connect } 1 .. 4;
        for my $n ( 1 .. $sent ) {
            my $client = $client[ $n % 4 ];
            $client[ $n % 4 ] = $server->connect if $client->ask("GET /$n")->closes;
        }
        require POSIX;
        POSIX::_exit(0);
    }
    my $turn = 0;
    while ( waitpid( $pid, 1 ) == 0 ) {
        rename $file, "$file." . ++$turn if $turn < 20 && -e $file;
        $server->signal( $turn % 4 == 3 ? 'HUP' : 'USR1' );
        sleep 0.15;
    }
    ok $turn, "$turn rotations" or diag $server->log;
    $server->stop;
    my %seen;
    my @all = map { lines( $_, 0 ) } glob "$file $file.*";
    $seen{$_}++ for @all;
    is scalar @all, $sent, 'every request has a line';
    is_deeply [ grep { !$seen{"/$_ 200"} } 1 .. $sent ], [], 'and just one';
};

subtest 'a command' => sub {
    my $out    = "$dir/piped";
    my $server = start_server( $app, '--access-log', "|cat >> $out", qw(--workers 2) );
    $server->ask("GET /$_") for 1 .. 50;
    is scalar lines( $out, 50 ), 50, 'reads every line';
    $server->signal('HUP');
    ok until_true( 20, sub { $server->log =~ /generation 2 is serving/ } ), 'a reload';
    $server->ask("GET /$_") for 51 .. 60;
    is scalar lines( $out, 60 ), 60, 'which it goes on through';
    $server->ask('GET /end');
    $server->stop;
    is scalar lines( $out, 61 ), 61, 'it has the last line, too';
};

subtest 'no room' => sub {
    my $server = start_server( $app, '--access-log', '/dev/full', qw(--workers 1) );
    is $server->ask('GET /')->status, 200, 'service goes on' for 1 .. 3;
    sleep 0.7;
    is $server->ask('GET /')->status, 200, 'when lines are lost';
    $server->stop;
};

subtest 'one process, and STDOUT' => sub {
    my ( $server, $file ) = logged( '%U', qw(--workers 0) );
    $server->ask('GET /one');
    is_deeply [ lines( $file, 1 ) ], ['/one'], 'within a second';
    $server->stop;
    my $out   = "$dir/stdout";
    my $other = start_server( $app, '--access-log', '-', qw(--workers 1) );
    $other->ask('GET /stdout');
    ok until_true( 5, sub { $other->output =~ m{"GET /stdout HTTP/1[.]1" 200 2 } } ), 'on STDOUT';
    $other->stop;
};

subtest 'words that are wrong' => sub {
    my @command = (
        $^X,
        "-I$Sirius::Test::Server::ROOT/blib/lib",
        "-I$Sirius::Test::Server::ROOT/blib/arch",
        "$Sirius::Test::Server::ROOT/bin/sirius"
    );
    my %want = (
        "--access-log-format '%h %Z'"  => qr/\Asirius: --access-log-format: unknown item %Z at character 4$/m,
        '--access-log syslog:nonsense' =>
            qr/\Asirius: --access-log syslog:nonsense: 'nonsense' is not a syslog facility/,
        '--access-log "|"' => qr/\Asirius: --access-log [|]: no command follows/,
    );
    for my $args ( sort keys %want ) {
        my $log  = $args =~ /format/ ? "--access-log $dir/x" : '';
        my $said = `@command --listen 127.0.0.1:0 $log $args -e 'die qq(loaded\n)' 2>&1`;
        is $? >> 8, 2, "$args: exit 2";
        like $said,   $want{$args}, 'and a clear word';
        unlike $said, qr/^loaded/m, 'before the application is loaded';
    }
    my $said = `@command --listen 127.0.0.1:0 --access-log $dir/none/log -e 'sub { [200,[],[]] }' 2>&1`;
    is $? >> 8, 1, 'a folder that is not there: exit 1';
    like $said, qr{\Asirius: --access-log \S+/none/log: No such file or directory$}m, 'and why';
};

done_testing;
