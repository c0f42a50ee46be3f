use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use Sirius::Test;
use Test::More;
use Time::HiRes qw(sleep);

# Edges that stand still, in the verdict of the status page, in /readyz and in sirius top

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
my $APP  = <<"APP";
sub { my \$path = \$_[0]{PATH_INFO}; if ( \$path eq '/wait' ) { select undef, undef, undef, 0.01 while !-e '$dir/go' } [ 200, [], ['ok'] ] }
APP

my $server;

sub admin {
    my $response = $server->connect( to => "unix:$dir/admin" )->ask( 'GET ' . shift, 'Host: localhost' );
    return $response->status . q( ) . $response->body;
}

sub verdict {
    my $verdict = JSON::PP->new->utf8->decode( admin('/status.json') =~ s/\A\d+ //r )->{verdict};
    return "$verdict->{mood}: $verdict->{text}";
}

sub becomes {
    my ( $pattern, $name ) = @_;
    my $is;
    ok until_true(
        30,
        sub {
            ( $is = eval { verdict() } // '' ) =~ $pattern;
        }
        ),
        $name
        or diag $is;
    return;
}

sub server {
    $server = start_server( $APP, @_, '--admin', "$dir/admin" );
    $server->{may_crash} = 1;
    until_true(
        20,
        sub {
            ( eval { verdict() } // '' ) eq 'good: Serving';
        }
    );
    return;
}

subtest 'One of two' => sub {
    server(qw(--edges 2 --workers 2));
    is admin('/readyz'), "200 ready\n", 'ready';
    my ( $first, $second ) = $server->edges;
    kill STOP => $first;
    becomes( qr/\Abad: Serving, but an edge does not respond: PID $first for [\d.]+ s\z/,
        'it does not respond' );
    like admin('/readyz'), qr/\A200 ready\nan edge does not respond: PID $first for [\d.]+ s\n\z/,
        'the other one serves';
    my $top = `$^X -I$root/blib/lib -I$root/blib/arch $root/bin/sirius top --once --admin unix:$dir/admin`;
    like $top, qr/^State        Serving, but an edge does not respond: PID $first for /m,
        'sirius top says the same';
    like $top, qr/^Edge         PID $first, hanging, /m, 'and of which edge';
    kill CONT => $first;
    becomes( qr/\Agood: Serving\z/, 'it responds again' );
    is admin('/readyz'), "200 ready\n", 'ready';
    kill STOP => $first, $second;
    becomes( qr/\Abad: No edge responds\z/, 'none of them responds' );
    like admin('/readyz'), qr/\A503 not ready: no edge responds: (?:$first, $second|$second, $first)\n\z/,
        'not ready';
    kill CONT => $first, $second;
    becomes( qr/\Agood: Serving\z/, 'and again' );

    # Until it is replaced
    kill STOP => $first;
    becomes( qr/\Abad: Serving, but an edge does not respond/, 'it stands still for good' );
    ok $server->wait_log( qr/error: edge $first has not responded for \d+ s and is killed/, 30 ),
        'it is killed';
    becomes( qr/\Agood: Serving\z/, 'another one takes its place' );
    ok !( grep { $_ == $first } $server->edges ), 'it is gone';
    $server->stop;
};

subtest 'Its queue does not move' => sub {
    server(qw(--workers 1));
    my ($edge) = $server->edges;
    my @clients = map { $server->connect } 1 .. 2;
    $_->send( request('GET /wait') ) for @clients;
    becomes( qr/\Aslow: 1 request waiting for a worker\z/, 'a request waits for its worker' );
    is admin('/readyz'), "200 ready\n", 'that is load, no trouble';
    kill STOP => $edge;
    spew( "$dir/go", '' );    # the worker takes the other one by itself
    becomes(
        qr/\Abad: Serving, but the queue of an edge does not move, although a worker is idle: PID $edge for /,
        'the worker is idle, and it still seems to wait'
    );
    becomes( qr/\Abad: No edge responds\z/, 'then it does not respond' );
    kill CONT => $edge;
    is join( q( ), map { $_->response->body } @clients ), 'ok ok', 'both are answered';
    becomes( qr/\Agood: Serving\z/, 'all is well' );
    $server->stop;
};

done_testing;
