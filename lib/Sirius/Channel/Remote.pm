package Sirius::Channel::Remote;

use strict;
use warnings;

use Digest::SHA  qw(hmac_sha256);
use HTTP::Tiny   ();
use JSON::PP     ();
use MIME::Base64 qw(decode_base64 encode_base64 encode_base64url);

use constant {
    EXPIRES  => 3600,    # seconds that a signature is good for
    PATIENCE => 10,      # seconds
};

# What may have any bytes; all else is text
my %BINARY = map { $_ => 1 } qw(body content);

my $JSON = JSON::PP->new->utf8->canonical;

# http://HOST:PORT/PATH?iss=ISSUER&key=KEY, as other libraries of GRIP have it
sub new {
    my ( $class,   $url )   = @_;
    my ( $address, $query ) = $url =~ m{\A(https?://[^/?#\s]+[^?#\s]*?)/*(?:[?]([^#\s]*))?\z}
        or die "GRIP_URL '$url' is not an address such as http://127.0.0.1:5561\n";
    my %query = map { split /=/, $_, 2 } grep {/=/} split /&/, $query // q();
    s/%([0-9A-Fa-f]{2})/chr hex $1/eg for values %query;
    my $key = $query{key};
    $key = decode_base64($key) if defined $key && $key =~ s/\Abase64://;
    die "GRIP_URL '$address': the key is empty, or not base64\n" if defined $key && $key eq q();
    return bless {
        http   => HTTP::Tiny->new( agent => 'Sirius', keep_alive => 1, timeout => PATIENCE ),
        issuer => $query{iss},
        key    => $key,
        url    => "$address/publish/"
    }, $class;
}

# Items of strings of bytes
sub publish {
    my ( $self, @items ) = @_;
    my %fields = ( 'Content-Type' => 'application/json' );
    $fields{Authorization} = 'Bearer ' . $self->_token if defined $self->{key};
    my $answer = $self->{http}->post( $self->{url},
        { headers => \%fields, content => $JSON->encode( { items => [ map { _text($_) } @items ] } ) } );
    return if $answer->{success};
    my $why
        = $answer->{status} == 599
        ? $answer->{content}
        : "$answer->{status} $answer->{reason}: $answer->{content}";
    return die "$self->{url}: " . $why =~ s/\s+\z//r . "\n";
}

# With characters for bytes, as JSON has them
sub _text {
    my ( $value, $name ) = @_;
    if ( ref $value eq 'ARRAY' ) {
        return [ map { _text($_) } @$value ];
    }
    if ( ref $value eq 'HASH' ) {
        my %text;
        for my $key ( keys %$value ) {
            my $copy = $value->{$key};
            if ( $BINARY{$key} && defined $copy && !ref $copy && !utf8::decode($copy) ) {
                $text{"$key-bin"} = encode_base64( $value->{$key}, q() );
            } else {
                $text{$key} = _text( $value->{$key}, $key );
            }
        }
        return \%text;
    }
    return $value     if !defined $value;
    return 0 + $value if ( $name // q() ) eq 'code';
    utf8::decode( my $text = "$value" ) or die( ( $name // 'a value' ) . " is not UTF-8\n" );
    return $text;
}

sub _token {
    my $self  = shift;
    my %claim = ( exp => time + EXPIRES, defined $self->{issuer} ? ( iss => $self->{issuer} ) : () );
    my $text  = join q(.), map { encode_base64url( $JSON->encode($_) ) } { alg => 'HS256', typ => 'JWT' },
        \%claim;
    return $text . q(.) . encode_base64url( hmac_sha256( $text, $self->{key} ) );
}

1;

=encoding utf8

=head1 NAME

Sirius::Channel::Remote - publishes through a server of GRIP, such as Pushpin

=head1 SYNOPSIS

  use Sirius::Channel::Remote;

  my $remote = Sirius::Channel::Remote->new('http://127.0.0.1:5561');
  $remote->publish( { channel => 'news', formats => { 'http-stream' => { content => "data: hello\n\n" } } } );

=head1 DESCRIPTION

For L<Sirius::Channel>, when GRIP_URL of the environment says that another server holds the connections.

=head1 METHODS

=head2 new

  use Sirius::Channel::Remote;

  my $remote = Sirius::Channel::Remote->new($url);

The address to which F</publish/> is added. C<iss> and C<key> of its query sign what is sent (a JSON Web Token, HS256); the key may
be in base64 after C<base64:>. Dies if it is none.

=head2 publish

  $remote->publish(@items);

Items as L<Sirius::Channel::Item> takes them, of bytes. Returns when the server has them; dies if it has not.

=head1 SEE ALSO

L<Sirius::Channel>.

=cut
