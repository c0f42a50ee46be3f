use strict;
use warnings;
use Test::More;
use Sirius::Base::Backoff;

my $now = 1000;
{
    no warnings 'redefine';
    *Sirius::Base::Backoff::now = sub { return $now };
}

subtest 'What never gets ready' => sub {
    my $backoff = Sirius::Base::Backoff->new( interval => 1 );
    is $backoff->at,                                  0,                     'the first at once';
    is join( q( ), map { $backoff->failed } 1 .. 8 ), '1 2 4 8 16 30 30 30', 'ever later, to half a minute';
    is $backoff->at,                                  1030,                  'from now on';
    is $backoff->failing,                             8,                     'so often';
    $backoff->ready;
    is $backoff->failed, 1, 'once one is ready it begins anew';
};

subtest 'The first failure is free' => sub {
    my $backoff = Sirius::Base::Backoff->new( interval => 1, free => 1 );
    is join( q( ), map { $backoff->failed } 1 .. 7 ), '0 1 2 4 8 16 30', 'at once, then ever later';
};

subtest 'What was ready' => sub {
    my $backoff = Sirius::Base::Backoff->new( interval => 5 );
    is $backoff->died( age => 6 ), 0, 'and has lived long is replaced at once';
    is $backoff->died( age => 4 ), 5, 'and died soon, after a while';
    is $backoff->at, 1005, 'from now on';
    my @delays = map { $backoff->died( age => 1, killed => 1, among => 2 ) } 1 .. 5;
    is "@delays", '0 0 0 0 5', 'killed from outside: at once, up to twice as many as there are';
    $now += 10;
    is $backoff->died( age => 1, killed => 1, among => 2 ), 0, 'in each interval';
};

subtest 'Two starts' => sub {
    my $backoff = Sirius::Base::Backoff->new( interval => 1, pause => 3 );
    $backoff->started;
    is $backoff->at, $now + 3, 'have a pause between them';
    $backoff->skip;
    cmp_ok $backoff->at, '<', $now, 'which can be skipped';
};

done_testing;
