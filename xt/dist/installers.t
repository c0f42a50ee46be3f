use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test::Server;

# t/ is what an installation runs, on machines that nobody here has seen: few files, which need neither root
# nor IPv6, nor modules that Sirius does not need, and do not mind a slow machine. All other tests are in xt/

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin: $!";
my @files = glob 't/*.t';
cmp_ok scalar @files, '>=', 20, scalar(@files) . ' files';
cmp_ok scalar @files, '<=', 30, 'which are few';
is_deeply [ glob 't/*/*.t' ], [], 'and all that there are';

my %WRONG = (
    'does not wait long enough for a slow machine' => sub { $_[0] !~ /^use Sirius::Test::Patient;$/m },
    'waits for a time of its own, or asserts one'  => sub { $_[0] =~ /\b(?:sleep [\d.]|elapsed|alarm)/ },
    'needs IPv6'                                   => sub { $_[0] =~ /\[::|AF_INET6/ },
    'needs a user'                                 => sub { $_[0] =~ /\bchown|\$[<>]|getpw|--user/ },
    'needs a module that is not there'             => sub {
        my ($text) = @_;
        my $own = qr/(?:strict|warnings|FindBin|lib|File::Temp|POSIX|Test::More|Sirius(?:::\w+)*)/;
        return grep { !/\A$own\z/ } $text =~ /^use ([\w:]+)/mg;
    },
);

sub wrong {
    my ( $file, $text ) = @_;
    $text =~ s/^ .*//mg if $file eq 't/timeout.t';    # whose application sleeps
    $text =~ s/<<'APP'.*?^APP$//msg;
    return map {"$file $_"} grep { $WRONG{$_}->($text) } sort keys %WRONG;
}
is join( "\n", map { wrong( $_, Sirius::Test::Server::slurp($_) ) } @files ), '', 'each for anybody';

# This test itself
my $wrong = join "\n", wrong( 't/x.t', "use LWP;\nsleep 1; Client->new('[::1]:80'); chown 0, 0, 'x'" );
like $wrong, qr/t\/x\.t \Q$_\E/, "a file is found that $_" for sort keys %WRONG;
like Sirius::Test::Server::slurp('Makefile.PL'), qr{TESTS *=> 't/\*\.t'},
    'make test runs them, and no others';
done_testing;
