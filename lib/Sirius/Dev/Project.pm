package Sirius::Dev::Project;

use strict;
use warnings;

use Cwd ();
use Sirius::Dev::Files;

use constant HEAD => 4096;    # bytes of a program in which its framework is looked for

# In a folder of the project, such as lib or script: the application of the one above
sub above {
    my ( $class, $folder ) = @_;
    my $above = Cwd::realpath("$folder/..");
    return if !defined $above || Sirius::Dev::Files->is_common($above);
    my ( $app, @several ) = $class->find($above);
    return $app // $several[0];
}

# The application of this folder, and the folders of its modules. More than one: files, and undef first. None:
# nothing
sub find {
    my ( $class, $folder ) = @_;
    for my $names ( _named($folder), [ _catalyst($folder) ], [ _mojolicious($folder) ] ) {
        next                      if !@$names;
        return ( undef, @$names ) if @$names > 1;
        my ($name) = @$names;
        return $name, $name =~ /\A[^\/]+[.]psgi\z/ && $name ne 'app.psgi' && -d "$folder/lib" ? 'lib' : ();
    }
    return;
}

# What find looks for
sub names {
    return 'app.psgi, bin/app.psgi, another file *.psgi, or a program of Mojolicious (*.pl, script/*)';
}

# catalyst.pl writes PROJECT.psgi, which relies on -I lib
sub _catalyst { return _files( shift, '', qr/[.]psgi\z/ ) }

sub _files {
    my ( $folder, $below, $pattern ) = @_;
    opendir my $dir, "$folder/$below" or return;
    my @names = grep { $_ =~ $pattern && !/\A[.]/ && -f "$folder/$below$_" } readdir $dir;
    closedir $dir;
    return map {"$below$_"} sort @names;
}

sub _is_mojolicious {
    my $path = shift;
    open my $in, '<:raw', $path or return 0;
    read $in, my $head, HEAD;
    close $in;
    return ( $head // '' ) =~ /^\s*(?:use|require)\s+(?:Mojolicious::(?:Lite|Commands)|Mojo::Server\b)/m
        ? 1
        : 0;
}

# mojo generate lite-app writes myapp.pl, mojo generate app script/PROJECT
sub _mojolicious {
    my $folder = shift;
    return grep { _is_mojolicious("$folder/$_") } _files( $folder, 'script/', qr/./ ),
        _files( $folder, '', qr/[.]pl\z/ );
}

# dancer2 gen writes bin/app.psgi
sub _named {
    my $folder = shift;
    return map { -f "$folder/$_" ? [$_] : [] } qw(app.psgi bin/app.psgi);
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Project - finds the application in the folder of a project

=head1 SYNOPSIS

  my ( $app, @include ) = Sirius::Dev::Project->find('.');

=head1 DESCRIPTION

C<sirius dev> without the name of an application takes the first of these that is there:

=over 4

=item *

F<app.psgi>;

=item *

F<bin/app.psgi>, of C<dancer2 gen>;

=item *

the only other file F<*.psgi>, as F<myapp.psgi> of F<catalyst.pl>, with C<-I lib> if there is a F<lib>;

=item *

the only program of Mojolicious, F<script/my_app> of C<mojo generate app> or F<myapp.pl> of C<mojo generate lite-app>.

=back

=head1 METHODS

=head2 above

  my $app = Sirius::Dev::Project->above($folder);

The application of the folder above, relative to that, or undef. In a folder where others write, too, such as the one for temporary
files, none is looked for.

=head2 find

  my ( $app, @more ) = Sirius::Dev::Project->find($folder);

The application, relative to the folder, and the folders for C<-I>. If several files could be meant, undef and these files; if there
is none, nothing.

=head2 names

The names of files that are looked for, for messages.

=head1 SEE ALSO

L<Sirius::CLI::Runner>.

=cut
