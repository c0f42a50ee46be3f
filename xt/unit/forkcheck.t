use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX  ();
use Socket qw(AF_UNIX PF_UNSPEC SOCK_DGRAM SOCK_STREAM);
use Test::More;
use Sirius;
use Sirius::App::ForkCheck;

my $dir = tempdir( CLEANUP => 1 );

# Descriptors that the caller of the test has left open
my @inherited = map {m{(\d+)\z}} grep { ( readlink || '' ) =~ /\Asocket:/ } glob '/proc/self/fd/*';

# The lines without their ends, from a process that has not warned yet
sub lines {
    my ( $code, @own ) = @_;
    pipe my $read, my $write or die $!;
    my $pid = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        my @lines;
        no warnings 'redefine';
        local *Sirius::Log::_put = sub { push @lines, $_[1] };
        my @keep = $code->();
        eval { Sirius::App::ForkCheck->warn_once( @inherited, @own ) for 1 .. 2; 1 }
            or push @lines, "died: $@";
        syswrite $write, $_ for @lines;
        POSIX::_exit(0);
    }
    close $write;
    my @lines = readline $read;
    waitpid $pid, 0;
    my $end = 'was opened before the fork, so all workers share it: open it in --after-fork instead';
    return [ map {s/\A\[sirius $pid\] warn: (.*) \Q$end\E\n\z/$1/r} @lines ];
}

subtest 'Sockets' => sub {
    is_deeply lines( sub { } ), [], 'none';
    my $server = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 5 ) or die $!;
    my ( $own, $port ) = ( fileno $server, $server->sockport );
    my $connect = sub { return IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $port ) };
    is_deeply lines( sub { } ), ["a socket on 127.0.0.1:$port"], 'a listener of another';
    is_deeply lines( sub { },  $own ), [],                              'our own';
    is_deeply lines( $connect, $own ), ["a socket to 127.0.0.1:$port"], 'connected';
    is_deeply lines(
        sub {
            map { $connect->() } 1 .. 2;
        },
        $own
        ),
        [ ("a socket to 127.0.0.1:$port") x 2 ], 'two';

    my $copies = sub {
        my $socket = $connect->();
        open my $ours,   '+<&', $server or die $!;
        open my $theirs, '+<&', $socket or die $!;
        return ( $socket, $ours, $theirs );
    };
    is_deeply lines( $copies, $own ), ["a socket to 127.0.0.1:$port"], 'copies are not more';
    my $closed = sub { $connect->() for 1 .. 2; return };
    is_deeply lines( $closed, $own ), [], 'closed again';
    my $udp = sub { return IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => 9, Proto => 'udp' ) };
    is_deeply lines( $udp, $own ), ['a socket to 127.0.0.1:9'], 'UDP';
    is_deeply lines( sub { open my $fh, '<', $0 or die $!; pipe my $r, my $w; ( $fh, $r, $w ) }, $own ), [],
        'no files, no pipes';

    my $v6 = sub {
        require IO::Socket::IP;
        return IO::Socket::IP->new( LocalAddr => '::1', Listen => 1 ) || die 'no IPv6';
    };
    my $got = lines(
        sub {
            eval { $v6->() }
        },
        $own
    );
SKIP: {
        skip 'no IPv6 here', 1 if !@$got;
        like "@$got", qr/\Aa socket on \[::1\]:\d+\z/, 'IPv6';
    }
};

subtest 'Unix sockets' => sub {
    my $server = IO::Socket::UNIX->new( Local => "$dir/sock", Listen => 5 ) or die $!;
    my $own    = fileno $server;
    is_deeply lines( sub { } ), ["a socket on $dir/sock"], 'a listener';
    is_deeply lines( sub { IO::Socket::UNIX->new( Peer => "$dir/sock" ) }, $own ), ["a socket to $dir/sock"],
        'connected';
    my $pair = sub {
        my $type = shift;
        socketpair my $one, my $two, AF_UNIX, $type, PF_UNSPEC or die $!;
        return ( $one, $two );
    };
    is_deeply lines( sub { $pair->(SOCK_STREAM) }, $own ), [ ('a unix socket without a name') x 2 ], 'a pair';
    is_deeply lines( sub { $pair->(SOCK_DGRAM) },  $own ), [],                                       'a log';
    is_deeply lines( sub { IO::Socket::UNIX->new( Local => "\0$dir/abstract", Listen => 1 ) }, $own ),
        ["a socket on \@$dir/abstract"], 'abstract';
};

# As DBI has it: handles are hashes, its drivers have connections, which have statements
sub fake_dbi {
    my @databases = @_;
    my $driver    = { Type => 'dr', Name => 'Pg', children => \@databases };
    $_ = { Type => 'db', Driver => $driver, Active => 1, children => [ { Type => 'st', Active => 1 } ], %$_ }
        for @databases;
    my $visit;
    $visit = sub {
        my ( $class, $code, $handles ) = @_;
        for my $handle ( @{ $handles || [$driver] } ) {
            $visit->( $class, $code, $handle->{children} || [] ) if $code->( $handle, undef );
        }
    };
    no warnings 'once';
    local $INC{'DBI.pm'} = 'fake';
    local *DBI::visit_handles = $visit;
    return [ map { $_->[1] } Sirius::App::ForkCheck::_databases() ];
}

subtest 'Database handles' => sub {
    is_deeply fake_dbi(), [], 'none';
    is_deeply fake_dbi( { Name => 'dbname=a' }, { Name => 'dbname=b', Active => 0 }, { Name => undef } ),
        [ 'a DBI handle (dbi:Pg:dbname=a)', 'a DBI handle (dbi:Pg:)' ], 'active ones';
    is_deeply fake_dbi( { Name => 'dbname=a;password=secret;host=b' } ),
        ['a DBI handle (dbi:Pg:dbname=a;password=***;host=b)'], 'no password in the log';
    {
        no warnings 'once';
        local $INC{'DBI.pm'} = 'fake';
        local *DBI::visit_handles = sub { die 'no' };
        is_deeply [ Sirius::App::ForkCheck::_databases() ], [], 'an error is not ours';
    }
    is_deeply [ Sirius::App::ForkCheck::_databases() ], [], 'DBI is not loaded' if !$INC{'DBI.pm'};
};

subtest 'A real one' => sub {
    plan skip_all => 'DBI is not installed' if !eval 'require DBI';
    my $open = sub { return DBI->connect( 'dbi:ExampleP:', '', '' ) };
    is_deeply lines($open),                                   ['a DBI handle (dbi:ExampleP:)'], 'in the log';
    is_deeply lines( sub { $open->()->disconnect; return } ), [], 'disconnected';
};

subtest 'What the warm-up opens' => sub {
    my $server = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 5 ) or die $!;
    my @own    = ( fileno $server );
    my $connect
        = sub { return IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $server->sockport ) };
    my $lines = lines(
        sub {
            my @before = $connect->();
            Sirius::App::ForkCheck->warn_before_warm_up( @inherited, @own );
            return ( @before, $connect->() );
        },
        @own
    );
    is scalar @$lines, 2, 'each is told of once' or diag explain $lines;
    is $lines->[0],    'a socket to 127.0.0.1:' . $server->sockport, 'that of the loading as ever';
    like $lines->[1], qr/was opened by the warm-up, .* --before-fork/, 'the other with another advice';
};

done_testing;
