use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Socket      qw(AF_INET AF_INET6 inet_pton);
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::HAProxy;

# Connections that begin with the header of the PROXY protocol: whom it names, however it comes, is the
# client; without a right one there is no answer

my $APP = <<'APP';
sub {
    my $env = shift;
    sleep $1 if $env->{PATH_INFO} =~ m{\A/sleep/(\d+)};
    return [ 200, [ 'X-Path' => $env->{PATH_INFO}, 'X-Worker' => $$ ], [ "$env->{REMOTE_ADDR} $env->{REMOTE_PORT}" ] ];
}
APP

my $SIGNATURE = "\r\n\r\n\0\r\nQUIT\n";
my $V1        = "PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n";
my $V2        = block(
    0x21, 0x11,
    inet_pton( AF_INET, '192.0.2.7' ),
    inet_pton( AF_INET, '192.0.2.1' ),
    pack 'nn', 56_324, 443
);
my $dir = File::Temp->newdir;

sub block {
    my ( $command, $family, @part ) = @_;
    my $rest = join '', @part;
    return $SIGNATURE . pack( 'CCn', $command, $family, length $rest ) . $rest;
}

sub server {
    my @args = @_;
    return start_server( $APP, qw(--proxy-protocol), @args );
}

my $server = server(qw(--workers 2));

subtest 'whom it names' => sub {
    my $six  = join '', map { inet_pton( AF_INET6, $_ ) } qw(2001:db8::7 2001:db8::1);
    my $tlv  = "\x04\0\x03abc";
    my @case = (
        [ $V1                                                       => '192.0.2.7 56324' ],
        [ "PROXY TCP6 2001:DB8::7 2001:db8::1 1 2\r\n"              => '2001:db8::7 1' ],
        [ "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n"                 => '192.0.2.7 1' ],
        [ "PROXY UNKNOWN\r\n"                                       => 'itself' ],
        [ "PROXY UNKNOWN 192.0.2.7 192.0.2.1 1 2\r\n"               => 'itself' ],
        [ $V2                                                       => '192.0.2.7 56324' ],
        [ block( 0x21, 0x21, $six, pack 'nn', 1, 2 )                => '2001:db8::7 1' ],
        [ block( 0x21, 0x21, $six, pack( 'nn', 1, 2 ), $tlv x 500 ) => '2001:db8::7 1' ],
        [ block( 0x21, 0x31, "/client" . "\0" x 209 )               => 'itself' ],
        [ block( 0x21, 0x00 )                                       => 'itself' ],
        [ block( 0x20, 0x00 )                                       => 'itself' ],
        [ block( 0x20, 0x11, substr $V2, 16 )                       => 'itself' ],
    );
    for my $case (@case) {
        my ( $header, $want ) = @$case;
        my $client = $server->connect;
        $want = '127.0.0.1 ' . $client->port if $want eq 'itself';
        ( my $name = substr $header, 0, 40 ) =~ s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ge;
        $client->send( $header . request('GET /1') . request('GET /2') );
        is $client->response->body,                                   $want, $name;
        is $client->response->body,                                   $want, 'and of the next request';
        is $client->ask( 'GET /', 'X-Forwarded-For: 6.6.6.6' )->body, $want, 'and of a later one';
    }
};

subtest 'in all deliveries' => sub {
    my $get = request('GET /whole');
    for my $case ( [ 'version 1', $V1 ], [ 'version 2', $V2 ], [ 'nobody', "PROXY UNKNOWN\r\n" ] ) {
        my ( $name, $header ) = @$case;
        my $want = $name eq 'nobody' ? qr/\A127[.]0[.]0[.]1 / : qr/\A192[.]0[.]2[.]7 56324\z/;
        my @job  = every_delivery( $server, $name, "$header$get", '200 after' );
        is scalar( grep { $_->{responses}[0]->body !~ $want } @job ), 0, 'the right client each time';
    }
};

# Each job is some bytes and then the end; none is answered
sub unanswered {
    my ( $name, @bytes ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @job = map { { pieces => [$_], answers => 0, finish => 1, patience => 5 } } @bytes;
    Sirius::Test::Swarm->run( $server->address, \@job );
    my @wrong = grep { $_->{result} !~ /\A(?:closed|reset)\z/ } @job;
    is scalar(@wrong), 0, $name or diag $wrong[0]{result};
    return;
}

subtest 'cut at each byte' => sub {
    unanswered( 'version 1', map { substr $V1, 0, $_ } 1 .. length $V1 );
    unanswered( 'version 2', map { substr $V2, 0, $_ } 1 .. length $V2 );
};

subtest 'no header, or a wrong one' => sub {
    my $get = request('GET /');
    unanswered( 'a request', $get );
    unanswered(
        'version 1',
        map {"$_$get"} "proxy TCP4 192.0.2.7 192.0.2.1 1 2\r\n",
        "PROXY  TCP4 192.0.2.7 192.0.2.1 1 2\r\n",
        "PROXY TCP4 192.0.2.7 192.0.2.1 1\r\n",
        "PROXY TCP4 192.0.2.7 192.0.2.1 1 2\n",
        "PROXY TCP4 192.0.2.7 192.0.2.1 1 65536\r\n",
        "PROXY TCP4 192.0.2.07 192.0.2.1 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP9 192.0.2.7 192.0.2.1 1 2\r\n",
        'PROXY ' . 'x' x 200,
        "PROXY UNKNOWN " . 'x' x 92 . "\r\n",
        "PROXY\r\n"
    );
    unanswered(
        'version 2',
        map {"$_$get"} $V2 =~ s/\x21\x11/\x11\x11/r,
        $V2                =~ s/\x21\x11/\x31\x11/r,
        $V2                =~ s/\x21\x11/\x22\x11/r,
        $V2                =~ s/\x21\x11/\x21\x41/r,
        $V2                =~ s/\x21\x11/\x21\x13/r,
        block( 0x21, 0x11, 'x' x 11 ),
        block( 0x21, 0x21, 'x' x 35 ),
        block( 0x21, 0x31, 'x' x 215 ),
        block( 0x20, 0x00, 'x' x 4081 ),
        "$SIGNATURE\x21\x11\xff\xff"
    );
    unanswered( 'each byte of the signature',
        map { my $bytes = $V2; substr( $bytes, $_, 1 ) ^= "\x20"; $bytes . $get } 0 .. 11 );
    my $client = $server->connect;
    $client->send("$V1$V1$get");
    is $client->response->status,  400,       'a second header is no request';
    is $server->connect->end(0.1), 'timeout', 'one that says nothing may still begin';
};

subtest 'time' => sub {
    my $brief  = server(qw(--workers 1 --header-timeout 2));
    my %client = map { $_ => $brief->connect } qw(nothing half whole head);
    $client{half}->send( substr $V1, 0, 20 );
    $client{whole}->send($V2);
    $client{head}->send("${V1}GET / HT");
    is $client{$_}->end(5), 'eof', "$_: closed without an answer" for qw(nothing half whole);
    is $client{head}->response( patience => 5 )->status, 408, 'a part of a head is answered';
    $brief->stop;
};

subtest 'only from trusted peers' => sub {
    my %want = ( '10.0.0.0/8' => '--', '127.0.0.1' => 'Y-', unix => '-Y', '::1,unix,127.0.0.0/8' => 'YY' );
    for my $list ( sort keys %want ) {
        my $server
            = server( '--trust-proxy', $list, qw(--workers 1 --listen 127.0.0.1:0 --listen), "$dir/s" );
        my $got = '';
        for my $to ( $server->address, "unix:$dir/s" ) {
            my $client = $server->connect( to => $to );
            $client->send( $V1 . request('GET /') );
            my $answer = $client->response;
            $got
                .= $answer->status eq '200'              ? 'Y'
                : $answer->status =~ /\A(?:eof|reset)\z/ ? '-'
                :                                          $answer->status;
        }
        is $got, $want{$list}, "$list: TCP, unix socket";
        $server->stop;
    }
};

subtest 'and X-Forwarded-For' => sub {
    my $server = server( qw(--workers 1 --trust-proxy), "127.0.0.1,10.0.0.0/8" );
    my @case   = (
        [ '10.1.1.1',  '192.0.2.9',           '192.0.2.9 0' ],
        [ '10.1.1.1',  '6.6.6.6, 192.0.2.9',  '192.0.2.9 0' ],
        [ '192.0.2.7', '6.6.6.6',             '192.0.2.7 1' ],
        [ '192.0.2.7', '6.6.6.6, 10.1.1.1',   '192.0.2.7 1' ],
        [ '10.1.1.1',  '192.0.2.9, 10.1.1.2', '192.0.2.9 0' ],
    );
    for my $case (@case) {
        my ( $peer, $list, $want ) = @$case;
        my $client = $server->connect;
        $client->send( "PROXY TCP4 $peer 10.0.0.1 1 2\r\n" . request( 'GET /', "X-Forwarded-For: $list" ) );
        is $client->response->body, $want, "$peer says $list";
    }
    $server->stop;
};

# The connections stay where they are when workers are replaced, whatever of the header has come
subtest 'a reload in the middle of a header' => sub {
    my @part = map { [ $_, substr( "$V1", 0, $_ ), substr( $V1, $_ ) ] } 0, 1, 20, length($V1) - 1,
        length $V1;
    my @client = map { my $client = $server->connect; $client->send( $_->[1] ); $client } @part;
    my $kept   = $server->connect;
    $kept->send( $V2 . request('GET /') );
    my $worker = $kept->response->header('X-Worker');
    my %old    = map { $_ => 1 } $server->workers;
    $server->signal('HUP');
    ok until_true(
        20,
        sub {
            my @now = $server->workers;
            @now == 2 && !grep { $old{$_} } @now;
        }
        ),
        'new workers';
    for my $i ( 0 .. $#part ) {
        $client[$i]->send( $part[$i][2] . request('GET /') );
        is $client[$i]->response->body, '192.0.2.7 56324', "$part[$i][0] bytes had come";
    }
    my $answer = $kept->ask('GET /');
    is $answer->body,                 '192.0.2.7 56324', 'one that was served before';
    isnt $answer->header('X-Worker'), $worker,           'by another worker';
};

subtest 'a request that waits for a worker' => sub {
    my @client = map { $server->connect } 1 .. 6;
    $_->send( $V1 . request('GET /sleep/1') ) for @client[ 0, 1 ];
    $_->send( $V1 . request('GET /') )        for @client[ 2 .. 5 ];
    is $_->response->body, '192.0.2.7 56324', 'its client' for @client;
};

subtest 'in the access log' => sub {
    my $log    = "$dir/access";
    my $server = server( qw(--workers 1 --request-timeout 3 --trust-proxy 127.0.0.1 --access-log-format),
        '%h "%r" %>s', '--access-log', $log );
    my $client = $server->connect;
    $client->send(
        "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" . request( 'GET /far', 'X-Forwarded-For: 192.0.2.9' ) );
    is $client->response->status,         200, 'a request of whom a proxy names';
    is $client->ask('GET /near')->status, 200, 'one of the proxy itself';
    is $client->ask( 'GET /far', 'X-Forwarded-For: 192.0.2.9' )->status, 200, 'the first again';
    is $client->ask( 'GET /bad', 'X-Forwarded-For: 192.0.2.9', 'Host: a b' )->status, 400,
        'a refusal: nobody is believed';
    $client = $server->connect;
    $client->send( $V1 . request( 'GET /bad', 'Host: a b' ) );
    is $client->response->status, 400, 'and of whom the header names, in one piece with it';
    $client = $server->connect;
    $client->send( substr $V1, 0, 20 );
    sleep 0.05;
    $client->send( substr( $V1, 20 ) . request( 'GET /bad', 'Host: a b' ) );
    is $client->response->status, 400, 'or in two';
    $client = $server->connect;
    $client->send( "PROXY UNKNOWN\r\n" . request( 'GET /sleep/6', 'X-Forwarded-For: 192.0.2.9' ) );
    is $client->response->status, 504, 'one that takes too long';
    my $want = join '', map {"$_\n"} '192.0.2.9 "GET /far HTTP/1.1" 200',
        '127.0.0.1 "GET /near HTTP/1.1" 200',
        '192.0.2.9 "GET /far HTTP/1.1" 200', '127.0.0.1 "GET /bad HTTP/1.1" 400',
        ('192.0.2.7 "GET /bad HTTP/1.1" 400') x 2, '192.0.2.9 "GET /sleep/6 HTTP/1.1" 504';
    until_true( 10, sub { Sirius::Test::Server::slurp($log) eq $want } );
    is Sirius::Test::Server::slurp($log), $want, 'their lines';
    $server->stop;
};

subtest 'HAProxy' => sub {
    Sirius::Test::HAProxy->available or plan skip_all => 'HAProxy is not installed';
    my $behind = server( qw(--workers 2 --listen 127.0.0.1:0 --listen), "$dir/h" );
    my %option = (
        v1  => 'send-proxy',
        v2  => 'send-proxy-v2',
        ids => 'send-proxy-v2 proxy-v2-options crc32c,unique-id'
    );
    my $check = 'check inter 50ms';
    my @way   = map { ( [ $_, $behind->address ], [ "$_-unix", "unix\@$dir/h" ] ) } sort keys %option;
    my $proxy = Sirius::Test::HAProxy->start( <<"CONF" . join '', map { <<"BACKEND" } @way );
global
    stats socket $dir/stats mode 600 level admin
defaults
    mode http
    timeout connect 5s
    timeout client 10s
    timeout server 10s
    timeout check 5s
    option httpchk
frontend all
    bind fd\@LISTENER
    use_backend %[path,field(2,/)]
CONF
backend $_->[0]
    server one $_->[1] @{[ $option{ $_->[0] =~ s/-unix//r } ]} $check
BACKEND
    for my $way ( map { $_->[0] } @way ) {
        my $client = $proxy->connect;
        my $want   = '127.0.0.1 ' . $client->port;
        is $client->ask("GET /$way/$_")->body, $want, "$way: $_" for 1 .. 3;
    }
    my $checks = sub {
        my $stats = Sirius::Test::Client->new("unix:$dir/stats");
        $stats->send("show stat -1 4 -1\n");
        my ( $head, @line ) = split /\n/, $stats->rest(5);
        my @name = split /,/, $head =~ s/\A# //r;
        return map { my %row; @row{@name} = split /,/; "$row{pxname}: $row{check_status}" =~ s/\* //r } @line;
    };
    my $all = join "\n", map {"$_->[0]: L7OK"} @way;
    ok until_true( 10, sub { join( "\n", $checks->() ) eq $all } ), 'health checks' or diag $checks->();
    is $proxy->log, '', 'HAProxy has nothing to complain about';
    $proxy->stop;
    $behind->stop;
};

$server->stop;
done_testing;
