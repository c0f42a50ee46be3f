use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use File::Temp;
use List::Util  qw(sum0);
use Time::HiRes qw(sleep time);
use Test::More;
use Sirius::Test;
use Sirius::Test::Faults;

# Clients that do not read, or send a body slowly, fill --tmpdir only up to --max-temp-file-size, or up to
# what the disk takes. Then the slowest pay, and nobody else

my $MB  = 1 << 20;
my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP = <<'APP';
my $large = join '', map { sprintf '%08x', $_ } 0 .. 1_000_000;
sub {
    my $env = shift;
    my $got    = 0;
    my $others = 0;    # bytes that are no B
    while ( my $n = $env->{'psgi.input'}->read( my $piece, 65_536 ) ) { $got += $n; $others += $piece =~ tr/B//c }
    return [ 200, [], ["$env->{REQUEST_METHOD} $got $others"] ] if $env->{PATH_INFO} eq '/others';
    return [ 200, [], [ substr $large, 0, $1 ] ] if $env->{PATH_INFO} =~ m{\A/bytes/(\d+)};
    if ( $env->{PATH_INFO} =~ m{\A/times/(\d+)/(\d+)} ) {
        my ( $times, $size ) = ( $1, $2 );
        return sub {
            my $writer = $_[0]->( [ 200, [ 'Content-Length' => $times * $size ] ] );
            $writer->write( substr $large, 0, $size ) for 1 .. $times;
            $writer->close;
        };
    }
    [ 200, [], [$got] ];
}
APP
my $BYTES = 8_000_008;

sub server {
    my @args = @_;
    return start_server( $APP, '--workers', 2, '--tmpdir', "$dir", qw(--admin 127.0.0.1:0), @args );
}

# Of the edges: each file once, although several clients may be sent it
sub spooled {
    my $server = shift;
    my %bytes  = map { my @stat = stat; @stat ? @stat[ 1, 7 ] : () }
        grep { ( readlink || '' ) =~ /\A\Q$dir\E\// } map { glob "/proc/$_/fd/*" } $server->edges;
    return sum0 values %bytes;
}

sub metric {
    my ( $server, $name ) = @_;
    my ($admin) = $server->log =~ m{admin on http://([^/]+)/};
    return $server->connect( to => $admin, plain => 1 )->ask('GET /metrics')->body =~ /^\Q$name\E (\d+)/m
        ? $1
        : undef;
}

# Clients that ask and do not read
sub idlers {
    my ( $server, $number, $path ) = @_;
    return map {
        my $client = $server->connect( rcvbuf => 4096 );
        $client->send( request("GET $path") );
        $client;
    } 1 .. $number;
}

# Those that have got all of it, of clients that read from now on
sub whole {
    my ( $length, @client ) = @_;
    return scalar grep {
        my $answer = $_->response( patience => 30 );
        $answer->status == 200 && length $answer->body == $length
    } @client;
}

subtest 'many that do not read, and one that does' => sub {
    my $server = server( '--max-temp-file-size', '40m' );
    my @idle   = idlers( $server, 60, "/bytes/$BYTES" );
    is whole( $BYTES, idlers( $server, 1, "/bytes/$BYTES" ) ), 1, 'it gets all';
    cmp_ok spooled($server), '<', 42 * $MB, 'the files stay below the limit';
    my $told = metric( $server, 'sirius_temporary_file_bytes' );
    cmp_ok abs( $told - spooled($server) ), '<', 20 * $MB, 'as the metrics say';
    cmp_ok metric( $server, 'sirius_connections_closed_total{reason="max-temp-file-size"}' ), '>', 0,
        'some of the others have paid';
    is whole( $BYTES, idlers( $server, 1, "/bytes/$BYTES" ) ), 1, 'and another one';
    ok $server->wait_log(
        qr/warn: --max-temp-file-size \(40m\) is reached, .*: \d+ responses? w\w+ kept waiting/, 20
        ),
        'the log says that workers wait';
    ok $server->wait_log( qr/warn: --max-temp-file-size .*: \d+ clients? w\w+ cut off/, 20 ),
        'and that some were cut off';
    $_->close for @idle;
    ok until_true( 10, sub { spooled($server) == 0 } ),                                 'nothing is left';
    ok until_true( 10, sub { metric( $server, 'sirius_temporary_file_bytes' ) == 0 } ), 'nor counted';
    $server->stop;
};

subtest 'nobody has to pay while no request waits' => sub {
    my $server = server( '--max-temp-file-size', '4m' );
    my ($slow) = idlers( $server, 1, "/times/24/4000000" );
    sleep 1.5;
    is $server->ask('GET /')->status, 200, 'a worker is free';
    cmp_ok spooled($server), '<', 8 * $MB, 'the other one waits for its client';
    is whole( 96_000_000, $slow ), 1, 'which gets 24 times as much as there may be in files';
    is metric( $server, 'sirius_connections_closed_total{reason="max-temp-file-size"}' ), 0,
        'nobody was cut off';
    $server->stop;
};

subtest 'two edges have one limit' => sub {
    my $server = server(qw(--edges 2 --max-temp-file-size 30m));
    my @idle   = idlers( $server, 40, "/bytes/$BYTES" );
    is whole( $BYTES, idlers( $server, 1, "/bytes/$BYTES" ) ), 1, 'one that reads gets all';
    cmp_ok spooled($server), '<', 34 * $MB, 'the files of both stay below the limit';
    $_->close for @idle;
    $server->stop;
};

subtest 'uploads' => sub {
    my $server = server( '--max-temp-file-size', '10m' );
    my @slow   = map {
        my $client = $server->connect;
        $client->send( "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n" . 'x' x 3_000_000 );
        $client;
    } 1 .. 3;
    ok until_true( 10, sub { spooled($server) >= 8 * $MB } ), 'three that go on no more';
    my $young = $server->ask( 'POST /', \( 'x' x 5_000_000 ) );
    sleep 1.1;
    my $body = 'x' x 5_000_000;
    is $server->ask( 'POST /', \$body )->body, 5_000_000, 'one that sends all at once is served' for 1 .. 3;
    my @status = map { $_->response( patience => 1 )->status } @slow;
    cmp_ok scalar( grep {/\A507\z/} @status ),    '>=', 1, 'a slow one is told 507' or diag "@status";
    cmp_ok scalar( grep { !/\A507\z/ } @status ), '>=', 1, 'not all of them';
    like $young->status, qr/\A(?:200|507)\z/, 'in the first second it is first come, first served';
    is $server->ask( 'POST /', \( 'x' x 11_000_000 ) )->status, 507,
        'one that is larger than the limit is refused';
    $_->close for @slow;
    ok until_true( 10, sub { spooled($server) == 0 } ), 'nothing is left';
    $server->stop;
};

# Who holds nearly all of the room and hardly moves pays, also a moment before its end, and not an upload that
# goes on slowly
subtest 'clients that stop just before their end' => sub {
    my $held = 9_900_000;
    my %stop = (
        'uploads' =>
            [ sub { "Content-Length: @{[ $held + 20_000 ]}\r\n\r\n" . 'x' x $held }, sub { 'x' x 100 } ],
        'chunked uploads' => [
            sub { sprintf "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", $held, 'x' x $held },
            sub { "64\r\n" . 'x' x 100 . "\r\n" }
        ],
        'many small uploads' =>
            [ sub { "Content-Length: 200000\r\n\r\n" . 'x' x 198_000 }, sub { 'x' x 100 }, 100 ],
    );
    for my $name ( sort keys %stop ) {
        my ( $begin, $more, $number ) = @{ $stop{$name} };
        my $server = server( '--max-temp-file-size', '20m' );
        my @slow   = map {
            my $client = $server->connect;
            $client->send( "POST / HTTP/1.1\r\nHost: a\r\n" . $begin->() );
            $client;
        } 1 .. ( $number || 2 );
        ok until_true( 20, sub { spooled($server) > 18 * $MB } ), "$name: nearly all of the room";
        sleep 1.5;
        steady_upload( $server, $name, sub { $_->send( $more->() ) for @slow } );
        my $paid = metric( $server, 'sirius_requests_refused_total{reason="max-temp-file-size"}' );
        cmp_ok $paid, '>=', 1,     "$name: they pay";
        cmp_ok $paid, '<',  @slow, "$name: not all of them";
        $_->close for @slow;
        $server->stop;
    }
};

# An upload of 3 MB in four seconds, during which others do something each half second
sub steady_upload {
    my ( $server, $name, $others ) = @_;
    my $client = $server->connect;
    $client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
    for my $n ( 1 .. 100 ) {
        $client->send( 'y' x 30_000 );
        $others->() if $n % 12 == 0;
        sleep 0.04;
    }
    is $client->response( patience => 5 )->body, 3_000_000, "$name: a steady one is served";
    $client->close;
    return;
}

subtest 'a reader that stops before its end' => sub {
    my $server = server( '--max-temp-file-size', '7m' );
    my @slow   = idlers( $server, 1, "/bytes/$BYTES" );
    ok until_true( 10, sub { spooled($server) > 4.5 * $MB } ), 'most of the room';
    for my $client (@slow) {
        my $got = 0;
        my $end = time + 20;
        while ( $got < $BYTES - 4_000_000 && time < $end ) {
            my $n = sysread $client->socket, my $piece, 65_536;
            if ( defined $n ) { $got += $n }
            else              { sleep 0.01 }
        }
    }
    sleep 1.5;
    steady_upload( $server, 'a reader', sub { sysread $_->socket, my $piece, 100 for @slow } );
    is metric( $server, 'sirius_connections_closed_total{reason="max-temp-file-size"}' ), 1, 'it has paid';
    $_->close for @slow;
    $server->stop;
};

# Who writes to a file that is being sent to somebody waits until the rest is copied
subtest 'copies of files that their application changes' => sub {
    linux_only('no leases: what an application could change is copied at once');
    my $files = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    for my $name ( 1 .. 4 ) {
        open my $out, '>', "$files/$name" or die "open: $!";
        print {$out} $name x ( 12 * $MB );
        close $out or die "close: $!";
    }
    my $server
        = start_server( qq{sub { open my \$fh, '<', "$files\$_[0]{PATH_INFO}" or die; [ 200, [], \$fh ] }},
        '--tmpdir', "$dir", qw(--workers 2 --max-temp-file-size 30m --admin 127.0.0.1:0) );
    my @idle = map { ( idlers( $server, 2, "/$_" ) ) } 1 .. 4;
    ok until_true( 10, sub { $server->ask('GET /1')->status == 200 } ),
        'workers are free while all are being sent';
    sleep 1.2;    # nobody pays in the first second
    for my $name ( 1 .. 4 ) {
        open my $out, '+<', "$files/$name" or die "open: $!";
        print {$out} 'changed';
        close $out or die "close: $!";
    }
    ok until_true( 20, sub { metric( $server, 'sirius_temporary_file_bytes' ) > 9 * $MB } ),
        'they are counted';
    cmp_ok spooled($server), '<', 31 * $MB, 'below the limit';
    my @length = map {
        my $answer = $_->response( patience => 20 );
        my $length = length $answer->body;
        $answer->body eq substr( $answer->body, 0, 1 ) x $length ? $length : 0
    } @idle;
    my $whole = grep { $_ == 12 * $MB } @length;
    ok $whole >= 1 && $whole <= 6, 'some get all of the file as it was, the others are cut off'
        or diag "@length";
    $_->close for @idle;
    ok until_true( 10, sub { metric( $server, 'sirius_temporary_file_bytes' ) == 0 } ), 'nothing is left';
    is spooled($server), 0, 'nor on the disk';
    $server->stop;
};

# Nobody pays for what has no room in any case
subtest 'a file whose copy is larger than the limit' => sub {
    linux_only('no leases: what an application could change is copied at once');
    my $files = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    open my $out, '>', "$files/huge" or die "open: $!";
    truncate $out, 200 * $MB or die "truncate: $!";
    close $out or die "close: $!";
    local $ENV{HUGE} = "$files/huge";
    my $server = start_server( <<'APP', '--tmpdir', "$dir", qw(--workers 2 --max-temp-file-size 64m) );
my $large = 'x' x ( 5 << 20 );
sub {
    return [ 200, [], [$large] ] if $_[0]{PATH_INFO} eq '/slow';
    open my $fh, '<', $ENV{HUGE} or die;
    return [ 200, [], $fh ];
}
APP
    my @slow = idlers( $server, 6, '/slow' );
    my ($huge) = idlers( $server, 1, '/huge' );
    sleep 1.5;    # nobody pays in the first second
    open my $write, '+<', "$files/huge" or die "open: $!";
    close $write or die "close: $!";
    my @length = map { length $_->response( patience => 20 )->body // q() } @slow;
    is_deeply \@length, [ ( 5 * $MB ) x 6 ], 'slow clients get all of their responses';
    is $huge->response( patience => 20 )->status, 'cut', 'its own client sees that the rest is missing';
    $_->close for @slow, $huge;
    $server->stop;
};

# The end of one reads what it still sends, while bytes of another one are at hand
subtest 'who pays leaves nothing in the upload that goes on' => sub {
    my $server = server(qw(--max-temp-file-size 1m --body-memory 1k --access-log /dev/null));
    my @form   = (
        [ 'a length', sub {"Content-Length: 400000\r\n\r\n"}, sub { 'B' x shift } ],
        [   'chunks',
            sub {"Transfer-Encoding: chunked\r\n\r\n"},
            sub { my $n = shift; return $n ? sprintf "%x\r\n%s\r\n", $n, 'B' x $n : "0\r\n\r\n" }
        ],
    );
    for my $form (@form) {
        my ( $name, $fields, $bytes ) = @$form;
        my $slow = $server->connect;
        $slow->send( "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n" . 'A' x 960_000 );
        ok until_true( 10, sub { spooled($server) >= 900_000 } ),
            "$name: one client has nearly all of the room";
        sleep 1.1;    # nobody pays in the first second
        my $client = $server->connect;
        $client->send( "GET /others HTTP/1.1\r\nHost: b\r\n\r\n"
                . "POST /others HTTP/1.1\r\nHost: b\r\n"
                . $fields->()
                . $bytes->(70_000) );
        is $client->response->body, 'GET 0 0', "$name: the request before the upload";
        my ($edge) = $server->edges;
        kill STOP => $edge;    # so that both have sent something when it looks, the upload first
        $client->send( $bytes->(130_000) );
        $slow->send( 'A' x 30_000 . "GET /injected HTTP/1.1\r\nHost: a\r\n\r\n" );
        kill CONT => $edge;
        $client->send( $bytes->(200_000) . ( $name eq 'chunks' ? $bytes->(0) : '' ) );
        is $client->response->body,           'POST 400000 0', "$name: the upload has its own bytes alone";
        is $client->ask('GET /others')->body, 'GET 0 0',       "$name: and so has the connection";
        is $slow->response( patience => 5 )->status, 507,      "$name: the slow one pays";
        $_->close for $slow, $client;
        ok until_true( 10, sub { spooled($server) == 0 } ), "$name: nothing is left";
    }
    $server->stop;
};

subtest 'a disk that takes no more' => sub {
    my $faults = Sirius::Test::Faults->new;
    my $server = $faults->start( app => $APP, args => [ qw(--workers 2 --tmpdir), "$dir" ] );
    my @before = idlers( $server, 3, "/bytes/$BYTES" );
    ok until_true( 10, sub { spooled($server) > 10 * $MB } ), 'some are on the disk';
    $faults->set( spool => 1 );
    my @idle = idlers( $server, 60, "/bytes/$BYTES" );
    is whole( $BYTES, idlers( $server, 1, "/bytes/$BYTES" ) ), 1, 'one that reads gets all';
    $faults->clear;
    is whole( $BYTES, idlers( $server, 1, "/bytes/$BYTES" ) ), 1, 'and when there is room again';
    $_->close for @before, @idle;
    $server->stop;
};

done_testing;
