# Packages and images have TLS and HTTP/2: what builds them fails without OpenSSL or libnghttp2, instead of
# leaving it out. And how the program is linked.
use strict;
use warnings;
use File::Temp ();
use Test::More;

sub slurp {
    open my $in, '<', shift or return '';
    local $/ = undef;
    return scalar readline $in;
}

# Sources, and an OpenSSL that is too old
my $dir = File::Temp->newdir;
mkdir "$dir/$_" for qw(old old/openssl old/nghttp2);
system( 'cp', '-r', qw(bin lib src xs Makefile.PL), "$dir/" ) == 0 or die 'cp';

sub hide {
    my ( $header, $text ) = @_;
    unlink glob "$dir/old/*/* $dir/old/*.h";
    open my $out, '>', "$dir/old/$header" or die $!;
    print {$out} $text;
    close $out or die $!;
    return;
}
my @OPENSSL = ( 'openssl/ssl.h', "#define OPENSSL_VERSION_NUMBER 0x1010117fL\n" );
hide(@OPENSSL);

# Exit status and output of Makefile.PL with these arguments
sub configured {
    my @words = @_;
    local $ENV{C_INCLUDE_PATH} = "$dir/old";
    delete local @ENV{qw(SIRIUS_NO_TLS SIRIUS_TLS)};
    my $text = qx(cd $dir && @words 2>&1);
    return ( $? >> 8 ) . ": $text";
}

my $plain = configured("$^X Makefile.PL");
like $plain, qr/\bTLS: no OpenSSL 3 \(Debian and Ubuntu: apt-get install libssl-dev\)$/m, 'it is said';
like $plain, qr/\A0:/, 'a build without TLS, where nobody has asked for it';
like configured("SIRIUS_TLS=1 $^X Makefile.PL"), qr/\A[1-9]\d*: TLS=1: there is no OpenSSL 3/, 'but here';

my $container = slurp('deploy/container/Containerfile') =~ s/\\\n//gr;
my ($command) = $container =~ /^RUN (perl Makefile\.PL [^&]+)&&/m;
like configured( $command =~ s/^perl/$^X/r ), qr/\A[1-9]\d*: TLS=1: there is no OpenSSL 3/,
    "the image: $command";
like $container, qr/^FROM \S+ AS build\nRUN .*\blibssl-dev\b/m, 'which installs it';
my @runs = $container =~ /^RUN (.*\blibplack-perl\b.*)$/mg;
shift @runs;
is scalar @runs, 2, 'two images run it';
like $_, qr/\blibssl3\b/, 'and have it at run time' for @runs;

# The same for HTTP/2
hide( 'nghttp2/nghttp2.h', "#error none\n" );
like configured("$^X Makefile.PL"),
    qr/\A0:.*\bHTTP\/2: no libnghttp2 \(Debian and Ubuntu: apt-get install libnghttp2-dev\)$/ms,
    'HTTP/2: it is said';
like configured( $command =~ s/^perl/$^X/r ), qr/\A[1-9].*^HTTP2=1: there is no libnghttp2/ms,
    'but the image has it';
like $container, qr/^FROM \S+ AS build\nRUN .*\blibnghttp2-dev\b/m, 'and installs it';
like $_,         qr/\blibnghttp2-14\b/,                             'as well as the library' for @runs;
my ($package) = slurp('deploy/debian/rules') =~ /^\tdh_auto_configure -- (.+)$/m;
like configured("$^X Makefile.PL $package"), qr/\A[1-9].*^HTTP2=1: there is no libnghttp2/ms,
    'as has the package';
like slurp('deploy/debian/control'), qr/^Build-Depends:.*?\n +libnghttp2-dev,\n/ms,
    'which needs it for the build';
hide(@OPENSSL);

# What cannot be is refused
hide( 'seccomp.h', "#error none\n" );
like configured("$^X Makefile.PL SECCOMP=1"), qr/\A[1-9].*\bSECCOMP=1: there is no libseccomp/ms,
    'so does a filter of system calls';
like configured("$^X Makefile.PL PORTABLE=1 SECCOMP=1"),
    qr/\A[1-9].*\bSECCOMP=1: a portable build has no filter/ms,
    'which is only for Linux';
like configured("$^X Makefile.PL TLS=yes"), qr/\A[1-9]\d*: TLS=yes: use TLS=1 or TLS=0$/m, 'another value';
hide(@OPENSSL);

my ($words) = slurp('deploy/debian/rules') =~ /^\tdh_auto_configure -- (.+)$/m;
like configured("$^X Makefile.PL $words"), qr/\A[1-9]\d*: TLS=1: there is no OpenSSL 3/,
    "the package: $words";
like slurp('deploy/debian/control'), qr/^Build-Depends:.*?\n +libssl-dev \(>= 3\),\n/ms,
    'which needs it for the build';

for my $file (qw(sirius-edge Sirius.so)) {
    my $dynamic = qx(readelf -dl blib/arch/auto/Sirius/$file);
    like $dynamic, qr/\bBIND_NOW\b|\bNOW\b/, "$file looks up what it calls when it is loaded";
    like $dynamic, qr/\bGNU_RELRO\b/,        'and the kernel keeps that from being changed';
}

done_testing;
