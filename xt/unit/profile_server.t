use strict;
use warnings;
use Config;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use POSIX      ();
use Sirius::CLI::Profile::Choice;
use Sirius::Profile::Server;
use Sirius::Test;
use Test::More;

# Which processes are servers, where there is no control socket

linux_only('what other processes have opened');

my $SERVER = 'Sirius::Profile::Server';
my $CHOICE = 'Sirius::CLI::Profile::Choice';
my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my @running;
END { my $status = $?; kill KILL => @running; waitpid $_, 0 for @running; $? = $status }

# PID of a perl that has run this code, with what it has printed
sub perl {
    my $code = shift;
    pipe my $from, my $to or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if ( !$pid ) {
        open STDOUT, '>&', $to or POSIX::_exit(1);
        exec $^X, ( map {"-I$_"} @INC ), '-e', "\$| = 1; $code; print qq(.\\n); sleep 300" or POSIX::_exit(1);
    }
    push @running, $pid;
    close $to;
    return $pid, ( readline($from) // '' ) =~ s/[.]?\n\z//r;
}

sub is_found {
    my $pid = shift;
    return scalar grep { $_->{pid} == $pid } $SERVER->all;
}

sub why_not {
    my $pid = shift;
    return eval { $SERVER->board($pid) } ? 'it is one' : $@;
}

subtest 'A server' => sub {
    my ($pid)   = perl(q{$0 = 'sirius'; use Sirius::Scoreboard; our $board = Sirius::Scoreboard->new(4)});
    my ($found) = grep { $_->{pid} == $pid } $SERVER->all;
    is_deeply $found, { pid => $pid, uid => $> }, 'is found';
    is $SERVER->board($pid)->rows, 4, 'with its scoreboard';
    ok $SERVER->is_supervisor($pid), 'is a supervisor';
    is_deeply $CHOICE->of($pid), { pid => $pid }, 'can be chosen';
    is $CHOICE->of($$), undef, 'which other processes can not';
    my $board = $SERVER->board($pid);
    {
        no warnings 'redefine';
        local *Sirius::Control::Place::find = sub { die "no server found: use ...\n" };
        local *Sirius::Profile::Server::all = sub { return $found };
        is_deeply $CHOICE->find, $found, 'and meant, if it is the only one';
        local *Sirius::Profile::Server::all = sub { return $found, { pid => 1, uid => $> } };
        ok !eval { $CHOICE->find }, 'two';
        like $@, qr/\Athere are 2 servers \(PID $pid, PID 1[^)]*\): choose one with --pid\n\z/, 'are named';
        local *Sirius::Profile::Server::all = sub { return $found, { pid => 1, uid => 4711 } };
        is_deeply $CHOICE->find, $found, 'one of this user goes before';
        local *Sirius::Profile::Server::all = sub {return};
        ok !eval { $CHOICE->find }, 'none';
        is $@, "no server found: use ...\n", 'is said as sirius ctl does';
    }
};

subtest 'Its processes' => sub {
    my ( $pid, $worker ) = perl( <<'CODE' );
$0 = 'sirius'; use Sirius::Scoreboard; our $board = Sirius::Scoreboard->new(4);
my $worker = fork; if ( !$worker ) { $0 = 'sirius: worker'; sleep 300; exit }
print "$worker"
CODE
    push @running, $worker;
    ok until_true( 20, sub { Sirius::OS::Proc->name($worker) eq 'sirius: worker' } ), 'a worker';
    ok is_found($pid),                   'the first one is found';
    ok !is_found($worker),               'no worker is';
    ok !$SERVER->is_supervisor($worker), 'nor is it a supervisor';
    kill KILL => $pid;
    waitpid $pid, 0;
    @running = grep { $_ != $pid } @running;
    ok !is_found($worker), 'nor when its server was killed';
};

subtest 'What has that name only' => sub {
    my %number    = ( x86_64 => 319, aarch64 => 279 );
    my ($machine) = ( POSIX::uname() )[4];
    my $number    = $number{$machine} or plan skip_all => 'the number of memfd_create is not known';
    my $make      = qq{ \$0 = 'sirius'; my \$name = "sirius scoreboard\\0"; our \$fh;
        my \$fd = syscall $number, \$name, 3; open \$fh, '+<&=', \$fd or die \$!; };
    my ($plain) = perl("$make syswrite \$fh, 'x' x 4096");
    ok !is_found($plain), 'memory that can be cut';
    is why_not($plain), "process $plain is not the supervisor of a Sirius server\n", 'which is not opened';
    my ($empty) = perl("$make truncate \$fh, 4096; fcntl \$fh, 1033, 7 or die \$!");
    ok !is_found($empty), 'memory with nothing in it';
    my ($other) = perl("$make syswrite \$fh, 'x' x 4096; fcntl \$fh, 1033, 7 or die \$!");
    ok is_found($other), 'that of another version';
    like why_not($other), qr/\Asirius: the scoreboard of this server has layout /,
        'says so when it is opened';

    my $fifo = "/tmp/memfd:sirius scoreboard.$$";
    POSIX::mkfifo( $fifo, oct 600 ) or die "$fifo: $!";
    my ($waits) = perl(qq{\$0 = 'sirius'; open our \$fh, '+<', '$fifo' or die \$!});
    my $is = eval {
        local $SIG{ALRM} = sub { die "it waits\n" };
        alarm 20;
        my $found = is_found($waits);
        alarm 0;
        $found;
    } // $@;
    is $is, 0, 'a FIFO';
    unlink $fifo;
};

done_testing;
