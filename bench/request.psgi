# What a small application does: Plack::Request reads the query, and the AccessLog middleware makes a line of
# each request
use strict;
use warnings;

use Plack::Builder qw(builder enable);
use Plack::Request;

my $app = sub {
    my $request = Plack::Request->new(shift);
    my $foo     = $request->param('foo');
    return [ 200, [ 'Content-Type' => 'text/plain', 'Content-Length' => 12 ], ["Hello World\n"] ];
};

builder {
    enable 'AccessLog', logger => sub { };
    $app;
};
