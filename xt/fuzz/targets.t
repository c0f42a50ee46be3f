use strict;
use warnings;
use Config;
use FindBin;
use Test::More;

# dev/fuzz compiles each target by itself. xt/c/fuzz_replay.c has all of them in one file, where one may live
# on the headers of another

chdir "$FindBin::Bin/../.." or die "chdir: $!";
my @flags = qw(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -Isrc -Ifuzz -fsyntax-only);

sub compiles { return !system "$Config{cc} @flags @_ 2>&1" }

my $tls = !system "echo '#include <openssl/ssl.h>' | $Config{cc} -E - >/dev/null 2>&1";
push @flags, '-DSR_TLS'   if $tls;
push @flags, '-DSR_HTTP2' if !system "echo '#include <nghttp2/nghttp2.h>' | $Config{cc} -E - >/dev/null 2>&1";
for my $file ( sort grep { $_ ne 'fuzz/perl.c' } glob 'fuzz/*.c' ) {
SKIP: {
        skip 'OpenSSL is not installed', 1 if $file eq 'fuzz/transport.c' && !$tls;
        ok compiles($file), $file;
    }
}

done_testing;
