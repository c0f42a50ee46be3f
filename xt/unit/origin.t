use strict;
use warnings;
use POSIX ();
use Test::More;
use Sirius::OS::Origin;

# Who has sent a signal or a command, in words for the log

sub words { return Sirius::OS::Origin->words(@_) }

my $user = getpwuid $>;
$user = defined $user ? "user $user" : "user ID $>";

like words( $$, $> ), qr/\Afrom PID $$ \(\S.*\), \Q$user\E\z/, 'a process';
is words( 0, 0, 0 ),       'from outside this container',           'none that can be seen';
is words( 0, 0, 0x80 ),    'from the terminal',                     'the kernel: Ctrl-C';
is words( 0, 0 ),          'from outside this container',           'nothing else is known';
is words( 2**22 + 1, $> ), 'from PID ' . ( 2**22 + 1 ) . ", $user", 'one that has ended: no name';
like words( $$, 2**31 - 7 ), qr/, user ID 2147483641\z/, 'a user without a name';

pipe my $in, my $out or die "pipe: $!";
my $pid = fork // die "fork: $!";
if ( !$pid ) {
    close $in;
    $0 = "a\e[2J";
    syswrite $out, 'x';
    sleep 60;
    POSIX::_exit(0);
}
close $out;
sysread $in, my $byte, 1;
is words( $pid, $> ), "from PID $pid (a\\x1b[2J), $user",
    'a name reaches the log without its control characters';
kill KILL => $pid;
waitpid $pid, 0;

done_testing;
