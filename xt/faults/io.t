use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Sirius::Test;
use Sirius::Test::Faults;
use Traffic;

# Calls that do a part of what they were asked for, nothing, or nothing yet: no byte is lost, doubled or out
# of place

my $faults = Sirius::Test::Faults->new;
my $log    = "$faults->{dir}/access.log";
my $server = $faults->start( app => $APP, args => [ qw(--workers 2), '--access-log', $log ] );
is_whole( $server, 'without a fault' );

my %STORM = (
    'short reads'       => { short_read  => 0.7 },
    'short writes'      => { short_write => 0.5 },
    'EAGAIN'            => { eagain      => 0.4 },
    'EINTR'             => { eintr       => 0.4 },
    'all of it at once' => { short_read  => 0.3, short_write => 0.3, eagain => 0.2, eintr => 0.2 },
);

for my $name ( sort keys %STORM ) {
    subtest $name => sub {
        my %before = map { $_ => $faults->injected($_) } keys %{ $STORM{$name} };
        $faults->set( %{ $STORM{$name} } );
        is_whole( $server, 'one client' );
        my $load = traffic( $server, clients => 3 );
        is_whole( $server, 'beside three others' );
        is_deeply [ keys %{ $load->stop } ], ['whole'], 'those as well';
        $faults->clear;
        for my $fault ( sort keys %before ) {
            my $times = $faults->injected($fault) - $before{$fault};
            cmp_ok $times, '>', 20, "$fault: $times times";
        }
        is_whole( $server, 'and when it is over' );
    };
}

subtest 'the log has a line for each request' => sub {
    $faults->set( short_write => 0.9, eintr => 0.5 );
    my $lines = sub { scalar( () = Sirius::Test::Server::slurp($log) =~ /\n/g ) };
    ok until_true( 3, sub { my $n = $lines->(); select undef, undef, undef, 0.7; $n == $lines->() } ),
        'it is calm';
    my $before = $lines->();
    $server->ask("GET /bytes/7?$_") for 1 .. 200;
    ok until_true( 10, sub { $lines->() == $before + 200 } ), '200 lines' or diag $lines->() - $before;
    my @line = grep {m{GET /bytes/7\?\d+ HTTP/1\.1" 200 \d+}} split /\n/, Sirius::Test::Server::slurp($log);
    is @line, 200, 'each of them whole';
    $faults->clear;
};

$server->stop;
done_testing;
