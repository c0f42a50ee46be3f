use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(time);
use Sirius::LogFormat;
use Sirius::Test;
use Sirius::Test::Nginx;

# X-Request-Start, X-Queue-Start and X-Request-Id: what a trusted proxy says is in the log and in the metrics,
# what others say is not

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP
    = 'sub { [ 200, [], [ join q( ), map {"$_=$_[0]{$_}"} grep {/START|REQUEST_ID|request_id/} sort keys %{ $_[0] } ] ] }';

sub server {
    my @args = @_;
    unlink "$dir/log";
    return start_server(
        $APP,       qw(--workers 1 --access-log),
        "$dir/log", '--access-log-format', '%s %{queue}D %D %{request-id}x %{traceparent}x',
        '--admin',  "unix:$dir/admin",     @args
    );
}

# Status, time waited in seconds, duration in seconds, id, traceparent: of the request that was sent last
my $seen = 0;

sub last_line {
    my $all = sub { return split /\n/, Sirius::Test::Server::slurp("$dir/log") };
    until_true( 10, sub { $seen < ( my @lines = $all->() ) } );
    my @lines = $all->();
    $seen = @lines;
    my @words = split q( ), $lines[-1];
    $_ /= 1e6 for grep { $_ ne '-' } @words[ 1, 2 ];
    return @words;
}

# A time so many seconds ago, in a unit of which a second has so many
sub ago {
    my ( $format, $seconds, $unit ) = @_;
    return sprintf $format, ( time - $seconds ) * ( $unit || 1 );
}

sub sum_of {
    my $metrics = Sirius::Test::Client->new("unix:$dir/admin")->ask('GET /metrics')->body;
    return ( $metrics =~ /^sirius_queue_duration_seconds_sum (\S+)/m )[0];
}

subtest 'A trusted proxy' => sub {
    $seen = 0;
    my $server = server( '--trust-proxy', '127.0.0.1,unix' );
    my $client = $server->connect;
    for my $case (
        [ 'nginx'                   => 'X-Request-Start: ' . ago( 't=%.3f', 20 ) ],
        [ 'seconds'                 => 'X-Request-Start: ' . ago( '%.6f',   20 ) ],
        [ 'milliseconds, as Heroku' => 'X-Request-Start: ' . ago( '%.0f',   20, 1e3 ) ],
        [ 'microseconds, as Apache' => 'X-Request-Start: ' . ago( 't=%.0f', 20, 1e6 ) ],
        [ 'the other name'          => 'X-Queue-Start: ' . ago( 't=%.0f', 20, 1e6 ) ],
        )
    {
        my ( $name, @field ) = @$case;
        my $before = sum_of();
        is $client->ask( 'GET /', @field )->status, 200, $name;
        my ( $status, $waited, $took ) = last_line();
        cmp_ok $waited,            '>=', 19.9,    'counts as waiting';
        cmp_ok $waited,            '<',  60,      'and no more';
        cmp_ok $took,              '<',  $waited, 'the duration is that of this server';
        cmp_ok sum_of() - $before, '>=', 19.9,    'the histogram has it';
    }
    for my $case (
        [ 'none'          => () ],
        [ 'a day ago'     => 'X-Request-Start: ' . ago( 't=%.3f', 86_400 ) ],
        [ 'the future'    => 'X-Request-Start: ' . ago( 't=%.3f', -100 ) ],
        [ 'no number'     => 'X-Request-Start: yesterday' ],
        [ 'nothing'       => 'X-Request-Start:' ],
        [ 'a huge number' => 'X-Request-Start: ' . '9' x 400 ],
        )
    {
        my ( $name, @field ) = @$case;
        is $client->ask( 'GET /', @field )->status, 200, $name;
        my ( $status, $waited ) = last_line();
        cmp_ok $waited, '<', 10, 'says nothing';
    }

    # 503 after --queue-timeout is about the wait here
    is $server->ask( 'GET /', 'X-Request-Start: ' . ago( 't=%.3f', 3000 ) )->status, 200,
        'no reason to refuse';
    last_line();

    is $client->ask( 'GET /', 'X-Request-Id: abc-1' )->body, 'HTTP_X_REQUEST_ID=abc-1 psgix.request_id=abc-1',
        'the application sees what was sent';
    is + ( last_line() )[3], 'abc-1', 'and the log the same';
    is $client->ask( 'POST /', 'X-Request-Start: ' . ago( 't=%.3f', 20 ), \( 'b' x 300_000 ) )->status, 200,
        'with a body';
    cmp_ok + ( last_line() )[1], '>=', 19.9, 'too';

    # The time of a body that comes slowly is not that of the proxy
    my $slow = $server->connect;
    $slow->send( "POST / HTTP/1.1\r\nHost: a\r\nX-Request-Start: "
            . ago( 't=%.3f', 0 )
            . "\r\nContent-Length: 2\r\n\r\na" );
    Time::HiRes::sleep(1.5);
    $slow->send('b');
    is $slow->response->status, 200, 'a slow body';
    cmp_ok + ( last_line() )[1], '<', 1.4, 'is no wait';

    # What is refused before it is complete
    is $server->ask( 'GET /', 'X-Request-Id: abc-2', 'Content-Length: x' )->status, 400, 'a refused request';
    is + ( last_line() )[3],                                 'abc-2', 'has the id of the proxy';
    is $server->ask( 'GET /', 'Content-Length: x' )->status, 400,     'another';
    like + ( last_line() )[3], qr/\A[0-9a-f]{32}\z/, 'has one of its own';
    $server->stop;
};

subtest 'Anybody else' => sub {
    for my $trust ( [], [qw(--trust-proxy 10.0.0.0/8)] ) {
        $seen = 0;
        my $server = server(@$trust);
        my $client = $server->connect;
        is $client->ask(
            'GET /',
            'X-Request-Start: ' . ago( 't=%.3f', 20 ),
            'X-Request-Id: mine',
            'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
        )->status, 200, 'says something';
        my ( $status, $waited, $took, $id, $parent ) = last_line();
        cmp_ok $waited, '<', 10, 'its time is not believed';
        like $id, qr/\A[0-9a-f]{32}\z/, 'nor its id';
        is $parent, '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'a traceparent is only a name';
        $client->ask('GET /');
        my $next = ( last_line() )[3];
        isnt $next,                $id,                  'the next request has another id';
        is substr( $next, 0, 16 ), substr( $id, 0, 16 ), 'of the same edge';
        $server->stop;
    }
};

subtest 'nginx' => sub {
    plan skip_all => 'nginx is not installed' if !Sirius::Test::Nginx->available;
    $seen = 0;
    my $server  = server(qw(--trust-proxy 127.0.0.1));
    my $address = $server->address;
    my $nginx   = Sirius::Test::Nginx->start(<<"HTTP");
server {
    listen 127.0.0.1:PORT;
    location / {
        proxy_set_header X-Request-Start "t=\${msec}";
        proxy_set_header X-Request-Id \$request_id;
        add_header X-Its-Id \$request_id;
        proxy_pass http://$address;
    }
}
HTTP
    my $answer
        = $nginx->connect->ask( 'GET /', 'X-Request-Start: ' . ago( 't=%.3f', 20 ), 'X-Request-Id: mine' );
    is $answer->status, 200, 'answered';
    like $answer->body, qr/HTTP_X_REQUEST_START=t=\d+\.\d{3}\b/, 'its time';
    my ( $status, $waited, $took, $id ) = last_line();
    cmp_ok $waited, '<', 10, 'counts, not that of the client';
    is $id, $answer->header('X-Its-Id'), 'and so does its id';
    $server->stop;
};

subtest 'Another server' => sub {

    # Under another server nobody knows whom to believe
    my $env = {
        HTTP_X_REQUEST_ID => 'a',
        HTTP_TRACEPARENT  => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    };
    is + Sirius::LogFormat->new('%{request-id}x %{traceparent}x')->log_line( $env, [ 200, [], [] ] ),
        "- -\n", 'no server';
    my %own = ( block_handlers => { x => sub {"own $_[0]"} } );
    is + Sirius::LogFormat->new( '%{request-id}x %{b}x', %own )->log_line( $env, [ 200, [], [] ] ),
        "own request-id own b\n", 'a handler of that letter';
};

done_testing;
