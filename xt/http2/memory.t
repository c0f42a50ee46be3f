use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::HTTP2;

# What an idle connection costs, and that frames of many connections, which are put together in one place, do
# not mix

my $APP    = q{ sub { [ 200, [], [ substr( $_[0]{PATH_INFO}, 1 ) x 1000 ] ] } };
my $server = start_server( $APP, qw(--workers 2 --enable-ssl --tls-self-signed --keepalive-timeout 600) );
my ($edge) = $server->edges;

# KiB of its own; undefined: it can't be read
sub memory {
    open my $in, '<', "/proc/$edge/smaps_rollup" or return;
    my ($all) = map {/^Pss_Anon:\s+(\d+)/} <$in>;
    return $all;
}

my @clients;

sub idle {
    my $n = shift;
    for ( 1 .. $n ) {
        my $client = Sirius::Test::HTTP2->new( $server->address, tls => ['h2'] );
        $client->greet->open( 1, 'GET /x' );
        $client->await( 'DATA', 1 );
        push @clients, $client;
    }
    return;
}

subtest 'idle connections' => sub {
    plan skip_all => 'the memory of the edge cannot be read' if !defined memory();
    idle(100);
    my $before = memory();
    idle(200);
    my $each = ( memory() - $before ) / 200;
    cmp_ok $each, '<', 12, sprintf '%.1f KiB each, over TLS', $each;
};

subtest 'frames of many connections' => sub {
    my %mixed;
    my @some = splice @clients, 0, 20;
    for my $turn ( 1 .. 12 ) {    # less than the window of 64 KiB
        my $stream = 1 + 2 * $turn;
        $some[$_]->open( $stream, sprintf 'GET /%04d', $_ ) for 0 .. $#some;
        for my $number ( 0 .. $#some ) {
            my $text = '';
            while ( my $frame = $some[$number]->await( 'DATA', $stream ) ) {
                $text .= $frame->{payload};
                last if $frame->{type} ne 'DATA' || $frame->{flags} & 1;
            }
            $mixed{$number}++ if $text ne sprintf( '%04d', $number ) x 1000;
        }
    }
    is_deeply \%mixed, {}, 'each client gets its own';
};

@clients = ();
$server->stop;
done_testing;
