package Bench::Program;

# The programs in C that measure, compiled into build/bench; and what TLS needs besides them.

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(build certificate has_tls);

my $TLS = '-DBENCH_TLS -lssl -lcrypto';

# Without libssl-dev there is no tlsclient, and think has no TLS
sub build {
    system( 'mkdir', '-p', $Bench::Peer::DIR ) == 0 or exit 1;
    _compile('floor')                               or exit 1;
    if ( !has_tls() ) {
        _compile('think') or exit 1;
        return;
    }
    _compile( $_, $TLS ) or exit 1 for qw(think tlsclient);
    return;
}

sub has_tls {
    return !system q(printf '#include <openssl/ssl.h>\n' | cc -E -o /dev/null - 2>/dev/null);
}

# Files of a certificate and its key, ECDSA P-256, signed by itself. Their names begin with $path
sub certificate {
    my $path  = shift || "$Bench::Peer::DIR/bench";
    my @files = map {"$path.$_"} qw(crt key);
    return @files if -s $files[1] && -s $files[0] && -M $files[0] < 20;
    my $out
        = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \\
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -out $files[0] -keyout $files[1] 2>&1`;
    die "openssl req: $out\n" if $?;
    return @files;
}

sub _compile {
    my ( $program, $more ) = @_;
    $more //= '';
    return !system
        "cc -std=gnu11 -O2 -o $Bench::Peer::DIR/$program $Bench::Peer::ROOT/bench/$program.c $more";
}

1;
