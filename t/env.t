use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# %env of PSGI

my $server = start_server( <<'APP', qw(--workers 1) );
sub {
    my $env  = shift;
    my @keys = qw(REQUEST_METHOD SCRIPT_NAME PATH_INFO QUERY_STRING REQUEST_URI SERVER_PROTOCOL REMOTE_ADDR CONTENT_TYPE CONTENT_LENGTH
        HTTP_HOST HTTP_X_TWICE HTTP_COOKIE psgi.url_scheme psgi.multithread psgi.multiprocess psgi.run_once psgi.nonblocking psgi.streaming);
    my $text = join '', map { "$_=" . ( $env->{$_} // 'undef' ) . "\n" } @keys;
    $text .= 'version=' . join( '.', @{ $env->{'psgi.version'} } ) . "\n";
    $text .= 'id=' . ( length( $env->{'psgix.request_id'} // '' ) ? 'yes' : 'no' ) . "\n";
    $env->{'psgi.errors'}->print("said to psgi.errors\n");
    return [ 200, [], [$text] ];
}
APP
my $text = $server->ask(
    'PUT /a%20b/c%2Fd?q=1%202&r',
    'Host: shop.example',
    'X-Twice: 1', 'X-Twice: 2', 'Cookie: a=1', 'Cookie: b=2', 'Content-Type: text/x', \'12345'
)->body;
my %got  = $text =~ /^([^=\n]+)=(.*)$/mg;
my %want = (
    REQUEST_METHOD      => 'PUT',
    SCRIPT_NAME         => '',
    PATH_INFO           => '/a b/c/d',
    QUERY_STRING        => 'q=1%202&r',
    REQUEST_URI         => '/a%20b/c%2Fd?q=1%202&r',
    SERVER_PROTOCOL     => 'HTTP/1.1',
    REMOTE_ADDR         => '127.0.0.1',
    CONTENT_TYPE        => 'text/x',
    CONTENT_LENGTH      => 5,
    HTTP_HOST           => 'shop.example',
    HTTP_X_TWICE        => '1, 2',
    HTTP_COOKIE         => 'a=1; b=2',
    'psgi.url_scheme'   => 'http',
    'psgi.multithread'  => 0,
    'psgi.multiprocess' => 1,
    'psgi.run_once'     => 0,
    'psgi.nonblocking'  => 0,
    'psgi.streaming'    => 1,
    version             => '1.1',
    id                  => 'yes',
);
is $got{$_} || 0, $want{$_} || 0, $_ for sort keys %want;
ok $server->wait_log(qr/said to psgi\.errors/), 'psgi.errors is the log';
$server->stop;
done_testing;
