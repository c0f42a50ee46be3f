use strict;
use warnings;
use Test::More;
use Sirius::Dev::Echo;

# Changes that the application itself may have made, and how long they wait

sub pauses {
    my ( $echo, $times, @change ) = @_;
    return join q( ), map { $echo->changed(@change) } 1 .. $times;
}

subtest 'the same file, again and again' => sub {
    my $echo = Sirius::Dev::Echo->new;
    is pauses( $echo, 11, 1, '/a' ), '0 0 0 0 0 1 2 4 8 16 32', 'waits from the sixth time on';
    is $echo->pause,                 32,                        'the last one';
    is $echo->times,                 11,                        'how many';
    is_deeply [ $echo->paths ], ['/a'], 'of what';
    ok $echo->to_tell,         'to be told';
    ok !$echo->to_tell,        'once';
    ok $echo->has('/a'),       'is known';
    ok !$echo->has(qw(/a /b)), 'others are not';
    is pauses( $echo, 6, 1, '/a' ), '64 128 256 300 300 300', 'not for ever';
};

subtest 'what ends the row' => sub {
    my $echo = Sirius::Dev::Echo->new;
    pauses( $echo, 7, 1, '/a' );
    is $echo->changed( 0, '/a' ),   0,       'a change while the application is idle';
    is pauses( $echo, 3, 1, '/a' ), '1 2 4', 'the pauses begin anew';
    $echo = Sirius::Dev::Echo->new;
    pauses( $echo, 5, 1, '/a' );
    $echo->changed( 0, '/c' );
    is pauses( $echo, 6, 1, '/a' ),     '0 0 0 0 0 1', 'before it is known, all begins anew';
    is $echo->changed( 1, '/b' ),       0,             'another file';
    is pauses( $echo, 5, 1, '/b' ),     '0 0 0 0 1',   'is another row';
    is $echo->changed( 1, '/b', '/c' ), 2,             'one more file does not end it';
    is $echo->changed( 1, '/c' ),       4,             'nor does one less';
};

subtest 'an application that is never at work' => sub {
    my $echo = Sirius::Dev::Echo->new;
    is pauses( $echo, 20, 0, '/a' ), join( q( ), (0) x 20 ), 'may be saved as often as one likes';
    ok !$echo->has('/a'), 'nothing is known of it';
};

done_testing;
