use strict;
use warnings;
use Digest::SHA  qw(hmac_sha256 hmac_sha384);
use JSON::PP     qw(encode_json);
use MIME::Base64 qw(encode_base64 encode_base64url);
use Test::More;
use Sirius::WebSocket::Signature;

# The tokens of Grip-Sig

my $NOW = 1_700_000_000;

sub token {
    my ( $claims, %arg ) = @_;
    my $head = $arg{head} // '{"alg":"HS256","typ":"JWT"}';
    my $hmac = $arg{hmac} // \&hmac_sha256;
    my $text = join q(.), map { encode_base64url($_) } $head, ref $claims ? encode_json($claims) : $claims;
    return $text . q(.) . encode_base64url( $hmac->( $text, $arg{key} // 'secret' ) );
}

sub wrong {
    my ( $token, %arg ) = @_;
    return Sirius::WebSocket::Signature->new( key => 'secret', %arg )->wrong( $token, $NOW );
}

my %GOOD = ( iss => 'pushpin', exp => $NOW + 1 );
is wrong( token( \%GOOD ) ),                                 undef,               'a good one';
is wrong( token( \%GOOD ), issuer => 'pushpin' ),            undef,               'of this issuer';
is wrong( token( \%GOOD ), issuer => 'other' ),              'another issuer',    'of another one';
is wrong( token( { exp => $NOW + 1 } ), issuer => 'other' ), 'another issuer',    'of nobody';
is wrong( token( { exp => $NOW + 1.5 } ) ),                  undef,               'a time with a fraction';
is wrong( token( { %GOOD, exp => $NOW } ) ),                 'expired',           'at the second';
is wrong( token( { iss => 'pushpin' } ) ),                   'no time of expiry', 'it would be good for ever';
is wrong( token( { exp => $_ } ) ), 'no time of expiry', 'a time that is none' for { }
, 'never', "$NOW\n", undef;
is wrong( token( \%GOOD, key => 'other' ) ), 'signed with another key', 'another key';
is wrong( token( \%GOOD, key => "binary\0" ), key => 'base64:' . encode_base64("binary\0") ), undef,
    'a key in base64';
is wrong($_), 'no signature', 'none' for undef, q();
is wrong($_), 'not a JSON Web Token', 'not one'
    for 'x', 'a.b', 'a.b.c.d', 'a.b.', "a.b.c\n", token( { %GOOD, x => 'x' x 5000 } );

# What is known of attacks: the algorithm is the server's choice
is wrong( token( \%GOOD, head => $_ ) ), 'not signed with HS256', "head $_"
    for '{"alg":"none"}', '{"alg":"hs256"}', '{"alg":["HS256"]}', '{}', '[]', 'x', '{"alg":null}';
is wrong( token( \%GOOD, head => '{"alg":"HS384"}', hmac => \&hmac_sha384 ) ), 'not signed with HS256',
    'HS384';
is wrong( token( \%GOOD ) =~ s/[.][^.]*\z/.e30/r ), 'signed with another key', 'a signature that is cut';
is wrong( token($_) ), 'no claims', "claims $_" for '[]', 'x', '1';

ok !eval { Sirius::WebSocket::Signature->new( key => $_ ) }, 'a key that is empty' for undef, q(), 'base64:';

done_testing;
