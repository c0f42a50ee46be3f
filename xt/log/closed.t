use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# The application has closed STDERR. What takes its place gets no line of the server, and no client takes its
# place.

my $dir    = File::Temp->newdir;
my $server = start_server( <<"APP", qw(--workers 1) );
use POSIX ();
my \$fh;
sub {
    my \$path = \$_[0]{PATH_INFO};
    close STDERR if \$path eq '/close';
    if ( \$path eq '/open' ) { open \$fh, '>>', "$dir/data" or die }
    die "secret\\n" if \$path eq '/die';
    return [ 200, [], [ readlink('/proc/self/fd/2') // 'closed' ] ];
}
APP
my $one = $server->connect;
$one->ask('GET /close');
my $two = $server->connect;
is $two->ask('GET /')->body, 'closed', 'a new connection does not get descriptor 2';
$one->ask('GET /open');
is $one->ask('GET /die')->status, 500, 'an error is answered';
is -s "$dir/data",                0,   'and not written to the file that is there now';
is $two->ask('GET /')->status,    200, 'other connections go on';
is join( '', $server->crashes ),  '',  'no crash';

done_testing;
