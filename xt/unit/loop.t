use strict;
use warnings;
use Fcntl qw(F_GETFL O_NONBLOCK);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::OS::Loop;

# Does it sleep for all of its time?
sub waits {
    my ( $loop, $seconds ) = @_;
    my $start = time;
    $loop->wait( $seconds || 20 );
    return time - $start < ( $seconds || 10 ) - 0.005 ? 'not' : 'to the end';
}

subtest 'A signal before the wait is not lost' => sub {
    my $loop = Sirius::OS::Loop->new(qw(TERM INT));
    kill TERM => $$;
    my $start = time;
    is_deeply [ $loop->wait(60) ], ['TERM'], 'right signal';
    cmp_ok time - $start, '<', 30, 'before the time is over';
    kill INT => $$;
    is_deeply [ $loop->wait ], ['INT'], 'right signal';
    $loop->release;
};

subtest 'Time' => sub {
    my $loop  = Sirius::OS::Loop->new('TERM');
    my $start = time;
    is_deeply [ $loop->wait(0.05) ], [], 'time is over';
    cmp_ok time - $start, '>=', 0.04, 'not too early';
    is_deeply [ $loop->wait(0) ], [], 'no time at all';
    $loop->release;
};

subtest 'Descriptors' => sub {
    pipe my $read, my $write or die $!;
    my $loop = Sirius::OS::Loop->new('TERM');
    $loop->watch($read);
    is waits( $loop, 0.02 ), 'to the end', 'nothing yet';
    syswrite $write, 'x';
    is waits($loop), 'not', 'something';
    is waits($loop), 'not', 'which is there still';
    $loop->read( $read, \my $buffer );
    is $buffer,                      'x',          'read';
    is sysread( $read, $buffer, 9 ), undef,        'empty, without waiting';
    is waits( $loop, 0.02 ),         'to the end', 'nothing more';
    syswrite $write, 'y';
    close $write;
    is waits($loop), 'not', 'its end';
    $loop->read( $read, \$buffer );
    is $buffer,              'xy',         'and what came before it';
    is waits( $loop, 0.02 ), 'to the end', 'it is not told of twice';
    $loop->release;
};

subtest 'The end of a pipe that others read' => sub {
    pipe my $read, my $write or die $!;
    my $loop = Sirius::OS::Loop->new('TERM');
    $loop->watch( $read, 'end' );
    ok !( fcntl( $read, F_GETFL, 0 ) & O_NONBLOCK ), 'it is left as it is';
    syswrite $write, 'x';
    is waits( $loop, 0.02 ), 'to the end', 'what is in it is for others';
    close $write;
    is waits($loop), 'not', 'its end';
    $loop->unwatch($read);
    is waits( $loop, 0.02 ), 'to the end', 'not watched any more';
    $loop->release;
};

subtest 'Room in a pipe' => sub {
    pipe my $read, my $write or die $!;
    my $loop = Sirius::OS::Loop->new('TERM');
    $loop->watch( $write, 'write' );
    is waits($loop), 'not', 'there is some';
    1 while syswrite $write, 'x' x 4096;
    is waits( $loop, 0.02 ), 'to the end', 'none is left';
    sysread $read, my $buffer, 65_536;
    is waits($loop), 'not', 'again';
    $loop->release;
};

subtest 'Signals and a descriptor that is never empty' => sub {
    pipe my $read, my $write or die $!;
    syswrite $write, 'x';
    my $loop = Sirius::OS::Loop->new('TERM');
    $loop->watch($read);
    is waits($loop), 'not', 'it is ready';
    kill TERM => $$;
    is_deeply [ $loop->wait(5) ], ['TERM'], 'the signal is heard all the same';
    $loop->release;
};

subtest 'A timer of the application' => sub {
    my $loop = Sirius::OS::Loop->new('TERM');
    alarm 1;
    is_deeply [ $loop->wait(1.5) ], [], 'says nothing and kills nobody';
    $loop->release;
};

{

    package Member;
    sub new { my ( $class, $at ) = @_; return bless { acts => 0, at => $at }, $class }

    sub act {
        my $self = shift;
        $self->{acts}++;
        delete $self->{at} if $self->{at} <= Sirius::Base::Clock::now();
        return;
    }

    sub due {
        return grep {defined} shift->{at};
    }
}

subtest 'Members' => sub {
    my $loop = Sirius::OS::Loop->new('TERM');
    my ( $soon, $late ) = map { Member->new( Sirius::Base::Clock::now() + $_ ) } 0.05, 60;
    $loop->add( $soon, $late );
    my $start = time;
    is_deeply [ $loop->wait ], [], 'no signal';
    cmp_ok time - $start, '>=', 0.04, 'not before one is due';
    $loop->act;
    ok !$soon->due, 'that has acted';
    is $late->{acts}, 1, 'all have been asked';
    undef $late;
    is waits( $loop, 0.02 ), 'to the end', 'one that is gone is forgotten';
    $loop->forked;
    $loop->act;
    is $soon->{acts}, 1, 'in a child nobody is asked';
    $loop->release;
};

subtest 'Code of the application in between' => sub {
    my ( $alarms, $children ) = ( 0, 0 );
    local $SIG{ALRM} = sub { $alarms++ };
    local $SIG{CHLD} = sub { $children++ };
    my $loop = Sirius::OS::Loop->new(qw(CHLD HUP TERM));
    kill HUP => $$;
    my $lived = eval {
        $loop->lend( sub {
            alarm 1;
            sleep 20;
            system 'true';
            kill HUP => $$;
            $SIG{CHLD} = sub { $children += 10 };
            alarm 1;
            die "over\n";
        } );
        1;
    };
    is $lived,  undef,    'it dies';
    is $@,      "over\n", 'as its code did';
    is $alarms, 1,        'its timer has its handler';
    is_deeply [ $loop->wait(0) ], ['HUP'], 'what is not for it waits, once';
    is waits( $loop, 1.2 ), 'to the end', 'no timer of it is left';
    is $alarms,             1,            'which nobody heard';
    kill TERM => $$;
    is_deeply [ $loop->wait(5) ], ['TERM'], 'all as before';
    my $pid = fork;

    if ( !$pid ) {
        $SIG{TERM} = 'IGNORE';
        $loop->lend( sub { kill TERM => $$; sleep 20 } );
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    is( ( $? & 127 ), POSIX::SIGTERM(), 'what stops a program ends it at once' );
    $loop->release;
    $children = 0;
    $SIG{CHLD}->();
    is $children, 10, 'the handler that it has set is that of the application';
};

subtest 'Everything as before' => sub {
    my $handler = sub { };
    local $SIG{TERM} = $handler;
    local $SIG{QUIT} = 'DEFAULT';
    local $SIG{INT}  = 'IGNORE';
    my $loop = Sirius::OS::Loop->new(qw(TERM INT QUIT));
    kill QUIT => $$;
    $loop->release;
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
        my $loop = Sirius::OS::Loop->new(qw(CHLD TERM));
        my $pid  = fork;
        if ( !$pid ) {
            my ( $caught, $pending ) = ( 0, POSIX::SigSet->new );
            do { sleep 0.01; POSIX::sigpending($pending) } until $pending->ismember( POSIX::SIGTERM() );
            $loop->hand_over( { TERM => sub { $caught++ } } );
            POSIX::_exit( $caught ? 7 : 8 );
        }
        kill TERM => $pid;
        is_deeply [ $loop->wait(5) ], ['CHLD'], 'told of its end';
        waitpid $pid, 0;
        is $? >> 8, 7, 'a signal that came early is delivered later';
        $loop->release;
    };
}

subtest 'A thousand signals, each waited for' => sub {
    my $loop   = Sirius::OS::Loop->new('TERM');
    my $parent = $$;
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
        my @names = $loop->wait(5);
        $missed++ if "@names" ne 'TERM';
    }
    is $missed, 0, 'none missed';
    close $write;
    waitpid $pid, 0;
    $loop->release;
};

done_testing;
