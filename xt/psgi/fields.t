use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Fields of a request that come more than once: in any spelling, in any place, between any others. All of them
# arrive, in their order, as one value; the hash that the next request is served from is none the worse.

# What the application is to see of these fields, by RFC 9110 5.3 and, for Cookie, RFC 6265 5.4
sub expected {
    my %want;
    for my $field (@_) {
        my ( $name, $value ) = @$field;
        ( my $key = 'HTTP_' . uc $name ) =~ tr/-/_/;
        $key = 'CONTENT_TYPE' if $key eq 'HTTP_CONTENT_TYPE';
        my $between = $key eq 'HTTP_COOKIE' ? '; ' : ', ';
        $want{$key} = exists $want{$key} ? $want{$key} . $between . $value : $value;
    }
    return \%want;
}

sub bytes {
    return join '', "GET / HTTP/1.1\r\n", map( {"$_->[0]: $_->[1]\r\n"} @_ ), "\r\n";
}

my $server = start_server( <<'APP', qw(--workers 1 --max-header-fields 200) );
use JSON::PP ();
my $json = JSON::PP->new->canonical;
sub {
    my $env = shift;
    my %fields = map { $_ => $env->{$_} } grep { /^(?:HTTP_|CONTENT_)/ && $_ ne 'HTTP_X_REQUEST_ID' } keys %$env;
    return [ 200, [], [ $json->encode( \%fields ) ] ];
}
APP

require JSON::PP;
my $client = $server->connect;

# A test: these fields arrive, twice in a row, and after them those of an ordinary request
sub arrives {
    my ( $name, @field ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @ordinary = ( [ Host => 'a' ], [ 'X-Foo' => 'one' ], [ Accept => 'x' ] );
    unshift @field, [ Host => 'a' ];
    my ( @got, @want );
    for my $fields ( \@field, \@field, \@ordinary, \@ordinary ) {
        $client->send( bytes(@$fields) );
        my $response = $client->response;
        push @got,  $response->status eq '200' ? JSON::PP->new->decode( $response->body ) : $response->status;
        push @want, expected(@$fields);
        $client = $server->connect if $response->status ne '200';
    }
    return is_deeply \@got, \@want, $name;
}

sub spellings {
    my ( $name, $count ) = @_;
    my @letter = split //, lc $name;
    return map {
        my $bits = $_;
        join '', map { $bits >> $_ & 1 ? uc $letter[$_] : $letter[$_] } 0 .. $#letter
    } 0 .. $count - 1;
}

subtest 'one name in several spellings' => sub {
    arrives 'two spellings',       [ 'Accept-Language' => 'de' ], [ 'accept-language' => 'en' ];
    arrives 'the first one again', map { [ $_ => length ] } qw(Via VIA via Via);
    arrives 'twenty spellings',    map { [ $_ => "of $_" ] } spellings( 'x-request-is', 20 );
    arrives 'Cookie',              map { [ $_ => "c$_=1" ] } qw(cookie Cookie COOKIE cOOKIE);
    arrives 'nothing but spellings, with others between',
        map { ( [ $_ => "of $_" ], [ "X-$_-Y" => 'between' ] ) } spellings( 'dnt', 8 );
    arrives 'empty values', [ 'X-E' => '' ], [ 'x-e' => '' ], [ 'X-e' => 'v' ], [ 'X-E' => '' ];
    arrives 'a name of one letter', map { [ $_ => 'v' ] } qw(Q q Q);
};

subtest 'Content-Type' => sub {
    for my $second ( 'Content-Type', 'content-type', 'CONTENT-TYPE' ) {
        my $other = $server->connect;
        $other->send( bytes( [ Host => 'a' ], [ 'Content-Type' => 'a/b' ], [ $second => 'c/d' ] ) );
        is $other->response->status, 400, "$second after Content-Type is refused";
    }
    arrives $_, [ $_ => 'a/b' ] for 'Content-Type', 'content-type', 'CONTENT-TYPE';
    arrives 'and fields that only look like it', [ 'Content-Type' => 'a/b' ],
        [ 'X-Content-Type' => 'c' ], [ 'Content-Typ' => 'd' ], [ 'http-content-type' => 'e' ],
        [ 'HTTP-Content-Type' => 'f' ];
};

# The cache of names has 128 places, and a name's place comes of its length and three of its letters. One
# field behind another of the same place has thrown that one out.
subtest 'names that have one place in the cache' => sub {
    my $place = sub {
        my @n = unpack 'C*', shift;
        return ( @n * 31 + $n[0] + $n[-1] * 7 + $n[ @n / 2 ] * 13 ) % 128;
    };
    for my $name ( 'X-Real-Ip', 'Cookie', 'If-None-Match', $ENV{SIRIUS_TEST_H2} ? 'Tf' : 'Te' ) {
        my @other = grep { $place->($_) == $place->($name) } map { "Y-a" . join 'a', split // } 'aa' .. 'zz';
        cmp_ok @other, '>', 2, "names that throw $name out";
        arrives "$name, another, $name again", [ $name => 1 ], [ $other[0] => 2 ], [ $name => 3 ];
        arrives "$name, others, its other spellings", [ $name => 1 ],
            map { ( [ $other[$_] => 'o' ], [ ( spellings( $name, 4 ) )[$_] => $_ ] ) } 0 .. 2;
    }
};

subtest 'long names and many fields' => sub {
    for my $length ( 39, 40, 41, 42, 200, 1000 ) {
        my $name = 'X-' . 'a' x ( $length - 2 );
        arrives "a name of $length bytes, twice", [ $name => 1 ], [ $name => 2 ];
        arrives "a name of $length bytes, in two spellings", [ $name => 1 ], [ uc $name => 2 ], [ A => 1 ];
    }
    for my $count ( 29 .. 34, 100 ) {
        my @field = map { [ "X-Field-$_" => "v$_" ] } 1 .. $count;
        arrives "$count others",                      @field;
        arrives "$count others, and the last again",  @field, [ "x-field-$count" => 'again' ];
        arrives "$count others, and the first again", @field, [ 'X-FIELD-1'      => 'again' ];
    }
};

subtest 'any order of all of these' => sub {
    srand 4711;
    my @name = (
        spellings( 'x-a',    6 ),
        spellings( 'cookie', 3 ),
        'Accept', 'a' x 41, 'A' x 41, map {"Z-$_"} 1 .. 20
    );
    for my $round ( 1 .. 100 ) {
        my @field = map { [ $name[ rand @name ] => 'v' . int rand 10 ] } 1 .. 1 + rand 30;
        arrives( "round $round", @field ) or last;
    }
};

subtest 'behind a proxy that is trusted, the host is said twice' => sub {
    my $behind = start_server( <<'APP', qw(--workers 1 --trust-proxy), '127.0.0.1,x-forwarded-host' );
sub { [ 200, [], [ join '|', map { defined ? $_ : '-' } @{ $_[0] }{qw(HTTP_HOST HTTP_X_FORWARDED_HOST SERVER_PORT)} ] ] }
APP
    my $peer = $behind->connect;
    for ( 1 .. 3 ) {
        is $peer->ask(
            'GET /',
            'HOST: a',
            'X-Forwarded-Host: b:81',
            'x-forwarded-for: 10.0.0.1',
            'X-Forwarded-For: 10.0.0.2'
        )->body, 'b:81|b:81|81', 'the forwarded one';
        is $peer->ask( 'GET /', 'Host: a:82' )->body, 'a:82|-|' . $behind->port, 'and its own the next time';
        is $behind->ask('GET / HTTP/1.0')->body, '-|-|' . $behind->port, 'and none'
            if http1( 'without Host', 'HTTP/1.0' );
    }
    is $behind->crashes, 0, 'no worker fell';
    $behind->stop;
};

is $server->crashes, 0, 'no worker fell';
$server->stop;
done_testing;
