use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use POSIX      ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;
use Sirius::Test::Confine;

# Edges and the keeper of keys have given up what they do not need, as the kernel has it; and what processes
# of the same user, which run the application, cannot do to them

no warnings qw(portable);                          # addresses have 64 bits
use constant { USER => 65532, GROUP => 65533 };    # no names needed

my $top = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
chmod 0755, "$top" or die $!;                                         # for the other user
my $made = Sirius::Test::Certificates->new;
my ( $cert, $key ) = $made->issue('rights.example');
my $build    = slurp("$Sirius::Test::Server::ROOT/build/flags");
my $sandbox  = $build !~ /SR_SANDBOX=0/ && !$ENV{SIRIUS_TEST_WRAP};
my $cases    = 0;
my $may_drop = hex( status_of('self')->{CapEff} // 0 ) & 1 << 8;      # CAP_SETPCAP

sub slurp { return Sirius::Test::Server::slurp(shift) }

# The lines of /proc/PID/status by their names; none if the process is gone
sub status_of {
    return { slurp( '/proc/' . shift . '/status' ) =~ /^(\w+):[ \t]*(.*?)[ \t]*$/mg };
}

# Each process that owns connections or keys: "edge", "admin e", "keeper" => PID
sub confined {
    my $server = shift;
    my %found;
    for my $pid ( $server->processes ) {
        my ($name) = Sirius::Test::Server::comm($pid) =~ /\Asirius: (edge|admin e|keeper)/ or next;
        $found{$name} = $pid;
    }
    return \%found;
}

# The sockets that it has, by their numbers
sub sockets {
    my @pids = @_;
    return map { $_ => 1 } grep {/\Asocket:/} map { readlink || () } map { glob "/proc/$_/fd/*" } @pids;
}

# Another user than root, if this is root
my @other = $> ? () : ( qw(setpriv --clear-groups --reuid), USER, '--regid', GROUP );
my $other = !@other || !system "@other true 2>/dev/null";

sub start {
    my %option    = @_;
    mkdir my $dir = "$top/" . ++$cases or die $!;
    chmod 0777, $dir or die $!;
    my @key = (
        '--tls-cert' => spew( "$dir/cert.pem", slurp($cert) ),
        '--tls-key'  => spew( "$dir/key.pem",  slurp($key) )
    );
    chmod 0600, "$dir/key.pem" or die $!;
    chown USER, GROUP, "$dir/key.pem" if !$> && "@{ $option{under} || [] }" =~ m{setpriv};
    my @listen = map { ( '--listen' => $_ ) } '127.0.0.1:0', '127.0.0.1:0,tls';
    @listen = @listen[ 2, 3, 0, 1 ] if $ENV{SIRIUS_TEST_TLS};    # the first is asked
    return Sirius::Test::Server->start(
        app     => spew( "$dir/app.psgi", $option{app} ),
        args    => [ @listen, @key, '--tmpdir', "$dir", @{ $option{args} } ],
        command =>
            [ @{ $option{under} || [] }, $^X, "$Sirius::Test::Server::ROOT/bin/sirius", qw(-E deployment) ],
        ready => 2,
    );
}

# With each, a part of the tests: how it is started, and who the processes are then
my @ways = (
    $> || !$other
    ? ()
    : [ 'root with --user', { args => [ '--user', USER, '--group', GROUP ] }, USER ],
    $> ? () : [ 'root', { args => [] }, 0 ],
    $other ? [ 'not root', { args => [], under => \@other }, $> || USER ] : (),
);

my $HELLO = "sub { [ 200, [], ['hello'] ] }\n";

subtest 'What they have' => sub {
    plan skip_all => 'there is no way to start' if !@ways;
    for my $way (@ways) {
        my ( $name, $how, $uid ) = @$way;
        my $server = start(
            %$how,
            app  => $HELLO,
            args => [ @{ $how->{args} }, qw(--workers 1 --admin 127.0.0.1:0) ]
        );
        my $found = confined($server);
        is_deeply [ sort keys %$found ], [ 'admin e', 'edge', 'keeper' ], "$name: all kinds of processes";
        for my $kind ( sort keys %$found ) {
            my $has = status_of( $found->{$kind} );
            is join( ' ', split ' ', $has->{Uid} ), join( ' ', ($uid) x 4 ), "$name, $kind: the user";
            is_deeply [ map { hex $has->{$_} // 'none' } qw(CapInh CapPrm CapEff CapAmb) ], [ 0, 0, 0, 0 ],
                'has no capability';
            is hex $has->{CapBnd}, 0, 'and can get none' if $may_drop && !$how->{under};
            is $has->{NoNewPrivs}, 1, 'nor by a program' if defined $has->{NoNewPrivs};
            is $has->{Seccomp}, 2, 'its system calls are filtered'
                if $sandbox && defined $has->{Seccomp} && $server->log !~ /without a filter of system calls/;
            is $has->{Threads}, 1, 'and it has no thread without the filter';
            like slurp("/proc/$found->{$kind}/limits"), qr/^Max core file size\s+0\s+0\s/m,
                'it leaves no core'
                if !$>;
            my $owner = ( stat "/proc/$found->{$kind}/mem" )[4];
            is $owner, 0, 'only root may look into it';
        }
        my %theirs = sockets( $server->generations, $server->workers );
        my %keeper = sockets( $found->{keeper} );
        if ( !$> ) {    # each end of a line could be read, and written to
            ok %keeper && %theirs, 'sockets can be seen';
            is_deeply [ grep { $theirs{$_} } keys %keeper ], [],
                "$name: a generation or worker has no socket of the keeper";
            my %edge = sockets( $found->{edge} );
            is scalar( grep { $theirs{$_} } keys %edge ), 0, 'and none of the edge';
        }
        is $server->ask('GET /')->body, 'hello', "$name: it serves";
        $server->stop;
    }
};

# A try of the application for each way into another process. The numbers of calls are those of x86-64, or of
# all newer architectures
my $TRIES = <<'APP';
use JSON::PP ();
use POSIX    ();
my %number = `uname -m` =~ /x86_64/ ? ( ptrace => 101, read => 310 ) : ( ptrace => 117, read => 270 );
my $own    = 0 + \%number;
my %try    = (
    mem     => sub { open my $in, '<', "/proc/$_[0]/mem" },
    environ => sub { my $in; open $in, q(<), "/proc/$_[0]/environ" and sysread $in, my $text, 10 },
    maps    => sub { my $in; open $in, q(<), "/proc/$_[0]/maps" and sysread $in, my $text, 10 },
    fds     => sub { my $in; opendir $in, "/proc/$_[0]/fd" and readdir $in },
    fd      => sub { grep { open my $in, '<', "/proc/$_[0]/fd/$_" } 3 .. 60 },
    root    => sub { defined readlink "/proc/$_[0]/root" },
    memory  => sub {
        my $to    = "\0" x 8;
        my $here  = pack 'P8 Q', $to, 8;
        my $there = pack 'Q Q', $_[1] || $own, 8;
        return syscall( $number{read}, 0 + $_[0], $here, 1, $there, 1, 0 ) == 8;
    },
    pidfd => sub {
        my $pidfd = syscall 434, 0 + $_[0], 0;
        return grep { syscall( 438, $pidfd, $_, 0 ) >= 0 } 0 .. 60;
    },
    ptrace => sub {    # in a child, whose end lets the process go
        my $pid = fork // die $!;
        POSIX::_exit( syscall( $number{ptrace}, 0x4206, 0 + $_[0], 0, 0 ) == 0 ? 0 : 1 ) if !$pid;    # PTRACE_SEIZE
        waitpid $pid, 0;
        return !$?;
    },
);
sub {
    my ( $pid, $address ) = split /-/, substr $_[0]{PATH_INFO}, 1;
    my %done = map { $_ => $try{$_}->( $pid, $address ) ? 'possible' : 'no' } sort keys %try;
    return [ 200, [], [ JSON::PP::encode_json( \%done ) ] ];
}
APP

subtest 'What the application cannot do to them' => sub {
    my @cases = grep { $_->[2] } @ways;    # where it is root it can do anything
    plan skip_all => 'root is the only user here' if !@cases;
    for my $way (@cases) {
        my ( $name, $how ) = @$way;
        my $server   = start( %$how, app => $TRIES, args => [ @{ $how->{args} }, qw(--workers 2) ] );
        my $possible = sub {
            my $answer = $server->ask("GET /$_[0]");
            diag $server->log if $answer->status != 200;
            my $done = JSON::PP::decode_json( $answer->body );
            return [ grep { $done->{$_} ne 'no' } sort keys %$done ];
        };
        my $found = confined($server);
        is_deeply [ sort keys %$found ], [qw(edge keeper)], "$name: an edge and a keeper";
        for my $kind ( sort keys %$found ) {
            my $pid = $found->{$kind};
            my ($address) = slurp("/proc/$pid/maps") =~ /^([0-9a-f]+)-\S+ rw/m;    # for root to see
            is_deeply $possible->( "$pid-" . ( defined $address ? hex $address : 0x10000 ) ), [],
                "$name: nothing is possible, $kind";
        }

        # The same tries on a process that has not changed its user. Yama forbids some
        if ( $how->{under} ) {
            my ($generation) = $server->generations;
            my @ways
                = slurp(q(/proc/sys/kernel/yama/ptrace_scope)) =~ /[1-9]/ ? () : qw(mem memory pidfd ptrace);
            is_deeply $possible->("$generation-0"), [ sort @ways, qw(environ fd fds maps root) ],
                "$name: with a process in Perl all is";
        }
        $server->stop;
    }
};

subtest 'Without the sandbox' => sub {
    plan skip_all => 'it is not built' if !$sandbox;
    my $config = spew( "$top/sirius.conf", "sandbox = no\n" );
    my $server = start( app => $HELLO, args => [ qw(--workers 1 --config), $config ] );
    my %has    = map { $_ => status_of( confined($server)->{$_} ) } qw(edge keeper);
    is_deeply [ map { $_->{Seccomp} } @has{qw(edge keeper)} ], [ 0, 0 ], 'no filter';
    is_deeply [ map { hex $_->{CapEff} } @has{qw(edge keeper)} ], [ 0, 0 ],
        'rights are given up all the same';
    my $before = confined($server);
    spew( $config, "sandbox = yes\n" );
    $server->signal('HUP');
    ok until_true(
        30,
        sub {
            my $now = confined($server);
            !grep {
                my $pid = $now->{$_};
                !$pid || $pid == $before->{$_} || ( status_of($pid)->{Seccomp} || 0 ) != 2
            } qw(edge keeper);
        }
        ),
        'after a reload with it the next ones have it'
        or diag $server->log;
    is $server->ask('GET /')->body, 'hello', 'and serve';
    $server->stop;
};

subtest 'Where none of it is allowed' => sub {
    my $none
        = Sirius::Test::Confine->without( EPERM => qw(capset landlock_create_ruleset seccomp PR_SET_SECCOMP) )
        or plan skip_all => 'there is no seccomp here, or no compiler';
    plan skip_all => 'it is not built' if !$sandbox;
    my $server = start( app => $HELLO, under => [ $none->path ], args => [qw(--workers 1 --edges 2)] );
    is $server->ask('GET /')->body, 'hello', 'it serves';
    is
        scalar( ()
        = $server->log
            =~ /^\[sirius \d+\] info: edges run without a filter of system calls \(seccomp\): Operation not permitted$/mg
        ), 1, 'the log says so once'
        or diag $server->log;
    $server->stop;
};

subtest 'A folder for temporary files in place of another' => sub {
    mkdir my $dir = "$top/bodies" or die $!;
    my $server    = start_server( $HELLO, qw(--workers 1 --body-memory 10 --tmpdir), $dir );
    my $large     = 'x' x 100_000;
    is $server->ask( 'POST /', \$large )->status, 200, 'a body in a file';
    rmdir $dir or die $!;
    mkdir $dir or die $!;
    is $server->ask( 'POST /', \$large )->status, 500, 'the edge has the old folder';
    $server->signal('HUP');
    ok $server->wait_log( qr/edge \d+ replaces edge/, 30 ), 'a reload starts another edge'
        or diag $server->log;
    ok until_true( 10, sub { $server->ask( 'POST /', \$large )->status == 200 } ), 'which has this one';
    $server->stop;
};

done_testing;
