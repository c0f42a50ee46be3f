# Early hints (RFC 8297): while the application works on the page, the browser loads what the page will need.
#
# A hint is on the wire when the call returns. Browsers heed it over HTTP/2 and 3 only: use TLS (--listen
# ADDRESS,tls), or a proxy in front that passes it on (--informational on).
use strict;
use warnings;

my $CSS  = "body { font-family: sans-serif }\n";
my $PAGE = qq(<!DOCTYPE html>\n<title>Hints</title>\n<link rel="stylesheet" href="/style.css">\n<p>Hello\n);

sub {
    my $env = shift;
    return [ 200, [ 'Content-Type' => 'text/css' ], [$CSS] ] if $env->{PATH_INFO} eq '/style.css';

    # Not every server has it; here it is always there, and silent for a client of HTTP/1.0
    my $inform = $env->{'psgix.informational'};
    $inform->( 103, [ Link => '</style.css>; rel=preload; as=style' ] ) if $inform;
    sleep 1;    # a query that takes its time
    return [ 200, [ 'Content-Type' => 'text/html' ], [$PAGE] ];
};
