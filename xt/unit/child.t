use strict;
use warnings;
use POSIX ();
use Test::More;
use Time::HiRes         qw(sleep time);
use Sirius::Base::Clock qw(now);
use Sirius::OS::Child;
use Sirius::OS::Reaper;

# Children: started, given signals, limited in time, waited for once

my @orphans;
my $reaper = Sirius::OS::Reaper->new( sub { push @orphans, [@_] } );

sub until_true {
    my $code  = shift;
    my $until = time + 20;
    while ( !$code->() && time < $until ) {
        $reaper->act;
        $reaper->reap;
        sleep 0.005;
    }
    return $code->();
}

sub child {
    my ( $code, %args ) = @_;
    my @ends;
    my $child = Sirius::OS::Child->fork( $code, on_end => sub { push @ends, $_[1] }, %args );
    $reaper->add($child);
    return $child, \@ends;
}

subtest 'A child that ends' => sub {
    my ( $child, $ends ) = child( sub { POSIX::_exit(3) } );
    cmp_ok $child->pid, '>', 1, 'has a PID';
    ok until_true( sub {@$ends} ), 'its end is told';
    is_deeply $ends, [ 3 << 8 ], 'once, with its status';
    ok $child->is_gone, 'it is gone';
    is $child->signal('KILL'), 0, 'and gets no signal any more: its PID may be another process';
    is_deeply [ $reaper->children ], [], 'nobody waits for it';
};

subtest 'Code that returns' => sub {
    my ( undef, $ends ) = child( sub {1} );
    ok until_true( sub {@$ends} ), 'ends its child';
    is $ends->[0], 1 << 8, 'with status 1';
};

subtest 'Several at once' => sub {
    my @status;
    my @children = Sirius::OS::Child->fork_all(
        map {
            my $status = $_;
            sub { POSIX::_exit($status) }
        } 1 .. 3
    );
    is scalar @children, 3, 'each code has a child';
    for my $child (@children) {
        $child->on_end( sub { push @status, $_[1] } );
        $reaper->add($child);
    }
    ok until_true( sub { @status == 3 } ), 'their ends are told';
    is_deeply [ sort @status ], [ map { $_ << 8 } 1 .. 3 ], 'each has run its own code';

    # A process of a user who may have one
    pipe my $read, my $write or die $!;
    my $alone = Sirius::OS::Child->fork( sub {
        system 'prlimit', '--nproc=1:1', '--pid', $$;
        POSIX::setuid(54_321) if !$>;
        my @none  = Sirius::OS::Child->fork_all( sub { }, sub { } );
        my $again = $!{EAGAIN} ? 'EAGAIN' : "$!";
        syswrite $write, @none . " $again\n";
        POSIX::_exit(0);
    } );
    $reaper->add($alone);
    close $write;
    is readline $read, "0 EAGAIN\n", 'the first that fails is the last, and the reason is told';
    ok until_true( sub { $alone->is_gone } ), 'there is no other';
};

subtest 'Limits' => sub {
    my ( $child, $ends ) = child( sub { sleep 60 } );
    my @told;
    $child->limit( late => now() + 60 );
    $child->limit( late => now() + 0.05, sub { push @told, shift->pid } );
    $child->limit( late => now() + 70 );
    is_deeply [ $child->due ], [ $child->limited('late') ], 'of one name the earliest holds';
    cmp_ok $child->limited('late') - now(), '<', 1, 'which is this';
    ok until_true( sub {@told} ), 'when it is over its code is called';
    is_deeply [ $reaper->due ], [], 'once';
    ok !@$ends, 'in place of its end';
    $child->limit( hook => now() );
    $child->unlimited('hook');
    $reaper->act;
    $child->limit( end => now() + 0.05 );
    ok until_true( sub {@$ends} ), 'without code it is killed';
    is $ends->[0], 9, 'by KILL';
    is_deeply [ $reaper->due ], [], 'and nothing is due for one that is gone';
};

subtest 'A group' => sub {
    pipe my $read, my $write or die $!;
    my ( $child, $ends ) = child(
        sub {
            my $grandchild = fork;
            syswrite $write, "x" if $grandchild;
            sleep 60;
        },
        group => 1
    );
    close $write;
    sysread $read, my $up, 1;
    $child->signal('KILL');
    ok until_true( sub {@$ends} ), 'has ended';
    is sysread( $read, $up, 1 ), 0, 'all of it';
};

subtest 'Waited for' => sub {
    my ( $child, $ends ) = child( sub { sleep 60 } );
    my $start = time;
    ok !$child->wait(0.05),          'it has not ended';
    ok !$child->wait( 60, sub {1} ), 'or by nobody who is in a hurry';
    cmp_ok time - $start, '<', 30, 'not longer than that';
    $child->signal('TERM');
    ok $child->wait(20), 'until it is gone';
    is_deeply $ends, [15], 'and that is told as well';
};

subtest 'Of somebody else' => sub {
    my $pid = fork;
    POSIX::_exit(5) if !$pid;
    ok until_true( sub {@orphans} ), 'a child that nobody has added';
    is_deeply \@orphans, [ [ $pid, 5 << 8 ] ], 'is waited for, too';
};

done_testing;
