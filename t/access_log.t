use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# --access-log

my $dir    = File::Temp->newdir;
my $server = start_server( 'sub { [ 200, [ "X-Own" => "yes" ], ["hello"] ] }',
    '--workers', 2, '--access-log', "$dir/access", '--access-log-format',
    '%h "%r" %>s %b "%{User-agent}i" %{X-Own}o' );
$server->ask( "GET /$_",    'User-Agent: x/1' ) for 1 .. 3;
$server->ask( 'POST /body', \'abc' );
my $log = sub { Sirius::Test::Server::slurp("$dir/access") };
ok until_true( 10, sub { 4 == ( () = $log->() =~ /\n/g ) } ), 'four requests, four lines' or diag $log->();
like $log->(), qr{^127\.0\.0\.1 "GET /2 HTTP/1\.1" 200 5 "x/1" yes$}m, 'as the format says';
rename "$dir/access", "$dir/old" or die $!;
$server->signal('USR1');
ok until_true( 10, sub { -e "$dir/access" } ), 'USR1 opens the file again';

# The file is there before all processes write to it
ok until_true( 10, sub { $server->ask('GET /new'); $log->() =~ m{GET /new} } ), 'which gets the next lines';
$server->stop;
done_testing;
