use strict;
use warnings;
use File::Temp qw(tempdir);
use Socket     qw(AF_UNIX MSG_DONTWAIT SOCK_DGRAM pack_sockaddr_un);
use Test::More;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime sleep);
use Sirius::Service::Notify;

my $dir = tempdir( CLEANUP => 1 );
delete @ENV{ grep {/\A(?:NOTIFY|WATCHDOG)_/} keys %ENV };

# What systemd would have
sub notify_socket {
    my $address = shift;
    socket my $fh, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!";
    bind $fh, pack_sockaddr_un( $address =~ s/\A\@/\0/r ) or die "bind $address: $!";
    return $fh;
}

sub received {
    my $fh = shift;
    my @messages;
    while ( defined recv $fh, my $text, 65_536, MSG_DONTWAIT ) {
        push @messages, $text;
    }
    return @messages;
}

sub in_env {
    my ( $env, $code ) = @_;
    local @ENV{ keys %$env } = values %$env;
    return $code->();
}

sub left {
    return join ' ', sort grep {/\A(?:NOTIFY|WATCHDOG)_/} keys %ENV;
}

subtest 'Without systemd' => sub {
    my $systemd = Sirius::Service::Notify->new;
    is_deeply [ $systemd->due ],                   [], 'nothing is due';
    is_deeply [ $systemd->notify('READY=1') ],     [], 'nobody is told';
    is_deeply [ $systemd->act ],                   [], 'no ping';
    is_deeply [ Sirius::Service::Notify->forget ], [], 'nothing to forget';
};

for my $address ( "$dir/notify", $^O eq 'linux' ? "\@sirius-test-$$" : () ) {
    subtest "NOTIFY_SOCKET=$address" => sub {
        my $socket  = notify_socket($address);
        my $systemd = in_env(
            { NOTIFY_SOCKET => $address },
            sub {
                my $systemd = Sirius::Service::Notify->new;
                is left(), '', 'children will not know of it';
                $systemd;
            }
        );
        $systemd->notify( 'READY=1', "MAINPID=$$" );
        $systemd->notify("STATUS=two\nlines");
        $systemd->notify("STATUS=\x{263a}");
        is_deeply [ received($socket) ],
            [ "READY=1\nMAINPID=$$", 'STATUS=two lines', "STATUS=\xe2\x98\xba" ], 'one message for each call';
        is_deeply [ $systemd->due ], [], 'no watchdog';
        Sirius::Service::Notify->restore( $systemd->state )->notify('READY=1');
        is_deeply [ received($socket) ], ['READY=1'], 'the same in another program';
    };
}

subtest 'A message that nobody takes neither blocks nor kills' => sub {
    my $socket  = notify_socket("$dir/full");
    my $systemd = in_env( { NOTIFY_SOCKET => "$dir/full" }, sub { Sirius::Service::Notify->new } );
    ok eval { $systemd->notify( 'STATUS=' . 'x' x 5000 ) for 1 .. 1000; 1 }, 'the queue is full';
    cmp_ok scalar( () = received($socket) ), '>', 0, 'what went in is there';
    close $socket;
    ok eval { $systemd->notify('READY=1'); 1 }, 'nobody listens';
    unlink "$dir/full";
    $! = 7;
    my $alive = eval { $systemd->notify('READY=1'); 1 };
    is 0 + $!, 7, 'errno is the same';
    ok $alive, 'nothing is there';

    for my $bad ( 'relative', '', 'vsock:2:1', '/' . 'x' x 300 ) {
        my $other = in_env( { NOTIFY_SOCKET => $bad }, sub { Sirius::Service::Notify->new } );
        ok eval { $other->notify('READY=1'); 1 }, "'" . substr( $bad, 0, 20 ) . q(': ignored);
    }
};

subtest 'Watchdog' => sub {
    my $socket  = notify_socket("$dir/watchdog");
    my %env     = ( NOTIFY_SOCKET => "$dir/watchdog", WATCHDOG_USEC => 400_000 );
    my $before  = clock_gettime(CLOCK_MONOTONIC);
    my $systemd = in_env( { %env, WATCHDOG_PID => $$ }, sub { Sirius::Service::Notify->new } );
    my ($due)   = $systemd->due;
    cmp_ok $due, '>=', $before + 0.2,                               'due after half of it';
    cmp_ok $due, '<=', clock_gettime(CLOCK_MONOTONIC) + 0.2 + 1e-6, 'and not later';
    $systemd->{due} = clock_gettime(CLOCK_MONOTONIC) + 3600;
    $systemd->act;
    is_deeply [ received($socket) ], [], 'not before it is due';
    $systemd->{due} = $due;
    sleep 0.01 while clock_gettime(CLOCK_MONOTONIC) < $due;
    $systemd->act;
    is_deeply [ received($socket) ], ['WATCHDOG=1'], 'when it is due';
    cmp_ok( ( $systemd->due )[0], '>=', $due + 0.2, 'the next' );
    is_deeply [ Sirius::Service::Notify->restore( $systemd->state )->due ], [ $systemd->due ],
        'the same in another program';

    my $fine = 0;
    $systemd->only_if( sub { return $fine } );
    for my $told ( 0, 1 ) {
        ( $fine, $systemd->{due} ) = ( $told, clock_gettime(CLOCK_MONOTONIC) );
        $systemd->act;
        is_deeply [ received($socket) ], [ ('WATCHDOG=1') x $told ],
            $told ? 'all is well' : 'something is wrong';
        cmp_ok( ( $systemd->due )[0], '>', clock_gettime(CLOCK_MONOTONIC), 'it is asked again' );
    }
    is ref $systemd->state->{if}, '', 'no code is passed on';

    my $any = in_env( {%env}, sub { Sirius::Service::Notify->new } );
    is scalar( () = $any->due ), 1, 'without WATCHDOG_PID: ours';
    for my $case (
        [ WATCHDOG_PID  => getppid ],
        [ WATCHDOG_USEC => 0 ],
        [ WATCHDOG_USEC => 'x' ],
        [ NOTIFY_SOCKET => '' ]
        )
    {
        my $other = in_env( { %env, @$case }, sub { Sirius::Service::Notify->new } );
        is_deeply [ $other->due ], [], "@$case: none";
    }
};

subtest 'Variables of another process' => sub {
    my %env = map { $_ => 1 } qw(NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID);
    in_env( \%env, sub { Sirius::Service::Notify->forget; is left(), '', 'forgotten' } );
};

done_testing;
