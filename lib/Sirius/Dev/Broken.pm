package Sirius::Dev::Broken;

use strict;
use warnings;

use File::Spec ();

use constant {
    AROUND   => 6,         # lines before and after the one at fault
    LINE_MAX => 400,       # bytes of a line that are shown
    TEXT_MAX => 16_000,    # and of the message
};

my %RED   = ( on => "\e[1;31m", off => "\e[0m" );
my %DIM   = ( on => "\e[2m",    off => "\e[0m" );
my $TITLE = 'The application does not load';

# As PSGI: an application that answers every request with this
sub app {
    my ( $self, $script ) = @_;
    my %body = ( 'text/html' => $self->html($script), 'text/plain' => $self->plain );
    return sub {
        my $env  = shift;
        my $type = _wants_html( $env->{HTTP_ACCEPT} ) ? 'text/html' : 'text/plain';
        my $body = $body{$type};
        return [
            500,
            [   'Content-Type'   => "$type; charset=utf-8",
                'Content-Length' => length $body,
                'Cache-Control'  => 'no-store',
                'Vary'           => 'Accept',
            ],
            [$body]
        ];
    };
}

# What perl has died of: where, and the lines around
sub because {
    my ( $class, $error, %how ) = @_;
    my $text = _bytes($error);
    $text =~ s/\AError while loading (?:[^\n]+?): (?=.)//s;
    $text =~ s/\s+\z//;
    $text = 'unknown error' if !length $text;
    my $self = bless { text => substr( $text, 0, TEXT_MAX ) }, $class;
    while ( $text =~ /(?: at |in file )(\S.*?),? line (\d+)(?=[.,:;)\s]|\z)/g ) {
        my ( $file, $line ) = ( $1, $2 );
        next if !-f $file;
        $file = File::Spec->rel2abs($file);    # for processes in other directories
        @{$self}{qw(file line)} = ( $file, $line + 0 );
        $self->{source} = _source( $file, $line );
        last;
    }
    return $self;
}

sub data { return { %{ +shift } } }

sub html {
    my ( $self, $script ) = @_;
    my $where = '';
    if ( defined $self->{file} ) {
        my $rows = join '', map {
            sprintf qq(<tr%s><td>%d</td><td>%s</td></tr>\n), $_->[0] == $self->{line} ? ' class="at"' : '',
                $_->[0],
                _escaped( $_->[1] )
        } @{ $self->{source} };
        $where = sprintf qq(<h2>%s, line %d</h2>\n<table>\n%s</table>\n), _escaped( $self->{file} ),
            $self->{line}, $rows;
    }
    my $said
        = length( $self->{said} || '' )
        ? '<h2>It printed</h2><pre>' . _escaped( $self->{said} ) . "</pre>\n"
        : '';
    my $more = defined $script ? "$script\n" : '';
    my $text = _escaped( $self->{text} );
    return <<"HTML";
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$TITLE</title>
<style>
:root { color-scheme: light dark; --page: #f6f6f4; --card: #fff; --text: #1c1c1c; --soft: #6d6d6d; --line: #dcdcd8; --red: #b3261e; --at: #fbe3e1 }
\@media (prefers-color-scheme: dark) { :root { --page: #16181c; --card: #1f2227; --text: #e8e8e6; --soft: #9a9fa8; --line: #343941; --red: #ff8a80; --at: #4a2524 } }
body { margin: 0; padding: 2rem 1rem; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 62rem; margin: auto }
h1 { margin: 0 0 1rem; font-size: 1.4rem; color: var(--red) }
h2 { margin: 1.5rem 0 .5rem; font-size: .95rem; font-weight: 600; color: var(--soft); overflow-wrap: anywhere }
pre, table { margin: 0; padding: .8rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px; font: 14px/1.55 ui-monospace, monospace }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
table { display: block; overflow-x: auto; padding: .4rem 0; border-spacing: 0 }
td { padding: 0 1rem; white-space: pre; tab-size: 4 }
td:first-child { color: var(--soft); text-align: right; user-select: none }
.at td { background: var(--at); font-weight: 600 }
p { color: var(--soft) }
</style>
</head>
<body>
<main>
<h1>$TITLE</h1>
<pre>$text</pre>
$where$said<p>Save a corrected file: the next request is answered by the new code.</p>
</main>
$more</body>
</html>
HTML
}

sub plain {
    my $self = shift;
    return "$TITLE\n\n" . $self->_text( sub { $_[1] } );
}

# The process has ended without a word of perl
sub process {
    my ( $class, $how, $said ) = @_;
    my $self = $class->because($how);
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
    my %code = ( at => \%RED, soft => \%DIM );
    my $paint
        = sub { my ( $how, $text ) = @_; return $colours ? "$code{$how}{on}$text$code{$how}{off}" : $text };
    return $paint->( at => $TITLE ) . ":\n" . $self->_text($paint);
}

# Text to bytes, whichever it is
sub _bytes {
    my $value = shift;
    my $text  = eval {"$value"};
    $text = 'an exception that cannot be shown as text' if !defined $text;
    utf8::encode($text) if utf8::is_utf8($text);
    return length $text ? $text : 'unknown error';
}

# What is no UTF-8 is taken for Latin-1
sub _escaped {
    my $text = shift;
    my %as   = ( '&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', q(') => '&#39;' );
    if ( !utf8::decode( my $copy = $text ) ) { utf8::upgrade($text); utf8::encode($text) }
    return $text =~ s/([&<>"'])/$as{$1}/gr
        =~ s/([\0-\x08\x0b-\x1f\x7f])/sprintf '&#x%x;', ord $1 == 127 ? 0x2421 : 0x2400 + ord $1/ger;
}

# Without what a terminal would obey
sub _printable {
    my $text = shift;
    return $text =~ s/([\0-\x08\x0b-\x1f\x7f])/sprintf '\x%02x', ord $1/ger;
}

sub _source {
    my ( $file, $at ) = @_;
    my @lines;
    open my $fh, '<:raw', $file or return [];
    while ( my $line = readline $fh ) {
        last if $. > $at + AROUND;
        next if $. < $at - AROUND;
        $line =~ s/\s+\z//;
        push @lines, [ $. + 0, substr $line, 0, LINE_MAX ];
    }
    close $fh;
    return \@lines;
}

sub _text {
    my ( $self, $paint ) = @_;
    my $text = _printable( $self->{text} ) . "\n";
    if ( defined $self->{file} ) {
        $text .= "\n$self->{file}:\n";
        for my $row ( @{ $self->{source} } ) {
            my $at   = $row->[0] == $self->{line};
            my $line = sprintf '%s %4d  %s', $at ? '>' : ' ', $row->[0], _printable( $row->[1] );
            $text .= $paint->( $at ? 'at' : 'soft', $line ) . "\n";
        }
    }
    $text .= "\nIt printed:\n" . _printable( $self->{said} ) . "\n" if length( $self->{said} || '' );
    return $text;
}

# Browsers name it; other programs say */* or nothing
sub _wants_html {
    my $accept = shift;
    return 0 if !defined $accept;
    for my $range ( split /,/, $accept ) {
        my ( $type, @parameters ) = map {s/\A\s+|\s+\z//gr} split /;/, lc $range;
        next     if !defined $type || $type !~ m{\A(?:text/html|application/xhtml[+]xml)\z};
        return 1 if !grep {/\Aq\s*=\s*0(?:[.]0*)?\z/} @parameters;
    }
    return 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Broken - why an application does not load, as a page and as text

=head1 SYNOPSIS

  my $broken = Sirius::Dev::Broken->because($@);
  print STDERR $broken->terminal(1);
  my $app = $broken->app;

=head1 DESCRIPTION

The message of perl, the file that it names first, and the lines around the one at fault.

=head1 METHODS

=head2 app

  my $app = $broken->app($script);

A PSGI application that answers every request with status 500: with a page, into which C<$script> is put, if the client accepts
C<text/html> by name, else with plain text.

=head2 because

  my $broken = Sirius::Dev::Broken->because($exception);

Reads the lines of the file at once.

=head2 data, restore

  my $copy = Sirius::Dev::Broken->restore( $broken->data );

What can be sent to another process, and the way back.

=head2 html, plain, terminal

The texts, as bytes. C<terminal> takes whether colours are wanted.

=head2 process

  my $broken = Sirius::Dev::Broken->process( 'generation 3 was killed by SIGSEGV', $printed );

Of a process that has ended in another way, and what it had printed.

=head1 SEE ALSO

L<Sirius::Dev::Reload>.

=cut
