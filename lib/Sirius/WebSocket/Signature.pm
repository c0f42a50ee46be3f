package Sirius::WebSocket::Signature;

use strict;
use warnings;

use Digest::SHA  qw(hmac_sha256);
use JSON::PP     ();
use MIME::Base64 qw(decode_base64);

# Longer ones were made by nobody who means well
use constant LONGEST => 4096;

my $JSON = JSON::PP->new->utf8;

sub new {
    my ( $class, %arg ) = @_;
    my $key = $arg{key};
    die "the key of the signature is empty\n" if !defined $key || $key eq q();
    if ( $key =~ s/\Abase64:// ) {
        $key = decode_base64($key);
        die "the key of the signature is empty\n" if $key eq q();
    }
    return bless { key => $key, issuer => $arg{issuer} }, $class;
}

# Undef if the token is good; else what is wrong
sub wrong {
    my ( $self, $token, $now ) = @_;
    return 'no signature' if !defined $token || $token eq q();
    return 'not a JSON Web Token'
        if length $token > LONGEST || $token !~ /\A([\w-]+)[.]([\w-]+)[.]([\w-]+)\z/a;
    my ( $head, $claims, $signature ) = ( $1, $2, $3 );
    my $algorithm = ( _object($head) || {} )->{alg};
    return 'not signed with HS256' if !defined $algorithm || ref $algorithm || $algorithm ne 'HS256';
    return 'signed with another key'
        if !_same( _bytes($signature), hmac_sha256( "$head.$claims", $self->{key} ) );
    my $claim = _object($claims) or return 'no claims';
    my $until = $claim->{exp};
    return 'no time of expiry'
        if !defined $until || ref $until || $until !~ /\A[0-9]{1,15}(?:[.][0-9]{1,9})?\z/;
    return 'expired' if $until <= ( $now // time );
    my $issuer = $claim->{iss};
    return 'another issuer'
        if defined $self->{issuer} && ( !defined $issuer || ref $issuer || $issuer ne $self->{issuer} );
    return;
}

sub _bytes { return decode_base64( shift =~ tr{_-}{/+}r ) }

sub _object {
    my $value = eval { $JSON->decode( _bytes(shift) ) };
    return ref $value eq 'HASH' ? $value : undef;
}

# In a time that does not tell how much of it is right
sub _same {
    my ( $left, $right ) = @_;
    return 0 if length $left != length $right;
    return ( ( $left ^ $right ) =~ tr/\0//c ) == 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::WebSocket::Signature - checks that a proxy has signed a request

=head1 SYNOPSIS

  my $signature = Sirius::WebSocket::Signature->new( key => $key, issuer => 'pushpin' );
  my $wrong     = $signature->wrong( $env->{HTTP_GRIP_SIG} );

=head1 DESCRIPTION

The field C<Grip-Sig> is a JSON Web Token that the proxy has signed with a key it shares with the application (HMAC with SHA-256,
C<HS256>; no other algorithm is accepted) and that expires.

=head1 METHODS

=head2 new

C<key> is the key, or its bytes in base64 after C<base64:>. With C<issuer>, the claim C<iss> must be the same.

=head2 wrong

  my $wrong = $signature->wrong( $token, $now );

What is wrong with the token, or undef. C<$now> is for tests.

=head1 SEE ALSO

L<Sirius::WebSocket>.

=cut
