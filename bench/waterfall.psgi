# A page of 300 pictures: every second one is a file of --static /files, the others take the application 20 ms
use strict;
use warnings;
use Time::HiRes qw(sleep);

sub {
    my $env = shift;
    my ($number) = $env->{PATH_INFO} =~ m{\A/picture/(\d+)\z};
    if ( defined $number ) {
        sleep 0.02;
        my $text
            = qq{<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="hsl($number,60%,50%)"/></svg>};
        return [ 200, [ 'Content-Type' => 'image/svg+xml', 'Cache-Control' => 'no-store' ], [$text] ];
    }
    return [ 404, [ 'Content-Type' => 'text/plain' ], ['not found'] ] if $env->{PATH_INFO} ne '/';
    my $images = join '',
        map { $_ % 2 ? qq{<img src="/picture/$_">} : qq{<img src="/files/$_.svg">} } 1 .. 300;
    return [
        200,
        [ 'Content-Type' => 'text/html' ],
        [   "<!DOCTYPE html><title>300</title><script>performance.setResourceTimingBufferSize(1000)</script><link rel=icon href=data:,><body>$images"
        ]
    ];
};
