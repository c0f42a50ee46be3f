package Sirius::Profile::Label;

use strict;
use warnings;

use Encode   qw(FB_CROAK decode);
use JSON::PP ();

my $JSON = JSON::PP->new->allow_nonref->ascii;

# Where perl and CPAN clients install modules
my $INSTALLED = qr{(?:\A|/)(?:share|lib(?:/[^/]+)?)/perl5?/|/(?:site|vendor)_perl/};

# A name, a space, and a place. A name has no space but in parentheses, as (sort block), and in the brackets
# of a closure, which are mostly of the same file
my $PLACED = qr/\A
    (?<name> \([^()]*\) | \S*?__ANON__\[(?<own>.+):[0-9]+\](?=[ ]\g{own}:[0-9]+\z) | \S*?__ANON__\[.+?:[0-9]+\](?=[ ]) | \S+ )
    [ ](?<file>.+):(?<line>[0-9]{1,9})\z/sx;

# JSON::PP takes 20 us for each, and most need nothing of it
sub json {
    my ( $class, $label ) = @_;
    return qq("$label") if $label !~ /[^ !#-;=?-\[\]-~]/;
    my $text = $JSON->encode( $class->text($label) );
    $text =~ s/([<>&])/sprintf '\u%04x', ord $1/ge;
    return $text;
}

sub kind {
    my ( $class, $label ) = @_;
    my ( $name,  $file )  = $class->parts($label);
    return 'c'     if $name =~ /[ ]\((?:XS|C|method)\)\z/;
    return 'eval'  if $name =~ /\A\((?:eval|require)\)\z|(?:\A|::)BEGIN\z/;
    return 'other' if $name =~ /\A(?:\((?:moved|server)\)|[.]{3})\z/;
    return defined $file && $file =~ $INSTALLED ? 'module' : 'app';
}

sub parts {
    my ( $class, $label ) = @_;
    return $label =~ $PLACED ? ( @+{qw(name file line)} ) : ($label);
}

# Not what has been shown is a label: its name may have spaces
sub shown {
    my ( $class, $label ) = @_;
    return $label if index( $label, '\x20' ) < 0;
    my ( $name, @place ) = $class->parts($label);
    return join q( ), $name =~ s/\\x20/ /gr, @place ? join ':', @place : ();
}

# Names, files and paths are bytes, mostly of UTF-8
sub text {
    my ( $class, $label ) = @_;
    return $label if $label !~ /[^\0-\x7f]/ || utf8::is_utf8($label);
    return eval { decode( 'UTF-8', my $bytes = $label, FB_CROAK ) } // $label;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Label - the label of a frame: a sub, and where it was

=head1 SYNOPSIS

  use Sirius::Profile::Label;

  my ( $name, $file, $line ) = Sirius::Profile::Label->parts('Shop::list lib/Shop.pm:12');

=head1 METHODS

=head2 json

  my $string = Sirius::Profile::Label->json($label);

L</text> as a string of JSON, in ASCII, without a character that means something to HTML.

=head2 kind

  my $kind = Sirius::Profile::Label->kind($label);

What runs there: C<app>, the code of the application; C<module>, a module that is installed where perl and CPAN clients install;
C<c>, a function in C; C<eval>, a string that is evaluated, or code that is loaded; C<other>, frames that were not read. Not for the first
frame of a stack, which is a request.

=head2 parts

  my ( $name, $file, $line ) = Sirius::Profile::Label->parts($label);

The last two only if the label has them. In a name C<\x20> stands for a space.

=head2 shown

  print Sirius::Profile::Label->shown('Shop::try\x20{...} lib/Shop.pm:12');    # Shop::try {...} lib/Shop.pm:12

For readers: with spaces in its name. It is no label any more.

=head2 text

  my $characters = Sirius::Profile::Label->text($label);

Bytes that are valid UTF-8 as characters, other bytes as Latin-1.

=head1 SEE ALSO

L<Sirius::Profile::Samples>.

=cut
