package Sirius::Base::Page;

use strict;
use warnings;

use Digest::SHA qw(sha256_base64);

sub assemble {
    my ( $class, $folder, $name ) = @_;
    my $html = _read("$folder/$name");
    my %hash = ( script => [], style => [] );
    my $put  = sub {
        my ( $element, $file ) = @_;
        my $text = _read("$folder/$file");
        push @{ $hash{$element} }, q{'sha256-} . sha256_base64($text) . q{='};
        return "<$element>$text</$element>";
    };
    $html =~ s{<link rel="stylesheet" href="([\w./]+)">}{ $put->( style => $1 ) }ge;
    $html =~ s{<script src="([\w.]+)"></script>}{ $put->( script => $1 ) }ge;
    my $policy = join '; ', 'img-src data:', "script-src @{ $hash{script} }", "style-src @{ $hash{style} }",
        q{require-trusted-types-for 'script'; trusted-types 'none'};
    return ( $html, $policy );
}

sub _read {
    my $file = shift;
    open my $fh, '<:raw', $file or die "sirius: $file: $!\n";
    local $/ = undef;
    my $text = readline $fh;
    close $fh or die "sirius: $file: $!\n";
    return $text;
}

1;

=encoding utf8

=head1 NAME

Sirius::Base::Page - a page of files that stand beside a module, as one document

=head1 SYNOPSIS

  use Sirius::Base::Page;

  my ( $html, $policy ) = Sirius::Base::Page->assemble( $folder, 'page.html' );

=head1 METHODS

=head2 assemble

  my ( $html, $policy ) = Sirius::Base::Page->assemble( $folder, $name );

The style sheets and scripts to which the file refers stand in it; F<../Base/page.css> is for all pages. The Content-Security-Policy has them by their hashes: nothing else may
run, and text is never made HTML; C<default-src> is to be added. Dies with one line if a file is missing.

=head1 SEE ALSO

L<Sirius::Admin::App>, L<Sirius::Profile::FlameGraph>.

=cut
