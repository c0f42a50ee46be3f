use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# before_fork, after_fork, child_exit and on_reload, and what children must not share

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;

# /end ends its worker, whose PID is the answer; in workers, so that what hooks have done can be seen
my $APP = <<'APP';
rand;
srand 42;
my $app = sub {
    my $env = shift;
    $env->{'psgix.harakiri.commit'} = 1 if $env->{PATH_INFO} eq '/end';
    return [ 200, [], [ "$$ " . rand ] ];
};
APP

my @HOOKS = qw(before_fork after_fork child_exit on_reload);

# Source text of a hook that notes: its name, the process, its parent, its arguments
sub hook {
    my $name = shift;
    return "sub { open my \$out, '>>', '$dir/notes' or die \$!;"
        . " syswrite \$out, join( ' ', '$name', \$\$, getppid, map { ref } \@_ ) . qq(\\n) }";
}

sub options {
    return map { ( '--' . tr/_/-/r => hook($_) ) } @HOOKS;
}

# [ name, pid, parent, arguments ]
sub notes {
    my $name = shift;
    my @all  = map { [ split ' ', $_, 4 ] } split /\n/, Sirius::Test::Server::slurp("$dir/notes");
    return grep { $_->[0] eq $name } @all if defined $name;
    return @all;
}

# PIDs that have noted it, in their order
sub pids {
    my @pids = sort { $a <=> $b } map { $_->[1] } notes(shift);
    return @pids;    # in scalar context their number
}

sub pid { return ( split ' ', shift->ask('GET /end')->body )[0] }

sub launcher {
    my $hooks = join ', ', map { "$_ => " . hook($_) } @HOOKS;
    return
          "use strict; use warnings; use Plack::Loader;\n$APP;\n"
        . "my \$handler = Plack::Loader->load( 'Sirius', host => '127.0.0.1', port => 0, workers => 2, $hooks );\n"
        . "\$handler->run(\$app);\nprint qq(returned\\n);\n";
}

my $plackup = program('plackup');
my %way     = (
    'sirius'            => { app => $APP, args => [ qw(--workers 2), options() ] },
    'plackup -s Sirius' => {
        app     => $APP,
        args    => [ qw(--workers 2), options() ],
        command => [ $^X, $plackup, qw(-s Sirius -E deployment) ],
    },
    'Plack::Loader' => { command => [ $^X, spew( "$dir/program", launcher() ) ], plain => 1 },
);

for my $name ( sort keys %way ) {
    subtest "each hook once for each child, in order: $name" => sub {
        unlink "$dir/notes";
        my $server = Sirius::Test::Server->start( %{ $way{$name} } );
        my ($first) = $server->generations;
        ok until_true( 20, sub { pids('after_fork') == 2 } ), 'two workers';
        my @workers = $server->workers;
        is_deeply [ pids('after_fork') ],  \@workers,        'after_fork in each';
        is_deeply [ pids('before_fork') ], [ ($first) x 2 ], 'before_fork where they are forked, each time';
        is( ( notes() )[0][0], 'before_fork', 'which comes first' );
        is_deeply [ map { $_->[3] } notes('after_fork') ], [ ('Sirius::Worker') x 2 ], 'its argument';
        is_deeply [ notes('child_exit') ],                 [],                         'no child_exit yet';

        my $ended = pid($server);
        ok until_true( 20, sub { pids('child_exit') == 1 && pids('after_fork') == 3 } ),
            'harakiri: one ends, one begins';
        is_deeply [ pids('child_exit') ], [$ended], 'child_exit in the one that ends';

        $server->signal('HUP');
        ok until_true(
            30, sub { $server->generations == 1 && pids('child_exit') == 3 && pids('on_reload') }
            ),
            'HUP: all end';
        is_deeply [ pids('on_reload') ], [$first], 'on_reload in the process that they come from';
        my ($second) = $server->generations;
        is_deeply [ ( pids('before_fork') )[ -2, -1 ] ], [ ($second) x 2 ], 'before_fork in the other';
        is_deeply [ map { $_->[3] } notes('child_exit') ], [ ('Sirius::Worker CODE') x 3 ],
            'arguments of child_exit';
        ok until_true( 20, sub { pids('after_fork') == 5 } ), 'the workers of the other have begun';
        $server->stop;

        is_deeply [ pids('child_exit') ], [ pids('after_fork') ],
            'TERM: child_exit in the rest; once in all that after_fork was in';
        is scalar pids('before_fork'), scalar pids('after_fork'), 'as often as before_fork';
        unlike $server->log, qr/: over; starting another/, 'none is started at the stop';
        is scalar pids('on_reload'), 1, 'a stop is no reload';
        my %last;
        my @wrong = grep {
            ( $last{ $_->[1] } || '' ) ne ( $_->[0] eq 'child_exit' ? 'after_fork' : '' )
                || !( $last{ $_->[1] } = $_->[0] )
            }
            grep { $_->[0] =~ /after_fork|child_exit/ } notes();
        is_deeply \@wrong, [], 'after_fork first';
    };
}

subtest 'The program that has called run goes on after the stop' => sub {
    my $server = Sirius::Test::Server->start( %{ $way{'Plack::Loader'} } );
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
    is $server->output, "returned\n", 'once, not in its children';
};

subtest 'child_exit, whatever the reason' => sub {
    my %end = (
        'TERM at a worker' => [ [], sub { kill TERM => ( shift->workers )[0] } ],
        'QUIT at a worker' => [ [], sub { kill QUIT => ( shift->workers )[0] } ],
        'max-requests'     =>
            [ [qw(--max-reqs-per-child 4)], sub { my $server = shift; $server->ask('GET /') for 1 .. 4 } ],
        'max-lifetime'  => [ [qw(--max-lifetime 1)], sub { } ],
        'fewer workers' => [ [qw(--workers 2)],      sub { shift->signal('TTOU') } ],
        'INT'           => [ [],                     sub { shift->signal('INT') } ],
    );
    for my $name ( sort keys %end ) {
        unlink "$dir/notes";
        my ( $args, $code ) = @{ $end{$name} };
        my $server = start_server( $APP, qw(--workers 1), @$args, options() );
        my $wanted = @$args && $args->[0] eq '--workers' ? $args->[1] : 1;
        until_true( 20, sub { pids('after_fork') == $wanted } );
        my %old = map { $_ => 1 } $server->workers;
        $code->($server);
        ok until_true( 20, sub { my ($pid) = pids('child_exit'); $pid && $old{$pid} } ), $name;
        eval { $server->ask('GET /') } if $name ne 'INT';    # its successor is ready, too
        $server->stop;
        is_deeply [ sort { $a <=> $b } pids('child_exit') ], [ sort { $a <=> $b } pids('after_fork') ],
            'and at the stop, once in each';
    }
};

subtest '--max-reqs-per-child 1' => sub {
    unlink "$dir/notes";
    my $server = start_server( $APP, qw(--workers 2 --max-reqs-per-child 1), options() );
    my %by;
    $by{ ( split ' ', $server->ask('GET /')->body )[0] }++ for 1 .. 12;
    is scalar keys %by, 12, 'twelve requests, twelve workers' or diag explain \%by;
    $server->stop;
};

subtest 'random numbers differ in 50 children' => sub {
    my $server = start_server( $APP, qw(--workers 10) );
    my ( %pid, %number );
    for ( 1 .. 50 ) {
        my ( $pid, $number ) = split ' ', $server->ask('GET /end')->body;
        $pid{$pid}++;
        $number{$number}++;
    }
    is scalar keys %pid, 50, 'the first request of 50 children';
    is scalar keys %number, 50, '50 numbers, though the application had called srand(42)'
        or diag explain \%number;
    $server->stop;
};

subtest 'a socket that is open before the fork' => sub {
    my $shared = <<'APP';
use IO::Socket::INET;
use Socket;
our $listens = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 5 ) or die $@;
our $database = IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $listens->sockport ) or die $@;
socketpair our $one, our $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die $!;
open our $file, '<', '/dev/null' or die $!;
pipe our $read, our $write or die $!;
warn 'port ' . $listens->sockport . "\n";
APP
    my $server = start_server( $shared . $APP, qw(--workers 4) );
    my $told   = sub {
        my @all = $server->log =~ /^\[sirius \d+\] warn: a (.*) was opened before the fork, /mg;
        return \@all;
    };
    my ($port) = $server->log =~ /^port (\d+)$/m;
    ok until_true( 20, sub { $server->workers == 4 } ), 'four workers';
    is $server->ask('GET /')->status, 200, 'it serves';
    my %times;
    $times{$_}++ for map {s/ \(.*//r} @{ $told->() };
    is_deeply [
        sort map { $_ eq "socket to 127.0.0.1:$port" || $_ eq "socket on 127.0.0.1:$port" ? $_ : () }
            keys %times
        ],
        [ "socket on 127.0.0.1:$port", "socket to 127.0.0.1:$port" ], 'each socket is named, and no file'
        or diag $server->log;
    is_deeply [ grep { $times{$_} != ( /port|127/ ? 1 : 2 ) } keys %times ], [], 'once' or diag $server->log;
    like $server->log, qr/--after-fork/, 'and what to do';
    my $before = @{ $told->() };
    pid($server);
    ok until_true( 20, sub { $server->workers == 4 } ), 'another worker';
    is scalar @{ $told->() }, $before, 'is no reason to say it again';
    $server->stop;

    my $own = Sirius::Test::Server->start(
        app  => $APP,
        args => [ qw(--workers 2 --listen 127.0.0.1:0), '--listen', "$dir/sock", '--control', "$dir/control" ]
    );
    $own->signal('HUP');
    ok until_true( 30, sub { $own->log =~ /generation 2 is serving$/m } ),
        'a server with several sockets of its own';
    unlike $own->log, qr/before the fork/, 'does not speak of those';
    $own->stop;
};

subtest 'a DBI handle that is open before the fork' => sub {
    skip_without('DBI');
    skip_without('DBD::SQLite');
    my $server
        = start_server( "use DBI;\nour \$dbh = DBI->connect( 'dbi:SQLite:dbname=$dir/db', '', '' );\n$APP",
        qw(--workers 3) );
    ok until_true( 20, sub { $server->workers == 3 } ), 'three workers';
    is( () = $server->log =~ /DBI handle .*before the fork/g, 1, 'one warning' );
    $server->stop;
};

subtest 'An exception in a hook is logged and stops nothing, but in after_fork' => sub {
    my @mild   = grep { $_ ne 'after_fork' } @HOOKS;    # xt/process/reload/load_timeout.t has that one
    my $server = start_server(
        $APP,
        qw(--workers 1),
        map { ( '--' . tr/_/-/r => qq(sub { die "no luck with $_\\n" }) ) } @mild
    );
    is $server->ask('GET /')->status, 200, 'it serves';
    pid($server);
    is $server->ask('GET /')->status, 200, 'also after a worker has ended';
    $server->signal('HUP');
    ok until_true( 30, sub { $server->log =~ /generation 2 is serving$/m && $server->generations == 1 } ),
        'HUP';
    is $server->ask('GET /')->status, 200, 'and then';
    $server->stop;
    like $server->log, qr/^\[sirius \d+\] error: --@{[ tr{_}{-}r ]} died: no luck with $_$/m,
        "$_: the log has it"
        for @mild;
};

done_testing;
