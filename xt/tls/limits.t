# Time limits, the slow log and files of --static over TLS.
use strict;
use warnings;
BEGIN { $ENV{SIRIUS_TEST_TLS} = 1 }
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Digest::MD5 qw(md5_hex);
use File::Temp;
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;
use Sirius::Test::Wire;

my $dir = File::Temp->newdir;
mkdir "$dir/files" or die $!;
my $big = join '', map { pack 'N', $_ * 2_654_435_761 % 2**32 } 1 .. 2_000_000;
spew( "$dir/files/big.bin",   $big );
spew( "$dir/files/small.txt", 'abcdefghij' x 100 );

my $app = <<'APP';
sub {
    my $env = shift;
    return [ 200, [], [ 'x' x 30_000_000 ] ] if $env->{PATH_INFO} eq '/big';
    select undef, undef, undef, 1 if $env->{PATH_INFO} eq '/slow';
    [ 200, [], ['ok'] ];
}
APP
my $server = start_server(
    $app,
    qw(--workers 2 --header-timeout 1 --body-timeout 1 --body-rate 1000 --keepalive-timeout 1 --write-timeout 3 --slow-log 0.3),
    '--static',
    "/files=$dir/files",
    '--access-log',
    "$dir/access.log",
    '--access-log-format',
    '%U%q %X'
);

sub wire { return Sirius::Test::Wire->new( $server->address, @_ ) }

# Not one behind the other: each takes a second
my %late = map { $_ => wire() } qw(head second body record silent idle stalled tiny);
$_->put( $_->seal( request('GET /') ) ) && $_->response for @late{qw(second idle)};
$late{head}->put( $late{head}->seal("GET / HTTP/1.1\r\nHo") );
$late{second}->put( $late{second}->seal('GET') );
$late{body}->put( $late{body}->seal("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx") );
$late{record}->put( substr $late{record}->seal( request('GET /') ), 0, 15 );
$late{stalled}->put( $late{stalled}->seal( request('GET /big?stalled') ) );
my $file = wire( rcvbuf => 4096 );
$file->put( $file->seal( request('GET /files/big.bin?stalled') ) );

subtest 'clients that are too slow' => sub {
    my $patient = wire( rcvbuf => 65_536 );
    $patient->put( $patient->seal( request('GET /big') ) );
    my $got = 0;
    for ( 1 .. 20 ) {
        $patient->more(0.2);
        sleep 0.1;
        $got = length $patient->{in};
    }    # 2 s, and never stands still
    is $late{$_}->response( patience => 8 )->status, 408, "$_: 408" for qw(head second body);
    like $late{$_}->end(8), qr/\A(?:close_notify|eof)\z/, "$_: the end"
        for qw(head second body record silent idle);
    is length $patient->response( patience => 20 )->body, 30_000_000, 'one that reads slowly gets all';
    my $log = sub { Sirius::Test::Server::slurp("$dir/access.log") };
    my $cut = sub { () = $log->() =~ m{^/(?:big|files/big\.bin)\?stalled X$}mg };
    ok until_true( 20, sub { $cut->() == 2 } ), 'the others are cut off before they read'
        or diag $log->();
    like $late{stalled}->response( patience => 20 )->status, qr/\A(?:cut|reset|eof)\z/,
        'one that does not read is cut off';
    like $file->response( patience => 20 )->status, qr/\A(?:cut|reset|eof)\z/, 'as is one of a file';
};

subtest 'a slow request' => sub {
    is $server->ask('GET /slow')->body, 'ok', 'is answered';
    ok $server->wait_log(qr{GET /slow\b}), 'and in the log' or diag $server->log;
};

subtest 'files' => sub {
    my $client = $server->connect;
    my $answer = $client->ask('GET /files/small.txt');
    is $answer->body, 'abcdefghij' x 100, 'a small one';
    my $date = $answer->header('Last-Modified');
    $answer = $client->ask('HEAD /files/small.txt');
    is $answer->status . $answer->header('Content-Length'), '2001000', 'HEAD';
    is $client->ask( 'GET /files/small.txt', "If-Modified-Since: $date" )->status, 304,
        'one that has not changed';
    $answer = $client->ask( 'GET /files/small.txt', 'Range: bytes=10-19' );
    is $answer->status . $answer->body, '206abcdefghij', 'a part';
    $answer = $client->ask( 'GET /files/big.bin', 'Range: bytes=100000-6999999' );
    is md5_hex( $answer->body ), md5_hex( substr $big, 100_000, 6_900_000 ), 'a large part of a large one';
    $answer = $client->ask( 'GET /files/big.bin', 'Range: bytes=0-99999,7900000-7999999' );
    my ($mark) = $answer->header('Content-Type') =~ /boundary=(\S+)/;
    my @part
        = map {s/\A.*?\r\n\r\n//sr} ( split /\r\n--\Q$mark\E|\A--\Q$mark\E/, "\r\n" . $answer->body )[ 1, 2 ];
    is md5_hex( join '', @part ), md5_hex( substr( $big, 0, 100_000 ) . substr $big, -100_000 ), 'two parts';
    is md5_hex( $client->ask('GET /files/big.bin')->body ), md5_hex($big),                       'all of it';
    my $wire = wire( rcvbuf => 8192 );
    $wire->put( $wire->seal( request('GET /files/big.bin') . request('GET /files/small.txt') ) );
    my $got = 0;
    for ( 1 .. 20 ) { $wire->more(0.1); sleep 0.05 }
    is md5_hex( $wire->response( patience => 20 )->body ), md5_hex($big), 'to a slow reader';
    is length $wire->response->body,                       1000,          'and the next';
    is $server->ask('GET /files/none')->status,            404,           'none';
};

subtest 'the log line of a file' => sub {
    my $files = start_server( $app, '--static', "/files=$dir/files", '--access-log', "$dir/files.log",
        '--access-log-format', '%{SSL_PROTOCOL}x %U' );
    my $log = sub { Sirius::Test::Server::slurp("$dir/files.log") };
    is $files->ask('GET /files/none')->status, 404, 'the first request of an edge';
    ok until_true( 10, sub { $log->() =~ /\n\z/ } ), 'is logged';
    like $log->(), qr{\ATLSv1\.[23] /files/none\n\z}, 'with what its connection is';
    $files->stop;
};

$server->stop;
done_testing;
