# What is tested without TLS holds with it: a few tests of HTTP and PSGI, as they are. dev/test --tls runs all of them.
use strict;
use warnings;
use FindBin;
use File::Spec::Functions qw(catfile);
use Test::More;

my $root = catfile( $FindBin::Bin, '..', '..' );
local $ENV{SIRIUS_TEST_TLS} = 1;
for my $test (qw(http/keepalive.t http/chunked_response.t psgi/body.t psgi/env.t)) {
    open my $out, '-|', $^X, '-I', catfile( $root, 't', 'lib' ), catfile( $root, 't', split m{/}, $test )
        or die "$test: $!";
    my @line = readline $out;
    close $out;
    is $?, 0, $test or diag @line;
    cmp_ok scalar( grep {/\Aok /} @line ), '>', 0, 'has tests';
}

done_testing;
