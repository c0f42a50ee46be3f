use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# Requests that a time limit has ended have a whole line in the access log: the application has them still,
# and will not tell

my $dir    = File::Temp->newdir;
my $log    = "$dir/access.log";
my $server = start_server(
    <<'APP', qw(--workers 2 --request-timeout 1 --stream-timeout 1 --access-log), $log, '--access-log-format', '%h %r %s %{Host}i %{Referer}i %{User-Agent}i %U%q %H %m' );
sub {
    my $env = shift;
    return [ 200, [], ['ok'] ] if $env->{PATH_INFO} eq '/';
    if ( $env->{PATH_INFO} =~ m{/stream} ) {
        return sub { my $w = shift->( [ 200, [] ] ); $w->write('begun'); sleep 30 };
    }
    sleep 30;
}
APP
$server->{may_crash} = 1;
my @field = ( 'Host: shop.example:80', 'Referer: http://a/b?c', 'User-Agent: Some/1.0 (x; y)' );
my $lines = sub { open my $fh, '<', $log or return ''; local $/ = undef; return scalar readline $fh };
my $end   = 'shop.example:80 http://a/b?c Some/1.0 (x; y)';

is $server->ask( 'GET /slow%20one?q=1', @field )->status, 504, 'a request that is answered 504';
ok until_true( 10, sub { $lines->() =~ /504/ } ), 'its line';
like $lines->(),
    qr{^127\.0\.0\.1 GET /slow%20one\?q=1 HTTP/1\.1 504 \Q$end\E /slow one\?q=1 HTTP/1\.1 GET$}m,
    'has all of it'
    or diag $lines->();
is $server->ask( 'POST /slow', @field, \( 'b' x 300_000 ) )->status, 504, 'one with a large body';
ok until_true(
    10, sub { $lines->() =~ m{^127\.0\.0\.1 POST /slow HTTP/1\.1 504 \Q$end\E /slow HTTP/1\.1 POST$}m }
    ),
    'its line has all of it'
    or diag $lines->();
my $client = $server->connect;
is $client->ask( 'GET /stream', @field )->status, 'cut', 'a stream that is cut';
ok until_true(
    10, sub { $lines->() =~ m{^127\.0\.0\.1 GET /stream HTTP/1\.1 200 \Q$end\E /stream HTTP/1\.1 GET$}m }
    ),
    'its line has all of it'
    or diag $lines->();
$server->stop;
done_testing;
