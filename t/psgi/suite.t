use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../blib/lib", "$FindBin::Bin/../../blib/arch";
use Test::More;
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

done_testing;
