use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Behind;
use Sirius::Test::Nginx;

# Behind nginx: with kept connections, with its default HTTP/1.0, over a unix socket, and when it buffers
# nothing

plan skip_all => 'nginx is not installed' if !Sirius::Test::Nginx->available;

my $behind = Sirius::Test::Behind->new(
    ways     => [qw(kept old unix passing)],
    new      => 'old',
    protocol => 'HTTP/1.0',
    refused  => sub {
        my $answer = shift->response;
        return ( $answer->status, $answer->body !~ /nginx/ );
    },
);
my ( $address, $mortal, $socket ) = ( $behind->address, $behind->mortal, $behind->socket );
my $nginx = Sirius::Test::Nginx->start(<<"HTTP");
client_max_body_size 0; client_body_buffer_size 16m; proxy_max_temp_file_size 0;
keepalive_requests 100000; large_client_header_buffers 4 128k;
proxy_read_timeout 10s; proxy_send_timeout 10s;
upstream kept { server $address; keepalive 16; }
upstream mortal { server $mortal; keepalive 16; }
upstream on_unix { server unix:$socket; keepalive 16; }
server {
    listen 127.0.0.1:PORT;
    proxy_set_header Host \$http_host;
    proxy_set_header Connection "";
    proxy_http_version 1.1;
    location /kept/ { proxy_pass http://kept; }
    location /mortal/ { proxy_pass http://mortal; }
    location /unix/ { proxy_pass http://on_unix; }
    location /passing/ { proxy_pass http://kept; proxy_request_buffering off; proxy_buffering off; }
    location /old/ { proxy_pass http://$address; proxy_http_version 1.0; proxy_set_header Connection close; }
}
HTTP
$behind->through($nginx)->test;

subtest 'heads that nginx lets through and we do not' => sub {
    my $many = $nginx->connect->ask( 'GET /kept/hello', map {"X-$_: y"} 1 .. 150 );
    is $many->status,                                                           431, 'too many fields';
    is $nginx->connect->ask( 'GET /kept/hello', 'X: ' . 'a' x 70_000 )->status, 431, 'too large a head';
};

$behind->no_errors;
$behind->stop;
done_testing;
