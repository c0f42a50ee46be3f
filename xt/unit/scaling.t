use strict;
use warnings;
use Test::More;
use Sirius::Process::Scaling;

# the number of workers follows the load, and does not flap

my $now = 1000;
{
    no warnings 'redefine';
    *Sirius::Process::Scaling::now = sub { return $now };
}

sub looks {
    my ( $scaling, $number, $seconds, $waiting, $idle ) = @_;
    for ( 1 .. 2 * $seconds ) {
        $now += 0.5;
        $number = $scaling->look( $number, $waiting, $idle );
    }
    return $number;
}

my $fixed = Sirius::Process::Scaling->new( { workers => 4, workers_max => 4 } );
is looks( $fixed, 4, 60, 100, 0 ),  4, 'a fixed number stays';
is scalar( my @due = $fixed->due ), 0, 'and nobody looks';

my $scaling = Sirius::Process::Scaling->new( { workers => 2, workers_max => 16 } );
is scalar( @due = $scaling->due ), 1, 'there is a next look';
is looks( $scaling, 2, 0.5, 5, 0 ), 2, 'requests that wait at one look: not yet';
is looks( $scaling, 2, 0.5, 5, 0 ), 3, 'at two: more';
my $number = looks( $scaling, 3, 10, 50, 0 );
is $number,                               16, 'up to the most';
is looks( $scaling, $number, 29, 0, 10 ), 16, 'calm for less than 30 s: none goes';
is looks( $scaling, 16, 2, 0, 10 ),       15, 'then one';
is looks( $scaling, 15, 20, 0, 10 ),      11, 'and one every 5 s';
is looks( $scaling, 11, 300, 0, 2 ),      2,  'down to the least';
is looks( $scaling, 10, 300, 0, 1 ),      10, 'with one idle worker all stay';
is $scaling->look( 10, 50, 0 ),           10, 'not before the next look is due';

is looks( $scaling, 20, 10, 50, 0 ), 20, 'more than the most, which an operator wanted, stay under load';

done_testing;
