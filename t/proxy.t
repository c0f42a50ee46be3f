use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# Behind a proxy that is trusted, and fields that nobody else may set

my $APP
    = 'sub { my $env = shift; [ 200, [], [ join " ", map { $env->{$_} // "-" } qw(REMOTE_ADDR psgi.url_scheme HTTP_X_FORWARDED_FOR) ] ] }';
my @field  = ( 'X-Forwarded-For: 192.0.2.7', 'X-Forwarded-Proto: https' );
my $server = start_server( $APP, qw(--workers 1 --trust-proxy 127.0.0.1) );
like $server->ask( 'GET /', @field )->body, qr/\A192\.0\.2\.7 https /,
    'a trusted proxy says who the client is';
$server->stop;
$server = start_server( $APP, qw(--workers 1) );
like $server->ask( 'GET /', @field )->body, qr/\A127\.0\.0\.1 http /, 'others do not';
$server->stop;
done_testing;
