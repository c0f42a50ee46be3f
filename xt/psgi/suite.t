use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", "$FindBin::Bin/../../blib/lib", "$FindBin::Bin/../../blib/arch";
use Test::More;
use File::Temp ();
use Sirius::Test;

BEGIN { skip_without('Plack::Test::Suite') }

# The whole of Plack::Test::Suite, with Lint around the application, in one process and with a worker

delete $ENV{SERVER_STARTER_PORT};
for my $workers ( 0, 1, 2 ) {
    subtest "--workers $workers" => sub {
        local $SIG{ALRM} = sub { die "Plack::Test::Suite takes too long\n" };
        alarm 120;
        Plack::Test::Suite->run_server_tests( 'Sirius', undef, undef, workers => $workers );
        alarm 0;
    };
}

# What PLACK_TEST_IMPL=Server and PLACK_SERVER=Sirius do to the tests of an application; with listen they
# bring a socket
for my $listen ( 0, 1 ) {
    subtest "Plack::Test::Server, listen => $listen" => sub {
        require HTTP::Request;
        require Plack::Test::Server;
        my $log = File::Temp->new;
        local @ENV{qw(PLACK_SERVER SIRIUS_WORKERS SIRIUS_ERROR_LOG)} = ( 'Sirius', 1, "$log" );
        my $app    = sub { [ 200, [], [ $_[0]{PATH_INFO} ] ] };
        my $test   = Plack::Test::Server->new( $app, listen => $listen );
        my $answer = $test->request( HTTP::Request->new( GET => '/x' ) );
        is $answer->content,          '/x',     'the application answers';
        is $answer->header('Server'), 'Sirius', 'by this server';
        undef $test;
        my $said = do { local $/ = undef; open my $in, '<', $log; readline $in };
        like $said,   qr/ stopped after /,  'it ends with the test';
        unlike $said, qr/ (?:warn|error) /, 'there is nothing to complain about';
    };
}

done_testing;
