use strict;
use warnings;
use lib 't/lib';
use JSON::PP ();
use Test::More;
use Sirius::Admin::History;
use Sirius::Test::Snapshot;

# The last five minutes that the admin port keeps: what a sample says, and that there are never more of them

my $EVERY = Sirius::Admin::History::EVERY();

# A snapshot so many seconds after the first, with so many requests more, of them so many errors
sub at {
    my ( $seconds, $requests, $errors, %more ) = @_;
    my $snapshot = Sirius::Test::Snapshot->of( now => 5000 + $seconds, %more );
    $snapshot->{totals}{requests}     += $requests;
    $snapshot->{totals}{responses}{2} += $requests - $errors;
    $snapshot->{totals}{responses}{5} += $errors;
    $snapshot->{latency} = Sirius::Test::Snapshot->histogram( 12_000 + $requests, 0.004 );
    return $snapshot;
}

sub shown {
    my $history = shift;
    my $answer  = JSON::PP->new->utf8->decode( $history->json );
    my @names   = @{ $answer->{names} };
    return map { my %sample; @sample{@names} = @$_; \%sample } @{ $answer->{samples} };
}

subtest 'A sample' => sub {
    my $history = Sirius::Admin::History->new( started => 1700 );
    is_deeply [ shown($history) ], [], 'none at first';
    $history->look( at( 0, 0, 0 ) );
    my ($first) = shown($history);
    is_deeply $first,
        {
        active     => 10,
        at         => 5000,
        busy       => 1,
        error_rate => undef,
        errors     => 50,
        open       => 40,
        ( map { $_ => undef } qw(p50 p90 p99 rate) ),
        queued    => 5,
        requests  => 12_000,
        responses => 12_000,
        started   => 1700,
        workers   => 4,
        },
        'the first has no rates';
    $history->look( at( 5, 100, 20 ) );
    my $second = ( shown($history) )[1];
    is $second->{rate},       20, 'requests a second';
    is $second->{error_rate}, 4,  'errors a second';
    cmp_ok $second->{p50}, '>', 0.002, 'a median';
    cmp_ok $second->{p50}, '<', 0.006, 'of that time';
    my $files = at( 10, 100, 20 );
    $files->{totals}{files} += 50;
    my $other = Sirius::Admin::History->new( started => 1700 );
    $other->look($_) for at( 5, 100, 20 ), $files;
    is + ( shown($other) )[1]{rate}, 10, 'files of --static are requests, too';
    $history->look( at( 10, 100, 20 ) );
    my $third = ( shown($history) )[2];
    is_deeply [ @{$third}{qw(rate error_rate p50 p99)} ], [ 0, 0, undef, undef ], 'nothing came';
};

subtest 'It does not grow' => sub {
    my $history = Sirius::Admin::History->new;
    for my $n ( 0 .. 500 ) { $history->look( at( $n * $EVERY, $n, 0, workers => [ ( {} ) x 40 ] ) ) }
    my @samples = shown($history);
    is scalar @samples,  61,                        'five minutes';
    is $samples[-1]{at}, 5000 + 500 * $EVERY,       'the last ones';
    is $samples[0]{at},  5000 + 500 * $EVERY - 300, 'in order';
    cmp_ok length $history->state, '<=', 8192,   'it fits into its place';
    cmp_ok length $history->json,  '<',  16_000, 'and into an answer';
    for ( 1 .. 200 ) { $history->look( at( 2500, 0, 0 ) ) }
    cmp_ok scalar $history->samples, '<=', 61, 'also when the clock stands still';
};

subtest 'From one process to the next' => sub {
    my $one = Sirius::Admin::History->new( started => 1700 );
    $one->look( at( $_ * 5, $_ * 7, $_ ) ) for 0 .. 9;
    my $state = $one->state;
    my $two   = Sirius::Admin::History->new( started => 1700 );
    $two->restore( $state, 5050 );
    is $two->json, $one->json, 'the same';
    $two->look( at( 50, 100, 0 ) );
    is scalar $two->samples, 11, 'and on';

    my $late = Sirius::Admin::History->new( started => 1700 );
    $late->restore( $state, 5000 + 320 );
    is scalar $late->samples, 6, 'what is too old is left out';
    my $other = Sirius::Admin::History->new( started => 1800 );
    $other->restore( $state, 5050 );
    is scalar $other->samples, 0, 'so is what is of another server';

    my @doubles = unpack 'd*', $state;
    my %hostile = (
        'nothing'           => '',
        'odd bytes'         => substr( $state, 1 ),
        'no numbers'        => pack( 'd*', ('nan') x @doubles ),
        'infinite'          => pack( 'd*', ( 9**9**9 ) x @doubles ),
        'a future'          => pack( 'd*', 1e9, @doubles[ 1 .. $#doubles ] ),
        'not in order'      => $state . $state,
        'random'            => join( '', map { chr int rand 256 } 1 .. length $state ),
        'more than allowed' => $state x 68,
    );

    for my $name ( sort keys %hostile ) {
        my $history = Sirius::Admin::History->new( started => 1700 );
        $history->restore( $hostile{$name}, 5050 );
        cmp_ok scalar $history->samples, '<=', 61, "$name: no more than there may be";
        ok eval { JSON::PP->new->utf8->decode( $history->json ) }, 'and it is JSON';
    }
};

done_testing;
