package Sirius::Test::Certificates;

# Certificates for tests: an authority, and what it issues, as files in a directory of their own.
#
#   my $made = Sirius::Test::Certificates->new;
#   my ( $cert, $key ) = $made->issue( 'a.example', names => ['a.example'], type => 'rsa' );

use strict;
use warnings;
use File::Temp;
use IO::Socket::SSL::Utils
    qw(CERT_create CERT_free KEY_create_ec KEY_create_rsa KEY_free PEM_cert2string PEM_key2string);

my $serial = time;

sub new {
    my ( $class, $name ) = @_;
    my $self = bless { dir => File::Temp->newdir( 'sirius-keys-XXXXXX', TMPDIR => 1 ) }, $class;
    $name ||= 'The authority of a test';
    @{$self}{qw(cert key)} = CERT_create(
        CA      => 1,
        purpose => 'ca,cRLSign',
        key     => KEY_create_ec('prime256v1'),
        serial  => ++$serial,
        subject => { commonName => $name }
    );
    $self->{ca} = $self->file( 'ca.pem', PEM_cert2string( $self->{cert} ) );
    return $self;
}

sub ca  { return shift->{ca} }
sub dir { return '' . shift->{dir} }

sub file {
    my ( $self, $name, $text, $mode ) = @_;
    my $path = "$self->{dir}/$name";
    open my $out, '>', $path or die "$path: $!";
    print {$out} $text;
    close $out or die "$path: $!";
    chmod $mode, $path if defined $mode;
    return $path;
}

# Paths of certificate and key. Options: names, type (ec, rsa), from and to (seconds since 1970), purpose,
# chain (0: none), file (the beginning of both names), ext (more extensions, as CERT_create has them)
sub issue {
    my ( $self, $name, %option ) = @_;
    my ( $cert, $key ) = $self->pem( $name, %option );
    my $file = $option{file} || $name;
    return $self->file( "$file.pem", $cert ), $self->file( "$file.key", $key, 0600 );
}

# The same as text
sub pem {
    my ( $self, $name, %option ) = @_;
    my $key = ( $option{type} || 'ec' ) eq 'rsa' ? KEY_create_rsa(2048) : KEY_create_ec('prime256v1');
    my ($cert) = CERT_create(
        issuer          => $option{self} ? undef : [ @{$self}{qw(cert key)} ],
        key             => $key,
        ext             => $option{ext}     || [],
        not_after       => $option{to}      || time + 30 * 86_400,
        not_before      => $option{from}    || time - 60,
        purpose         => $option{purpose} || 'server',
        serial          => ++$serial,
        subject         => { commonName => $name },
        subjectAltNames => [ map { [ DNS => $_ ] } @{ $option{names} || [$name] } ],
    );
    my $chain
        = $option{self} || defined $option{chain} && !$option{chain} ? '' : PEM_cert2string( $self->{cert} );
    my @pem = ( PEM_cert2string($cert) . $chain, PEM_key2string($key) );
    CERT_free($cert);
    KEY_free($key);
    return @pem;
}

1;
