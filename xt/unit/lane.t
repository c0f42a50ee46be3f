use strict;
use warnings;
use Test::More;
use Sirius::Config::Lane;
use Sirius::Config::Values;
use Sirius::Edge::Setup;

# --lane: what its values mean, and what is wrong with others

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };

sub one { return Sirius::Config::Lane->parse(shift)->[0] }

sub wrong {
    my $value = shift;
    return eval { Sirius::Config::Lane->parse($value); 1 } ? 'accepted' : $@;
}

subtest 'values' => sub {
    is_deeply one('/report=2'),        { text => '/report',      limit => 2 }, 'a prefix';
    is_deeply one('/report/ = 2'),     { text => '/report/',     limit => 2 }, 'blanks around the sign';
    is_deeply one('/a=b=2'),           { text => '/a=b',         limit => 2 }, 'a prefix with an equals sign';
    is_deeply one('/=3'),              { text => '/',            limit => 3 }, 'all';
    is_deeply one('/.well-known=1'),   { text => '/.well-known', limit => 1 }, 'a name with a dot';
    is_deeply one('POST /import=1'),   { text => 'POST /import', limit => 1 }, 'a method';
    is_deeply one('post  /import=1'),  { text => 'POST /import', limit => 1 }, 'which is in capitals';
    is_deeply one('X-Class: batch=2'), { text => 'X-Class: batch', limit => 2 }, 'a field';
    is_deeply one('X-Class:batch=2'),  { text => 'X-Class: batch', limit => 2 }, 'without a blank';
    is_deeply one('X-Path: /a b=c=2'), { text => 'X-Path: /a b=c', limit => 2 }, 'with anything in its value';
    is_deeply one('/report=2,queue=20,timeout=5m'),
        { text => '/report', limit => 2, queue => 20, timeout => 300 }, 'options';
    is_deeply one('/r=1,queue=0,timeout=0'), { text => '/r', limit => 1, queue => 0, timeout => 0 }, 'of 0';
    is one("/caf\x{e9}\x{20ac}=1")->{text}, "/caf\xc3\xa9\xe2\x82\xac", 'as bytes in UTF-8';
    is scalar @{ Sirius::Config::Lane->parse( [ '/a=1', 'GET /a=1', 'POST /a=1' ] ) }, 3, 'several';
    is scalar @{ Sirius::Config::Lane->parse( [ 'X-C: Batch=1', 'X-C: batch=1' ] ) }, 2,
        'two values that differ in case';
};

subtest 'what is wrong' => sub {
    my @wrong = (
        [ ''                             => qr/'' has no limit: use one such as \/report=2/ ],
        [ '/report'                      => qr/has no limit/ ],
        [ '/report='                     => qr/'' is not a number of requests/ ],
        [ '/report=0'                    => qr/'0' is not a number of requests: use one from 1/ ],
        [ '/report=-1'                   => qr/'-1' is not a number/ ],
        [ '/report=two'                  => qr/'two' is not a number/ ],
        [ '/report=1.5'                  => qr/'1.5' is not a number/ ],
        [ 'report=2'                     => qr/does not begin with a slash: did you mean \/report\?/ ],
        [ '=2'                           => qr/'' is not a prefix, a method and a prefix, or a field/ ],
        [ 'POST=2'                       => qr/does not begin with a slash/ ],
        [ 'POST import=2'                => qr/'POST import' is not a prefix, a method/ ],
        [ 'X-Class:=2'                   => qr/the field 'X-Class' has no value/ ],
        [ "X-Class: a\nb=2"              => qr/contains a control character/ ],
        [ '/a%20b=2'                     => qr/contains a percent sign: write the characters themselves/ ],
        [ '/a?b=2'                       => qr/contains a character/ ],
        [ '/a//b=2'                      => qr/contains an empty name/ ],
        [ '/a/../b=2'                    => qr/contains an empty name, \. or \.\./ ],
        [ 'GET /./b=2'                   => qr/contains an empty name/ ],
        [ '/a=2,wait=3'                  => qr/'wait=3' is not an option of a lane: use queue, timeout/ ],
        [ '/a=2,'                        => qr/'' is not an option of a lane/ ],
        [ '/a=2,timeout=-5'              => qr/timeout=-5 is negative/ ],
        [ '/a=2,queue'                   => qr/queue needs a number of requests/ ],
        [ '/a=2,queue=x'                 => qr/queue needs a number of requests/ ],
        [ '/a=2,timeout=soon'            => qr/timeout needs a time/ ],
        [ '/a=2,timeout=9d'              => qr/timeout=9d is too large/ ],
        [ '/' . 'a' x 127 . '=2'         => qr/the lane is longer than 127 bytes/ ],
        [ [ '/a=1', '/A=2' ]             => qr/'\/A' is given twice/ ],
        [ [ 'get /a=1', 'GET /A=2' ]     => qr/'GET \/A' is given twice/ ],
        [ [ 'X-C: Bat=1', 'x-c: Bat=1' ] => qr/'x-c: Bat' is given twice/ ],
        [ '/r=1,queue=1,queue=2'         => qr/queue is given twice in '\/r=1,queue=1,queue=2'/ ],
        [ '/r=1,timeout=1,queue=2,timeout=1' => qr/timeout is given twice in/ ],
        [ [ map {"/$_=1"} 1 .. 17 ]          => qr/17 lanes are too many: the maximum is 16/ ],
    );
    like wrong( $_->[0] ), $_->[1], ref $_->[0] ? "@{$_->[0]}[0,1] ..." : $_->[0] for @wrong;
};

sub parsed {
    my %given = @_;
    return eval { Sirius::Config::Values->parse( \%given ) } || $@;
}

subtest 'with other options' => sub {
    my $conf = parsed(
        lane          => [ '/a=2', 'POST /b=1,queue=5,timeout=500ms' ],
        max_queue     => 50,
        queue_timeout => 9
    );
    my @words = grep {/\Alane=/} Sirius::Edge::Setup->of($conf);
    is_deeply \@words, [ 'lane=2,50,9,/a', 'lane=1,5,0.5,POST /b' ],
        'words for the edge, with what other options say';
    is_deeply( Sirius::Edge::Setup->known( \@words ), \@words, 'which another version knows' );
    like parsed( lane => ['X-Class: batch=2'] ),
        qr/--lane: 'X-Class: batch' is of a field, which requires --trust-proxy/,
        'a field that every client could set';
    is ref parsed( lane => ['X-Class: batch=2'], trust_proxy => '10.0.0.0/8' ), 'HASH', 'with a proxy';
    like parsed( lane => [ '/a=2,queue=40000', '/b=1,queue=9001' ] ),
        qr/the queues of all lanes and --max-queue have 50001 places together: the maximum is 50000/,
        'too many places';
    is ref parsed( lane => [ '/a=2,queue=40000', '/b=1,queue=9000' ] ), 'HASH', 'as many as possible';
};

subtest 'whether a worker is left for others' => sub {
    for my $case (
        [ 4, 0, 0 ],
        [ 4, 0, 0, 3 ],
        [ 4, 0, 0, 2, 1 ],
        [ 4, 0, 1, 4 ],
        [ 4, 0, 1, 2, 2 ],
        [ 4, 0, 1, 9 ],
        [ 2, 4, 0, 2, 1 ],
        [ 2, 4, 1, 2, 2 ],
        [ 0, 0, 0, 1 ]
        )
    {
        my ( $workers, $max, $all, @limits ) = @$case;
        my %conf = ( workers => $workers, workers_max => $max, lane => [ map { { limit => $_ } } @limits ] );
        is( ( Sirius::Config::Lane->take_all( \%conf ) ? 1 : 0 ),
            $all, "$workers:$max workers, lanes of @limits" );
    }
};

subtest 'in the environment' => sub {
    local $ENV{SIRIUS_LANE} = 'POST /import=1,queue=2  /report=2 X-Class: batch=1';
    my $conf = parsed( trust_proxy => '::1' );
    is_deeply [ map { $_->{text} } @{ $conf->{lane} } ], [ 'POST /import', '/report', 'X-Class: batch' ],
        'several in one variable';
    local $ENV{SIRIUS_LANE} = '/report';
    like parsed(), qr/'\/report' has no limit.*SIRIUS_LANE/, 'a wrong one names it';
};

done_testing;
