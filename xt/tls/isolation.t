# Where private keys come by, from the start of a server to its end, as strace sees it: no process that runs
# code of the application opens their files or gets a descriptor from which they can be read, not for a moment
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp      ();
use IO::Socket::SSL qw(SSL_VERIFY_NONE);
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
plan skip_all => 'only root sees what these processes do' if $>;
my $strace = program('strace');
plan skip_all => 'strace is not here, or may not trace'
    if !$strace || system "$strace -f -o $dir/try true 2>/dev/null";

my $made = Sirius::Test::Certificates->new;
my ( $cert, $key ) = $made->issue('isolation.example');
my $trace = "$dir/trace";
my $conf  = spew( "$dir/sirius.conf", "keepalive-timeout = 70\n" );

my $server = Sirius::Test::Server->start(
    app  => "my \$pid = \$\$; sub { system q(true); [ 200, [], ['hello'] ] }\n",
    args => [
        '--listen', '127.0.0.1:0,tls', '--tls-cert', $cert, '--tls-key', $key, qw(--workers 2 --config),
        $conf
    ],
    command => [
        $strace,
        qw(-f -y -s 200 -e),
        'trace=execve,open,openat,openat2,memfd_create,recvmsg,pidfd_getfd,fork,vfork,clone,clone3',
        '-o', $trace, $^X,
        "$Sirius::Test::Server::ROOT/bin/sirius",
        qw(-E deployment)
    ],
);

sub ask {
    my $socket = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE )
        or return '';
    print {$socket} "GET / HTTP/1.0\r\n\r\n";
    return join '', readline $socket;
}

# By name; under strace the supervisor is no child of the test
sub named {
    my $name = shift;
    return grep { Sirius::Test::Server::comm($_) =~ $name } $server->processes;
}

like ask(), qr/hello\z/, 'serves';
my ($supervisor) = named(qr/\Asirius\z/);
ok $supervisor, 'there is a supervisor';

# Another edge takes a connection over, with the keys of that connection
my $kept = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE ) or die $!;
$kept->print("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
my $answer = '';
1 while $answer !~ m{hello\z} && $kept->sysread( $answer, 1000, length $answer );
spew( $conf, "keepalive-timeout = 69\n" );
kill HUP => $supervisor;
ok $server->wait_log( qr/reload completed/,       60 ), 'a reload';
ok $server->wait_log( qr/certificates reloaded/,  60 ), 'of the keys, too';
ok $server->wait_log( qr{edge \d+ replaces edge}, 60 ), 'and another edge';

# The old one could still answer the next request itself; it ends when it has passed the connection on
ok until_true( 30, sub { my @edges = named(qr/\Asirius: edge/); @edges == 1 } ), 'alone';
$kept->print("GET / HTTP/1.0\r\n\r\n");
like join( '', readline $kept ), qr{hello\z}, 'which goes on with a connection';

for my $kind ( 'edge', 'keeper' ) {
    my ($pid) = named(qr/\Asirius: $kind/);
    kill KILL => $pid;
    ok until_true(
        60,
        sub {
            grep { $_ != $pid } named(qr/\Asirius: $kind/);
        }
        ),
        "another $kind";
    ok until_true( 60, sub { ask() =~ /hello\z/ } ), 'serves';
}
kill TERM => $supervisor;
ok $server->wait_exit(60), 'stopped';

# Each line begins with a PID. What a process was when it did that: the program that it has run last
my ( %program, %opened, %had, %forked, $passed );
open my $in, '<', $trace or die "$trace: $!";
while ( my $line = readline $in ) {
    my ( $pid, $what ) = $line =~ /\A(\d+) +(?:<\.\.\. )?(.*)/ or next;
    $program{$pid} = $1 if $what =~ /\Aexecve\("([^"]*)".*(?:= 0|<unfinished \.\.\.>)\z/;
    my $is = ( $program{$pid} // 'perl' ) =~ m{/sirius-edge\z} ? 'sirius-edge' : 'another program';
    $opened{$is}++ if $what =~ /\Aopen\w*\(.*\Q$key\E/;
    $had{$is}++
        if $what =~ /memfd:sirius-(?:keys|passed)/ || $what =~ /\Amemfd_create\("sirius-(?:keys|passed)"/;
    $passed++      if $what =~ m{\Amemfd_create\("sirius-passed"};
    $forked{$is}++ if $what =~ /\A(?:v?fork|clone3?)\(/;
}
is_deeply [ sort keys %opened ], ['sirius-edge'], 'nobody else has opened the file of the key'
    or diag explain \%opened;
cmp_ok $opened{'sirius-edge'}, '>=', 3,
    'which was opened at the start, for a check and for use, and at the reload';
is_deeply [ sort keys %had ], ['sirius-edge'], 'nor has got it in a descriptor' or diag explain \%had;
cmp_ok $had{'sirius-edge'}, '>=', 4, 'which two keepers have made, and edges have got';
ok $passed,                                               'the keys of a connection were among them';
ok $forked{'another program'} && !$forked{'sirius-edge'}, 'and who has it does not fork';
done_testing;
