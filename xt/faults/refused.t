# Where a filter of a container or an older kernel refuses a system call, the server serves all the same, or
# ends with a line that says why: it never waits for ever.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Confine;

my $APP = q(sub { [ 200, [], ["hello\n"] ] });

# What each call is for: s the server serves without it; otherwise a part of the line with which it ends
my @CALLS = (
    [ accept4                 => qr/accept4\(2\) fails/ ],
    [ bind                    => qr/cannot listen on/ ],
    [ capset                  => 's' ],
    [ close_range             => 's' ],
    [ connect                 => qr/connect\(2\) fails/ ],
    [ epoll_create1           => qr/sirius-edge: cannot start/ ],
    [ epoll_ctl               => qr/sirius-edge: cannot start/ ],
    [ epoll_wait              => qr/epoll_wait\(2\) fails/ ],
    [ eventfd2                => qr/cannot create a bell for an edge: .* \(eventfd2\)/ ],
    [ faccessat2              => 's' ],
    [ getrandom               => 's' ],
    [ landlock_create_ruleset => 's' ],
    [ listen                  => qr/cannot listen on/ ],
    [ membarrier              => 's' ],
    [ memfd_create      => qr/cannot create the memory that processes share: .* \(memfd_create, mmap\)/ ],
    [ openat2           => 's' ],
    [ pidfd_open        => qr/pidfd_open\(2\) fails: .*Docker 20\.10/ ],
    [ pidfd_send_signal => 's' ],
    [ pipe2             => qr/cannot create a pipe/ ],
    [ prctl             => qr/refuses prctl\(2\)/ ],
    [ process_vm_readv  => 's' ],
    [ pselect6          => qr/select\(2\) fails/ ],
    [ recvfrom          => qr/recvfrom\(2\) fails/ ],
    [ recvmsg           => qr/recvmsg\(2\) fails/ ],
    [ rseq              => 's' ],
    [ seccomp           => 's' ],
    [ sendmsg           => qr/sendmsg\(2\) fails/ ],
    [ sendto            => qr/sendto\(2\) fails/ ],
    [ setsockopt        => qr/setsockopt\(2\) fails/ ],
    [ socketpair        => qr/cannot create a pair of sockets for an edge: .* \(socketpair\)/ ],
    [ timerfd_settime   => 's' ],
);

sub starts {
    my ( $call, $error, @args ) = @_;
    my $confine = Sirius::Test::Confine->without( $error => $call ) or die "$call: no filter";
    my $server  = Sirius::Test::Server->spawn(
        app     => $APP,
        command => [ $confine->path, $^X,           "$Sirius::Test::Server::ROOT/bin/sirius" ],
        args    => [ '--listen',     '127.0.0.1:0', @args ],
    );
    return { call => $call, error => $error, confine => $confine, server => $server };
}

sub check {
    my ( $case, $right, $name ) = @_;
    my $server = $case->{server};
    if ( ref $right ) {
        my $how = $server->wait_exit(20) || 'runs';
        like $how,           qr/\Aexit [12]\z/,    "$name: it ends";
        like $server->log,   $right,               'and says why';
        unlike $server->log, qr/ at \S+ line \d+/, 'in plain words';
        return $server->kill_hard;
    }
    ok until_true( 20, sub { $server->log =~ /ready after/ } ), "$name: it starts" or diag $server->log;
    is $server->ask('GET /')->body, "hello\n", 'and serves';
    return $server->kill_hard;
}

# A few at a time
my @cases = map {
    my ( $call, $right ) = @$_;
    map { [ $call, $_, $right ] } qw(EPERM ENOSYS)
} @CALLS;
while ( my @some = splice @cases, 0, 6 ) {
    my @started = map { starts( @{$_}[ 0, 1 ], qw(--workers 1) ) } @some;
    check( $started[$_], $some[$_][2], "$some[$_][0] fails by $some[$_][1]" ) for 0 .. $#some;
}
check( starts( $_->[0], 'EPERM', qw(--workers 0) ), $_->[1], "--workers 0, $_->[0]" )
    for [ pidfd_open => qr/pidfd_open\(2\) fails/ ], [ prctl => qr/refuses prctl\(2\)/ ],
    [ recvmsg => qr/recvmsg\(2\) fails|cannot|Operation not permitted/ ], [ seccomp => 's' ];

done_testing;
