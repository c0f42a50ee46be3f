package Sirius::Dev::Broken;

use strict;
use warnings;

use File::Spec ();
use Sirius::Dev::ErrorPage;
use Sirius::Dev::Source;

use constant {
    AROUND   => 6,         # lines before and after the one at fault
    TEXT_MAX => 16_000,    # bytes of the message
};

my $SOURCE = 'Sirius::Dev::Source';
my $TITLE  = 'The application does not load';

# As PSGI: an application that answers every request with this
sub app {
    my ( $self, $editor ) = @_;
    my %body = ( 'text/html' => $self->html($editor), 'text/plain' => $self->plain );
    return sub {
        my $type = $SOURCE->wants_html( shift->{HTTP_ACCEPT} ) ? 'text/html' : 'text/plain';
        return Sirius::Dev::ErrorPage->response( $type, $body{$type} );
    };
}

# What perl has died of: where, and the lines around. Of several files the first of the project, as a fault in
# it is often found by the code of others
sub because {
    my ( $class, $error, $files ) = @_;
    my $text = $SOURCE->bytes($error);
    $text =~ s/\AError while loading (?:[^\n]+?): (?=.)//s;
    $text =~ s/\s+\z//;
    $text = 'unknown error' if !length $text;
    $text .= _hint($text);
    my $self = bless { text => substr( $text, 0, TEXT_MAX ) }, $class;
    my @places;

    while ( $text =~ /(?: at |in file )(\S.*?),? line (\d+)(?=[.,:;)\s]|\z)/g ) {
        my ( $file, $line ) = ( $1, $2 );
        push @places, [ File::Spec->rel2abs($file), $line + 0 ]
            if -f $file;    # for processes in other directories
    }
    my ($own) = grep { $files && $files->is_inside( $_->[0] ) } @places;
    my $place = $own || $places[0] or return $self;
    @{$self}{qw(file line)} = @$place;
    $self->{source} = [ $SOURCE->lines( @$place, AROUND ) ];
    return $self;
}

sub data { return { %{ +shift } } }

sub html {
    my ( $self, $editor ) = @_;
    my ( $file, $line )   = @{$self}{qw(file line)};
    my $body = '<pre>' . $SOURCE->escaped( $self->{text} ) . "</pre>\n";
    $body
        .= '<h2>'
        . $SOURCE->link( $editor, "$file, line $line", $file, $line )
        . "</h2>\n"
        . $SOURCE->html( $line, @{ $self->{source} } )
        if defined $file;
    $body .= '<h2>It printed</h2><pre>' . $SOURCE->escaped( $self->{said} ) . "</pre>\n"
        if length( $self->{said} || '' );
    $body .= "<p>Save a corrected file: the next request is answered by the new code.</p>\n";
    return Sirius::Dev::ErrorPage->html( title => $TITLE, body => $body );
}

sub plain {
    my $self = shift;
    return "$TITLE\n\n" . $self->_text( $SOURCE->painter(0) );
}

# The process has ended without a word of perl
sub process {
    my ( $class, $how, $said, $files ) = @_;
    my $self = $class->because( $how, $files );
    $said =~ s/\A\s+|\s+\z//g;
    $self->{said} = substr $said, 0, TEXT_MAX;
    return $self;
}

sub restore {
    my ( $class, $data ) = @_;
    return bless {%$data}, $class;
}

# For the log; on a terminal with colours
sub terminal {
    my ( $self, $colours ) = @_;
    my $paint = $SOURCE->painter($colours);
    return $paint->( at => $TITLE ) . ":\n" . $self->_text($paint);
}

# The usual reason for a module that is not found
sub _hint {
    my ($path) = shift =~ /\ACan't locate (\w[\w\/]*[.]pm) in \@INC/ or return '';
    return -f "lib/$path"
        ? "\n\nThe file lib/$path is there: start sirius dev with -I lib, or put use lib 'lib' into the application."
        : '';
}

sub _text {
    my ( $self, $paint ) = @_;
    my $text = $SOURCE->printable( $self->{text} ) . "\n";
    $text .= "\n$self->{file}:\n" . $SOURCE->text( $paint, $self->{line}, @{ $self->{source} } )
        if defined $self->{file};
    $text .= "\nIt printed:\n" . $SOURCE->printable( $self->{said} ) . "\n" if length( $self->{said} || '' );
    return $text;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Broken - why an application does not load, as a page and as text

=head1 SYNOPSIS

  my $broken = Sirius::Dev::Broken->because( $@, $files );
  print STDERR $broken->terminal(1);
  my $app = $broken->app;

=head1 DESCRIPTION

The message of perl, the first file of the project that it names, or else the first file, and the lines around the one at fault.

=head1 METHODS

=head2 app

  my $app = $broken->app($editor);

A PSGI application that answers every request with status 500: with a page, whose files are links to the L<Sirius::Dev::Editor>, if the
client accepts C<text/html> by name, else with plain text.

=head2 because

  my $broken = Sirius::Dev::Broken->because( $exception, $files );

Reads the lines of the file at once. C<$files> is a L<Sirius::Dev::Files>, or undef.

=head2 data, restore

  my $copy = Sirius::Dev::Broken->restore( $broken->data );

What can be sent to another process, and the way back.

=head2 html, plain, terminal

The texts, as bytes. C<terminal> takes whether colours are wanted.

=head2 process

  my $broken = Sirius::Dev::Broken->process( 'generation 3 was killed by SIGSEGV', $printed, $files );

Of a process that has ended in another way, and what it had printed. The words may have a place, as those of L</because>.

=head1 SEE ALSO

L<Sirius::Dev::Reload>.

=cut
