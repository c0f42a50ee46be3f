use strict;
use warnings;
use lib 't/lib';
use Test::More;
use File::Basename qw(dirname);
use File::Path     qw(make_path);
use File::Temp     qw(tempdir);
use Sirius::Config::Values;
use Sirius::OS::Cpus;
use Sirius::Test::Server;

my $MIB = 2**20;

# A directory in place of /, with these files
sub root {
    my %file = @_;
    my $root = tempdir( CLEANUP => 1 );
    for my $path ( keys %file ) {
        make_path( dirname("$root$path") );
        Sirius::Test::Server::spew( "$root$path", $file{$path} );
    }
    return $root;
}

sub allowed {
    return '/proc/self/status' => "Name:\tperl\nCpus_allowed:\tff\nCpus_allowed_list:\t$_[0]\nMems:\t0\n";
}

# One line of mountinfo
sub mount {
    my ( $top, $at, $type, $options ) = @_;
    return "30 24 0:26 $top $at rw,nosuid shared:9 - $type $type $options\n";
}

sub unified {
    my ( $path, %file ) = @_;
    return (
        allowed('0-7'),
        '/proc/self/cgroup'    => "0::$path\n",
        '/proc/self/mountinfo' => "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
            . mount(qw(/ /sys/fs/cgroup cgroup2 rw)),
        ( map { ( "/sys/fs/cgroup$_" => $file{$_} ) } keys %file )
    );
}

sub separate {
    my ( $path, $top, %file ) = @_;
    return (
        allowed('0-7'),
        '/proc/self/cgroup'    => "5:memory:$path\n4:cpu,cpuacct:$path\n1:name=systemd:$path\n0::/\n",
        '/proc/self/mountinfo' => mount( $top, '/sys/fs/cgroup/cpu,cpuacct', 'cgroup', 'rw,cpu,cpuacct' )
            . mount( $top, '/sys/fs/cgroup/memory', 'cgroup', 'rw,memory' ),
        ( map { ( "/sys/fs/cgroup/$_" => $file{$_} ) } keys %file )
    );
}

subtest 'Processes' => sub {
    my %case = (
        'a full control group' => [
            [ unified( '/a/b', '/a/b/pids.max' => "100\n", '/a/b/pids.current' => "100\n" ) ],
            '100 TasksMax= of systemd, or pids.max of the control group'
        ],
        'one above it' => [
            [   unified(
                    '/a/b',
                    '/a/b/pids.max'     => "max\n",
                    '/a/b/pids.current' => "3\n",
                    '/a/pids.max'       => "20\n",
                    '/a/pids.current'   => "21\n"
                )
            ],
            '20 TasksMax= of systemd, or pids.max of the control group'
        ],
        'none is full: that of the user' => [
            [   unified( '/a', '/a/pids.max' => "100\n", '/a/pids.current' => "99\n" ),
                '/proc/self/limits' =>
                    "Limit                     Soft Limit\nMax processes             4711                 4711                 processes\n"
            ],
            '4711 ulimit -u, or LimitNPROC= of systemd'
        ],
        'no limit' => [
            [   unified('/a'),
                '/proc/self/limits' => "Max processes             unlimited            unlimited\n"
            ],
            q()
        ],
    );
    for my $name ( sort keys %case ) {
        my ( $files, $want ) = @{ $case{$name} };
        is join( q( ), Sirius::OS::Cpus->tasks( root(@$files) ) ), $want, $name;
    }
};

subtest 'Affinity' => sub {
    my %case = ( '0' => 1, '0-1' => 2, '0-3,8' => 5, '0-3,8-11,64' => 9, '5' => 1 );
    is( Sirius::OS::Cpus->count( root( allowed($_) ) ), $case{$_}, "$_: $case{$_} CPUs" ) for sort keys %case;
    is( Sirius::OS::Cpus->count( root() ),              1,         'one when nothing can be read' );
    is( Sirius::OS::Cpus->workers( root() ),            2,         'two workers then' );
};

subtest 'The quota of version 2' => sub {
    my @case = (
        [ 8, '/',        '/cpu.max'       => "max 100000\n" ],
        [ 1, '/',        '/cpu.max'       => "50000 100000\n" ],
        [ 2, '/',        '/cpu.max'       => "150000 100000\n" ],
        [ 2, '/',        '/cpu.max'       => "200000 100000\n" ],
        [ 8, '/',        '/cpu.max'       => "1600000 100000\n" ],
        [ 3, '/a/b',     '/a/b/cpu.max'   => "300000 100000\n" ],
        [ 3, '/a/b',     '/a/b/cpu.max'   => "max 100000\n",    '/a/cpu.max' => "30000 10000\n" ],
        [ 1, '/a/b',     '/a/b/cpu.max'   => "500000 100000\n", '/cpu.max'   => "10000 100000\n" ],
        [ 8, '/a/b',     '/other/cpu.max' => "100000 100000\n" ],
        [ 1, '/../peer', '/cpu.max'       => "100000 100000\n" ],
    );
    for my $case (@case) {
        my ( $want, $path, %file ) = @$case;
        is( Sirius::OS::Cpus->count( root( unified( $path, %file ) ) ),
            $want, join ' ', $path, map { "$_ $file{$_}" =~ s/\n//r } sort keys %file );
    }
};

subtest 'The quota of version 1' => sub {
    my $dir  = 'cpu,cpuacct';
    my @case = (
        [ 8, '/', '/', "$dir/cpu.cfs_quota_us" => "-1\n",     "$dir/cpu.cfs_period_us" => "100000\n" ],
        [ 2, '/', '/', "$dir/cpu.cfs_quota_us" => "150000\n", "$dir/cpu.cfs_period_us" => "100000\n" ],
        [   1, '/docker/1', '/docker/1',
            "$dir/cpu.cfs_quota_us"  => "50000\n",
            "$dir/cpu.cfs_period_us" => "100000\n"
        ],
        [ 4, '/a/b', '/', "$dir/a/cpu.cfs_quota_us" => "40000\n", "$dir/a/cpu.cfs_period_us" => "10000\n" ],
        [   8, '/a/b', '/a/bcd',
            "$dir/d/cpu.cfs_quota_us"  => "40000\n",
            "$dir/d/cpu.cfs_period_us" => "10000\n"
        ],
    );
    for my $case (@case) {
        my ( $want, $path, $top, %file ) = @$case;
        is( Sirius::OS::Cpus->count( root( separate( $path, $top, %file ) ) ),
            $want, "$path below $top: $want CPUs" );
    }
};

subtest 'Memory' => sub {
    my @case = (
        [ undef,      unified( '/',    '/memory.max'     => "max\n" ) ],
        [ 128 * $MIB, unified( '/',    '/memory.max'     => 128 * $MIB . "\n" ) ],
        [ 128 * $MIB, unified( '/a/b', '/a/b/memory.max' => "max\n", '/a/memory.max' => 128 * $MIB . "\n" ) ],
        [ undef,      separate( '/',    '/',    'memory/memory.limit_in_bytes' => "9223372036854771712\n" ) ],
        [ 256 * $MIB, separate( '/d/1', '/d/1', 'memory/memory.limit_in_bytes' => 256 * $MIB . "\n" ) ],
        [undef],
    );
    for my $case (@case) {
        my ( $want, %file ) = @$case;
        is( Sirius::OS::Cpus->memory( root(%file) ), $want, defined $want ? "$want bytes" : 'no limit' );
    }
    is( Sirius::OS::Cpus->workers( root( unified( '/', '/memory.max' => $_->[0] * $MIB . "\n" ) ) ),
        $_->[1], "$_->[0] MiB: $_->[1] workers" )
        for [ 4096, 8 ], [ 512, 8 ], [ 511, 7 ], [ 128, 2 ], [ 64, 1 ], [ 16, 1 ];
};

subtest 'A mount point with a space' => sub {
    my $root = root(
        allowed('0-7'),
        '/proc/self/cgroup'    => "0::/\n",
        '/proc/self/mountinfo' => mount( '/', '/my\040groups', 'cgroup2', 'rw' ),
        '/my groups/cpu.max'   => "100000 100000\n"
    );
    is( Sirius::OS::Cpus->count($root), 1, 'is found' );
};

subtest '--workers auto: half a CPU in a control group gives one or two workers' => sub {
    for my $root (
        root( unified( '/', '/cpu.max' => "50000 100000\n" ) ),
        root( separate(
            '/', '/',
            'cpu,cpuacct/cpu.cfs_quota_us'  => "50000\n",
            'cpu,cpuacct/cpu.cfs_period_us' => "100000\n"
        ) )
        )
    {
        is( Sirius::OS::Cpus->count($root),   1, 'one CPU' );
        is( Sirius::OS::Cpus->workers($root), 2, 'two workers' );
    }
};

subtest 'This machine' => sub {
    my $count = Sirius::OS::Cpus->count;
    cmp_ok $count, '>=', 1, 'CPUs';
    cmp_ok( Sirius::OS::Cpus->workers, '>=', 1, 'workers' );
    is( Sirius::Config::Values->parse( { workers => 'auto' } )->{workers},
        Sirius::OS::Cpus->workers,
        'what --workers auto takes'
    );
    my $one = `taskset -c 0 $^X -Ilib -MSirius::OS::Cpus -e 'print Sirius::OS::Cpus->count' 2>/dev/null`;
SKIP: {
        skip 'taskset does not work here', 1 if $?;
        is $one, 1, 'one with taskset';
    }
};

done_testing;
