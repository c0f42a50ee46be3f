use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Load;
use Sirius::Test::Server;

# Several processes that own connections, and one that takes the place of another: with other settings, or as
# another build

my $APP = <<'APP';
use Time::HiRes qw(sleep time);
my $served = 0;

# A signal ends a sleep
sub nap {
    my $end = time + shift;
    while ( ( my $left = $end - time ) > 0 ) { sleep $left }
}

sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    nap($1) if $path =~ m{\A/sleep/([\d.]+)};
    return [ 200, [], [ $env->{REMOTE_ADDR} ] ] if $path eq '/client';
    return [ 200, [], [ ++$served ] ]           if $path eq '/count';
    return sub {
        my $writer = shift->( [ 200, [] ] );
        for ( 1 .. 20 ) { $writer->write("$_\n"); nap(0.1) }
        $writer->close;
    } if $path eq '/stream';
    return [ 200, [ 'Content-Type' => 'text/plain' ], ['Hello'] ];
}
APP

my $dir = File::Temp->newdir( 'sirius-edges-XXXXXX', TMPDIR => 1 );

sub configure {
    my @lines = @_;
    return spew( "$dir/sirius.conf", join '', map {"$_\n"} @lines );
}

sub server {
    my $server = start_server( $APP, @_ );
    my ($number) = map { $_[ $_ + 1 ] } grep { $_[$_] eq '--edges' } 0 .. $#_;
    $server->wait_log( qr/ready after /, 20 );    # all workers
    until_true( 10, sub { $number == $server->edges } );
    $server->board;                               # its reader is there when it is needed
    return $server;
}

# All edges are others, and the old ones have ended
sub renewed {
    my ( $server, @before ) = @_;
    my %was = map { $_ => 1 } @before;
    return until_true(
        40,
        sub {
            my @now = $server->edges;
            return @now == @before && !grep { $was{$_} } @now;
        }
    );
}

sub load {
    my ( $server, %option ) = @_;
    my $sign = sub { my $answer = shift; return $answer->status . ( $answer->closes ? ' closes' : '' ) };
    return Sirius::Test::Load->start( $server, sign => $sign, %option );
}

sub only_200 {
    my ( $load, $what ) = @_;
    my $result = $load->stop;
    cmp_ok $result->{200} || 0, '>', 20, "$what: requests were served";
    return is_deeply( [ keys %$result ], [200], 'no request failed, no connection was closed' )
        || diag explain $result;
}

for my $edges ( 1, 2 ) {
    subtest "a reload with other settings, $edges of them" => sub {
        my $conf   = configure('max-body = 1000');
        my $server = server( '--config', $conf, '--edges', $edges, qw(--workers 3) );
        my @edges  = $server->edges;
        is @edges,                                            $edges, 'processes';
        is $server->ask( 'POST /', \( 'x' x 1500 ) )->status, 413,    'the settings of the start';
        my %kept = map { $_ => $server->connect } qw(begun fresh idle long next piped stream);
        $kept{$_}->ask('GET /') for qw(begun idle long next piped stream);
        $kept{begun}->send("GET / HTTP/1.1\r\nHost: a\r\nX-H");
        $kept{long}->send( request('GET /sleep/1.5') );
        $kept{piped}->send( request('GET /sleep/1') . request('GET /client') );
        $kept{stream}->send( request('GET /stream') );
        $server->wait_busy( 3, qr{/sleep/1|/stream} );
        my $load = load( $server, clients => 4 );
        configure('max-body = 2000');
        $server->signal('HUP');
        ok renewed( $server, @edges ), 'other processes have taken their places';
        only_200( $load, 'under load' );
        is $kept{long}->response->status,  200, 'a request that was with the application is answered';
        is $kept{stream}->response->body,  join( '', map {"$_\n"} 1 .. 20 ), 'a stream as well, whole';
        is $kept{piped}->response->status, 200,                              'so is one before another';
        is $kept{piped}->response->body,   '127.0.0.1',                      'and the one that was behind it';
        $kept{begun}->send("ere: 1\r\n\r\n");
        is $kept{begun}->response->status, 200, 'a head that had begun is read to its end';
        is_deeply [ map { $kept{$_}->ask('GET /client')->body } sort keys %kept ], [ ('127.0.0.1') x 7 ],
            'all connections go on, and say from whom';
        is $server->ask( 'POST /', \( 'x' x 1500 ) )->status,      200, 'the new setting holds';
        is $kept{idle}->ask( 'POST /', \( 'x' x 1500 ) )->status,  200, 'on an older connection as well';
        is $kept{fresh}->ask( 'POST /', \( 'x' x 2500 ) )->status, 413, 'as it was set';
        unlike $server->log, qr/a reload cannot change|error:/, 'nothing has to wait';
        ok $server->wait_log( qr/now runs the installed code/, 20 ), 'the supervisor is a new program';
        my @now = $server->edges;
        $server->{may_crash} = 1;
        kill KILL => @now;
        ok until_true(
            10,
            sub {
                ( eval { $server->ask( 'POST /', \( 'x' x 1500 ) )->status } || 0 ) == 200;
            }
            ),
            'one that is killed is replaced by one with the same settings';
        $server->stop;
    };
}

subtest 'what belongs to a connection goes with it' => sub {
    my $conf   = configure( 'max-keepalive-reqs = 6', 'keepalive-timeout = 60', 'proxy-protocol = 1' );
    my $server = server( '--config', $conf, qw(--edges 1 --workers 2 --admin), "$dir/admin" );
    my @edges  = $server->edges;
    my ( $client, $split, $idle ) = map { $server->connect } 1 .. 3;
    $client->send("PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n");
    $client->ask('GET /') for 1 .. 3;
    $split->send('PROXY TCP4 192.0.2.8 ');
    $idle->send("PROXY TCP4 192.0.2.9 192.0.2.1 4711 80\r\n");
    $idle->ask('GET /');
    configure( 'max-keepalive-reqs = 6', 'keepalive-timeout = 1', 'proxy-protocol = 1' );
    $server->signal('HUP');
    ok renewed( $server, @edges ), 'another one has taken over';
    my $counted = '';
    until_true(
        10,    # for a moment both edges may count one that has just moved
        sub {
            my $metrics = Sirius::Test::Client->new("unix:$dir/admin")->ask('GET /metrics')->body;
            my ($accepted) = $metrics =~ /^sirius_connections_accepted_total (\d+)/m;
            my ( $closed, $open ) = ( 0, 0 );
            $closed += $1 while $metrics =~ /^sirius_connections_closed_total\S* (\d+)/mg;
            $open   += $1 while $metrics =~ /^sirius_connections[{]\S+ (\d+)/mg;
            return ( $counted = "$accepted $closed $open" ) eq '3 0 3';
        }
    );
    is $counted, '3 0 3', 'counted as three that were accepted and are open';
    my @answers = map { $client->ask('GET /client') } 1 .. 3;
    is_deeply [ map { $_->body } @answers ], [ ('192.0.2.7') x 3 ], 'the client that the proxy has named';
    is_deeply [ map { $_->closes ? 1 : 0 } @answers ], [ 0, 0, 1 ], 'the number of its requests';
    $split->send("192.0.2.1 4711 80\r\n");
    is $split->ask('GET /client')->body, '192.0.2.8', 'a part of the header of a proxy';
    my $start = time;
    ok $idle->end(20), 'an idle connection is closed by the new time limit';
    cmp_ok time - $start, '<', 15, 'and not the old one';
    $server->stop;
};

# The last byte of such a request stays in the socket until its response is complete
subtest 'requests of HTTP/1.0 that are pipelined on a unix socket' => sub {
    my $limit  = 60;
    my $conf   = configure("keepalive-timeout = $limit");
    my $server = server( '--config', $conf, qw(--edges 1 --workers 2 --listen), "$dir/http.sock" );
    my $get    = sub {"GET $_[0] HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"};
    my $post   = "POST /count HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nAAAAX";
    for my $case (
        [ 'a whole one',     $get->('/count'), '' ],
        [ 'one with a body', $post,            '' ],
        [ 'a part',          unpack 'a12 a*',  $get->('/count') ]
        )
    {
        my ( $name, $first, $rest ) = @$case;
        my @edges  = $server->edges;
        my $client = $server->connect( to => "unix:$dir/http.sock" );
        $client->send( $get->('/sleep/2') . $first );
        configure( 'keepalive-timeout = ' . ++$limit );
        $server->signal('HUP');
        is $client->response->body, 'Hello', "$name: the first one is answered by the old edge";
        ok renewed( $server, @edges ), "$name: another one has taken over";
        $client->send($rest) if length $rest;
        like $client->response->body,                qr/\A\d+\z/, "$name: the second one, as it was sent";
        like $client->ask( $get->('/count') )->body, qr/\A\d+\z/, "$name: the third";
        $client->close;
    }
    $server->stop;
};

subtest 'the access log' => sub {
    my $file   = "$dir/access.log";
    my $lines  = sub { return join ' ', split /\n/, Sirius::Test::Server::slurp($file) };
    my $server = server(
        '--config',
        configure( "access-log = $file", 'access-log-format = first %U' ),
        qw(--edges 1 --workers 2)
    );
    my @edges = $server->edges;
    my $kept  = $server->connect;
    $kept->ask('GET /a');
    ok until_true( 10, sub { $lines->() eq 'first /a' } ), 'the format of the start' or diag $lines->();
    configure( "access-log = $file.other", 'access-log-format = second %U', 'access-log-errors-only = 1' );
    $server->signal('HUP');
    ok renewed( $server, @edges ), 'another edge';
    $kept->ask($_) for 'GET /b', 'BAD';
    ok until_true( 10, sub { $lines->() =~ /second/ } ), 'writes another format' or diag $lines->();
    unlike $lines->(), qr{/b}, 'and only errors';
    like $server->log,
        qr/warn: --access-log: a reload cannot change it from '\Q$file\E' to '\Q$file.other\E'; restart the server/,
        'to the same file, as the log says';
    $server->stop;
};

# A server whose files are its own
sub installed {
    my $root = $Sirius::Test::Server::ROOT;
    my $home = "$dir/installed";
    system( 'rm', '-rf', $home ) == 0 or die "rm: $?";
    system( 'cp', '-a', "$root/blib", $home ) == 0 or die "cp: $?";
    return ( "$home/arch/auto/Sirius/sirius-edge",
        [ $^X, "-I$home/lib", "-I$home/arch", "$root/bin/sirius" ] );
}

sub replace {
    my ( $file, $text ) = @_;
    rename $text ? spew( "$file.new", $text ) : do { system 'cp', $file, "$file.new"; "$file.new" }, $file
        or die "$file: $!";
    chmod 0755, $file;
    utime time + 10, time + 10, $file;    # a build of another time
    return;
}

subtest 'another build is installed' => sub {
    my ( $file, $command ) = installed();
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => $command,
        args    => [qw(--edges 2 --workers 3 --err-respawn-interval 0.1)]
    );
    $server->wait_log( qr/ready after /, 20 );
    my @edges = $server->edges;
    my $kept  = $server->connect;
    $kept->ask('GET /');
    my $load = load($server);
    $server->signal('HUP');
    ok $server->wait_log( qr/now runs the installed code/, 20 ), 'a reload of the same build';
    is_deeply [ $server->edges ], \@edges, 'leaves them as they are';
    replace($file);
    $server->signal('HUP');
    ok renewed( $server, @edges ), 'one of another build replaces them';
    is $kept->ask('GET /')->status, 200, 'a connection goes on';
    only_200( $load, 'under load' );
    @edges = $server->edges;
    my $good = Sirius::Test::Server::slurp($file);
    replace( $file, "#!/bin/sh\necho it does not run >&2\nexit 3\n" );
    $server->signal('HUP');
    ok $server->wait_log(
        qr/error: edge \d+ exited with status 3 before it was ready: edge \d+ keeps serving/, 20
        ),
        'one that does not run is named in the log'
        or diag $server->log;
    like $server->log, qr/^it does not run$/m, 'with what it has said';
    is_deeply [ $server->edges ], \@edges, 'and the old ones go on';
    is $kept->ask('GET /')->status, 200, 'with their connections';
    replace( $file, "no program\n" );
    $server->signal('HUP');
    ok $server->wait_log(
        qr/error: cannot start an edge in place of edge \d+, which keeps serving with its settings: \S+: Exec format error$/m,
        20
        ),
        'one that is no program as well'
        or diag $server->log;
    is_deeply [ $server->edges ], \@edges, 'the old ones go on';
    replace( $file, $good );
    $server->signal('HUP');
    ok renewed( $server, @edges ), 'the next reload tries again';
    is $kept->ask('GET /')->status, 200, 'a connection goes on';
    $server->stop;
};

subtest 'another build passes connections on in another way' => sub {
    my ( $file, $command ) = installed();
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => $command,
        args    => [qw(--edges 1 --workers 4 --graceful-timeout 8)]
    );
    $server->wait_log( qr/ready after /, 20 );
    my ($old)  = $server->edges;
    my $load   = load( $server, clients => 4 );
    my %client = map { $_ => $server->connect } qw(begun idle late long piped);
    $client{$_}->ask('GET /') for sort keys %client;
    $client{begun}->send("GET / HTTP/1.1\r\nHost: a\r\nX-H");
    $client{long}->send( request('GET /sleep/4') );
    $client{piped}->send( request('GET /sleep/1') . request('GET /client') );

    # Its layout, as it tells that first
    my $good  = Sirius::Test::Server::slurp($file);
    my $other = $good;
    is $other =~ s/(sr-heir\0..)../$1\x07\x00/gs, 1, 'the layout that a program tells';
    replace( $file, $other );
    $server->signal('HUP');
    ok $server->wait_log( qr/edge \d+ replaces edge $old$/m, 20 ), 'another one replaces the edge';
    ok $server->wait_log(
        qr/edge $old keeps its connections, as the edge that replaces it has layout 7\.\d+ of connections that are passed on, not [1-6]\.\d+: each is closed after its next response, within 8[.]0 s$/m,
        10
        ),
        'and the log says that it gets no connections';
    $client{begun}->send("ere: 1\r\n\r\n");
    my %response = map { $_ => $client{$_}->response } qw(begun long piped);
    is_deeply {
        map { $_ => $response{$_}->status } keys %response
    }, { begun => 200, long => 200, piped => 200 }, 'what was read is answered';
    ok $response{begun}->closes && $response{long}->closes, 'with Connection: close';
    ok $client{$_}->end(5),                                 "$_: and closed" for qw(begun long);
    my $idle = $client{idle}->ask('GET /');
    is join( ' ', $idle->status, $idle->closes ? 'closes' : 'stays' ), '200 closes',
        'an idle one gets a response';
    my $result = $load->stop;
    is_deeply [ grep { !/\A200(?: closes)?\z/ } keys %$result ], [], 'nobody else has lost a request'
        or diag explain $result;
    ok until_true(
        15,
        sub {
            !grep { $_ == $old } $server->edges;
        }
        ),
        'the old edge ends';
    ok $client{late}->end(5), 'an idle connection is closed then';
    is $client{piped}->response->body, '127.0.0.1',
        'so was the second of two requests that were sent at once';
    is $server->ask('GET /')->status, 200, 'the other one serves';
    unlike $server->log, qr/did not stop in time|connections were closed/, 'in good order';
    $server->stop;
    replace( $file, $good );
};

# A server that does not take part in an installation until it is reloaded
subtest 'another build is installed, and nobody has reloaded' => sub {
    my ( $file, $command ) = installed();
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => $command,
        args    => [ qw(--edges 2 --workers 2 --err-respawn-interval 0.1 --admin), "$dir/port" ]
    );
    $server->wait_log( qr/ready after /, 20 );
    $server->{may_crash} = 1;
    my $good = Sirius::Test::Server::slurp($file);
    my $dies = sub {
        my ( $what, @pids ) = @_;
        my %was  = map { $_ => 1 } @pids;
        my $all  = scalar $server->edges;
        my $port = sub {
            return eval { Sirius::Test::Client->new("unix:$dir/port")->ask('GET /healthz')->status } || 0;
        };
        kill KILL => @pids;
        ok until_true(
            10,
            sub {
                my @now = $server->edges;
                return @now == $all && !grep { $was{$_} } @now;
            }
            ),
            "$what: edges that are killed are replaced";
        ok until_true(
            10,
            sub {
                ( eval { $server->ask('GET /')->status } || 0 ) == 200;
            }
            ),
            'by the same program';
        ok until_true( 10, sub { $port->() == 200 } ), 'on the admin port as well';
    };
    my @admin = $server->admin_edge;
    is @admin, 1, 'the edge of the admin port';
    for my $what ( "#!/bin/false\n", "no program\n", substr $good, 0, 5000 ) {
        replace( $file, $what );
        $dies->( length($what) . ' bytes of another program', $server->edges, @admin );
        @admin = $server->admin_edge;
    }
    unlink $file or die "$file: $!";
    $dies->( 'none is installed', $server->edges );
    unlike $server->log, qr/cannot start|exited with/, 'and no attempt has failed';
    my @before = $server->edges;
    replace( $file, $good );
    $server->signal('HUP');
    ok renewed( $server, @before ),                              'a reload changes to what is installed then';
    ok $server->wait_log( qr/now runs the installed code/, 20 ), 'the supervisor is a new program';
    unlink $file or die "$file: $!";
    $dies->( 'the supervisor was renewed', $server->edges );
    $server->stop;
};

# As if a part of the installation were of another version
subtest 'a program that shares memory in another way' => sub {
    my ( $file, $command ) = installed();
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => $command,
        args    => [qw(--edges 1 --workers 2)]
    );
    $server->wait_log( qr/ready after /, 20 );
    my @edges = $server->edges;
    for my $part (qw(queue scoreboard notes)) {
        my $said = () = $server->log =~ /before it was ready/g;
        replace( $file, <<"SCRIPT" );
#!/bin/sh
for word; do
    shift
    case \$word in
        layout=*) word=\$(echo "\$word" | sed 's/$part:[0-9.]*/$part:1.5/') ;;
    esac
    set -- "\$@" "\$word"
done
exec $Sirius::Test::Server::ROOT/blib/arch/auto/Sirius/sirius-edge "\$@"
SCRIPT
        $server->signal('HUP');
        ok until_true( 20, sub { $said < ( () = $server->log =~ /before it was ready/g ) } ),
            "$part: does not start";
        like $server->log,
            qr/^sirius-edge: this program is of another version than the server that starts it \(layout of $part 1[.]5 there, [\d.]+ here\): install one version completely, and restart the server$/m,
            'says why, and what to do';
        is_deeply [ $server->edges ], \@edges, 'and the old one goes on';
    }
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
};

# A client that waits for a reload is told that the edges are the old ones, and the admin port goes on
subtest 'reload --wait while the program of edges is one that fails, hangs or is missing' => sub {
    my ( $file,    $command ) = installed();
    my ( $control, $admin )   = ( "$dir/renew.control", "$dir/renew.admin" );
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => $command,
        args    => [ qw(--workers 2 --err-respawn-interval 0.1 --control), $control, '--admin', $admin ]
    );
    $server->wait_log( qr/ready after /, 20 );
    $server->{may_crash} = 1;
    my $reload = sub {
        my $text
            = qx("$^X" -Mblib=$Sirius::Test::Server::ROOT/blib $Sirius::Test::Server::ROOT/bin/sirius ctl --control $control reload --wait 2>&1);
        return ( $? >> 8, $text );
    };
    my $probe = sub {
        my $client = eval { Sirius::Test::Client->new("unix:$admin") } or return q();
        return $client->ask('GET /readyz')->status;
    };
    my ($edge) = $server->edges;
    my $good = "$file.good";
    system( 'cp', '-p', $file, $good ) == 0 or die "cp: $?";
    replace( $file, "#!/bin/sh\nexit 3\n" );
    my ( $status, $text ) = $reload->();
    is $status, 1, 'a program that fails: it fails';
    like $text,
        qr/is serving, but edge \d+ exited with status 3 before it was ready: edge $edge keeps serving/,
        'with the reason';
    is_deeply [ $server->edges ], [$edge], 'the edge goes on';
    like
        qx("$^X" -Mblib=$Sirius::Test::Server::ROOT/blib $Sirius::Test::Server::ROOT/bin/sirius ctl --control $control status),
        qr/^edge \d+ exited with status 3 before it was ready/m, 'ctl status shows it';
    is $server->ask('GET /')->status, 200, 'requests are answered';
    ok until_true( 20, sub { $server->log =~ /the supervisor now runs/ } ), 'the supervisor is the new one'
        or diag $server->log;
    ok until_true( 10, sub { $probe->() eq '200' } ), 'the admin port is there' or diag $server->log;
    replace( $file, "#!/nonexistent/interpreter\n" );
    utime time + 15, time + 15, $file;
    ( $status, $text ) = $reload->();
    is $status, 1, 'a program that cannot be executed: it fails';
    like $text, qr/is serving, but cannot start an edge in place of edge $edge,/, 'with the reason';
    my $renewed = () = $server->log =~ /the supervisor now runs/g;
    ok until_true(
        20, sub { $renewed < ( () = $server->log =~ /the supervisor now runs/g ) || $probe->() eq '200' }
        ),
        'the supervisor goes on';
    ok until_true( 10, sub { $probe->() eq '200' } ), 'the admin port is there' or diag $server->log;
    unlink $file or die "unlink: $!";
    ( $status, $text ) = $reload->();
    is $server->ask('GET /')->status, 200, 'without a program: requests are answered';
    ok until_true( 10, sub { $probe->() eq '200' } ), 'and probes';
    rename $good, $file or die "rename: $!";
    utime time + 20, time + 20, $file;
    ( $status, $text ) = $reload->();
    is $status, 0, 'the right program is there again: it succeeds' or diag $text, $server->log;
    ok until_true( 20, sub { my @now = $server->edges; @now == 1 && $now[0] != $edge } ), 'with a new edge'
        or diag $server->log;
    is $server->ask('GET /')->status, 200, 'which serves';
    ok until_true( 10, sub { $probe->() eq '200' } ), 'so does the admin port';
    $server->stop;
};

subtest 'one that has just taken over is killed' => sub {
    my $conf   = configure('max-body = 1000');
    my $server = server( '--config', $conf, qw(--edges 1 --workers 3 --admin), "$dir/admin" );
    $server->{may_crash} = 1;
    my ($old) = $server->edges;
    my @busy  = map { $server->connect } 1 .. 2;
    my @idle  = map { $server->connect } 1 .. 60;
    $_->ask('GET /') for @idle;
    $busy[0]->send( request('GET /sleep/2') );
    $busy[1]->send( request('GET /stream') );
    $server->wait_busy( 2, qr{/sleep/2|/stream} );
    configure('max-body = 2000');
    $server->signal('HUP');
    ok $server->wait_log( qr/edge \d+ replaces edge $old$/m, 20 ), 'it has taken over';
    my ($new) = grep { $_ != $old } $server->edges;
    my $admin = Sirius::Test::Client->new("unix:$dir/admin");
    my $taken
        = sub { $admin->ask('GET /metrics')->body =~ /^sirius_connections_taken_total (\d+)/m && $1 >= 60 };
    ok until_true( 20, $taken ), 'and has the idle connections';
    kill KILL => $new;
    my @answers = map { $_->response } @busy;
    is_deeply [ map { $_->status } @answers ], [ 200, 200 ], 'the one before finishes its requests';
    is $answers[1]->body, join( '', map {"$_\n"} 1 .. 20 ), 'wholly';
    ok( $answers[0]->closes, 'and closes their connections, as nobody takes them' ) or diag $server->log;
    ok until_true(
        10,
        sub {
            ( eval { $server->ask('GET /')->status } || 0 ) == 200;
        }
        ),
        'another one serves';
    ok renewed( $server, $old ), 'and the one before ends';
    $server->stop;
};

subtest 'rights' => sub {
    plan skip_all => 'needs root' if $>;
    chmod 0755, "$dir";
    my $server = server(qw(--edges 1 --workers 2 --user nobody --group nogroup));
    my ( $uid, $gid ) = ( scalar getpwnam 'nobody', scalar getgrnam 'nogroup' );
    my ($edge) = $server->edges;
    my $status = Sirius::Test::Server::slurp("/proc/$edge/status");
    is_deeply [ $status =~ /^([UG]id:.*|Groups:.*?)\s*$/mg ],
        [ "Uid:\t" . join( "\t", ($uid) x 4 ), "Gid:\t" . join( "\t", ($gid) x 4 ), "Groups:\t$gid" ],
        'it has those of the workers, and no more';
    is $server->ask('GET /')->status, 200, 'and serves';
    $server->{may_crash} = 1;
    kill KILL => $edge;
    ok until_true(
        10,
        sub {
            ( eval { $server->ask('GET /')->status } || 0 ) == 200;
        }
        ),
        'another one, too';
    my ($next) = $server->edges;
    like Sirius::Test::Server::slurp("/proc/$next/status"), qr/^Uid:(?:\t$uid){4}$/m, 'with these rights';
    $server->stop;
    my $alone = start_server( $APP, qw(--edges 1 --workers 0 --user nobody --group nogroup) );
    is $alone->ask('GET /')->status, 200, 'beside a single process, which has dropped its own before';
    $alone->stop;
};

subtest 'reloads come faster than a request ends' => sub {
    my $conf   = configure('max-body = 10');
    my $server = server( '--config', $conf, qw(--edges 1 --workers 3) );
    my $busy   = $server->connect;
    $busy->send( request('GET /sleep/5') );
    my ($first) = $server->edges;
    $server->wait_busy( 1, qr{/sleep/5} );
    for my $number ( 1, 2 ) {
        configure("max-body = ${number}0000");
        $server->signal('HUP');
        ok $server->wait_log( qr/generation @{[ 1 + $number ]} is serving$/m, 20 ), "reload $number";
        until_true( 20, sub { $server->ask( 'POST /', \( 'x' x 9000 ) )->status == 200 } );
    }
    ok $server->wait_log( qr/edge \d+ keeps its settings until its predecessor has exited$/m, 20 ),
        'the log says that the second has to wait';
    is scalar( my @edges = $server->edges ), 2,   'there are no more than two';
    is $busy->response->status,              200, 'the request ends';
    ok until_true( 20, sub { $server->ask( 'POST /', \( 'x' x 15_000 ) )->status == 200 } ),
        'then the last settings hold';
    ok renewed( $server, $first ), 'and one is left';
    $server->stop;
};

# So many connections to one of two. Who stands still accepts nothing
sub connect_to {
    my ( $server, $one, $number ) = @_;
    my $other = ( $server->edges )[ 1 - $one ];
    kill STOP => $other;
    until_true( 10, sub { Sirius::Test::Server::slurp("/proc/$other/stat") =~ /\) T / } );
    my @clients = map { $server->connect } 1 .. $number;
    $_->ask('GET /') for @clients;
    kill CONT => $other;
    return @clients;
}

# Neighbours that have nothing left to do free a place, which is not for the heir of the one that is busy
subtest 'the predecessor of one of two is busy' => sub {
    my $conf   = configure('max-body = 10000');
    my $server = server( '--config', $conf, qw(--edges 2 --workers 3) );
    my @edges  = $server->edges;
    my ($busy) = connect_to( $server, 0, 1 );
    my $reload = sub {
        my ( $number, $size ) = @_;
        configure("max-body = $size");
        $server->signal('HUP');
        return $server->wait_log( qr/generation $number is serving$/m, 20 );
    };
    $busy->send( request('GET /sleep/6') );
    $server->wait_busy( 1, qr{/sleep/6} );
    $reload->( 2, 20_000 );
    ok $server->wait_log( qr/edge \d+ replaces edge $edges[0]$/m, 20 ), 'it has an heir';
    my ($heir) = $server->log =~ /edge (\d+) replaces edge $edges[0]$/m;
    ok until_true( 10, sub { 3 == $server->edges } ), 'the other predecessor has ended';
    $reload->( 3, 30_000 );
    ok $server->wait_log( qr/edge $heir keeps its settings until its predecessor has exited$/m, 20 ),
        'the heir has to wait';
    my ($next) = $server->log =~ /edge (\d+) replaces edge $edges[1]$/m;
    ok $server->wait_log( qr/edge \d+ replaces edge $next$/m, 20 ), 'the other heir does not';
    sleep 1;
    unlike $server->log, qr/replaces edge $heir$/m, 'although a place is free';
    my $answer = $busy->response;
    is $answer->status, 200, 'the request ends';
    ok !$answer->closes, 'and its connection goes on in the heir';
    is $busy->ask('GET /')->status, 200, 'as it does';
    ok renewed( $server, $edges[1], $heir ), 'then the heir is replaced';
    is_deeply [ map { $server->ask( 'POST /', \( 'x' x 25_000 ) )->status } 1 .. 6 ], [ (200) x 6 ],
        'and the last settings hold';
    $server->stop;
};

subtest 'HUP each second' => sub {
    my $conf   = configure('max-body = 10');
    my $server = server( '--config', $conf, qw(--edges 2 --workers 3) );
    my @edges  = $server->edges;
    my $load   = load( $server, ask => sub { return 'GET /' . ( $_[1] % 9 ? '' : 'sleep/0.3' ) } );
    for my $number ( 1 .. 10 ) {
        configure("max-body = ${number}0000");
        $server->signal('HUP');
        sleep 1;
    }
    ok until_true( 40, sub { $server->ask( 'POST /', \( 'x' x 95_000 ) )->status == 200 } ),
        'the last settings hold';
    only_200( $load, 'under load' );
    ok renewed( $server, @edges ), 'two are left';
    $server->stop;
};

subtest 'limits are of both together' => sub {
    my $server = server( qw(--edges 2 --workers 1 --max-connections 10 --max-queue 4 --admin), "$dir/admin" );
    my @one    = connect_to( $server, 0, 6 );
    my @two    = connect_to( $server, 1, 6 );
    ok $_->end(10), 'an idle connection of the other makes room' for @one[ 0, 1 ];
    is_deeply [ map { $_->ask('GET /')->status } @one[ 2 .. 5 ], @two ], [ (200) x 10 ], 'the others stay';
    my $admin = Sirius::Test::Client->new("unix:$dir/admin");
    my $busy  = $one[2];
    $busy->send( request('GET /sleep/4') );
    $server->wait_busy( 1, qr{/sleep/4} );
    my $number = 0;

    for my $client ( @one[ 3, 4 ], @two[ 0, 1 ] ) {
        $client->send( request('GET /count') );
        $number++;
        ok until_true( 10, sub { $admin->ask('GET /metrics')->body =~ /^sirius_queued_requests $number$/m } ),
            "$number wait";
    }
    is $_->ask('GET /')->status, 503, 'no more' for $one[5], $two[2];
    is_deeply [ map { $_->response->body } @one[ 3, 4 ], @two[ 0, 1 ] ], [ 1 .. 4 ],
        'those that wait are served';
    $server->stop;
};

# Descriptors of the supervisor have other numbers than those of an edge, which was given few of them
my $left_open
    = '$^F = 60; my @open; while ( open my $fh, "<", "/dev/null" ) { push @open, $fh; last if fileno $fh == 40 } exec @ARGV';

for my $edges ( 1, 2 ) {
    subtest "no descriptor is left, $edges of them" => sub {
        my $server = Sirius::Test::Server->start(
            app     => $APP,
            command => [
                'sh', '-c', 'ulimit -n 120; exec "$@"',
                'sh', $^X,  '-e', $left_open, $^X, "$Sirius::Test::Server::ROOT/bin/sirius"
            ],
            args => [ qw(--workers 3 --max-connections 1000 --edges), $edges ]
        );
        $server->wait_log( qr/ready after /, 20 );
        until_true( 10, sub { $edges == $server->edges } );
        my @begun = map { $server->connect } 1 .. 130 * $edges;
        $_->send("GET / HTTP/1.1\r\nHost: a\r\n") for @begun;
        ok $server->wait_log( qr/descriptor/, 20 ), 'the log says so';
        sleep 0.5;
        my @got = grep {length} map { $_->some( 1, 0 ) } @begun;
        is_deeply [ map { unpack 'H*', $_ } @got ], [], 'nobody gets bytes that are not meant for him';
        $_->send("\r\n") for @begun;
        my %status;
        $status{ $_->response( patience => 20 )->status }++, $_->abort for @begun;
        is_deeply \%status, { 200 => scalar @begun }, 'all are served when there is room'
            or diag explain \%status;
        $server->stop;
    };
}

subtest 'two of them' => sub {
    my $server = server( qw(--edges 2 --workers 1 --admin), "$dir/admin" );
    my @edges  = $server->edges;
    my $admin  = Sirius::Test::Client->new("unix:$dir/admin");
    my $wait   = sub { return ( $admin->ask('GET /metrics')->body =~ /^sirius_queued_requests (\d+)/m )[0] };

    my @of = map { [ connect_to( $server, $_, 10 ) ] } 0, 1;
    my %held;
    my $metrics = $admin->ask('GET /metrics')->body;
    $held{$1} += $2 while $metrics =~ /^sirius_edge_connections[{][^}]*edge="(\d+)"[^}]*[}] (\d+)/mg;
    is_deeply [ sort values %held ], [ 10, 10 ], 'both have connections' or diag explain \%held;
    my $first = $server->connect;
    $first->send( request('GET /sleep/4') );
    $server->wait_busy( 1, qr{/sleep/4} );
    my $sent = 0;

    for my $i ( 0 .. 9 ) {
        for my $one ( $i % 3 ? ( 0, 1 ) : ( 1, 0 ) ) {
            $of[$one][$i]->send( request('GET /count') );
            $sent++;
            until_true( 10, sub { $wait->() == $sent } );
        }
    }
    my @order;
    for my $i ( 0 .. 9 ) {
        push @order, map { $_->[$i]->response->body } $i % 3 ? @of : reverse @of;
    }
    is_deeply \@order, [ 1 .. 20 ], 'requests of both are served in the order of their arrival';
    is $first->response->status, 200, 'the first one too';
    $server->{may_crash} = 1;
    my $busy = $of[1][0];
    $busy->send( request('GET /sleep/1') );
    $server->wait_busy( 1, qr{/sleep/1} );
    kill KILL => $edges[0];
    is $busy->response->status, 200, 'one is killed: a request of the other goes on';
    is_deeply [ map { $_->ask('GET /')->status } @{ $of[1] } ], [ (200) x 10 ], 'and all its connections';
    ok until_true( 10, sub { 2 == $server->edges } ), 'another one starts';
    my $found = sub {
        my %seen = map { $_ => 1 } $server->edges;
        return 2 == keys %seen && !$seen{ $edges[0] };
    };
    ok until_true( 10, $found ), 'in its place';
    kill KILL => $edges[1];
    ok until_true(
        10,
        sub {
            ( eval { $server->ask('GET /')->status } || 0 ) == 200;
        }
        ),
        'and serves, with the same worker';
    my $last = $server->connect;
    $last->send( request('GET /sleep/1') );
    $server->wait_busy( 1, qr{/sleep/1} );
    $server->signal('TERM');
    is $last->response->status, 200,      'a stop answers what has come';
    is $server->wait_exit,      'exit 0', 'and ends';
    $server->stop;
};

done_testing;
