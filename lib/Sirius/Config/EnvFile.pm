package Sirius::Config::EnvFile;

use strict;
use warnings;

use Sirius::Config::Options;

# What stands for other bytes between double quotes
my %ESCAPE = ( n => "\n", r => "\r", t => "\t", map { $_ => $_ } qw(" $ \\ `) );

# Errors name only the number of a line, never its text, which may be a part of a key
sub read {
    my ( $class, @paths ) = @_;
    my $self = bless { place => {}, value => {} }, $class;
    $self->_file($_) for @paths;
    return $self;
}

# What is in the environment already has been set by somebody who is closer to the command than the file
sub set {
    my ( $self, $env ) = @_;
    my @names = grep { !exists $env->{$_} } sort keys %{ $self->{value} };
    $env->{$_} = $self->{value}{$_} for @names;
    return map { $_ => $self->{place}{$_} } @names;
}

sub _fail {
    my ( $path, $number, $why ) = @_;
    return Sirius::Config::Options->fail("--env-file $path, line $number: $why");
}

sub _file {
    my ( $self, $path ) = @_;
    my $text = _text($path);
    my ( $value, $place ) = @{$self}{qw(value place)};
    my $number = 1;
    pos($text) = 0;
    while ( pos $text < length $text ) {
        my $start = $number;
        if ( $text =~ /\G[ \t]*(?:[#;][^\n]*)?(?:\n|\z)/gc ) { $number++; next }
        $text =~ /\G[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=/agc
            or
            _fail( $path, $number, 'not NAME=VALUE, where NAME consists of letters, digits and underscores' );
        my $name = $1;
        ( $value->{$name}, my $lines ) = _value( \$text, $path, $number );
        $place->{$name} = "$path, line $start";
        $number += $lines;
        $text =~ /\G[ \t]*(?:#[^\n]*)?(?:\n|\z)/gc
            or _fail( $path, $number, "there is more text after the quoted value of $name" );
        $number++;
    }
    return;
}

sub _text {
    my $path = shift;
    open my $fh, '<:raw', $path or Sirius::Config::Options->fail("--env-file $path: $!");
    Sirius::Config::Options->fail("--env-file $path: is a directory") if -d $fh;
    my $text = do { local $/ = undef; readline $fh };
    close $fh or Sirius::Config::Options->fail("--env-file $path: $!");
    $text = '' if !defined $text;
    _fail( $path, 1 + ( substr( $text, 0, $-[0] ) =~ tr/\n// ), 'contains a NUL byte' ) if $text =~ /\0/;
    $text =~ s/\A\xef\xbb\xbf//;
    $text =~ s/\r\n/\n/g;
    return $text;
}

# One value, from where the text stands, and how many ends of lines are in it
sub _value {
    my ( $text, $path, $number ) = @_;
    if ( $$text =~ /\G[ \t]*'/gc ) {
        $$text =~ /\G([^']*)'/gc or _fail( $path, $number, q(the quote ' is not closed) );
        return ( $1, $1 =~ tr/\n// );
    }
    if ( $$text =~ /\G[ \t]*"/gc ) {
        $$text =~ /\G([^"\\]*(?:\\.[^"\\]*)*)"/gcs or _fail( $path, $number, 'the quote " is not closed' );
        my ( $value, $lines ) = ( $1, $1 =~ tr/\n// );
        $value =~ s/\\(.)/exists $ESCAPE{$1} ? $ESCAPE{$1} : "\\$1"/ges;
        return ( $value, $lines );
    }

    # A # is part of the value unless white space is before it: a colour, a URL and a password may have one
    $$text =~ /\G([^\n]*)/gc;
    my $value = $1;
    pos($$text) = pos $$text;    # else perl would not let another empty match begin where this one was
    return ( $value =~ s/[ \t]+#.*//r =~ s/\A[ \t]+|[ \t]+\z//gr, 0 );
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::EnvFile - environment variables from a file

=head1 SYNOPSIS

  use Sirius::Config::EnvFile;

  my %place = Sirius::Config::EnvFile->read('/etc/shop/env')->set( \%ENV );

=head1 DESCRIPTION

Reads files of C<--env-file>:

  # the database
  DATABASE_URL=postgres://shop@db/shop
  export CACHE = 10.0.0.5:11211    # a comment
  GREETING     = "Hello\nWorld"
  PASSWORD     = 'a"b#c$d'

Each line is C<NAME=VALUE>, with C<export> in front of it or not; white space around the name and the value does not count.
Empty lines are ignored, and so are lines that begin with C<#> or C<;>. A value ends with its line, or at white space followed by
C<#>. Between single quotes everything stands for itself. Between double quotes C<\n>, C<\r> and C<\t> are a line feed, a carriage
return and a tab; C<\">, C<\\>, C<\$> and C<\`> stand for the second character, and any other backslash for itself. A quoted value
may have several lines, as keys do. Nothing is expanded: C<$HOME> is these five characters. Of two lines with one name the later
one holds, and so it is with two files.

A wrong line is an error that names the file and the number of the line, and does not show the
line.

=head1 METHODS

=head2 read

  my $file = Sirius::Config::EnvFile->read(@paths);

=head2 set

  my %place = $file->set( \%env );

Adds the variables that are not there yet. Returns for each of these where it was found: C</etc/shop/env, line 3>.

=head1 SEE ALSO

L<sirius>.

=cut
