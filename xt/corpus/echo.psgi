# Says what reached it: "METHOD PATH_INFO [body]" and the path as a header. Each request for /smuggled is
# written to the file $SMUGGLED, with the port of its connection.
use strict;
use warnings;

sub {
    my $env = shift;
    if ( $env->{PATH_INFO} =~ m{/smuggled} && $ENV{SMUGGLED} ) {
        open my $out, '>>', $ENV{SMUGGLED} or die "$ENV{SMUGGLED}: $!";
        print {$out} "$env->{REMOTE_PORT}\n";
        close $out or die "$ENV{SMUGGLED}: $!";
    }
    local $/ = undef;
    my $body = readline $env->{'psgi.input'};
    $body = ''                       if !defined $body;
    $body = length($body) . ' bytes' if length $body > 200;
    ( my $path = $env->{PATH_INFO} ) =~ s/([^\x21-\x7e])/sprintf '%%%02x', ord $1/ge;
    my @fields = map {"$_=$env->{$_}"}
        sort grep {/\A(?:HTTP_(?!HOST\z|CONNECTION\z|X_REQUEST_ID\z)|CONTENT_|REMOTE_USER)/} keys %$env;
    return [
        200,
        [   'Content-Type' => 'text/plain',
            'X-Path'       => $path,
            'X-Host'       => $env->{HTTP_HOST},
            'X-Fields'     => join ' ',
            @fields
        ],
        ["$env->{REQUEST_METHOD} $path [$body]"]
    ];
};
