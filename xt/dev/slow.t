# sirius dev: an application that does not finish loading
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;

my $GOOD = "sub { [ 200, [ 'Content-Type', 'text/plain' ], ['good'] ] }\n";
my $DB   = <<'DB';
package DB;
sub Shop::connect {
    require Wait;
    Wait::long();
}
1;
DB

# The line of the next one that hangs
sub hangs {
    my ( $dev, $text ) = @_;
    my $before = length $dev->log;
    $dev->save( 'app.psgi', $text );
    my $line;
    until_true( 30,
        sub { ($line) = substr( $dev->log, $before ) =~ /^\[sirius \d+\] warn: sirius dev: (.*)$/m } );
    return $line // $dev->log;
}

my $lib = File::Temp->newdir( 'sirius-lib-XXXXXX', TMPDIR => 1 );
spew( "$lib/Wait.pm", "package Wait;\nsub long { select undef, undef, undef, 300 }\n1;\n" );
my $env = { PERL5LIB => join q(:), "$lib", $ENV{PERL5LIB} // () };
my $dev
    = Sirius::Test::Dev->start( $GOOD, { env => $env, files => { 'lib/DB.pm' => $DB } }, qw(--workers 1) );
my $uses = "use lib '@{[ $dev->folder ]}/lib';\n";

is hangs( $dev, "1 while 1;\nsub { }\n" ), 'app.psgi is still loading after 5 s, at app.psgi:1', 'a loop';
is hangs( $dev, "${uses}use DB;\nsub start { Shop::connect() }\nBEGIN { start() }\n$GOOD" ),
    "app.psgi is still loading after 5 s, at Wait::long $lib/Wait.pm:2 < Shop::connect lib/DB.pm:4 < main::start app.psgi:3 < main::BEGIN app.psgi:4",
    'code of others: how it was called';
is hangs( $dev,
    "use HTTP::Server::PSGI;\nHTTP::Server::PSGI->new( host => '127.0.0.1', port => 0 )->run( sub { } );\n" ),
    'app.psgi starts a server of its own, HTTP::Server::PSGI, while it is loaded: name the .psgi file of the application instead',
    'a server';
is hangs( $dev, "select undef, undef, undef, 5.5;\n$GOOD" ),
    'app.psgi is still loading after 5 s, at app.psgi:1',
    'what takes long';
ok $dev->answers('good'), 'and ends';
my $before = length $dev->log;
is $dev->ask('GET /')->body, 'good', 'served';
unlike substr( $dev->log, $before ), qr/still loading/, 'without another line';
$dev->stop;

subtest 'from the start' => sub {
    my $first = Sirius::Test::Dev->start( "my \$pid = \$\$; sleep 6;\n$GOOD", qw(--workers 1) );
    like $first->log, qr/app\.psgi is still loading after 5 s, at app\.psgi:1$/m, 'the first one';
    $first->stop;
};

done_testing;
