use strict;
use warnings;
use Test::More;
use Sirius::OS::Child;
use Sirius::Process::Recycling;
use Sirius::Process::WorkerHandle;

# Workers of one age do not go in one moment

sub worker {
    return Sirius::Process::WorkerHandle->new( Sirius::OS::Child->new( 1, since => 1000 ), @_ );
}

my $conf      = { max_lifetime => 100, max_rss => 0 };
my $recycling = Sirius::Process::Recycling->new($conf);
my %second;
for ( 1 .. 10_000 ) {
    my $worker = worker();
    $recycling->begin($worker);
    $second{ int $worker->expires }++;
}
is_deeply [ sort { $a <=> $b } keys %second ], [ 1090 .. 1099 ], 'each second of the last tenth of the time';
is_deeply [ grep { $_ > 2500 } values %second ], [],             'in none of them a quarter of the workers';
is_deeply [ $recycling->due( worker( expires => 1095, retiring => 1 ) ) ], [],
    'who goes already is not waited for';
is_deeply [ $recycling->due( worker( expires => 1095 ) ) ], [1095], 'nobody looks before it is due';

my $worker = worker();
Sirius::Process::Recycling->new( {} )->begin($worker);
is $worker->expires, undef, 'without the option they stay';

done_testing;
