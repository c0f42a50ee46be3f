use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::UNIX;
use Test::More;
use Sirius::OS::Peer;

# Who has the other end of a unix socket

my $path   = tempdir( CLEANUP => 1 ) . '/a.sock';
my $server = IO::Socket::UNIX->new( Listen => 1, Local => $path ) or die "$path: $!";
my $client = IO::Socket::UNIX->new( Peer   => $path )             or die "$path: $!";
my $pid    = fork // die "fork: $!";
if ( !$pid ) {
    my $own = IO::Socket::UNIX->new( Peer => $path ) or die "$path: $!";
    readline $own;
    exit 0;
}
my $accepted = $server->accept or die "accept: $!";
is_deeply [ Sirius::OS::Peer->of($accepted) ], [ $$, $> ], 'who has connected';
is_deeply [ Sirius::OS::Peer->of($client) ],   [ $$, $> ], 'who listens';
my $child = $server->accept or die "accept: $!";
is_deeply [ Sirius::OS::Peer->of($child) ], [ $pid, $> ], 'another process';
close $child;
waitpid $pid, 0;
open my $file, '<', $0 or die "$0: $!";
is_deeply [ Sirius::OS::Peer->of($file) ], [], 'not a socket';

done_testing;
