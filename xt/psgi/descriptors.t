use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# An application may close STDIN, STDOUT and STDERR, and take their numbers for files of its own. Nothing of
# the server may be found there: what a library prints would go to a client, or into a file that is sent to
# one.

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
{
    open my $fh, '>', "$dir/large" or die "open: $!";
    print {$fh} 'x' x 1_000_000 for 1 .. 30;
    close $fh or die "close: $!";
}

my $app = <<'APP';
use POSIX ();
sub low { return join( ' ', grep { defined } map { readlink "/proc/$$/fd/$_" } 0 .. 2 ) || 'none' }
# As number 100, since perl itself opens it as number 0
sub file {
    open my $low, '<', 'DIR/large' or return [ 500, [], ["$!"] ];
    POSIX::dup2( fileno $low, 100 );
    POSIX::close( fileno $low );
    open my $fh, '<&=', 100 or return [ 500, [], ["$!"] ];
    return [ 200, [], $fh ];
}
sub {
    my $env = shift;
    POSIX::close($_) for $env->{PATH_INFO} eq '/close' ? 0 .. 2 : ();
    return file() if $env->{PATH_INFO} eq '/file';
    my $read = $env->{'psgi.input'}->read( my $body, 1 << 24 );
    return [ 200, [], [ "$read bytes, ", low() ] ];
};
APP
$app =~ s/DIR/$dir/;

sub low {
    my $pid = shift;
    return join( ' ', grep {defined} map { readlink "/proc/$pid/fd/$_" } 0 .. 2 ) || 'none';
}

my $server = start_server( $app, '--workers', 1, '--access-log', "$dir/access",
    qw(--body-memory 1000 --max-rss 1000m) );
is $server->ask('GET /close')->body, '0 bytes, none', 'they are closed';
my $client = $server->connect;
$client->send( join "\r\n", 'POST / HTTP/1.1', 'Host: x', 'Content-Length: 200000', '', 'y' x 200_000 );
is $client->response->body, '200000 bytes, none', 'while a body lies in a file';

my ($worker) = $server->workers;
my $slow = $server->connect;
$slow->send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n");
ok until_true( 10, sub { $slow->begins } ), 'a file that is sent to a slow client';
is low($worker),                                   'none',          'has another number';
is $server->ask('GET /')->body,                    '0 bytes, none', 'and in the next request';
is length $slow->response( patience => 30 )->body, 30_000_000,      'which arrives whole';
is low($worker),                                   'none',          'and after it';
$server->stop;
done_testing;
