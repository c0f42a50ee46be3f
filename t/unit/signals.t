use strict;
use warnings;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::OS::Signals;

subtest 'A signal before the wait is not lost' => sub {
    my $signals = Sirius::OS::Signals->new(qw(TERM INT));
    kill TERM => $$;
    my $start = time;
    is_deeply [ $signals->wait(5) ], ['TERM'], 'right signal';
    cmp_ok time - $start, '<', 1, 'at once';
    kill INT => $$;
    is_deeply [ $signals->wait ], ['INT'], 'right signal';
    $signals->release;
};

subtest 'Time' => sub {
    my $signals = Sirius::OS::Signals->new('TERM');
    my $start   = time;
    is_deeply [ $signals->wait(0.05) ], ['ALRM'], 'time is over';
    cmp_ok time - $start, '>=', 0.04, 'not too early';
    is_deeply [ $signals->wait(0) ], ['ALRM'], 'no time at all';
    $signals->release;
};

subtest 'Descriptors' => sub {
    pipe my $read, my $write or die $!;
    my $pid     = "$$";                               # as text, once
    my $signals = Sirius::OS::Signals->new('TERM');
    $signals->watch($read);
    is_deeply [ $signals->wait(0.02) ], ['ALRM'], 'nothing yet';
    syswrite $write, 'x';
    is_deeply [ $signals->wait(5) ], ['IO'], 'something';
    is sysread( $read, my $buffer, 9 ), 1,     'read';
    is sysread( $read, $buffer,    9 ), undef, 'empty, without waiting';
    $signals->release;
    close $write;
    pass 'nobody is killed by its end';
};

subtest 'Everything as before' => sub {
    my $handler = sub { };
    local $SIG{TERM} = $handler;
    local $SIG{QUIT} = 'DEFAULT';
    local $SIG{INT}  = 'IGNORE';
    my $signals = Sirius::OS::Signals->new(qw(TERM INT QUIT));
    kill QUIT => $$;
    $signals->release;
    is $SIG{TERM}, $handler, 'own handler';
    is $SIG{INT},  'IGNORE', 'ignored';
    ok !defined $SIG{QUIT} || $SIG{QUIT} eq 'DEFAULT', 'default, and what was pending is gone';
    my $mask = POSIX::SigSet->new;
    POSIX::sigprocmask( POSIX::SIG_BLOCK(), POSIX::SigSet->new, $mask );
    ok !$mask->ismember($_), 'open' for POSIX::SIGTERM(), POSIX::SIGINT(), POSIX::SIGALRM(), POSIX::SIGPOLL();
};

for my $before (qw(DEFAULT IGNORE)) {
    subtest "In a child, TERM was $before" => sub {
        local $SIG{TERM} = $before;
        my $signals = Sirius::OS::Signals->new(qw(CHLD TERM));
        my $pid     = fork;
        if ( !$pid ) {
            sleep 0.1;    # TERM is here by now
            my $caught = 0;
            $signals->hand_over( TERM => sub { $caught++ } );
            POSIX::_exit( $caught ? 7 : 8 );
        }
        kill TERM => $pid;
        is_deeply [ $signals->wait(5) ], ['CHLD'], 'told of its end';
        waitpid $pid, 0;
        is $? >> 8, 7, 'a signal that came early is delivered later';
        $signals->release;
    };
}

subtest 'A thousand signals, each waited for' => sub {
    my $signals = Sirius::OS::Signals->new('TERM');
    my $parent  = $$;
    pipe my $read, my $write or die $!;
    my $pid = fork;
    if ( !$pid ) {
        close $write;
        while ( sysread $read, my $go, 1 ) { kill TERM => $parent }
        POSIX::_exit(0);
    }
    my $missed = 0;
    for ( 1 .. 1000 ) {
        syswrite $write, 'x';
        my @names = $signals->wait(5);
        $missed++ if "@names" ne 'TERM';
    }
    is $missed, 0, 'none missed';
    close $write;
    waitpid $pid, 0;
    $signals->release;
};

done_testing;
