# Middleware of Plack, alone and stacked, each under a path of its own. What is not installed is left out; see
# xt/apps/middleware.t
use strict;
use warnings;
use Digest::MD5;
use Plack::App::Cascade;
use Plack::App::File;
use Plack::App::URLMap;
use Plack::Builder;

# Names and values of the environment, without what differs from one connection to another
my $environment = sub {
    my $env  = shift;
    my $body = do { local $/ = undef; readline $env->{'psgi.input'} };
    my %seen = map { $_ => ref $env->{$_} eq 'ARRAY' ? "(@{ $env->{$_} })" : ref $env->{$_} || $env->{$_} }
        grep { !/\A(?:HTTP_X_REQUEST_ID|REMOTE_PORT|psgix\.(?:io|queue_time|request_(?:id|start)))\z/ }
        keys %$env;
    $seen{body} = defined $body ? $body : '';
    return [ 200, [ 'Content-Type' => 'text/plain' ], [ map {"$_=$seen{$_}\n"} sort keys %seen ] ];
};
my $array = sub { [ 200, [ 'Content-Type' => 'text/plain' ], [ 'one ', 'two ', '', 'three' ] ] };
my $file  = sub {
    open my $in, '<', __FILE__ or die "$!";
    return [ 200, [ 'Content-Type' => 'text/plain' ], $in ];
};
my $delayed = sub {
    return sub { shift->( [ 200, [ 'Content-Type' => 'text/plain' ], ['one two three'] ] ) }
};
my $streamed = sub {
    return sub {
        my $writer = shift->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
        $writer->write($_) for 'one ', 'two ', 'three';
        $writer->close;
    }
};
my $broken = sub { die "on purpose\n" };

# The five kinds of response under one middleware, or several
my $kinds = sub {
    my @middleware = @_;
    my $map        = Plack::App::URLMap->new;
    my %kind
        = ( array => $array, file => $file, delayed => $delayed, streamed => $streamed, broken => $broken );
    for my $name ( keys %kind ) {
        my $builder = Plack::Builder->new;
        $builder->add_middleware( ref $_ ? @$_ : $_ ) for @middleware;
        $map->map( "/$name" => $builder->wrap( $kind{$name} ) );
    }
    return $map->to_app;
};

# Leaves the environment in disorder
my $scribble = sub {
    my $app = shift;
    return sub {
        my $env = shift;
        $env->{'scribble.count'}++;
        $env->{REMOTE_ADDR} = '6.6.6.6';
        $env->{REMOTE_USER} = 'mallory';
        $env->{PATH_INFO} .= '/scribbled';
        $env->{HTTP_X_MADE}       = 'up';
        $env->{'psgi.url_scheme'} = 'https';
        push @{ $env->{'psgi.version'} }, 'odd';
        my $answer = $app->($env);
        delete @{$env}{qw(HTTP_HOST SERVER_NAME SERVER_PORT psgi.input QUERY_STRING)};
        undef $env->{'psgi.errors'};
        return $answer;
    };
};

my $have = sub {
    my $name = shift;
    return eval "require Plack::Middleware::$name; 1";    ## no critic (StringyEval)
};
my @stack = (
    'Lint',
    [ AccessLog  => format          => 'stack %r %>s %b' ],
    [ StackTrace => no_print_errors => 1 ],
    'ContentLength',
    ( $have->('Deflater') ? [ Deflater => content_type => 'text/plain' ] : () ),
    'Head',
    'Runtime',
    ( $have->('ReverseProxy') ? 'ReverseProxy' : () ),
    ( $have->('Session')      ? 'Session'      : () ),
    'Lint'
);

builder {
    mount '/environment' => $environment;
    mount '/scribble'    => $scribble->($environment);
    mount '/md5' =>
        sub { my $env = shift; [ 200, [], [ Digest::MD5->new->addfile( $env->{'psgi.input'} )->hexdigest ] ] };
    mount '/cascade' => Plack::App::Cascade->new(
        apps => [
            sub { [ 404, [], ['first'] ] },
            Plack::App::File->new( root => '/nowhere' ),
            sub { $_[0]{PATH_INFO} eq '/delayed' ? $delayed->(@_) : [ 404, [], ['second'] ] },
            sub { $_[0]{PATH_INFO} eq '/'        ? $array->(@_)   : [ 404, [], ['last'] ] },
        ]
    );
    mount '/plain'   => $kinds->();
    mount '/lint'    => $kinds->('Lint');
    mount '/log'     => $kinds->( [ AccessLog => format => 'log %r %>s %b' ] );
    mount '/trace'   => $kinds->('StackTrace');
    mount '/chunked' => $kinds->('Chunked');
    mount '/length'  => $kinds->('ContentLength');
    mount '/head'    => $kinds->('Head');
    mount '/buffer'  => $kinds->( [ BufferedStreaming => force => 1 ] );
    mount '/stack'   => $kinds->(@stack);
    mount '/gzip'    => $kinds->( [ Deflater => content_type => 'text/plain' ] ) if $have->('Deflater');

    if ( $have->('Debug') ) {
        my $page = sub { [ 200, [ 'Content-Type' => 'text/html' ], ['<html><body>page</body></html>'] ] };
        mount '/debug' => builder { enable 'Debug', panels => [qw(Environment Response Timer)]; $page };
    }
    if ( $have->('ReverseProxy') ) {
        mount '/proxy' => builder { enable 'ReverseProxy'; $environment };
    }
    if ( $have->('Session') ) {
        mount '/session' => builder {
            enable 'Session';
            sub { [ 200, [], [ ++$_[0]{'psgix.session'}{n} ] ] }
        };
    }

    # The last one is there in any case: builder takes what it is given last for the application
    mount '/copy' => sub { my %copy = %{ $_[0] }; $array->( \%copy ) };
};
