package Sirius::Dev::Files;

use strict;
use warnings;

use Cwd            ();
use File::Basename qw(basename dirname);
use File::Spec     ();

# Files of an application that perl does not load as modules, by their suffix: not what an application writes
# while it runs
my %SUFFIX = map { $_ => 1 } qw(
    al cgi fcgi pl pm pod psgi t
    ep epl handlebars hbs htm html jinja liquid mas mc mhtml mt mustache svg tmpl tpl template tt tt2 tx xhtml xml xsl xslt
    cfg cnf conf config env ini json json5 properties toml yaml yml
    css csv graphql js jsx less md mjs mo po pot proto sass scss sql svelte ts tsv tsx txt vue
);

# The files that are the code of a program, or a template
my %SOURCE = map { $_ => 1 } qw(
    al cgi ep epl fcgi handlebars hbs jinja liquid mas mc mhtml mt mustache pl pm pod psgi t tmpl tpl tt tt2 tx vue xsl xslt
);

# Folders whose style sheets go to browsers
my %PUBLIC = map { $_ => 1 } qw(htdocs public static);

# Folders of what tools write
my %TOOLS = map { $_ => 1 } qw(blib cover_db node_modules nytprof);

# Folders of what applications write, at the top or in one of the others below. Elsewhere they are names as
# any: templates/sessions
my %WRITTEN = map { $_ => 1 } qw(cache log logs session sessions tmp);
my %DATA    = map { $_ => 1 } qw(data db htdocs public run static storage upload uploads var), keys %WRITTEN;

# More than this is no application's folder
use constant FOLDERS_MAX => 4096;

# As in path_resolution(7)
use constant LINKS_MAX => 40;

# What an editor keeps beside a file: "4913" tells vim whether it may write
my $EDITORS = qr/\A(?:[.#]|4913\z)|~\z|[.](?:bak|orig|rej|sw[a-p]x?|tmp)\z|___jb_\w+\z|_flymake[.]\w+\z/;

# Folders of --static that are watched although they are not the application's
sub beside { return @{ shift->{beside} } }

# A change of this file is one of the application, or one to tell pages of
sub counts {
    my ( $self, $path ) = @_;
    my $name = basename($path);
    return 0                                                   if $self->is_excluded($path);
    return $name eq '.env' && _in_one( $path, $self->{trees} ) if $name =~ $EDITORS;
    return 1 if _in_one( $path,  $self->{watch} ) || _in_one( $path, $self->{beside} );
    return 0 if !_in_one( $path, $self->{trees} );
    return $name =~ /[.](\w+)\z/ && $SUFFIX{ lc $1 } ? 1 : 0;
}

# The folders to watch: those at the top, and all in them; undef when they are too many
sub folders {
    my ( $self, @from ) = @_;
    my %asked = map { $_ => 1 } @{ $self->{watch} };
    my @left  = @from;
    if ( !@from ) {
        @left = ( @{ $self->{flat} }, @{ $self->{deep} },
            map { -d $_ ? $_ : dirname($_) } @{ $self->{watch} } );
    }
    my %flat = map { $_ => 1 } @{ $self->{flat} }, map { dirname($_) } grep { !-d } @{ $self->{watch} };
    delete @flat{ @{ $self->{deep} }, grep {-d} @{ $self->{watch} } };
    my ( %seen, @all );
    while ( defined( my $folder = shift @left ) ) {
        next if $seen{$folder}++;
        push @all, $folder;
        return if @all > FOLDERS_MAX;
        next   if $flat{$folder};
        opendir my $dir, $folder or next;
        for my $name ( readdir $dir ) {
            my $path = "$folder/$name";
            push @left, $path if !$self->is_left_out($path) && !-l $path && -d _;
        }
        closedir $dir;
    }
    return \@all;
}

# Whether browsers alone read it: a file below a folder of --static, a style sheet in a public folder of the
# application
sub is_asset {
    my ( $self, $path ) = @_;
    return 0 if _in_one( $path, $self->{watch} );
    return 1 if _in_one( $path, $self->{beside} );    # any file, and a folder
    return 0 if $path !~ /[.]\w+\z/;
    return 1 if _in_one( $path, $self->{static} );
    return 0 if $path !~ /[.]css\z/i;
    my ($top) = sort { length $b <=> length $a } grep { index( $path, "$_/" ) == 0 } @{ $self->{trees} };
    return defined $top && ( grep { $PUBLIC{$_} } split m{/}, substr $path, length $top ) ? 1 : 0;
}

# Where others write, too
sub is_common {
    my ( $class, $folder ) = @_;
    return scalar grep { defined && length && $folder eq $_ } '/', '/tmp', '/var/tmp', $ENV{HOME},
        File::Spec->tmpdir;
}

# A name that is never a change, even of a file that was loaded
sub is_editors {
    my ( $class, $path ) = @_;
    return basename($path) =~ $EDITORS ? 1 : 0;
}

# What --watch-exclude names
sub is_excluded {
    my ( $self, $path ) = @_;
    return _in_one( $path, $self->{exclude} );
}

# Loaded anew each time, and not once for all generations. Either name may lie in a folder: with its links, or
# without
sub is_inside {
    my ( $self, $path ) = @_;
    my @names = ( $path, _whole($path) );
    my $in    = sub {
        my @folders = @_;
        return scalar grep { _in_one( $_, \@folders ) } @names;
    };
    return 1 if $in->( @{ $self->{watch} } );
    return 0 if grep {m{/local/lib/perl5/}} @names;
    return 1 if $in->( @{ $self->{trees} }, @{ $self->{include} } );
    return 0 if grep {m{/lib/perl5/}} @names;
    return $in->( @{ $self->{libraries} } ) ? 0 : 1;
}

# Folders in which nothing counts
sub is_left_out {
    my ( $self, $path ) = @_;
    my $name = basename($path);
    return 1 if $name =~ /\A[.]/ || $self->is_excluded($path);
    return 0 if _in_one( $path, $self->{watch} );
    return 1 if $TOOLS{$name} || $name eq 'local' && -d "$path/lib/perl5";
    return $WRITTEN{$name} ? $self->_is_written($path) : 0;
}

# The symbolic links that lead to a file: it, a folder above it, or one that another of them leads to
sub links {
    my ( $class, $path ) = @_;
    my @parts = split m{/+}, File::Spec->rel2abs($path);
    my $at    = q();
    my @links;
    while ( defined( my $part = shift @parts ) ) {
        next if $part eq q() || $part eq '.';
        if ( $part eq '..' )                          { $at =~ s{/[^/]*\z}{}; next }
        if ( !-l "$at/$part" || @links >= LINKS_MAX ) { $at .= "/$part";      next }
        push @links, "$at/$part";
        my $to = readlink $links[-1];
        $at = q() if $to =~ m{\A/};
        unshift @parts, split m{/+}, $to;
    }
    return @links;
}

# app: file of the application; include: folders of -I; watch, exclude: files and folders; libraries: where
# perl looks for modules; static: folders of --static; live: pages are told of changes in all of these
sub new {
    my ( $class, %args ) = @_;
    my $self = bless {
        exclude   => [],
        include   => [],
        libraries => [],
        static    => [],
        watch     => [],
        app       => undef,
        %args
        },
        $class;
    $_ = [ map { _whole($_) } @$_ ] for @{$self}{qw(exclude include static watch)};
    my @libraries = map { ( $_, _whole($_) ) } @{ $self->{libraries} };
    $self->{libraries} = [ grep { !_in_one( $_, $self->{include} ) } @libraries ];
    my ( @deep, @flat );
    my $folder = defined $self->{app} ? dirname( _whole( $self->{app} ) ) : undef;
    if ( !defined $folder ) {
        @deep = grep {-d} map { _whole($_) } 'lib';
    } elsif ( $class->is_common($folder) ) {
        push @flat, $folder;
        push @deep, grep {-d} map {"$folder/$_"} qw(lib templates views);
    } else {
        my $parent = dirname($folder);
        my $below
            = basename($folder) =~ /\A(?:bin|script|scripts)\z/
            && -d "$parent/lib"
            && !$class->is_common($parent);
        push @deep, $below ? $parent : $folder;
    }
    @{ $self->{static} } = grep { !defined $folder || !_in_one( $folder, [$_] ) } @{ $self->{static} };
    $self->{flat}  = \@flat;
    $self->{trees} = [ @deep, @flat ];
    $self->{deep}  = [ @deep, @{ $self->{include} } ];
    push @{ $self->{trees} }, @{ $self->{include} };
    my @watched = ( @{ $self->{deep} }, @{ $self->{watch} } );
    $self->{beside}
        = [ delete $self->{live} ? grep { !_in_one( $_, \@watched ) } @{ $self->{static} } : () ];
    return $self;
}

# As somebody who works on the application knows it
sub short {
    my ( $self, $path ) = @_;
    for my $folder ( @{ $self->{trees} } ) {
        return substr $path, 1 + length $folder if index( $path, "$folder/" ) == 0;
    }
    return $path;
}

# What can be sent to another process
sub state {
    my $self = shift;
    return { map { $_ => $self->{$_} } qw(app exclude include libraries static watch) };
}

sub _in_one {
    my ( $path, $folders ) = @_;
    return scalar grep { $path eq $_ || index( $path, $_ eq '/' ? '/' : "$_/" ) == 0 } @$folders;
}

# Of a folder that an application may write to, by its name
sub _is_written {
    my ( $self, $path ) = @_;
    my ($top) = sort { length $b <=> length $a } grep { index( $path, "$_/" ) == 0 } @{ $self->{trees} };
    return 0 if !defined $top || _in_one( $top, $self->{include} );
    my @above = split m{/}, substr dirname($path), length $top;
    return 1 if grep { $DATA{$_} } @above;
    return 0 if @above > 1 || basename($top) =~ /\A(?:lib|templates|views)\z/;
    return 1 if basename($path)              =~ /\A(?:cache|tmp)\z/;
    opendir my $dir, $path or return 1;
    return ( grep { /[.](\w+)\z/ && $SOURCE{ lc $1 } && $_ !~ $EDITORS } readdir $dir ) ? 0 : 1;
}

# Without links where it is there: changes are told of the real place
sub _whole {
    my $path = File::Spec->rel2abs(shift);
    my $real = Cwd::realpath($path);
    return $real if defined $real;
    my $folder = dirname($path);    # of what is not there yet
    return $folder eq $path ? File::Spec->canonpath($path) : _whole($folder) . q(/) . basename($path);
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Files - which files and folders belong to an application

=head1 SYNOPSIS

  my $files = Sirius::Dev::Files->new( app => 'app.psgi', watch => ['templates'], libraries => [@INC] );
  my $all   = $files->folders;
  reload() if $files->counts('/srv/app/lib/App.pm');

=head1 DESCRIPTION

The folders of an application are that of its F<.psgi> file and all folders in it; the one above if the file is in F<bin>
or F<script> and there is a F<lib> beside; the folders of C<-I>; and what C<--watch> names. If the F<.psgi> file is in the
home directory, in F</> or in the folder for temporary files, only this folder itself is watched, and F<lib>, F<templates>
and F<views> in it.

In these a change of a file counts if its suffix is one of program code, templates, styles, configuration or text. In a
folder of C<--watch> any file counts. What is C<exclude>d never counts, nor does anything in it. Hidden files except F<.env>, backups and what editors put beside a file never count.
Left out are hidden folders, and F<blib>, F<cache>, F<cover_db>, F<log>, F<logs>, F<node_modules>, F<nytprof>, F<session>,
F<sessions>, F<tmp>, and a F<local> of Carton, since an application or a tool writes there.

=head1 METHODS

=head2 beside

The folders of C<--static> outside of the application, if pages are told of changes: all files in them count, and none of these is one
of the application.

=head2 counts

True if a change of the file with this path is one of the application, or one to tell pages of.

=head2 folders

  my $all = $files->folders;
  my $all = $files->folders($from);

A reference to a list of all folders to be watched, or of those below one; undef if they are more than 4,096.

=head2 is_asset

  next if $files->is_asset('/srv/app/public/shop.css');

Whether browsers alone read this file: it is below a directory of C<--static>, unless that contains the application as well, or it is a
style sheet below a folder named F<htdocs>, F<public> or F<static>. A file that C<--watch> names is none, such as the manifest of a bundler
that the application reads when it is loaded.

=head2 is_common

True for a folder that is no project's: the home directory, F</> and those for temporary files.

=head2 is_excluded

True for a path that is excluded, or lies in a folder that is.

=head2 is_editors

True for a name that an editor uses for its own files.

=head2 is_inside

True if a loaded file is the application's: it is not in a folder where perl looks for modules, unless that is among
the folders of the application.

=head2 is_left_out

True for a folder in which nothing is watched.

=head2 links

  my @links = Sirius::Dev::Files->links('current/app.psgi');

The symbolic links by which a path leads to a file, such as F</srv/current>.

=head2 new

  my $files = Sirius::Dev::Files->new(%args);

C<app>, the path of the F<.psgi> file, or undef; C<include> and C<watch>, lists of paths; C<libraries>, where perl looks for
modules; C<static>, the directories of C<--static>; C<live>, true if pages are told of changes in these wherever they are.

=head2 short

The path as seen from the folder of the application if it is in there.

=head2 state

What L</new> takes, for another process.

=head1 SEE ALSO

L<Sirius::Dev::Watcher>.

=cut
