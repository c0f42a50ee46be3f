# What is tested over HTTP/1.1 holds over HTTP/2: a few tests, as they are. dev/test --h2 runs all of them.
use strict;
use warnings;
use FindBin;
use File::Spec::Functions qw(catfile);
use Test::More;

my $root = catfile( $FindBin::Bin, '..', '..' );
local $ENV{SIRIUS_TEST_H2} = 1;
for my $test (qw(http/expect.t http/sendfile.t http/static.t psgi/body.t psgi/streaming.t)) {
    open my $out, '-|', $^X, '-I', catfile( $root, 't', 'lib' ), catfile( $root, 't', split m{/}, $test )
        or die "$test: $!";
    my @line = readline $out;
    close $out;
    is $?, 0, $test or diag @line;
    cmp_ok scalar( grep {/\Aok /} @line ), '>', 0, 'has tests';
}

done_testing;
