use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;

use File::Temp qw(tempdir);
use IO::Socket::INET;
use IO::Socket::UNIX;
use Sirius::OS::Proc;
use Sirius::OS::SocketOwner;
use Sirius::Test;

# Who listens on an address

my $class = 'Sirius::OS::SocketOwner';
my $dir   = tempdir( CLEANUP => 1 );
my $own   = Sirius::OS::Proc->name($$) . " (PID $$)";
my $tcp   = IO::Socket::INET->new( Listen    => 1,           LocalAddr => '127.0.0.1' )   or die "socket: $@";
my $bound = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Proto     => 'tcp' )         or die "socket: $@";
my $unix  = IO::Socket::UNIX->new( Listen    => 1,           Local     => "$dir/a.sock" ) or die "socket: $@";
my $hidden = IO::Socket::UNIX->new( Listen => 1, Local => "\0sirius-owner-$$" )           or die "socket: $@";

is $class->tcp( $tcp->sockport )->{text}, $own, 'of a port';
is $class->tcp( $tcp->sockport )->{pid},  $$,   'its PID';
ok !$class->tcp( $tcp->sockport )->{sirius}, 'no server of Sirius';
is $class->tcp( $bound->sockport ),            undef, 'nobody: it is bound, but nobody listens';
is $class->unix( 'x', "$dir/a.sock" )->{text}, $own,  'of a unix socket, by one of its names';
is $class->unix("\@sirius-owner-$$")->{text},  $own,  'of an abstract one';
is $class->path("$dir/a.sock")->{text},        $own,  'of a path';
is $class->path("\0sirius-owner-$$")->{text},  $own,  'of an abstract one';
is $class->unix("$dir/b.sock"),                undef, 'nobody';
chdir $dir or die $!;
is $class->path('a.sock')->{pid}, $$, 'of a relative path';
chdir $Sirius::Test::Server::ROOT or die $!;
is $class->by( $class->tcp( $tcp->sockport ) ), ' by this server: it is given twice',
    'as the end of a message';
is $class->by( { pid => 1, text => 'init (PID 1)' } ), ' by init (PID 1)', 'of another process';
is $class->by($_),                                     '', 'nothing if it is not known' for undef, {};

my $server = start_server('sub { [ 200, [], [] ] }');
my $owner  = $class->tcp( $server->port );
ok $owner->{sirius}, 'a server of Sirius';
is $owner->{pid}, $server->pid, 'its supervisor, not the edge, which has the socket as well';
$server->stop;

{
    local $0 = "a\nb";
    is $class->tcp( $tcp->sockport )->{text}, "a\\x0ab (PID $$)", 'a process with anything in its name';
}

done_testing;
