# All of src/ compiles with the C library musl, as Alpine has it, together with OpenSSL, libnghttp2 and
# libseccomp: it declares less than glibc. dev/machines runs what needs none of these libraries.
use strict;
use warnings;
use File::Temp ();
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "chdir: $!";

my $CC = 'musl-gcc';
plan skip_all => "$CC is not installed" if system "$CC --version >/dev/null 2>&1";

# The headers of Linux and of the libraries, and none of glibc
chomp( my $multiarch = qx(cc -print-multiarch 2>/dev/null) );
my $dir = File::Temp->newdir;
mkdir "$dir/openssl";
my %has   = ( SR_TLS => 'openssl/ssl.h', SR_HTTP2 => 'nghttp2/nghttp2.h', SR_SECCOMP => 'seccomp.h' );
my @parts = grep {-e} map {"/usr/include/$_"} qw(linux asm-generic nghttp2 seccomp.h seccomp-syscalls.h);
symlink $_, "$dir/" . s{.*/}{}r for @parts, "/usr/include/$multiarch/asm";
symlink $_, "$dir/openssl/" . s{.*/}{}r
    for glob "/usr/include/openssl/*.h /usr/include/$multiarch/openssl/*.h";

# Where libseccomp is not installed, for development nobody needs it: what src/edge/sandbox.c uses of it
my $SECCOMP = <<'HEADER';
typedef void *scmp_filter_ctx;
enum { SCMP_FLTATR_ACT_BADARCH, SCMP_FLTATR_CTL_LOG, SCMP_FLTATR_CTL_NNP, SCMP_CMP_MASKED_EQ };
enum { SCMP_VER_MAJOR = 2, SCMP_VER_MINOR = 4, SCMP_ACT_ALLOW = 1 };
#define SCMP_ACT_ERRNO(err) (2 + (err))
#define SCMP_CMP(arg, how, mask, value) (int)((arg) + (how) + (mask) + (value))
int seccomp_attr_set(scmp_filter_ctx, int, unsigned), seccomp_load(scmp_filter_ctx);
int seccomp_rule_add(scmp_filter_ctx, unsigned, int, unsigned, ...);
int seccomp_syscall_priority(scmp_filter_ctx, int, unsigned char);
scmp_filter_ctx seccomp_init(unsigned);
void seccomp_release(scmp_filter_ctx);
HEADER
if ( !-e "$dir/seccomp.h" ) {
    open my $out, '>', "$dir/seccomp.h" or die "$dir/seccomp.h: $!";
    print {$out} $SECCOMP;
    close $out or die "$dir/seccomp.h: $!";
}
my @defines = map {"-D$_"} grep { -e "$dir/$has{$_}" } sort keys %has;
note "with @defines";

# Of what the preprocessor leaves out, nothing is left
my @flags
    = qw(-std=gnu11 -pthread -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Isrc -Wall -Wextra -Werror -Wno-error=cpp -O1);
for my $folder ( grep {-d} glob 'src/*' ) {
    my @sources = glob "$folder/*.c";
    my $said    = qx($CC -isystem $dir @flags @defines -fsyntax-only @sources 2>&1);
    is "$?$said", '0', $folder;
}

done_testing;
