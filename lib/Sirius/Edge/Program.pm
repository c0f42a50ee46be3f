package Sirius::Edge::Program;

use strict;
use warnings;

use Sirius::Log ();
use Sirius::OS::Inherit;
use Sirius::OS::Invocation;

# Where the files are installed, noted before an application can change @INC
my @FOLDERS = Sirius::OS::Invocation->folders;

# A new build is another file
sub build {
    my $self = shift;
    return $self->{build} if ref $self;
    my $path = $self->find // return '';
    return _identity($path);
}

# What has to stay open when this process becomes a new program
sub descriptors {
    return grep {defined} shift->{fh};
}

# What to execute: the file that was kept, although another one may have its name by now
sub file {
    my $self = shift;
    my ( $path, $fh ) = @{$self}{qw(path fh)};
    return $path if !$fh || _identity($path) eq $self->{build};
    my $open = '/proc/self/fd/' . fileno $fh;
    return -e $open ? $open : $path;
}

sub find {
    for my $dir (@FOLDERS) {
        my $path = "$dir/auto/Sirius/sirius-edge";
        return $path if -x $path;
    }
    return;
}

# The program that is installed now, kept open. Undef if there is none
sub keep {
    my $class = shift;
    my $path  = $class->find // return;
    my $self  = bless { build => _identity($path), path => $path }, $class;
    open my $fh, '<:raw', $path or return $self;    ## no critic (RequireBriefOpen)
    @{$self}{qw(build fh)} = ( _identity($fh), $fh );
    return $self;
}

sub path {
    my $class = shift;
    return $class->find
        || Sirius::Log->fail('sirius-edge is not installed beside Sirius.so: reinstall Sirius');
}

# Several edges may have the same
sub restore {
    my ( $class, $state, $known ) = @_;
    return if !$state;
    my $fd = $state->{fd};
    return $known->{ $fd // '' } ||= bless {
        build => $state->{build},
        path  => $state->{path},
        fh    => defined $fd ? Sirius::OS::Inherit->take_handle($fd) : undef,
    }, $class;
}

sub state {
    my $self = shift;
    return { build => $self->{build}, fd => $self->{fh} && fileno $self->{fh}, path => $self->{path} };
}

# Of a path or handle; empty if there is none
sub _identity {
    my @stat = stat shift or return '';
    return "@stat[ 0, 1, 7, 9 ]";
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Program - the program sirius-edge, as it is installed, or as it was when the server has started

=head1 SYNOPSIS

  my $path = Sirius::Edge::Program->path;

  my $program = Sirius::Edge::Program->keep;
  ... $program->file ...    # later, when another build may be installed

=head1 DESCRIPTION

C<sirius-edge> is installed beside the shared library of Sirius. Its source is in F<src/edge>; it contains no Perl.

A server that runs must not be affected by the installation of another version until it is reloaded. So the supervisor keeps the
program open that it has started, and starts the same one when an edge or the keeper of keys has ended, whatever file has the name by
then. A reload changes to the program that is installed.

=head1 METHODS

=head2 build

Text that is another one for another build: of the object, or of what is installed; empty if nothing is.

=head2 descriptors, restore, state

For the next program of the supervisor.

  my $program = Sirius::Edge::Program->restore( $state, \%known );

C<%known> collects what was restored, as several edges may share it.

=head2 file

The path to execute: that of the installed file if it is still the same, otherwise that of the open descriptor in F</proc>.

=head2 find

The path of the program; nothing if it is not installed.

=head2 keep

Keeps the program that is installed now. Undefined if there is none.

=head2 path

The path of the program. Dies if it is not installed.

=head1 SEE ALSO

L<Sirius::Edge::Group>.

=cut
