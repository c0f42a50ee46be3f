use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Digest::MD5 qw(md5_hex);
use Test::More;
use Sirius::Test;

# A client that cuts its body into tiny pieces pays for that, not the others: what one read of the socket has
# brought does not become a system call for each chunk

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 1000) );
use Digest::MD5;
sub {
    my $md5 = Digest::MD5->new;
    while ( $_[0]{'psgi.input'}->read( my $piece, 65_536 ) ) { $md5->add($piece) }
    [ 200, [], [ $md5->hexdigest ] ];
}
APP
my ($edge) = $server->edges;
my $body   = join '', map { chr( 33 + $_ % 90 ) } 1 .. 200_000;

sub chunked {
    my $pieces = shift;
    return join '', 'POST / HTTP/1.1', "\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        ( map { sprintf "%x\r\n%s\r\n", length, $_ } @$pieces ), "0\r\n\r\n";
}

sub writes {
    return Sirius::Test::Server::slurp("/proc/$edge/io") =~ /^syscw: (\d+)/m ? $1 : undef;
}

my %way = (
    'of one byte'                => [ unpack '(a1)*',   $body ],
    'of seven bytes'             => [ unpack '(a7)*',   $body ],
    'of 999 bytes'               => [ unpack '(a999)*', $body ],
    'a large one and many small' => [ substr( $body, 0, 150_000 ), unpack '(a2)*', substr $body, 150_000 ],
);
for my $name ( sort keys %way ) {
    my $client = $server->connect;
    my $before = writes();
    $client->send( chunked( $way{$name} ) );
    my $answer = $client->response( patience => 30 );
    my $n      = writes() - $before;
    is $answer->body, md5_hex($body), "chunks $name: what was sent arrives";
    cmp_ok $n, '<', 300, "by $n system calls that write";
}
is $server->ask( 'POST /', \'small' )->body, md5_hex('small'), 'and a small body';
$server->stop;
done_testing;
