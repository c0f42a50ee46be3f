use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# psgix.request_id and HTTP_X_REQUEST_ID are one id, which the access log has too. It is the proxy's if that
# is trusted

my $dir = File::Temp->newdir;
my $APP = <<'APP';
use POSIX ();
my ( @kept, $late );
my %do = (
    '/both'   => sub { join ' ', @{ $_[0] }{qw(psgix.request_id HTTP_X_REQUEST_ID)} },
    '/copy'   => sub { my %copy = %{ $_[0] }; join ' ', @copy{qw(psgix.request_id HTTP_X_REQUEST_ID)} },
    '/more'   => sub { $_[0]{'my.key'} = 1; join ' ', @{ $_[0] }{qw(psgix.request_id HTTP_X_REQUEST_ID)} },
    '/assign' => sub { $_[0]{'psgix.request_id'} = 'mine'; delete $_[0]{HTTP_X_REQUEST_ID}; 'mine mine' },
    '/local'  => sub {
        my $env = shift;
        { local $env->{'psgix.request_id'} = 'inner' }
        "$env->{'psgix.request_id'} $env->{HTTP_X_REQUEST_ID}";
    },
    '/length' => sub { length( $_[0]{'psgix.request_id'} ) . ' ' . length $_[0]{HTTP_X_REQUEST_ID} },
    '/child'  => sub {
        my $env = shift;
        pipe my $from, my $to;
        if ( !fork ) { syswrite $to, "$env->{'psgix.request_id'} $env->{HTTP_X_REQUEST_ID}"; POSIX::_exit(0) }
        close $to;
        my $id = readline $from;
        wait;
        $id;
    },
    '/cleanup' => sub {
        push @{ $_[0]{'psgix.cleanup.handlers'} },
            sub { $late = "$_[0]{'psgix.request_id'} $_[0]{HTTP_X_REQUEST_ID}" };
        'later';
    },
    '/keep' => sub { @kept = ( $_[0], \$_[0]{'psgix.request_id'} ); 'kept' },
    '/kept' => sub { join ',', map { defined ? $_ : 'undef' } $kept[0]{HTTP_X_REQUEST_ID}, ${ $kept[1] } },
    '/hold' => sub { @kept = \$_[0]{'psgix.request_id'}; 'held' },
    '/held' => sub { defined ${ $kept[0] } ? ${ $kept[0] } : 'undef' },
    '/late' => sub { $late },
    '/die' => sub { die "no luck\n" },
    '/time' => sub { $_[0]{'psgix.queue_time'} },
    '/plain' => sub { 'ok' },
    '/trace' => sub { join ' ', map { defined ? $_ : '-' } @{ $_[0] }{qw(HTTP_TRACEPARENT HTTP_TRACESTATE)} },
);
sub {
    my $env = $_[0];
    my $sub = $do{ $env->{PATH_INFO} };
    return [ 200, [], [ $sub->($env) ] ] if $env->{QUERY_STRING} ne 'stream';
    return sub {
        my $writer = shift->( [ 200, [] ] );
        $writer->write('');
        $writer->write( $sub->($env) );
        $writer->close;
    };
}
APP

sub server {
    my @args = @_;
    unlink "$dir/log";
    return start_server( $APP, qw(--workers 1 --access-log),
        "$dir/log", '--access-log-format', '%{request-id}x %{X-Request-Id}i %{queue}D', @args );
}

# What the access log says of the requests since the last look, which it has written half a second later
my $seen = 0;

sub logged {
    my $n   = $seen + shift;
    my $all = sub { return split /\n/, Sirius::Test::Server::slurp("$dir/log") };
    until_true( 10, sub { $n <= ( my @lines = $all->() ) } ) or diag "no $n lines";
    my @lines = ( $all->() )[ $seen .. $n - 1 ];
    $seen = $n;
    return map { [ split q( ), $_ ] } @lines;
}

my $made = qr/[0-9a-f]{32}/;
my @LONG = map {"X-Field-$_: $_"} 1 .. 40;    # no shape of the pool
my %HOW  = (
    'plain'                 => [ [],                             [] ],
    'with a body'           => [ [],                             [ \'body' ] ],
    'with a body in a file' => [ [],                             [ \( 'b' x 3_000_000 ) ] ],
    'with many fields'      => [ \@LONG,                         [] ],
    'with a large head'     => [ [ 'X-Large: ' . 'y' x 20_000 ], [] ],
    'with a field twice'    => [ [ 'X-Two: 1', 'X-Two: 2' ],     [] ],
);

for my $workers ( 1, 0 ) {
    subtest "An id that the server makes, --workers $workers" => sub {
        my $server = server( '--workers', $workers );
        $seen = 0;
        my ( %id, @asked );
        for my $how ( sort keys %HOW ) {
            my ( $field, $body ) = @{ $HOW{$how} };
            for my $path (qw(/both /copy /more /local /both?stream /child)) {
                my $client = $server->connect;
                my $answer = $client->ask( ( @$body ? 'POST' : 'GET' ) . " $path", @$field, @$body )->body;
                like $answer, qr/\A($made) \1\z/, "$path, $how";
                is $id{$answer}++, 0, 'no other request has it';
                push @asked, $answer;
            }
        }
        is_deeply [ map {"$_->[0] $_->[1]"} logged( scalar @asked ) ], \@asked, 'the log has the same';
        for my $how ( sort keys %HOW ) {
            my ( $field, $body ) = @{ $HOW{$how} };
            my $client = $server->connect;
            is $client->ask( ( @$body ? 'POST' : 'GET' ) . ' /cleanup', @$field, @$body )->body, 'later',
                $how;
            my $late = $client->ask('GET /late')->body;
            my ($log) = logged(2);
            is $late, "$log->[0] $log->[0]", 'a cleanup handler has it too';
        }
        $server->stop;
    };
}

subtest 'A client that is not trusted' => sub {
    for my $trust (
        [],
        [qw(--trust-proxy 10.0.0.0/8)],
        [qw(--underscores-in-headers yes)],
        [qw(--underscores-in-headers trusted --trust-proxy 127.0.0.1)]
        )
    {
        my $server = server(@$trust);
        my $client = $server->connect;
        my $own    = qr/\A($made) \1\z/;
        my @forged = map {"$_: 5b1f0c6e9d3a4e7700000000000003e9"} qw(X_Request_Id x_request-id X-Request_ID);
        unshift @forged, 'X-Request-Id: 5b1f0c6e9d3a4e7700000000000003e9' if "@$trust" !~ /127/;
        for my $path (qw(/both /more)) {
            for my $field ( map( { [$_] } @forged ), [ @forged, @forged ], [ @forged, @LONG ] ) {
                my $answer = $client->ask( "GET $path", @$field )->body;
                like $answer,   $own,                                 "@$trust: $path with " . scalar @$field;
                unlike $answer, qr/5b1f0c6e9d3a4e7700000000000003e9/, 'forges nothing';
            }
        }
        $server->stop;
    }
};

subtest 'A trusted proxy' => sub {
    $seen = 0;
    my $server = server( '--trust-proxy', '127.0.0.1,unix' );
    my $client = $server->connect;
    my @asked;
    my @good = ( 'a', 'Az09-_.~+/=:@', 'x' x 200 );
    for my $path (qw(/both /copy /more /local /both?stream /child)) {
        for my $id (@good) {
            for my $more ( [], \@LONG, [ 'X-Large: ' . 'y' x 20_000 ] ) {
                is $client->ask( "GET $path", "x-request-id: $id", @$more )->body, "$id $id",
                    "$path: " . substr $id, 0, 20;
                push @asked, "$id $id";
            }
        }
        for my $field (
            ['X-Request-Id: a b'], ['X-Request-Id: a"b'], [ 'X-Request-Id: ' . 'x' x 201 ],
            ['X-Request-Id:'],
            [ 'X-Request-Id: a', 'x-request-id: a' ],
            ["X-Request-Id: gr\xc3\xbcn"]
            )
        {
            my $answer = $client->ask( "GET $path", @$field )->body;
            like $answer, qr/\A($made) \1\z/, "$path: @$field is none";
            push @asked, $answer;
        }
    }
    is_deeply [ map {"$_->[0] $_->[1]"} logged( scalar @asked ) ], \@asked, 'the log has the same';
    is $client->ask( 'GET /cleanup', 'X-Request-Id: shop-1' )->body, 'later', 'when the response is out';
    is $client->ask( 'GET /late',    'X-Request-Id: shop-2' )->body, 'shop-1 shop-1', 'it is still known';
    like $client->ask('GET /both')->body, qr/\A($made) \1\z/, 'the next request has another';
    is $client->ask( 'GET /length', 'X-Request-Id: shop-3' )->body, '6 6', 'its length';
    $server->stop;
};

subtest 'What one request does to it the next does not see' => sub {
    my $server = server();
    my $client = $server->connect;
    is $client->ask('GET /assign')->body, 'mine mine', 'another id';
    like $client->ask('GET /both')->body, qr/\A($made) \1\z/, 'is not that of the next';
    for my $more ( [], \@LONG ) {
        is $client->ask( 'GET /hold', @$more )->body, 'held',        'a value that was not read';
        is $client->ask('GET /plain')->body,          'ok',          'the next request';
        is $client->ask( 'GET /held', @$more )->body, 'undef',       'is none of a later request';
        is $client->ask( 'GET /keep', @$more )->body, 'kept',        'an environment that is kept';
        is $client->ask( 'GET /kept', @$more )->body, 'undef,undef', 'neither';
    }
    $server->stop;
};

subtest 'The error log' => sub {
    for my $more ( [], ['--log-prefix'] ) {
        $seen = 0;
        my $server = server( '--trust-proxy', '127.0.0.1', @$more );
        my $time   = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;
        my $line   = @$more ? qr/^$time \d+ error sirius: /m : qr/^\[sirius \d+\] error: /m;
        my $at     = @$more ? q()                            : qr/ at $time/;
        for my $id ( undef, 'shop-1' ) {
            for my $path (qw(/die /die?stream)) {
                my @field = ( 'X-Forwarded-For: 192.0.2.7', defined $id ? "X-Request-Id: $id" : () );
                is $server->ask( "GET $path", @field )->status, $path eq '/die' ? 500 : 'cut', $path;
                my ($logged) = logged(1);
                my $want
                    = qr/$line\QGET $path\E from 192.0.2.7$at, request id \Q$logged->[0]\E: the application died: no luck$/m;
                ok $server->wait_log($want), 'client, time and id' or diag $server->log;
                is $logged->[0], $id, 'that of the proxy' if defined $id;
            }
        }
        $server->stop;
    }
};

subtest 'psgix.queue_time' => sub {
    $seen = 0;
    my $server = server(qw(--trust-proxy 127.0.0.1));
    my $client = $server->connect;
    for my $field ( [], [ sprintf 'X-Request-Start: t=%.3f', time - 20 ] ) {
        my $time   = $client->ask( 'GET /time', @$field )->body;
        my $logged = ( logged(1) )[0][2] / 1e6;
        cmp_ok abs( $time - $logged ), '<',  1e-5,             'is what the log has' or diag "$time, $logged";
        cmp_ok $time,                  '>=', @$field ? 18 : 0, 'with what the proxy says';
    }
    $server->stop;
};

subtest 'traceparent and tracestate arrive as they were sent' => sub {
    my $parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    for my $trust ( [], [qw(--trust-proxy 127.0.0.1)] ) {
        my $server = server(@$trust);
        is $server->ask( 'GET /trace', "traceparent: $parent", 'tracestate: a=1,b=2' )->body,
            "$parent a=1,b=2",
            "@$trust";
        is $server->ask('GET /trace')->body, '- -', 'and are not made';
        $server->stop;
    }
};

done_testing;
