package Sirius::Dev::Exception;

use strict;
use warnings;

use Cwd          ();
use File::Spec   ();
use overload     ();
use Scalar::Util qw(blessed);
use Sirius::Dev::ErrorPage;
use Sirius::Dev::Source;

use constant {
    AROUND     => 6,          # lines before and after the one at fault
    AROUND_MAX => 1 << 16,    # bytes of a request body that are looked at
    BESIDE     => 2,          # lines around the call in a frame further out
    CALLS_MAX  => 200,        # frames that are noted: a recursion may have millions
    PLACES_MAX => 20,         # frames of the application that are shown
    TEXT_MAX   => 16_000,     # bytes of the message
    VALUE_MAX  => 2000,       # bytes of a value of the request
};

my $SOURCE = 'Sirius::Dev::Source';
my $SECRET
    = qr/pass(?:w|ph|code)|pwd|secret|token|(?:api|private)[-_]?key|authorization|credential|cookie|session|csrf/i;
my $QUOTED = qr/"(?:[^"\\]|\\.)*+"/s;

# What is meant by the words of Plack::Middleware::Lint
my $EXAMPLE = q{[ 200, [ 'Content-Type' => 'text/plain' ], ['Hello'] ]};
my @HINTS   = (
    [   qr/\AResponse (?:should|needs to) be/ =>
            "The application returns the response: its status, header fields and body, as $EXAMPLE."
    ],
    [ qr/\AHeaders needs to be/ => "Header fields are a list of names and values, as in $EXAMPLE." ],
    [ qr/\ABody should be/      => "The body is a list of strings, or a file handle, as in $EXAMPLE." ],
    [ qr/\ABody must be bytes/  => q{Text is encoded before it is sent: Encode::encode( 'UTF-8', $text ).} ],
);

# Called by a sub that a handler of __DIE__ calls: what is needed of each frame, from the inside to those of
# this package
sub calls {
    my ( $class, $until ) = @_;
    my @calls;
    for my $i ( 2 .. CALLS_MAX ) {    # after those of the handler
        my ( $package, $file, $line, $sub ) = caller $i or last;
        last if $package eq $until;
        push @calls, [ $package, $file, $line, $sub ];
    }
    return \@calls;
}

# Whether it was in the application at all
sub has_place {
    my $self = shift;
    return scalar grep { !$_->{others} } @{ $self->{places} };
}

sub html {
    my $self = shift;
    my $body = '<pre>' . $SOURCE->escaped( $self->{text} ) . "</pre>\n";
    $body .= '<h2>' . $SOURCE->escaped( $self->{request}{line} ) . "</h2>\n";
    my $open = ' open';
    for my $place ( @{ $self->{places} } ) {
        if ( $place->{others} ) {
            $body .= "<details class=\"others\"><summary>$place->{words}</summary><pre>"
                . $SOURCE->escaped( join "\n",
                map {"$_->{sub} at $_->{file} line $_->{line}"} @{ $place->{others} } )
                . "</pre></details>\n";
            next;
        }
        my $where
            = $SOURCE->link( $self->{editor}, "$place->{short}:$place->{line}", @{$place}{qw(path line)} );
        my $sub
            = defined $place->{sub}
            ? ' <span class="soft">in ' . $SOURCE->escaped( $place->{sub} ) . '</span>'
            : '';
        $body
            .= "<details$open><summary>$where$sub</summary>\n"
            . $SOURCE->html( $place->{line}, @{ $place->{source} } )
            . "</details>\n";
        $open = '';
    }
    $body .= $self->_list( $_->[0], @{ $_->[1] } ) for @{ $self->{request}{parts} };
    return Sirius::Dev::ErrorPage->html( title => $SOURCE->escaped( $self->{title} ), body => $body );
}

# error; calls of it; env: of the request; files: a Sirius::Dev::Files; editor: a Sirius::Dev::Editor
sub new {
    my ( $class, %args ) = @_;
    my $self = bless { editor => $args{editor}, files => $args{files} }, $class;
    $self->{text} = $self->_message( $args{error} );
    my $of_lint = $args{calls} && @{ $args{calls} } && $args{calls}[0][0] eq 'Plack::Middleware::Lint';
    @{$self}{qw(text title)} = ( _explained( $self->{text} ), 'The response is wrong' )
        if $of_lint && !ref $args{error};
    $self->{title} //= $args{title}
        // ( ref $args{error} ? 'Exception of ' . ref $args{error} : 'Exception' );
    $self->{places}  = [ $self->_places( $args{calls} || [] ) ];
    $self->{request} = _request( $args{env} );
    return $self;
}

sub plain { return shift->_text( $SOURCE->painter(0) ) }

# For the log; on a terminal with colours
sub terminal {
    my ( $self, $colours ) = @_;
    return $self->_text( $SOURCE->painter($colours) );
}

# Fields of a form, or what else is text
sub _body {
    my $env    = shift;
    my $length = $env->{CONTENT_LENGTH};
    return if !$length || !$env->{'psgix.input.buffered'};
    my $type = lc( $env->{CONTENT_TYPE} // '' );
    return ( "$type" => "$length bytes" ) if $length > AROUND_MAX;
    return _params( $env, 'body_parameters' )
        if $type =~ m{\A(?:application/x-www-form-urlencoded|multipart/form-data)\b};
    return ( $type => "$length bytes" ) if $type !~ m{\A(?:text/|application/(?:[\w.-]+\+)?(?:json|xml)\b)};
    my $text = eval {
        my $input = $env->{'psgi.input'};
        $input->seek( 0, 0 );
        $input->read( my $body, $length );
        $body;
    };
    return _pairs( $type => defined $text ? _without_secrets($text) : "$length bytes" );
}

# The data of an object that does not say itself what it is
sub _dumped {
    my $error = shift;
    require Data::Dumper;
    my $dumper = Data::Dumper->new( [$error] )->Indent(1)->Maxdepth(3)->Sortkeys(1)->Terse(1)->Useqq(1);
    my $text   = eval { $dumper->Dump };
    return ref $error if !defined $text;
    $text =~ s/^(\s*"[^"]*$SECRET[^"]*" => )(?:$QUOTED|-?\d[\w.]*)/$1"[hidden]"/mg;
    return $SOURCE->bytes($text);
}

# What calls each other in one sub by its blocks of eval is one place
sub _enclosing {
    my ( $calls, $i ) = @_;
    my ($sub) = grep { $_ ne '(eval)' } map { $_->[3] } @{$calls}[ $i + 1 .. $#$calls ];
    $sub =~ s/\APlack::Sandbox::\w+::// if defined $sub;    # the package of a .psgi file
    return $sub;
}

# What Plack::Middleware::Lint has found, for somebody who does not know the specification
sub _explained {
    my $text = shift;
    $text =~ s/ at \S+Lint\.pm line \d+\.?\z//;
    $text =~ s/:\s*\z/: undef/;
    my ($hint) = map { $_->[1] } grep { $text =~ $_->[0] } @HINTS;
    return defined $hint ? "$text\n\n$hint" : $text;
}

sub _is_own {
    my ( $self,    $call ) = @_;
    my ( $package, $file ) = @$call;
    return 0 if $package =~ /\A(?:Plack(?!::Sandbox\b)|Sirius)(?:::|\z)/ || !defined $file || !-f $file;
    return $self->{files}->is_inside( File::Spec->rel2abs($file) );
}

# By its name, which of a URL may be escaped
sub _is_secret {
    my $name = shift;
    return $name =~ s/%([[:xdigit:]]{2})/chr hex $1/ger =~ $SECRET ? 1 : 0;
}

# A table of names and values
sub _list {
    my ( $self, $title, @pairs ) = @_;
    my $rows = '';
    while ( my ( $name, $value ) = splice @pairs, 0, 2 ) {
        $rows .= '<dt>' . $SOURCE->escaped($name) . '</dt><dd>' . $SOURCE->escaped($value) . "</dd>\n";
    }
    return "<h2>$title</h2>\n<dl>$rows</dl>\n";
}

# What perl says, without the lines of a long message that tell of the code of others
sub _message {
    my ( $self, $error ) = @_;
    my $is_plain = ref $error && !( blessed $error && overload::Method( $error, q("") ) );
    my $text     = $is_plain ? _dumped($error) : $SOURCE->bytes($error);
    $text = ref($error) . ": $text" if $is_plain && !blessed $error;
    $text =~ s/\s+\z//;
    my ( @lines, $left );
    for my $line ( split /\n/, $text ) {
        my ( $sub, $file ) = $line =~ /\A\t(.+?)(?:\(.*)? called at (.+) line \d+\.?\z/
            or do { push @lines, $line; undef $left; next };
        my ($package) = $sub =~ /\A([\w:]+)::/;
        if ( $self->_is_own( [ $package // '', $file ] ) ) { push @lines, $line; undef $left; next }
        if ( !$left++ )                                    { push @lines, '' }
        $lines[-1] = "\t($left " . ( $left == 1 ? 'call' : 'calls' ) . ' in code of others)';
    }
    $text = join "\n", @lines;
    return length $text ? $SOURCE->cut( $text, TEXT_MAX ) : 'unknown error';
}

# The first names of the packages: Plack, not Plack::Middleware::Lint
sub _names {
    my @places = @_;
    my %seen;
    return grep { !$seen{$_}++ } map { $_->{package} =~ /\A(\w+)/ ? $1 : () } @places;
}

sub _pairs {
    my @pairs = @_;
    my @shown;
    while ( my ( $name, $value ) = splice @pairs, 0, 2 ) {
        $value = _is_secret($name) ? '[hidden]' : $SOURCE->bytes( $value // '' ) if length( $value // '' );
        push @shown, $SOURCE->bytes($name),
            length( $value // '' ) > VALUE_MAX ? $SOURCE->cut( $value, VALUE_MAX ) . ' ...' : $value // '';
    }
    return @shown;
}

# None if it cannot be read
sub _params {
    my ( $env, $method ) = @_;
    my @pairs;
    eval {
        require Plack::Request;
        @pairs = Plack::Request->new($env)->$method->flatten;
    };
    return _pairs(@pairs);
}

# Where it was, from the inside: places in the application with the lines around, and how many there are
# between them
sub _places {
    my ( $self, $calls ) = @_;
    my ( @places, $shown );
    for my $i ( 0 .. $#$calls ) {
        my ( $package, $file, $line, $called ) = @{ $calls->[$i] };
        next if $i && $called eq '(eval)';
        my %place = ( file => $file, line => $line, package => $package, sub => _enclosing( $calls, $i ) );
        if ( !$self->_is_own( $calls->[$i] ) || ( $shown // 0 ) >= PLACES_MAX ) {
            $place{sub} //= $package;
            push @places, { others => [] } if !@places || !$places[-1]{others};
            push @{ $places[-1]{others} }, \%place;
            next;
        }
        next
            if @places
            && $places[-1]{path}
            && $places[-1]{line} == $line
            && $places[-1]{file} eq $file;    # a block
        $place{path}   = File::Spec->rel2abs($file);
        $place{short}  = $self->{files}->short( Cwd::realpath($file) // $place{path} );
        $place{source} = [ $SOURCE->lines( $file, $line, $shown++ ? BESIDE : AROUND ) ];
        push @places, \%place;
    }
    for my $place ( grep { $_->{others} } @places ) {
        my @others = @{ $place->{others} };
        $place->{words}
            = $SOURCE->printable( ( @others == 1 ? '1 call' : @others . ' calls' ) . ' in ' . join ', ',
            _names(@others) );
    }
    return @places;
}

# What the request was, as text
sub _request {
    my $env   = shift;
    my @parts = (
        [ 'Query' => [ _params( $env, 'query_parameters' ) ] ],
        [ 'Body'  => [ _body($env) ] ],
        [   'Headers' => [
                _pairs(
                    map       { ( lc s/\AHTTP_//r =~ tr/_/-/r => _url( $env->{$_}, $_ ne 'HTTP_REFERER' ) ) }
                    sort grep {/\AHTTP_/} keys %$env
                )
            ]
        ],
    );
    my $uri = _url( $env->{REQUEST_URI} // '' );
    return { line => "$env->{REQUEST_METHOD} $uri", parts => [ grep { @{ $_->[1] } } @parts ] };
}

sub _text {
    my ( $self, $paint ) = @_;
    my $text = $paint->( at => $SOURCE->printable("$self->{title} in $self->{request}{line}") ) . ":\n";
    $text .= $SOURCE->printable( $self->{text} ) . "\n\n";
    for my $place ( @{ $self->{places} } ) {
        if ( $place->{others} ) {
            $text .= $paint->( soft => "($place->{words})" ) . "\n";
            next;
        }
        my $sub = defined $place->{sub} ? " in $place->{sub}" : '';
        $text .= $SOURCE->printable("$place->{short}:$place->{line}$sub") . "\n"
            . $SOURCE->text( $paint, $place->{line}, @{ $place->{source} } );
    }
    return $text;
}

# Its parameters may be secrets, if it is a URL
sub _url {
    my ( $url, $is_none ) = @_;
    return $url if $is_none;
    return $url =~ s/([?&;]([^=&;]*)=)([^&;]*)/$1 . ( _is_secret($2) ? '[hidden]' : $3 )/ger;
}

# Members of JSON, elements of XML
sub _without_secrets {
    my $text = shift;
    $text =~ s/("[^"]*$SECRET[^"]*"\s*+:\s*+)(?:$QUOTED|\[[^\]]*+\]?|\{[^}]*+\}?|[^\s,\]}]++)/$1"[hidden]"/g;
    $text =~ s/(<[\w:.-]*$SECRET[^>]*>)[^<]++/$1\[hidden]/g;
    return $text;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Exception - an exception of a request, as a page and as text

=head1 SYNOPSIS

  my $exception = Sirius::Dev::Exception->new(
      calls => $calls, editor => $editor, env => $env, error => $@, files => $files );
  print STDERR $exception->terminal(1);
  return Sirius::Dev::ErrorPage->response( 'text/html', $exception->html );

=head1 DESCRIPTION

Places in the application with the lines around them; between them how many calls there are in the code of others, such as that of a
framework, Plack or the server, which the page shows at a click; and the request with its parameters and fields. What may be a
secret by its name is hidden.

=head1 METHODS

=head2 calls

  my $calls = Sirius::Dev::Exception->calls('My::Package');

In a handler of C<__DIE__>: the frames up to the one of this package, 200 at most.

=head2 has_place

True if one of the places is in the application.

=head2 html, plain, terminal

The texts, as bytes. C<terminal> takes whether colours are wanted.

=head2 new

  my $exception = Sirius::Dev::Exception->new(%args);

C<calls>, from L</calls>; C<error>; C<env>; C<files>, a L<Sirius::Dev::Files>; C<editor>, a L<Sirius::Dev::Editor>; perhaps C<title>.

=head1 SEE ALSO

L<Sirius::Dev::Trap>.

=cut
