use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# What macOS and FreeBSD get, built here: it serves with workers, reloads, replaces workers and stops, and leaves nothing in /tmp.
# dev/test --portable runs far more

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
my $built  = run("$^X Makefile.PL PORTABLE=1 OPTIMIZE=-O0 && make -s -j2");
like $built, qr/\A0: .*^Filter of system calls: none/ms, 'a portable build' or diag $built;
my $tests = join q( ), map {"t/$_.t"} qw(load hello body fair reload workers stop hold);
my $tried = run("make test TEST_FILES='$tests'");
like $tried, qr/\A0: .*^All tests successful/ms, 'its tests' or diag $tried;
my $develop = run("$^X -Mblib bin/sirius -r --port 0 -e 'sub { [ 200, [], [] ] }'");
like $develop, qr/\A1: .*sirius: this build has no way to adopt orphans/s,
    '--reload is refused, with status 1';

is_deeply [ grep { !$before{$_} } glob '/tmp/sirius-*.lobby' ], [], 'nothing is left of its sockets';

done_testing;
