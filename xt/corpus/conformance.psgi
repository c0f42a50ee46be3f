# A small origin server for t/http/conformance.t: does for each request what RFC 9110 asks of the resource.
use strict;
use warnings;

sub text {
    my ( $status, $text, @header ) = @_;
    return [ $status, [ 'Content-Type' => 'text/plain', @header ], [$text] ];
}

# The header fields as the application sees them
sub fields {
    my $env = shift;
    my %field;
    for my $key ( grep {/\A(?:HTTP_(?!X_REQUEST_ID\z)|CONTENT_(?:TYPE|LENGTH)\z)/} keys %$env ) {
        ( my $name = $key ) =~ s/\AHTTP_//;
        $field{ join '-', map { ucfirst lc } split /_/, $name } = $env->{$key};
    }
    return join '', map {"$_: $field{$_}\n"} sort keys %field;
}

sub cookies {
    my $env = shift;
    return join '', map {"$_\n"} split /;[ ]*/, defined $env->{HTTP_COOKIE} ? $env->{HTTP_COOKIE} : '';
}

sub front {
    my $env    = shift;
    my $method = $env->{REQUEST_METHOD};
    my @allow  = ( Allow => 'GET, HEAD, POST, OPTIONS' );
    return [ 204, [@allow], [] ] if $method eq 'OPTIONS';
    if ( $method eq 'POST' ) {
        local $/ = undef;
        my $body = readline $env->{'psgi.input'};
        return text( 200, defined $body ? $body : '' );
    }
    return text( 405, "Method Not Allowed\n",    @allow ) if $method ne 'GET' && $method ne 'HEAD';
    return text( 416, "Range Not Satisfiable\n", 'Content-Range' => 'bytes */2' )
        if ( $env->{HTTP_RANGE} || '' ) =~ /\Abytes=[a-z]/;
    return text( 406, "Not Acceptable\n" ) if ( $env->{HTTP_ACCEPT} || '' ) eq 'application/x-nonsense';
    return text( 200, 'OK' );
}

sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    my $response
        = $path eq '/echo'                            ? text( 200, fields($env) )
        : $path eq '/cookie'                          ? text( 200, cookies($env) )
        : $path eq '/' || $path eq '*' || $path eq '' ? front($env)
        : $path eq '/after'                           ? text( 200, 'after' )
        :                                               text( 404, "Not Found\n" );
    push @{ $response->[1] }, 'X-Path' => $path;
    return $response;
};
