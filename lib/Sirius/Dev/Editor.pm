package Sirius::Dev::Editor;

use strict;
use warnings;

use File::Basename qw(basename);

# What the programs have registered with the desktop. %f: the path, which begins with a slash; %l: the line
my %URL = (
    cursor            => 'cursor://file%f:%l',
    emacs             => 'emacs://open?url=file://%f&line=%l',
    idea              => 'idea://open?file=%f&line=%l',
    sublime           => 'subl://open?url=file://%f&line=%l',
    vscode            => 'vscode://file%f:%l',
    'vscode-insiders' => 'vscode-insiders://file%f:%l',
    vscodium          => 'vscodium://file%f:%l',
    zed               => 'zed://file%f:%l',
);

# Of VISUAL and EDITOR: those that are not in the terminal, and are known to open such a URL
my %PROGRAM = (
    code            => 'vscode',
    'code-insiders' => 'vscode-insiders',
    codium          => 'vscodium',
    cursor          => 'cursor',
    idea            => 'idea',
    subl            => 'sublime',
    zed             => 'zed',
);

# These run code in the page
my $UNSAFE = qr/\A(?:data|javascript|vbscript):/i;

sub href {
    my ( $self, $file, $line ) = @_;
    return if !defined $self->{url};
    my %as = ( f => $file =~ s{([^\w/.~-])}{sprintf '%%%02X', ord $1}gear, l => $line + 0 );
    return $self->{url} =~ s/%([fl])/$as{$1}/gr;
}

# What --editor says; without it what the variables of the user say. Dies of what is no editor
sub new {
    my ( $class, $given, $env ) = @_;
    my $name = length( $given // '' )            ? $given : _guess( $env || \%ENV );
    my $url  = !defined $name || $name eq 'none' ? undef  : $URL{$name} // $name;
    die
        "'$name' is neither the name of an editor (@{[ join ', ', sort keys %URL ]}, none) nor a URL with %f\n"
        if defined $url
        && ( $url !~ /\A[a-z][a-z\d+.-]*:.*%f/is || $url =~ $UNSAFE || $url =~ /[\0-\x20\x7f]/ );
    return bless { url => $url }, $class;
}

sub _guess {
    my $env = shift;
    for my $words ( grep { length( $_ // '' ) } @{$env}{qw(VISUAL EDITOR)} ) {
        my ($program) = split q( ), $words;
        my $name      = $PROGRAM{ basename( $program // '' ) };
        return $name if defined $name;
    }
    return ( $env->{TERM_PROGRAM} // '' ) eq 'vscode' ? 'vscode' : undef;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Editor - links that open a file in an editor

=head1 SYNOPSIS

  my $editor = Sirius::Dev::Editor->new('vscode');
  my $url    = $editor->href( '/srv/shop/app.psgi', 12 );

=head1 DESCRIPTION

Editors on a desktop open files by URLs of a scheme of their own. Which one it is, C<--editor> says (or C<SIRIUS_EDITOR>): C<vscode>,
C<vscode-insiders>, C<vscodium>, C<cursor>, C<idea>, C<zed>, C<sublime>, C<emacs>, or a URL, in which C<%f> is the path and C<%l> the
line. C<none> means no links. Without it the variables C<VISUAL> and C<EDITOR> are asked, and C<TERM_PROGRAM>, which the terminal in
VS Code sets.

=head1 METHODS

=head2 href

  my $url = $editor->href( $path, $line );

The URL, with all of the path that is not plain escaped; undef if there is no editor.

=head2 new

  my $editor = Sirius::Dev::Editor->new( $given, \%env );

Dies with a reason if C<$given> is neither a name nor a URL, or a URL that runs code.

=head1 SEE ALSO

L<Sirius::Dev::Source>.

=cut
