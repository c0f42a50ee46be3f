# TLS on a unix socket, and what sirius ctl status says of the certificates.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use IO::Socket::SSL qw(SSL_VERIFY_NONE);
use IO::Socket::UNIX;
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

my $dir  = File::Temp->newdir;
my $made = Sirius::Test::Certificates->new;
my @late = $made->issue( 'late.example', to => time + 50 * 86_400 + 3600 );
my @soon = $made->issue( 'soon.example', to => time + 10 * 86_400 + 3600 );

my $server = start_server(
    "sub { [ 200, [], [ join q( ), \@{ \$_[0] }{qw(psgi.url_scheme SERVER_NAME SERVER_PORT)} ] ] }\n",
    '--listen' => "$dir/tls,tls",
    '--listen' => "$dir/plain",
    ( map { ( '--tls-cert' => $_->[0], '--tls-key' => $_->[1] ) } \@late, \@soon ),
    '--control' => "$dir/control",
    qw(--workers 1)
);

sub ask {
    my ( $path, $tls ) = @_;
    my $socket = IO::Socket::UNIX->new("$dir/$path") or die "$path: $!";
    IO::Socket::SSL->start_SSL( $socket, SSL_verify_mode => SSL_VERIFY_NONE )
        or die "TLS: $IO::Socket::SSL::SSL_ERROR"
        if $tls;
    print {$socket} "GET / HTTP/1.0\r\n\r\n";
    return join( '', readline $socket ) =~ /\r\n\r\n(.*)\z/s ? $1 : 'cut';
}

is ask( 'tls', 1 ), 'https localhost 443', 'the port is the default of https';
{
    my $hasty = IO::Socket::UNIX->new("$dir/tls") or die "$dir/tls: $!";
    print {$hasty} "This is not TLS, and long enough to be seen as such.\n";
    readline $hasty;
    ok $server->wait_log(qr/TLS handshake with a client of a unix socket failed: /),
        'a failed handshake is said to be of a unix socket';
}
{
    my @edges = $server->edges;
    for ( 1 .. 10 ) {    # they have gone when the edge sends its tickets
        my $socket = IO::Socket::UNIX->new("$dir/tls") or die "$dir/tls: $!";
        IO::Socket::SSL->start_SSL( $socket, SSL_verify_mode => SSL_VERIFY_NONE );
        close $socket;
    }
    is ask( 'tls', 1 ), 'https localhost 443', 'clients that end right behind the handshake';
    is_deeply [ $server->edges ], \@edges, 'leave the edge as it is';
}
is ask('plain'), 'http localhost 80', 'without TLS that of http';

# Exit status and output of sirius ctl
sub ctl {
    my @words = @_;
    my $root  = $Sirius::Test::Server::ROOT;
    local $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
    my $text = `'$^X' '$root/bin/sirius' ctl --control '$dir/control' @words 2>&1`;
    return ( $? >> 8, $text );
}

my $table
    = qr/^CERTIFICATE +FILE +DAYS LEFT\nsoon\.example +\Q$soon[0]\E +10\nlate\.example +\Q$late[0]\E +50\n/m;
my $fault = qr/certificates not reloaded: --tls-key \Q$soon[1]\E: [^\n]+; the previous ones stay in use/;
like( ( ctl('status') )[1],
    qr/$table\n/, 'sirius ctl status lists the certificates, the first to expire first' );

subtest 'sirius ctl reload --wait' => sub {
    my $key = Sirius::Test::Server::slurp( $soon[1] );
    spew( $soon[1], 'this is no key' );
    my ( $exit, $text ) = ctl(qw(reload --wait));
    is $exit, 1, 'fails if the files of certificates are refused';
    like $text, qr/generation 2 is serving, but $fault/, 'and says why';
    ok $server->wait_log( qr/the supervisor now runs/, 10 ), 'the supervisor is another program';
    like( ( ctl('status') )[1], qr/$table$fault\n\n/, 'which knows it as well' );
    spew( $soon[1], $key );
    ( $exit, $text ) = ctl(qw(reload --wait));
    is $exit, 0, 'succeeds when they are in order';
    like $text, qr/\Ageneration 3 is serving\n\z/, 'and says no more';
    my $status = ( ctl('status') )[1];
    like $status,   qr/$table\n/,     'nor does the status';
    unlike $status, qr/not reloaded/, 'of a fault';
};
$server->stop;
done_testing;
