use strict;
use warnings;
use Test::More;
use Sirius::Base::Text;

for my $case (
    [ age      => -1,                  '0.0 s' ],
    [ age      => 7.24,                '7.2 s' ],
    [ age      => 99.9,                '99 s' ],
    [ age      => 4000,                '66 min' ],
    [ age      => 7384,                '2 h 3 min' ],
    [ age      => 345_600,             '4 d 0 h' ],
    [ bytes    => 0,                   '0 B' ],
    [ bytes    => 999,                 '999 B' ],
    [ bytes    => 1000,                '1.0 KB' ],
    [ bytes    => 34_603_008,          '33 MB' ],
    [ bytes    => 2**60,               '1024 PB' ],
    [ duration => 0,                   '0 us' ],
    [ duration => 0.000016,            '16 us' ],
    [ duration => 0.0009996,           '1.0 ms' ],
    [ duration => 0.0123,              '12 ms' ],
    [ duration => 0.9996,              '1.0 s' ],
    [ duration => 4000,                '66 min' ],
    [ harmless => 'GET /a b~',         'GET /a b~' ],
    [ harmless => "\e[2J\n\x7f\x9b1m", '\x1b[2J\x0a\x7f\x9b1m' ],
    [ harmless => "\x{263a}",          '\x{263a}' ],
    )
{
    my ( $method, $value, $want ) = @$case;
    is( Sirius::Base::Text->$method($value), $want, "$method: $want" );
}
is( Sirius::Base::Text->whole_seconds('2h'), 7200,  'whole seconds' );
is( Sirius::Base::Text->whole_seconds($_),   undef, "not $_" ) for qw(0.5 500ms -1 x);

done_testing;
