# What the application gets to see of a request
use strict;
use warnings;

sub {
    my $env  = shift;
    my @line = map { "$_: " . ( defined $env->{$_} ? $env->{$_} : '(undefined)' ) . "\n" } sort keys %$env;
    return [ 200, [ 'Content-Type' => 'text/plain' ], \@line ];
};
