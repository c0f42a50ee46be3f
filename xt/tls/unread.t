# --workers 0, and STDERR is a full pipe that nobody reads: a handshake that fails has a log line, which must
# not hold up others.
use strict;
use warnings;
use Fcntl      qw(F_GETFL F_SETFL O_NONBLOCK);
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Socket::INET;
use IO::Socket::SSL qw(SSL_VERIFY_NONE);
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

my $dir  = File::Temp->newdir;
my $made = Sirius::Test::Certificates->new;
my ( $chain, $key ) = $made->issue('a.example');
spew( "$dir/file", 'from the edge' );

pipe my $log, my $stderr or die "pipe: $!";
defined( my $pid = fork ) or die "fork: $!";
if ( !$pid ) {
    open STDERR, '>&', $stderr or die $!;
    exec $^X, "-Mblib=$FindBin::Bin/../../blib", "$FindBin::Bin/../../bin/sirius",
        '--workers', 0, '--listen', '127.0.0.1:0,tls',
        '--tls-cert', $chain, '--tls-key', $key, '--static', "/static=$dir", '-e', 'sub { [ 200, [], [] ] }';
}
END { kill KILL => $pid if $pid }

my $said = '';
local $SIG{ALRM} = sub { die "too late: $said" };
alarm 30;    # s, for the whole test
1 while $said !~ /ready after/ && sysread $log, $said, 4096, length $said;
my ($port) = $said =~ m{listening on https://127\.0\.0\.1:(\d+)};
ok $port, 'it serves' or diag $said;

sub ask {
    my $socket = IO::Socket::SSL->new(
        PeerAddr        => "127.0.0.1:$port",
        SSL_verify_mode => SSL_VERIFY_NONE,
        Timeout         => 5
    ) or return 'no connection';
    print {$socket} "GET /static/file HTTP/1.0\r\n\r\n";
    return join( '', readline $socket ) =~ s/.*\r\n\r\n//sr;
}

is ask(), 'from the edge', 'a file';
my $flags = fcntl $stderr, F_GETFL, 0;
fcntl $stderr, F_SETFL, $flags | O_NONBLOCK or die "F_SETFL: $!";
for my $size ( 4096, 1 ) {
    1 while syswrite $stderr, 'x' x $size;
}
fcntl $stderr, F_SETFL, $flags or die "F_SETFL: $!";

my $hasty = IO::Socket::INET->new("127.0.0.1:$port") or die "connect: $!";
print {$hasty} "This is not TLS, and long enough to be seen as such.\r\n";
$hasty->flush;
is ask(), 'from the edge', "a file after a failed handshake, $_" for 1 .. 2;

kill TERM => $pid;
close $stderr;
1 while sysread $log, my $rest, 65_536;
waitpid $pid, 0;
is $?, 0, 'the server stops';
$pid = 0;
done_testing;
