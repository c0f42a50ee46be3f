use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::HTTP2;

# HTTP/2 over TLS: by ALPN (RFC 7301)

my $APP
    = q({ my $n = 0; sub { [ 200, [], [ join ' ', map { $_[0]{$_} // '-' } qw(SERVER_PROTOCOL HTTPS SSL_PROTOCOL) ] ] } });
my $dir = File::Temp->newdir;
open my $out, '>', "$dir/page.html" or die;
print {$out} 'y' x 500_000;
close $out or die;
my $server = start_server( $APP, qw(--workers 2 --enable-ssl --tls-self-signed --static), "/files=$dir" );

subtest 'who asks for it' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address, tls => [ 'h2', 'http/1.1' ] );
    is $client->alpn, 'h2', 'gets it';
    like $client->ask('GET /')->{body}, qr{\AHTTP/2\.0 on TLSv1\.3\z}, 'and the application knows TLS';
    my @answers = $client->finish( map { $client->begin('GET /files/page.html') } 1 .. 20 );
    is scalar( grep { length( $_->{body} // '' ) == 500_000 } @answers ), 20, 'files, twenty at a time';
    like $answers[0]{fields}{'content-type'}, qr{\Atext/html\b}, 'with their type';
    is $client->ask('GET /files/missing')->{status}, 404, 'and one that is missing';
};

subtest 'who does not' => sub {
    my $client = Sirius::Test::HTTP2->new( $server->address, tls => ['http/1.1'] );
    is $client->alpn, 'http/1.1', 'speaks HTTP/1.1';
    $client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    like $client->receive(10), qr{\AHTTP/1\.1 200 OK\r\n}, 'as before';
};

subtest '--disable-http2' => sub {
    my $other  = start_server( $APP, qw(--workers 1 --enable-ssl --tls-self-signed --disable-http2) );
    my $client = Sirius::Test::HTTP2->new( $other->address, tls => [ 'h2', 'http/1.1' ] );
    is $client->alpn, 'http/1.1', 'nobody gets it';
};

done_testing;
