use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# What an installation has where nothing but a C compiler is: no TLS, no HTTP/2; and what macOS and FreeBSD
# get (SR_PORTABLE), in one build, to save time. It passes its tests, is asked for what it does not have, and
# leaves nothing in /tmp. dev/test --portable runs far more

my $root = $Sirius::Test::Server::ROOT;
my $dir  = File::Temp->newdir;
system( 'cp', '-r', ( map {"$root/$_"} qw(bin lib src xs t Makefile.PL) ), "$dir/" ) == 0 or die 'cp';
delete @ENV{qw(SIRIUS_DEV SIRIUS_TLS SIRIUS_NO_TLS PERL5LIB)};

sub run {
    my ($command) = @_;
    my $text = qx(cd $dir && $command 2>&1 </dev/null);
    return ( $? >> 8 ) . ": $text";
}
my %before = map { $_ => 1 } glob '/tmp/sirius-*.lobby';
my $built
    = run(
    "$^X Makefile.PL PORTABLE=1 TLS=0 HTTP2=0 OPTIMIZE=-O0 INSTALLMAN1DIR=none INSTALLMAN3DIR=none && make -s -j2"
    );
like $built, qr/\A0: /, 'a build without libraries' or diag $built;
like $built, qr/\bTLS: no OpenSSL.*^HTTP\/2: no libnghttp2.*^Filter of system calls: none in a portable/ms,
    'says what it lacks';
unlike $built, qr/is not a known MakeMaker parameter/, 'and knows what it was asked';
my $tests = join q( ), map {"t/$_.t"} qw(load command hello body static fair reload workers http2 tls hold);
my $tried = run("make test TEST_FILES='$tests'");
like $tried, qr/\A0: .*^All tests successful/ms,                 'its tests' or diag $tried;
like $tried, qr/http2\.t \.+ skipped: built without libnghttp2/, 'without those of HTTP/2';
like $tried, qr/tls\.t \.+ skipped: built without OpenSSL/, 'and of TLS' if eval { require IO::Socket::SSL };

for my $case (
    [ 2, '--listen 127.0.0.1:0,tls --tls-self-signed', 'install libssl-dev' ],
    [ 1, '--listen 127.0.0.1:0,h2c',                   'install libnghttp2-dev' ],
    )
{
    my ( $status, $options, $says ) = @$case;
    like run("$^X -Mblib bin/sirius $options -e 'sub { [ 200, [], [] ] }'"), qr/\A$status: .*\Q$says\E/s,
        "$options: says why not";
}
like run("$^X -Mblib bin/sirius profile --pid $$"), qr/\A1: .*cannot read the memory .*; that takes Linux/s,
    'sirius profile: says why not';
my $used = Sirius::Test::Server::slurp('/proc/net/unix');    # by another server on this machine
is_deeply [ grep { !$before{$_} && $used !~ /\Q$_\E/ } glob '/tmp/sirius-*.lobby' ], [],
    'nothing is left of its sockets';
done_testing;
