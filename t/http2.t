use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# HTTP/2 without TLS, frame by frame, where libnghttp2 was there at the build

my $server = eval {
    start_server(
        'sub { [ 200, [], ["$_[0]{SERVER_PROTOCOL} $_[0]{PATH_INFO}"] ] }',
        qw(--workers 2 --listen),
        '127.0.0.1:0,h2c'
    );
};
plan skip_all => 'built without libnghttp2' if !$server && $@ =~ /libnghttp2/;
die $@ if !$server;

# RFC 9113 4.1
sub frame {
    my ( $type, $flags, $stream, $bytes ) = @_;
    return substr( pack( 'N', length $bytes ), 1 ) . pack( 'C C N', $type, $flags, $stream ) . $bytes;
}

# :method GET, :scheme http and :path / from the static table of RFC 7541; :authority as a literal
my $get    = "\x82\x86\x84\x41\x01a";
my $client = $server->connect;
$client->send( "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . frame( 4, 0, 0, '' ) . join '',
    map { frame( 1, 5, 2 * $_ + 1, $get ) } 0 .. 9 );
my ( $in, %body, %status ) = ('');
until_true(
    10,
    sub {
        $in .= $client->some( 1, 1 );
        while ( length $in >= 9 ) {
            my $len = unpack 'N', "\0" . substr $in, 0, 3;
            last if length $in < 9 + $len;
            my ( $type, $flags, $stream ) = unpack 'x3 C C N', $in;
            my $bytes = substr $in, 9, $len;
            substr( $in, 0, 9 + $len ) = '';
            $status{$stream} = ord $bytes if $type == 1;
            $body{$stream} .= $bytes if $type == 0;
        }
        return 10 == grep {length} values %body;
    }
);
is_deeply [ map { $body{ 2 * $_ + 1 } } 0 .. 9 ], [ ('HTTP/2.0 /') x 10 ],
    'ten streams of one connection are answered';
is_deeply [ map { $status{ 2 * $_ + 1 } } 0 .. 9 ], [ (0x88) x 10 ], 'with status 200';
$server->stop;
done_testing;
