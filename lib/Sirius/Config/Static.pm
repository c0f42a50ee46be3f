package Sirius::Config::Static;

use strict;
use warnings;

use Cwd        ();
use Errno      qw(EACCES);
use File::Spec ();
use Sirius::Base::Text;

use constant { CHARSET_MAX => 40, FOLDERS_MAX => 64, INDEX => 'index.html' };    # src/static/mount.h

# What follows after a comma: name => what to do with the value, and whether it may be left out
my %OPTION = (
    'charset'      => \&_charset,
    'follow-links' => \&_links,
    'immutable'    => \&_flag,
    'index'        => \&_index,
    'max-age'      => \&_max_age,
    'pass-through' => \&_flag,
);

# Undef, or what is wrong with the directory
sub locate {
    my ( $class, $folder, $from ) = @_;
    my $dir = $folder->{dir} = File::Spec->rel2abs( $folder->{dir}, grep {defined} $from );
    stat $dir or return "cannot open '$dir': $!";
    return "'$dir' is not a directory"                           if !-d _;
    return "cannot open '$dir': " . do { local $! = EACCES; $! } if !-x _;
    return;
}

sub parse {
    my ( $class, $value ) = @_;
    my ( @folders, %seen );
    for my $text ( ref $value eq 'ARRAY' ? @$value : $value ) {
        my $folder = $class->_one($text);
        die "the prefix '$folder->{prefix}' is given twice\n" if $seen{ $folder->{prefix} }++;
        push @folders, $folder;
    }
    die scalar(@folders) . ' folders are too many: the maximum is ' . FOLDERS_MAX . "\n"
        if @folders > FOLDERS_MAX;
    return \@folders;
}

# The directory of an ACME client
sub webroot {
    my ( $class, $dir )  = @_;
    my ( $path,  @flag ) = _place($dir);
    return join '=', join( ',', @flag, 'webroot', 'charset:' ), '/.well-known/acme-challenge', $path;
}

sub words {
    my ( $class, $folders, $changes ) = @_;
    my @words;
    for my $folder ( @{ $folders || [] } ) {
        my ( $path, @flag ) = _place( $folder->{dir} );
        push @flag, map {"$_:$folder->{$_}"} grep { defined $folder->{$_} } qw(charset index max-age);
        push @flag, 'immutable' if $folder->{immutable};
        @flag = ( 'no-cache', grep { !/\A(?:immutable\z|max-age:)/ } @flag ) if $changes;
        push @flag,  'links' . ( $folder->{links} eq 'all' ? ':all' : q() ) if $folder->{links};
        push @flag,  'pass'                                                 if $folder->{'pass-through'};
        push @words, join '=', join( ',', @flag ), $folder->{prefix}, $path;
    }
    return @words;
}

sub _charset {
    my ( $folder, $name, $value ) = @_;
    die "charset needs a value, such as charset=utf-8\n" if !defined $value;
    die "'$value' is not the name of a charset\n"
        if $value !~ /\A[\w.+-]+\z/a || length $value > CHARSET_MAX;
    $folder->{charset} = $value eq 'none' ? '' : $value;
    return;
}

sub _flag {
    my ( $folder, $name, $value ) = @_;
    die "$name takes no value\n" if defined $value;
    $folder->{$name} = 1;
    return;
}

sub _index {
    my ( $folder, $name, $value ) = @_;
    $value = INDEX if !defined $value;
    die "'$value' is not a name for an index: use that of a file in the directory, such as index.html\n"
        if $value !~ m{\A[^.=/:\\[:cntrl:]][^=/:\\[:cntrl:]]*\z};
    $folder->{index} = $value;
    return;
}

sub _links {
    my ( $folder, $name, $value ) = @_;
    die "'$value' is not a kind of links: use follow-links, or follow-links=all\n"
        if defined $value && $value ne 'all';
    $folder->{links} = $value // 'beneath';
    return;
}

sub _max_age {
    my ( $folder, $name, $value ) = @_;
    my $seconds = Sirius::Base::Text->whole_seconds( $value // '' )
        // die "max-age needs a time, such as max-age=600, max-age=1h or max-age=30d\n";
    die "max-age=$value is too large: the maximum is 9999999999\n" if $seconds > 9_999_999_999;
    $folder->{'max-age'} = $seconds;
    return;
}

sub _one {
    my ( $class,  $text )    = @_;
    my ( $given,  @options ) = split /,/, $text, -1;
    my ( $prefix, $dir )     = split /=/, $given // '', 2;
    die "'$text' is not a prefix and a directory: use one such as /assets=public\n" if !defined $dir;
    die "'$text' names no directory: use one such as /assets=public\n"              if !length $dir;
    die "the name of the directory contains a line break\n"                         if $dir =~ /\n/;
    my %folder = ( prefix => _prefix($prefix), dir => $dir );
    for my $option (@options) {
        my ( $name, $value ) = split /=/, $option, 2;
        my $code = $OPTION{ $name // '' }
            or die "'$option' is not an option of a directory: use " . join( ', ', sort keys %OPTION ) . "\n";
        $code->( \%folder, $name, $value );
    }
    die "immutable and max-age cannot be combined: immutable is for a year\n"
        if $folder{immutable} && defined $folder{'max-age'};
    $folder{'pass-through'} = 1 if $folder{prefix} eq '/';    # or nothing would be left to the application
    return \%folder;
}

# Which folder it is belongs to the settings: a link to the newest release leads to another one after a reload
sub _place {
    my $dir  = shift;
    my $path = Cwd::realpath($dir) // $dir;
    my @stat = stat $path;
    return $path, @stat ? "id:$stat[0]-$stat[1]" : ();
}

# As the path of a request says it when it is decoded
sub _prefix {
    my $prefix = shift;
    die "the prefix '$prefix' does not begin with a slash: did you mean /$prefix?\n" if $prefix !~ m{\A/};
    die "the prefix '$prefix' contains a character that cannot be in one\n"
        if $prefix =~ /[[:cntrl:]%?#\\]/;
    die "the prefix '$prefix' contains an empty name, . or ..\n" if $prefix =~ m{//|/\.{1,2}(?:/|\z)};
    return $prefix =~ s{(?<=.)/\z}{}r;
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Static - the directories of --static

=head1 SYNOPSIS

  use Sirius::Config::Static;

  my $folders = Sirius::Config::Static->parse( [ '/assets=public/assets,immutable', '/=public' ] );
  my @words   = Sirius::Config::Static->words($folders);

=head1 DESCRIPTION

Reads the values of C<--static>: C<PREFIX=DIR>, and options after commas. A comma cannot be part of the name of the
directory.

=over

=item charset=NAME

The charset of files whose type is C<text/...>: C<utf-8> unless it is given, C<none> for none.

=item follow-links, follow-links=all

Follows symbolic links that lead to files within the directory; or all of them.

=item immutable

The files never change: a changed file has another name.

=item index, index=FILE

The file that is served for a directory: F<index.html>, or this one.

=item max-age=SECONDS

For how long a client may use a file without asking again; a number with C<s>, C<m>, C<h> or C<d>.

=item pass-through

What is not there, and requests with methods other than GET and HEAD, go to the application. This is always so for the
prefix C</>.

=back

=head1 METHODS

=head2 locate

  my $error = Sirius::Config::Static->locate( $folder, $chdir );

Makes its C<dir> an absolute path, as seen from this directory if it is defined, and else from that of the process. Returns why it
cannot be opened, or nothing.

=head2 parse

  my $folders = Sirius::Config::Static->parse( \@values );

A list of hashes with C<prefix>, C<dir> as it was given, and the options. Dies with what is wrong.

=head2 webroot

  my $word = Sirius::Config::Static->webroot($dir);

The directory of C<--acme-webroot> as such a text.

=head2 words

  my @words = Sirius::Config::Static->words( $folders, $changes );

The same as texts for an edge, one for each directory, as it is at this moment: a directory that another one has been put in
place of makes another word. If C<$changes> is true, somebody works on the files: C<Cache-Control> is C<no-cache> for all of them.

=head1 SEE ALSO

L<Sirius::Config::Type>, L<Sirius::Edge::Setup>.

=cut
