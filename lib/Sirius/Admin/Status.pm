package Sirius::Admin::Status;

use strict;
use warnings;

use Encode       qw(FB_CROAK decode encode);
use Scalar::Util qw(looks_like_number);

# Fields that are text even if they look like numbers; other fields are what they look like. JSON::PP takes 7
# ms for 64 workers, this takes 2
my %TEXT = map { $_ => 1 } qw(app client host last_client last_line last_said last_text line
    listeners mark name path state text version);

# Hashes whose values are all numbers
my %NUMBERS = map { $_     => 1 } qw(closed edge_exits exits limits responses);
my %ESCAPED = map { chr $_ => sprintf '\u%04x', $_ } 0 .. 31, 34, 92, 127;

sub json {
    my ( $class, $snapshot, %about ) = @_;
    my %status = (
        %$snapshot,
        ( map { $_ => $about{$_} } grep { defined $about{$_} } keys %about ),
        uptime => $snapshot->{time} - $about{started},
    );
    return encode( 'UTF-8', _hash( \%status ) . "\n" );
}

sub _array {
    my ( $array, $text ) = @_;
    return '[' . join( ',', map { ref $_ ? _ref($_) : $text ? _quote($_) : _plain($_) } @$array ) . ']';
}

sub _hash {
    my ( $hash, $numbers ) = @_;
    my @members;
    for my $name ( sort keys %$hash ) {
        my $value = $hash->{$name};
        push @members,
            qq("$name":)
            . (
              ref $value eq 'HASH'      ? _hash( $value, $NUMBERS{$name} )
            : ref $value                ? _ref( $value, $TEXT{$name} )
            : $TEXT{$name} && !$numbers ? _quote($value)
            :                             _plain($value)
            );
    }
    return '{' . join( ',', @members ) . '}';
}

# JSON has neither infinity nor NaN
sub _plain {
    my $value = shift;
    return 'null'         if !defined $value;
    return _quote($value) if !looks_like_number($value);
    return $value - $value == 0 ? $value + 0 : 'null';
}

# Text from a client or from the application may contain any bytes
sub _quote {
    my $text = shift;
    return 'null' if !defined $text;
    if ( $text =~ /[^\0-\x7f]/ && !utf8::is_utf8($text) ) {
        my $characters = eval { decode( 'UTF-8', my $bytes = $text, FB_CROAK ) };
        $text = $characters if defined $characters;
    }
    $text =~ s/([\0-\x1f"\\\x7f])/$ESCAPED{$1}/g;
    return qq("$text");
}

sub _ref {
    my ( $value, $text ) = @_;
    return ref $value eq 'HASH' ? _hash($value) : _array( $value, $text );
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Status - a snapshot of the server as JSON

=head1 SYNOPSIS

  use Sirius::Admin::Status;

  print Sirius::Admin::Status->json( Sirius::Scoreboard->snapshot, version => Sirius->VERSION, started => $epoch );

=head1 DESCRIPTION

All that L<Sirius::Scoreboard> knows, for programs. F<docs/OBSERVABILITY.md> explains the names.

=head1 METHODS

=head2 json

  my $bytes = Sirius::Admin::Status->json( \%snapshot, started => $epoch, %about );

One line of JSON in UTF-8, with its names sorted. It includes C<%about>, and C<uptime> in seconds. Text that is valid
UTF-8 is taken as UTF-8, other bytes as Latin-1. C<undef> becomes null.

=head1 SEE ALSO

L<Sirius::Admin::App>, L<Sirius::Admin::Metrics>.

=cut
