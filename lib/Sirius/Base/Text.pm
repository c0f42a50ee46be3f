package Sirius::Base::Text;

use strict;
use warnings;

use List::Util qw(max);

my @UNITS   = qw(B KB MB GB TB PB);
my %SECONDS = ( ms => 0.001, s => 1, m => 60, h => 3600, d => 86_400 );

# Formats seconds in the two largest units that matter
sub age {
    my ( $class, $value ) = @_;
    my $seconds = max 0, $value;
    return sprintf '%.1f s',      $seconds      if $seconds < 10;
    return sprintf '%d s',        $seconds      if $seconds < 100;
    return sprintf '%d min',      $seconds / 60 if $seconds < 6000;
    return sprintf '%d h %d min', $seconds / 3600,   $seconds % 3600 / 60 if $seconds < 86_400;
    return sprintf '%d d %d h',   $seconds / 86_400, $seconds % 86_400 / 3600;
}

sub bytes {
    my ( $class, $value ) = @_;
    my $unit = 0;
    while ( $value >= 1000 && $unit < $#UNITS ) {
        $value /= 1024;
        $unit++;
    }
    return sprintf $unit && $value < 10 ? '%.1f %s' : '%.0f %s', $value, $UNITS[$unit];
}

# On a terminal, where a character of East Asia has two, and an accent none
sub columns {
    my ( $class, $text ) = @_;
    return length $text if $text !~ /[^\0-\x{2ff}]/;
    return length($text) + ( () = $text =~ /[\p{Ea=W}\p{Ea=F}]/g ) - ( () = $text =~ /[\p{Mn}\p{Me}]/g );
}

sub cut {
    my ( $class, $text, $width ) = @_;
    return substr $text, 0, $width if $text !~ /[^\0-\x{2ff}]/;
    my $kept = '';
    for my $character ( split //, $text ) {
        $width -= $class->columns($character);
        last if $width < 0;
        $kept .= $character;
    }
    return $kept;
}

sub duration {
    my ( $class, $seconds ) = @_;
    return sprintf '%.0f us', $seconds * 1e6 if $seconds < 0.000_999_5;
    return sprintf $seconds < 0.01 ? '%.1f ms' : '%.0f ms', $seconds * 1e3 if $seconds < 0.999_5;
    return $class->age($seconds);
}

# What a client has sent must not send control characters to a terminal
sub harmless {
    my ( $class, $text ) = @_;
    $text =~ s/([^\x20-\x7e])/sprintf ord $1 > 255 ? '\x{%x}' : '\x%02x', ord $1/ge;
    return $text;
}

# An exception in the language of the user stays readable, but nothing may control a terminal, or turn the
# direction of what follows
sub readable {
    my ( $class, $text ) = @_;
    return $text                   if $text !~ /[^\x20-\x7e]/;
    return $class->harmless($text) if !_is_utf8();
    $text =~ s/([\p{C}\p{Zl}\p{Zp}])/$class->harmless($1)/ge;
    return $text;
}

# Of all options. The number of digits keeps it finite
sub seconds {
    my ( $class,  $text ) = @_;
    my ( $number, $unit ) = $text =~ /\A(-?(?:[0-9]{1,30}(?:\.[0-9]*)?|\.[0-9]+))(ms|[smhd])?\z/i
        or return undef;    ## no critic (ProhibitExplicitReturnUndef)
    return $number * $SECONDS{ lc( $unit // 's' ) };
}

sub whole_seconds {
    my ( $class, $text ) = @_;
    my $seconds = $class->seconds($text);
    return defined $seconds && $seconds >= 0 && $seconds == int $seconds ? $seconds : undef;
}

sub _is_utf8 {
    require I18N::Langinfo;
    my $charset = eval { I18N::Langinfo::langinfo( I18N::Langinfo::CODESET() ) };
    return defined $charset && $charset =~ /\Autf-?8\z/i ? 1 : 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::Base::Text - figures and untrusted text in readable form

=head1 SYNOPSIS

  use Sirius::Base::Text;

  print Sirius::Base::Text->age(4000);             # 66 min
  print Sirius::Base::Text->bytes(34_603_008);     # 33 MB
  print Sirius::Base::Text->duration(0.0123);      # 12 ms
  print Sirius::Base::Text->harmless("\e[2J");     # \x1b[2J

=head1 DESCRIPTION

Figures are as short as possible without becoming ambiguous.

=head1 METHODS

=head2 age

A number of seconds as text: C<7.2 s>, C<66 min>, C<4 d 0 h>.

=head2 bytes

A number of bytes as text, in units of 1024: C<900 B>, C<3.4 MB>.

=head2 columns

  my $columns = Sirius::Base::Text->columns($characters);

How many columns of a terminal the text takes.

=head2 cut

  $text = Sirius::Base::Text->cut( $text, $columns );

As much of the text as has room in so many columns.

=head2 duration

A short time, given in seconds, as text: C<850 us>, C<1.2 ms>, and longer ones like L</age>.

=head2 harmless

The text with all but printable ASCII escaped, as C<\x1b> or C<\x{263a}>, because text from clients must not control
the terminal.

=head2 readable

  print Sirius::Base::Text->readable("Stra\x{df}e fehlt\e[2J\n");

For a terminal, of what the application says: like L</harmless>, but where the locale is of UTF-8 only control and format characters
are escaped. Takes and returns characters.

=head2 seconds

  my $seconds = Sirius::Base::Text->seconds('30d');

Reads a time as options have it: a number, perhaps with a fraction, and C<ms>, C<s>, C<m>, C<h> or C<d>, in capitals or not. Undef if
the text is none.

=head2 whole_seconds

The same of a time that is sent to clients, such as a max-age: undef also if it is negative or has a fraction of a second.

=head1 SEE ALSO

L<Sirius::CLI::Ctl>, L<Sirius::CLI::Top>.

=cut
