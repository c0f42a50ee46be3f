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
    [ columns  => 'GET /',             5 ],
    [ columns  => "Stra\x{df}e",       6 ],
    [ columns  => "\x{4e2d}\x{ff21}a", 5 ],
    [ columns  => "e\x{301}\x{4e2d}",  3 ],
    )
{
    my ( $method, $value, $want ) = @$case;
    is( Sirius::Base::Text->$method($value), $want, "$method: $want" );
}
is( Sirius::Base::Text->cut( "a\x{4e2d}e\x{301}b", $_->[0] ), $_->[1], "cut to $_->[0] columns" )
    for [ 9, "a\x{4e2d}e\x{301}b" ], [ 4, "a\x{4e2d}e\x{301}" ], [ 3, "a\x{4e2d}" ], [ 2, 'a' ], [ 0, '' ];
is( Sirius::Base::Text->cut( 'abc', 2 ), 'ab', 'of ASCII' );

# What a program with that locale prints
sub readable {
    my ( $locale, $text ) = @_;
    local $ENV{LC_ALL} = $locale;
    my $ords = join ',', map {ord} split //, $text;
    return
        `$^X -Iblib/lib -Ilib -MSirius::Base::Text -e 'print join q(,), map {ord} split //, Sirius::Base::Text->readable( join q(), map {chr} $ords )'`;
}
{
    my $text = "Stra\x{df}e \x{4e2d}\e[2J\x{9b}1m\n\x{202e}\x{2028}";
    my $said = sub {
        return join '', map {chr} split /,/, readable(@_);
    };
    is $said->( 'C', $text ), 'Stra\xdfe \x{4e2d}\x1b[2J\x9b1m\x0a\x{202e}\x{2028}',
        'in ASCII: all is escaped';
SKIP: {
        skip 'there is no locale C.UTF-8', 1 if `LC_ALL=C.UTF-8 locale charmap 2>&1` ne "UTF-8\n";
        is $said->( 'C.UTF-8', $text ), "Stra\x{df}e \x{4e2d}" . '\x1b[2J\x9b1m\x0a\x{202e}\x{2028}',
            'in UTF-8: what could control a terminal';
    }
}
is( Sirius::Base::Text->whole_seconds('2h'), 7200,  'whole seconds' );
is( Sirius::Base::Text->whole_seconds($_),   undef, "not $_" ) for qw(0.5 500ms -1 x);

done_testing;
