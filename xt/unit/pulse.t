use strict;
use warnings;
use Test::More;

# What an edge that does not respond is taken for, by its state, its CPU time and how long it lasts. The clock
# and the kernel are played

my ( $clock, %progress, %turned, @lines );

BEGIN {
    require Sirius::Base::Clock;
    require Sirius::Edge::Shared;
    require Sirius::OS::Proc;
    require Sirius::Log;
    no warnings 'redefine';
    *Sirius::Base::Clock::now     = sub { return $clock };
    *Sirius::Edge::Shared::turned = sub { return $turned{ $_[2] } };
    *Sirius::OS::Proc::progress   = sub { return @{ $progress{ $_[1] } || [] } };
    *Sirius::OS::Proc::stands     = sub { return 'somewhere' };

    for my $level (qw(note warn error)) {
        no strict 'refs';
        *{"Sirius::Log::$level"} = sub { push @lines, "$level: $_[1]" };
    }
}
use Sirius::Edge::Pulse;

# An edge, and what it is told
{

    package Some::Place;
    sub bell     { return $_[0]{bell} }
    sub child    { return $_[0] }
    sub is_ready { return $_[0]{ready} }
    sub number   { return 0 }
    sub pid      { return 100 }
    sub signal   { push @{ $_[0]{signals} }, $_[1]; return }

    package Some::Group;
    sub common { return 0 }
    sub hangs  { push @{ $_[0]{hangs} }, $_[2]; return }
    sub keeper { return $_[0]{keeper} }
    sub places { return $_[0]{place} }
    sub said   { return '' }

    package Some::Keeper;
    sub child  { return $_[0] }
    sub pid    { return 200 }
    sub signal { push @{ $_[0]{signals} }, $_[1]; return }
}

# Of a server that has run for a while
sub begin {
    my %place = @_;
    open my $bell, '>', '/dev/null' or die "/dev/null: $!";
    ( $clock, @lines ) = 1000;
    %progress = ( 100 => [ 'S', 1, 10 ] );
    $turned{0} = 5;
    my $place = bless { bell  => $bell, ready => 1, %place }, 'Some::Place';
    my $group = bless { place => $place }, 'Some::Group';
    my $pulse = Sirius::Edge::Pulse->new($group);
    return ( $pulse, $group, $place );
}

# Lets time pass; $code says each second what the edge does
sub passes {
    my ( $pulse, $seconds, $code ) = @_;
    for ( 1 .. $seconds ) {
        $clock++;
        $code->($_) if $code;
        $pulse->act;
    }
    return;
}

subtest 'an edge that turns its loop when it is asked' => sub {
    my ( $pulse, $group, $place ) = begin();
    passes( $pulse, 300, sub { $turned{0} = $clock if $_[0] % 5 == 0 } );
    is_deeply [ \@lines, $place->{signals} ], [ [], undef ], 'nothing is said or done';
    ok !$pulse->hangs(100), 'it does not hang';
    is_deeply $group->{hangs}, [0], 'as others are told';
};

for my $case (
    [ 'stopped',                          10, 20, sub { [ 'T', 1,             10 ] } ],
    [ 'sleeping in something else',       10, 20, sub { [ 'S', 1,             10 ] } ],
    [ 'in an endless loop',               10, 25, sub { [ 'R', 1 + $_[0],     10 ] } ],
    [ 'in an endless loop on half a CPU', 20, 45, sub { [ 'R', 1 + $_[0] / 2, 10 ] } ],
    [ 'waiting for a disk',               60, 75, sub { [ 'D', 1,             10 ] } ],
    [ 'moving, but never done',           60, 75, sub { [ 'S', 1,             10 + $_[0] ] } ],
    [ 'unknown, as /proc is not mounted', 60, 75, sub { [] } ],
    [ 'stopped before it was ready',      10, 20, sub { [ 'T', 0, 1 ] }, ready => 0 ],
    [ 'waiting for keys at its start',    60, 75, sub { [ 'S', 0, 1 ] }, ready => 0 ],
    )
{
    my ( $name, $least, $most, $state, %place ) = @$case;
    subtest $name => sub {
        my ( $pulse, $group, $place ) = begin(%place);
        my $at;
        passes(
            $pulse, $most,
            sub {
                $progress{100} = $state->( $_[0] );
                $at //= $_[0] - 1 if $place->{signals};
            }
        );
        is_deeply $place->{signals}, ['KILL'], 'is killed, once';
        cmp_ok $at, '>=', $least, "not within $least seconds";
        is scalar( grep {/\Awarn: edge 100 has not responded for/} @lines ), 1, 'it was named before';
        is scalar( grep {/\Aerror: edge 100 has not responded .* killed/} @lines ), 1,
            'and when it is killed';
        ok $pulse->hangs(100), 'it hangs';
        cmp_ok $group->{hangs}[-1], '>', 1000, 'since when';
    };
}

for my $case (
    [ 'held by a debugger',             sub { [ 't', 1,               10 ] }, 'not replaced, as a debugger' ],
    [ 'ready to run on a busy machine', sub { [ 'R', 1 + $_[0] / 100, 10 + $_[0] ] }, '' ],
    [ 'about to be reaped',             sub { [ 'Z', 1,               10 ] },         undef ],
    )
{
    my ( $name, $state, $says ) = @$case;
    subtest $name => sub {
        my ( $pulse, $group, $place ) = begin();
        passes( $pulse, 300, sub { $progress{100} = $state->( $_[0] ) } );
        is $place->{signals}, undef, 'is never killed';
        return is_deeply \@lines, [], 'nor named' if !defined $says;
        is scalar @lines, 1, 'is named once';
        like $lines[0], qr/\Awarn: edge 100 has not responded for \d s: somewhere; .*\Q$says\E/,
            'with the reason';
    };
}

subtest 'a slow disk, and then it goes on' => sub {
    my ( $pulse, $group, $place ) = begin();
    passes( $pulse, 40, sub { $progress{100} = [ 'D', 1, 10 ] } );
    ok $pulse->hangs(100), 'it hangs';
    passes( $pulse, 10, sub { $turned{0} = $clock; $progress{100} = [ 'S', 1, 11 ] } );
    ok !$pulse->hangs(100), 'it does not any more';
    is $group->{hangs}[-1], 0, 'as others are told';
    like $lines[-1], qr/\Anote: edge 100 responds again after \d+ s\z/, 'and the log says';
    is $place->{signals}, undef, 'it was not killed';
};

subtest 'a machine that was suspended, again and again' => sub {
    my ( $pulse, $group, $place ) = begin();
    for ( 1 .. 50 ) {
        $clock += 600;
        $pulse->act;
    }
    is_deeply [ \@lines, $place->{signals} ], [ [], undef ], 'what nobody has seen does not count';
};

subtest 'a keeper' => sub {
    my ( $pulse, $group ) = begin();
    my $turns = sub { $turned{0} = $clock };
    $group->{keeper} = bless {}, 'Some::Keeper';
    passes( $pulse, 100, sub { $turns->(); $progress{200} = [ 'S', 1, 10 ] } );
    is $group->{keeper}{signals}, undef, 'that sleeps';
    passes( $pulse, 8, sub { $turns->(); $progress{200} = [ 'T', 1, 10 ] } );
    passes( $pulse, 4, sub { $turns->(); $progress{200} = [ 'S', 1, 10 ] } );
    is $group->{keeper}{signals}, undef, 'that was stopped for a moment';
    passes( $pulse, 30, sub { $turns->(); $progress{200} = [ 'T', 1, 10 ] } );
    is_deeply $group->{keeper}{signals}, ['KILL'], 'that stays stopped is killed, once';
    like $lines[-1], qr/\Aerror: keeper 200 has not responded for \d+ s and is killed: somewhere\z/,
        'by its name';
};

done_testing;
