use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Responses generated from all combinations of right and wrong parts, given in all manners. Whether there is
# an answer, and which, follows from the parts: one wrong part is a 500, and the next request on the same
# connection is answered as itself. Single oddities are in xt/psgi/misuse.t.

# Name, perl code, and what is wrong with it (at once: known before the head; late: found while the body is
# read; any: it depends; whatever: it answers by itself)
my @STATUS = (
    [ right  => '200' ],
    [ string => q{'404'} ],
    [ tied   => '$tied200' ],
    [ object => 'Str->new(201)' ],
    [ dual   => 'Scalar::Util::dualvar( 200, "x" )', 'any' ],
    [ undef  => 'undef',                             'at once' ],
    [ word   => q{'abc'},                            'at once' ],
    [ early  => '103',                               'at once' ],
    [ wide   => '$wide',                             'at once' ],
    [ dies   => '$fatal',                            'at once' ],
    [ ref    => '[200]',                             'at once' ],
    [ line   => '"200\n"',                           'any' ],
);
my @HEADERS = (
    [ none     => '[]' ],
    [ right    => q{[ 'X-A' => 1 ]} ],
    [ tied     => '\@tied' ],
    [ object   => q{[ 'X-A' => Str->new('b') ]} ],
    [ shrinks  => q{shrinking()}, 'any' ],
    [ frees    => q{[ 'X-A' => Frees->new ]} ],
    [ reenters => q{[ 'X-A' => Reenters->new ]}, 'whatever' ],
    [ long     => q{[ 'X-A' => 'y' x 100_000 ]} ],
    [ many     => q{[ map { ( "X-$_" => $_ ) } 1 .. 500 ]} ],
    [ blessed  => q{bless [ 'X-A' => 1 ], 'Lines'} ],
    [ undef    => 'undef',                             'at once' ],
    [ odd      => q{['X-A']},                          'at once' ],
    [ hash     => '{}',                                'at once' ],
    [ wide     => '[ X => $wide ]',                    'at once' ],
    [ newline  => q{[ X => "a\nSet-Cookie: b" ]},      'at once' ],
    [ dies     => '[ X => StrDies->new ]',             'at once' ],
    [ nul_name => q{[ "X\0" => 1 ]},                   'at once' ],
    [ lengths  => q{[ ('Content-Length') x 2, 3, 4 ]}, 'at once' ],
);
my @BODY = (
    [ right     => q{['x']} ],
    [ empty     => '[]' ],
    [ undefs    => '[ undef, "a", undef ]' ],
    [ tied      => '[ $tied200, \@tied ]' ],
    [ handle    => q{do { open my $fh, '<', '/dev/null'; $fh }} ],
    [ lines     => q{Lines->new( 'a', '', 'b' )} ],
    [ missing   => 'undef',                                         'at once' ],
    [ string    => q{'x'},                                          'at once' ],
    [ env       => '$env',                                          'at once' ],
    [ wide      => '[ "a", $wide ]',                                'at once' ],
    [ dies      => '[ "a", StrDies->new ]',                         'at once' ],
    [ late_wide => q{Lines->new( 'a', $wide )},                     'late' ],
    [ late_die  => q{Dies->new('a')},                               'late' ],
    [ recursive => 'do { my @a; push @a, \@a; \@a }',               'any' ],
    [ closed    => q{do { open my $fh, '<', '/'; close $fh; $fh }}, 'any' ],
);

# How it is given: code with RESPONSE in it, and whether the body comes with it
my @MANNER = (
    [ return    => 'RESPONSE' ],
    [ responder => 'sub { our $responder = $_[0]; $_[0]->(RESPONSE) }' ],
    [ nested    => 'sub { my $r = shift; ( sub { $r->(@_) } )->(RESPONSE) }' ],
    [ evaled    => 'sub { my $r = shift; eval { $r->(RESPONSE) }; undef }' ],
    [ listed    => 'do { our @list = RESPONSE; sub { $_[0]->( $list[0] ) } }' ],
    [ twice     => 'sub { my $r = shift; $r->(RESPONSE); eval { $r->(RESPONSE) }; undef }' ],
    [ sorted    => 'sub { my $r = shift; my @x = sort { $r->(RESPONSE) if $r; undef $r; 0 } 1, 2 }' ],
);

sub table {
    my ( $name, @row ) = @_;
    return "our \@$name = (\n" . join( '', map {"sub { my \$env = shift; $_->[1] },\n"} @row ) . ");\n";
}

# Every manner is compiled once for each response, so that RESPONSE is evaluated where it is given
my $app = <<'APP' . table( STATUS => @STATUS ) . table( HEADERS => @HEADERS ) . table( BODY => @BODY );
package Tied     { sub TIESCALAR { bless [ $_[1] ] } sub FETCH { $_[0][0] } sub STORE {} }
package TieArray { require Tie::Array; our @ISA = 'Tie::StdArray' }
package TieDies  { sub TIESCALAR { bless [] } sub FETCH { die "fetch\n" } sub STORE {} }
package Str      { use overload '""' => sub { $_[0][0] }, fallback => 1; sub new { bless [ $_[1] ] } }
package StrDies  { use overload '""' => sub { die "stringify\n" }, fallback => 1; sub new { bless [] } }
package Shrinks  { use overload '""' => sub { @{ $_[0][0] } = (); 'gone' }, fallback => 1; sub new { bless [ $_[1] ] } }
package Frees    { use overload '""' => sub { @main::list = (); my @reuse = map { "x$_" } 1 .. 9; 'free' }, fallback => 1; sub new { bless [] } }
package Reenters { use overload '""' => sub { my $r = $main::responder; $r && $r->( [ 200, [], ['inner'] ] ); 'again' }, fallback => 1; sub new { bless [] } }
package Lines    { sub new { my $c = shift; bless [@_], $c } sub getline { shift @{ $_[0] } } sub close {} }
package Dies     { our @ISA = 'Lines'; sub getline { my $l = shift @{ $_[0] }; defined $l ? $l : die "getline\n" } }
package main;
use Scalar::Util ();
tie my $tied200, 'Tied', 200;
tie my $fatal,   'TieDies';
tie my @tied,    'TieArray';
@tied = ( 'X-A', 'b' );
my $wide = "\x{263a}";
sub shrinking { my $h = [ 'X-A' => undef, 'X-B' => 1 ]; $h->[1] = Shrinks->new($h); return $h }
APP
$app .= "our \@MANNER = (\n"
    . join( '',
    map { "sub { my ( \$env, \$make ) = \@_; " . ( $_->[1] =~ s/RESPONSE/\$make->()/gr ) . " },\n" } @MANNER )
    . ");\n";
$app .= <<'APP';
sub {
    my $env = shift;
    return [ 200, [ 'X-Path' => '/after' ], ["after $$"] ] if $env->{PATH_INFO} eq '/after';
    my ( $status, $headers, $body, $manner ) = split m{-}, substr $env->{PATH_INFO}, 1;
    return $MANNER[$manner]->( $env,
        sub { [ $STATUS[$status]->($env), $HEADERS[$headers]->($env), $BODY[$body]->($env) ] } );
}
APP

my $server = start_server( $app, qw(--workers 1) );
my $first  = $server->ask('GET /after')->body;
my $count  = 0;
for my $manner ( 0 .. $#MANNER ) {
    my ( %wrong, $client );
    for my $status ( 0 .. $#STATUS ) {
        for my $headers ( 0 .. $#HEADERS ) {
            for my $body ( 0 .. $#BODY ) {
                next if ( $status + $headers + $body + $manner ) % 2;    # every pair is among the rest
                my $fault = fault( \$client, [ $status, $headers, $body, $manner ] );
                $wrong{$fault} ||= join ', ', $STATUS[$status][0], $HEADERS[$headers][0], $BODY[$body][0]
                    if $fault;
                $count++;
            }
        }
    }
    ok !%wrong, "given by $MANNER[$manner][0]" or diag map {"$_: $wrong{$_}\n"} sort keys %wrong;
}
is $server->ask('GET /after')->body, $first, "one worker has answered all $count";
is scalar( $server->crashes ),       0,      'none crashed' or diag $server->crashes;
$server->stop;
done_testing;

# What is wrong with the answer to one combination, '' if nothing is
sub fault {
    my ( $client, $index ) = @_;
    my ( $status, $headers, $body, $manner ) = @{$index};
    my %wrong = map { ( $_->[2] || 'nothing' ) => 1 } $STATUS[$status], $HEADERS[$headers], $BODY[$body];
    $$client ||= $server->connect;
    my $answer = $$client->ask( 'GET /' . join '-', @{$index} );
    my $got    = $answer->status;
    my $want
        = $wrong{'at once'} && !$wrong{whatever} ? qr/\A500\z/
        : $wrong{any} || $wrong{whatever}        ? qr/\A(?:20[01]|404|500|cut)\z/
        : $wrong{late}                           ? qr/\Acut\z/
        :                                          qr/\A(?:20[01]|404)\z/;
    my $fault = $got =~ $want ? '' : "got $got, want $want";

    if ( $got !~ /\A\d+\z/ || $answer->closes ) {
        $$client->close;
        $$client = undef;
    } elsif ( !$fault && ( $status + $headers + $body ) % 7 == 0 ) {
        my $next = $$client->ask('GET /after');
        $fault = 'the next answer is ' . $next->status if $next->status ne '200' || $next->body ne $first;
    }
    return $fault;
}
