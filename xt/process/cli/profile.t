use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp;
use IO::Socket::UNIX;
use JSON::PP ();
use POSIX    ();
use Sirius::Profile::Collector;
use Sirius::Profile::Samples;
use Sirius::Test;
use Test::More;
use Time::HiRes qw(sleep time);

# sirius profile, on a server that knows nothing of it

linux_only('the stack of another process');

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
my $ctl  = "$dir/control";
my @without    # a command that may not look into other processes, though it is of root
    = qw(setpriv --inh-caps=-sys_ptrace --bounding-set=-sys_ptrace);

delete $ENV{SIRIUS_CONTROL};

sub Sirius::Test::TwoWorkers::occupied { return 0, 1 }
sub Sirius::Test::TwoWorkers::row      { my ( $self, $n ) = @_; return { pid => $self->{pids}[$n] } }

# Exit status, STDOUT and STDERR of sirius profile
our @with;

sub profile {
    my @args = @_;
    my $pid  = fork // die "fork: $!";
    if ( !$pid ) {
        $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
        open STDOUT, '>', "$dir/out" or POSIX::_exit(126);
        open STDERR, '>', "$dir/err" or POSIX::_exit(126);
        { exec @with, $^X, "$root/bin/sirius", 'profile', @args }
        POSIX::_exit(127);
    }
    if ( !until_true( 60, sub { waitpid $pid, POSIX::WNOHANG() } ) ) {
        kill KILL => $pid;
        waitpid $pid, 0;
    }
    return ( $? & 127 ? "signal $?" : $? >> 8, map { Sirius::Test::Server::slurp("$dir/$_") } qw(out err) );
}

# Shares of the functions, with what they call: on CPU and waiting
sub shares {
    my $text    = shift;
    my $samples = Sirius::Profile::Samples->from_folded($text);
    my %share;
    $samples->each_stack( sub {
        my ( $frames, @counts ) = @_;
        my %in = map { s/ \S+:\d+\z//r => 1 } @$frames;
        for my $name ( keys %in ) { $share{$name}[$_] += $counts[$_] / $samples->taken for 0, 1 }
    } );
    return \%share;
}

my $APP = <<"APP";
my \$dir = '$dir';
APP
$APP .= <<'APP';
#line 1 "shop.psgi"
package Shop;
use Time::HiRes (); my $clock; BEGIN { $clock = Time::HiRes::CLOCK_PROCESS_CPUTIME_ID() }
sub burn { my $until = Time::HiRes::clock_gettime($clock) + shift; my $n = 0;
    while ( Time::HiRes::clock_gettime($clock) < $until ) { $n += $_ for 1 .. 100 } }
sub six { burn(0.06); 1 }
sub three { Time::HiRes::sleep(0.03); 1 }
sub one { burn(0.01); 1 }
sub wait_for_it { open my $in, '+<', "$dir/fifo" or die $!; my $n = sysread $in, my $bytes, 1; 1 }
#line 20 "shop.psgi"
sub { my $path = $_[0]{PATH_INFO};
    if ( $path =~ m{^/shop} ) { six(); three(); one() }
    if ( $path =~ m{^/wait} ) { wait_for_it() }
    [ 200, [], ['done'] ] };
APP

POSIX::mkfifo( "$dir/fifo", oct 600 ) or die "mkfifo: $!";
my $server = start_server( $APP, '--workers', 2, '--control', $ctl );

subtest 'where the time goes' => sub {
    my @args = ( '--control', $ctl, '--seconds', 3 );
    my ( $status, $folded, $said, $share, $six, $three, $one );

    # On a busy machine what would compute waits for a processor, and the other way round: then once more
    for ( 1 .. 3 ) {
        ( $status, $folded, $said )
            = $server->with_load( '/shop/4711?x=1', sub { profile( @args, qw(--format folded) ) } );
        $share = shares($folded);
        ( $six, $three, $one ) = map {
            my $of = $share->{"Shop::$_"};
            [ map { $_ || 0 } @$of ]
        } qw(six three one);
        last if $three->[1] > 2 * $three->[0] && $six->[0] > 5 * $six->[1];
    }
    is "$status$said", 0, 'exit status 0';
    note sprintf 'six %.2f + %.2f, three %.2f + %.2f, one %.2f + %.2f', @$six, @$three, @$one;
    is sprintf( '%.3f', $share->{'GET /shop/*'}[0] + $share->{'GET /shop/*'}[1] ), '1.000',
        'all of it is of these requests';
    cmp_ok $six->[0],   '>', 2 * $one->[0],   'the first takes more CPU than the last';
    cmp_ok $three->[1], '>', 2 * $three->[0], 'the second one waits';
    cmp_ok $six->[0],   '>', 5 * $six->[1],   'the first does not';
    cmp_ok $one->[0],   '>', 0,               'the last one is seen';
    my @roots = map {/\A([^;]+);([^;]+)/} split /\n/, $folded;
    my %stack = map { ( s/ \d+\z//r => 1 ) } split /\n/, $folded;
    my $way   = 'GET /shop/*;Shop::__ANON__[shop.psgi:20] shop.psgi:21';
    ok $stack{"$way;Shop::three shop.psgi:6;Time::HiRes::sleep (XS);[waiting]"}, 'a sub in C that waits';
    ok $stack{"$way;Shop::six shop.psgi:5;Shop::burn shop.psgi:4"}, 'a sub that computes' or diag $folded;
    my @known = grep {
        !/\AGET [^;]+(?:;(?:Shop::__ANON__\[shop\.psgi:20\] shop\.psgi:2[0-3]|Shop::(?:six shop\.psgi:5|three shop\.psgi:6|one shop\.psgi:7)|Shop::burn shop\.psgi:[34]|Time::HiRes::\w+ \(XS\)|CORE::match \(C\)|\(server\)|\(moved\)|\[waiting\]|Shop::\w+))* \d+\z/
    } split /\n/, $folded;
    is "@known", '', 'and nothing else';
};

subtest 'tables and files' => sub {
    my %begin = (
        html    => qr/\A<!doctype html>/i,
        json    => qr/\A\{.*"\$schema"/s,
        'pb.gz' => qr/\A\x1f\x8b/,
        folded  => qr/\AGET /
    );
    my @args = ( '--control', $ctl, '--seconds', 0.5 );
    my ( $status, $out, $said )
        = $server->with_load( '/shop/1', sub { profile( '--control', $ctl, '--seconds', 1 ) } );
    is "$status$said", 0, 'exit status 0';
    like $out, qr/\A\d+ samples in 1\.\d s: \d+ % on CPU, \d+ % waiting/,  'a summary';
    like $out, qr/^  100\.0 +\d+\.\d +\d+\.\d   GET \/shop\/\*\n/m,        'the request';
    like $out, qr/^ +\d+\.\d +\d+\.\d +0\.0   Shop::burn shop\.psgi:4\n/m, 'a line';
    $server->with_load(
        '/shop/1',
        sub {
            for my $ending ( sort keys %begin ) {
                my ( $left, undef, $error ) = profile( @args, '-o', "$dir/out.$ending" );
                is "$left$error", 0, "-o FILE.$ending";
                like Sirius::Test::Server::slurp("$dir/out.$ending"), $begin{$ending}, 'has that format';
            }
            my ( $left, $page, $error ) = profile( @args, qw(--format html --compare), "$dir/out.folded" );
            is "$left$error", 0, '--compare';
            like $page, qr/Shop::burn/, 'a page';
        }
    );
    ( $status, $out ) = $server->with_load( '/shop/1', sub { profile( @args, '--path', '/other' ) } );
    is $out, "no samples: no request with a path that begins with /other was running\n",
        'no request of that path';
    my ($pid) = $server->workers;
    $server->wait_board( sub {
        !grep { $_->{state} eq 'busy' } @{ $_[0]{workers} };
    } );
    ( $status, $out, $said ) = profile( @args, '--worker', $pid, qw(--format folded) );
    is "$status$out$said", "0sirius profile: no samples: no request was running in worker $pid\n",
        'nor in that worker, and a file without samples';
};

subtest 'what each worker does now' => sub {
    my $client = $server->connect;
    $client->send( request('GET /wait?q=1') );
    my ( $status, $out, $said );
    until_true(
        20,
        sub {
            ( $status, $out, $said ) = profile( 'dump', '--control', $ctl );
            $out =~ m{, waiting\n.*CORE::sysread} && $out =~ m{: idle};
        }
    );
    is "$status$said", 0, 'exit status 0';
    my ( $busy, $idle ) = sort { $b =~ /GET/ <=> $a =~ /GET/ } split /\n\n/, $out;
    like $idle, qr/\Aworker \d+: idle\n?\z/, 'one has no request';
    my $stack
        = "CORE::sysread (C)\n    Shop::wait_for_it shop.psgi:8\n    Shop::__ANON__[shop.psgi:20] shop.psgi:22";
    like $busy, qr{\Aworker \d+: GET /wait\?q=1, for \d+\.\d s, waiting\n    \Q$stack\E\n?\z},
        'the other one waits';
    my ($pid) = $busy =~ /\Aworker (\d+)/;
    is + ( profile( 'dump', '--control', $ctl, '--worker', $pid ) )[1] =~ s/for .*? s,/for/r,
        $busy =~ s/for .*? s,/for/r =~ s/\n*\z/\n/r,
        'it alone';
    is + ( profile( 'dump', '--pid', $server->pid, '--worker', $pid ) )[1] =~ s/for .*? s,/for/r,
        $busy =~ s/for .*? s,/for/r =~ s/\n*\z/\n/r, 'by the PID of the supervisor';
    ( $status, $out, $said ) = profile( '--pid', $pid, qw(--seconds 0.5 --format folded) );
    like $out,
        qr/\Aprocess $pid;\(main program\).*;Sirius::Worker::run [^;]+;Shop::__ANON__[^;]+;.*;CORE::sysread \(C\);\[waiting\] \d+\n\z/s,
        'any process';
    open my $fifo, '+<', "$dir/fifo" or die $!;
    syswrite $fifo, 'x';
    is $client->response->status, 200, 'its system call was not interrupted';
};

subtest 'a command that may not look: the server does' => sub {
    plan skip_all => 'needs root and setpriv' if $> || system('setpriv --version >/dev/null 2>&1');
    local @with = @without;
    my ( $status, $out, $said )
        = $server->with_load( '/shop/1',
        sub { profile( '--control', $ctl, qw(--seconds 1 --format folded) ) } );
    is $status, 0, 'exit status 0';
    like $said,
        qr/\Asirius profile: cannot look into the Sirius server with PID \d+: [^\n]+; the server takes the samples itself\n\z/,
        'it says so';
    like $out, qr/^GET \/shop\/\*;Shop::__ANON__[^;]+;Shop::six/m, 'stacks';
    ( $status, $out ) = profile( 'dump', '--control', $ctl );
    is $status, 0, 'dump';
    like $out, qr/\Aworker \d+: /, 'of each worker';
    ( $status, $out, $said ) = profile( '--pid', ( $out =~ /(\d+)/ )[0] );
    is $status, 1, 'a process: exit status 1';
    like $said,
        qr/\Asirius profile: cannot read the memory of process \d+: [^\n]+; this command has no capability SYS_PTRACE, /,
        'and why';
};

subtest 'Ctrl-C ends it earlier' => sub {
    my $begun = time;
    my $pid   = fork // die;
    if ( !$pid ) {
        my $command;
        my $catches = qr/^SigCgt:\s+[0-9a-f]+[2367abef]$/m;    # SIGINT is 2
        until_true(
            30,
            sub {
                $command = glob_pid() or return;
                return Sirius::Test::Server::slurp("/proc/$command/status") =~ $catches;
            }
        );
        sleep 0.1;
        spew( "$dir/priority", getpriority 0, $command );
        kill INT => $command;
        POSIX::_exit(0);
    }
    my ( $status, $out, $said ) = profile( '--control', $ctl, '--seconds', 40 );
    waitpid $pid, 0;
    is "$status$out$said", "0no samples: no request was running\n", 'it says what it has';
    cmp_ok time - $begun, '<', 20, 'at once';
    my $possible = in_child( sub { setpriority 0, 0, -20; getpriority 0, 0 } );
    is Sirius::Test::Server::slurp("$dir/priority"), $possible, 'it has come before the workers, if it may';
};

subtest 'A server that ends meanwhile' => sub {
    my $other = start_server( 'sub { [ 200, [], [] ] }', '--workers', 1 );
    my $pid   = $other->pid;
    my $run   = fork // die $!;
    if ( !$run ) {
        open STDERR, '>', "$dir/ended" or POSIX::_exit(1);
        open STDOUT, '>', '/dev/null'  or POSIX::_exit(1);
        exec $^X, ( map {"-I$_"} @INC ), "$root/bin/sirius", qw(profile --seconds 60 --pid), $pid
            or POSIX::_exit(1);
    }
    sleep 1;
    $other->stop;
    until_true( 20, sub { waitpid( $run, POSIX::WNOHANG() ) == $run } ) or kill KILL => $run;
    is $?, 0, 'so does the profile';
    like Sirius::Test::Server::slurp("$dir/ended"), qr/^sirius profile: the server ended after \d+[.]\d s$/m,
        'and says so';
};

# Who has asked the server may lose patience, and ask again
subtest 'The server stops for a client that is gone' => sub {
    my $ask = sub {
        my $socket = IO::Socket::UNIX->new( Peer => $ctl ) or die "$ctl: $!";
        print {$socket} qq({"command":"profile","seconds":$_[0]}\n);
        return $socket;
    };
    my $first = $ask->(600);
    my $busy;
    ok until_true( 20, sub { ( $busy = readline $ask->(0.1) ) =~ /another profile/ } ), 'one at a time'
        or diag $busy;
    close $first;
    ok until_true( 20, sub { ( $busy = readline $ask->(0.1) ) =~ /"ok":1/ } ), 'the next one' or diag $busy;
};

# PID of the command that runs
sub glob_pid {
    for my $file ( glob '/proc/[0-9]*/cmdline' ) {
        my $line = Sirius::Test::Server::slurp($file);
        return $file =~ /(\d+)/ ? $1 : () if $line =~ /profile\0--control\0\Q$ctl\E\0/;
    }
    return ();
}

subtest 'Wrong usage' => sub {
    my $usage = 'see sirius profile --help';
    my %case  = (
        'now'            => q(unknown command 'now': use dump, or none),
        'dump now'       => "unexpected argument 'now'; $usage",
        '--hz 0'         => '--hz: 0 is too small: the minimum is 1',
        '--hz 1001'      => '--hz: 1001 is too large: the maximum is 1000',
        '--worker one'   => q(--worker: 'one' is neither the PID of a worker nor all),
        '--path busy'    => q(--path: 'busy' does not begin with a slash: did you mean /busy?),
        '-o /none/x.svg' => "--output: '/none/x.svg': a flame graph is no .svg file, but a page: use .html",
        '--compare x'    => '--compare: only with --format html',
        "--compare $dir/no -o x.htm"  => "--compare: $dir/no: No such file or directory",
        "--compare $dir/bad -o x.htm" => "--compare: $dir/bad: line 1 is not a stack with a count: no count",
        'dump --format html'          => '--format: not with dump',
        'dump --seconds 3'            => '--seconds: not with dump',
        'dump --hz 3'                 => '--hz: not with dump',
        'dump --path /x'              => '--path: not with dump',
        "dump --compare $dir/bad"     => '--compare: not with dump',
        "--pid 1 --control $ctl"      => '--control: cannot be combined with --pid',
    );
    spew( "$dir/bad", "no count\n" );
    for my $words ( sort keys %case ) {
        my ( $status, $out, $error ) = profile( split ' ', $words );
        is "$status$out$error", "2sirius profile: $case{$words}\n", "'$words'";
    }
    my %failure = (
        "--control $dir/none"             => "no server is listening on $dir/none: No such file or directory",
        "--control $ctl --worker 4194303" => 'there is no worker 4194303',
        "--pid $$ --format table -o $dir/no/x --seconds 600" => "$dir/no/x: No such file or directory",
    );
    for my $words ( sort keys %failure ) {
        my ( $status, $out, $error ) = profile( split ' ', $words );
        is "$status$out$error", "1sirius profile: $failure{$words}\n", "'$words'";
    }
};

subtest 'a worker that is another program by now' => sub {
    my @pids = map {
        my $pid = fork // die "fork: $!";
        if ( !$pid ) { exec @$_ }
        $pid;
    } [qw(sleep 60)], [ $^X, '-e', 'sleep 60' ];
    my $board = bless { pids => \@pids }, 'Sirius::Test::TwoWorkers';
    my $new   = sub {
        return eval { Sirius::Profile::Collector->new( board => $board, @_ ) }
    };
    my $named = qr/\Aprocess $pids[0] does not run perl, but \S+\n\z/;
    ok until_true( 10, sub { !$new->( worker => $pids[0] ) && $@ =~ $named } ), 'is named alone';
    ok until_true( 10, sub { $new->() } ), 'does not keep others from being looked at' or diag $@;
    kill KILL => @pids;
    waitpid $_, 0 for @pids;
};

$server->stop;
done_testing;
