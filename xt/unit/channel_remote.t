use strict;
use warnings;
use Digest::SHA qw(hmac_sha256);
use IO::Socket::INET;
use JSON::PP     qw(decode_json);
use MIME::Base64 qw(decode_base64url encode_base64url);
use Test::More;
use Sirius::Channel::Remote;

# What is sent to a server of GRIP that is not this one

my $listener = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 5 ) or die "listen: $!";
my $address  = 'http://127.0.0.1:' . $listener->sockport;

# The request that the code makes, and its exception
sub sent {
    my ( $code, $answer ) = @_;
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if ( !$pid ) {
        alarm 20;
        my $client = $listener->accept;
        my $in     = '';
        while ( $in !~ /\r\n\r\n/ || length($in) - $+[0] < ( $in =~ /^Content-Length: (\d+)/mi )[0] ) {
            sysread $client, $in, 65536, length $in or last;
        }
        syswrite $write, $in;
        syswrite $client,
            $answer // "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nPublished\n";
        require POSIX;
        POSIX::_exit(0);
    }
    close $write;
    my $error = eval { $code->(); 1 } ? undef : $@;
    my $in    = do { local $/ = undef; readline $read };
    waitpid $pid, 0;
    my ( $head, $body ) = split /\r\n\r\n/, $in, 2;
    return ( $head, decode_json($body), $error );
}

my $remote = Sirius::Channel::Remote->new($address);
my ( $head, $body, $error ) = sent( sub {
    $remote->publish( {
        channel => "gr\xc3\xbcn",
        id      => '8',
        formats => {
            'http-stream'   => { content => "data: \xe2\x98\xba\n\n" },
            'http-response' => { code    => '201',   headers => [ [ 'X-Name' => 'value' ] ], body => "\xff" },
            'ws-message'    => { action  => 'close', code    => 4000 }
        }
    } );
} );
is $error, undef, 'it is sent';
like $head,   qr{\APOST /publish/ HTTP/1.1\r$}m, 'to where Pushpin takes it';
unlike $head, qr/^Authorization/mi,              'not signed without a key';
is_deeply $body,
    {
    items => [ {
        channel => "gr\x{fc}n",
        id      => '8',
        formats => {
            'http-stream'   => { content => "data: \x{263a}\n\n" },
            'http-response' => { code => 201, headers => [ [ 'X-Name' => 'value' ] ], 'body-bin' => '/w==' },
            'ws-message'    => { action => 'close', code => 4000 }
        }
    } ]
    },
    'characters, and base64 where bytes are none';

( $head, $body, $error ) = sent( sub { $remote->publish( { channel => 'a' } ) },
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\nConnection: close\r\n\r\nInvalid format\n" );
is $error, "$address/publish/: 400 Bad Request: Invalid format\n", 'why it was refused';

my $signed = Sirius::Channel::Remote->new("$address/realm/x/?iss=a%20b&key=base64:c2VjcmV0");
($head) = sent( sub { $signed->publish( { channel => 'a' } ) } );
like $head, qr{\APOST /realm/x/publish/ }, 'a path';
my ( $text, $claims, $signature ) = $head =~ /^Authorization: Bearer ([\w-]+[.]([\w-]+))[.]([\w-]+)\r?$/mi;
is $signature, encode_base64url( hmac_sha256( $text, 'secret' ) ), 'signed';
is decode_json( decode_base64url($claims) )->{iss}, 'a b',         'by the issuer';
cmp_ok decode_json( decode_base64url($claims) )->{exp}, '>', time, 'for some time';

close $listener;
ok !eval { $remote->publish( { channel => 'a' } ); 1 }, 'a server that is not there';
like $@, qr{\A\Q$address\E/publish/: .*refused}i, 'is named';
ok !eval { $remote->publish( { channel => "\xff" } ); 1 }, 'a channel that is no text';
for my $url ( '127.0.0.1:5561', 'ftp://a', 'http://', "http://a b\n", 'http:///x' ) {
    ok !eval { Sirius::Channel::Remote->new($url) }, "no address: $url" =~ s/\n/\\n/r;
}

done_testing;
