package Sirius::Edge::Program;

use strict;
use warnings;

use Sirius::Log ();
use Sirius::OS::Invocation;

# Where the files are installed, noted before an application can change @INC
my @FOLDERS = Sirius::OS::Invocation->folders;

# A new build is another file
sub build {
    my $class = shift;
    my $path  = $class->find // return '';
    my @stat  = stat $path or return '';
    return "@stat[ 0, 1, 7, 9 ]";
}

sub find {
    for my $dir (@FOLDERS) {
        my $path = "$dir/auto/Sirius/sirius-edge";
        return $path if -x $path;
    }
    return;
}

sub path {
    my $class = shift;
    return $class->find
        || Sirius::Log->fail('sirius-edge is not installed beside Sirius.so: reinstall Sirius');
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Program - the program sirius-edge, as it is installed

=head1 SYNOPSIS

  my $path = Sirius::Edge::Program->path;

=head1 DESCRIPTION

C<sirius-edge> is installed beside the shared library of Sirius. Its source is in F<src/edge>; it contains no Perl.

=head1 METHODS

=head2 build

Text that is another one when another build has been installed; empty if none is installed.

=head2 find

The path of the program; nothing if it is not installed.

=head2 path

The path of the program. Dies if it is not installed.

=head1 SEE ALSO

L<Sirius::Edge::Group>.

=cut
