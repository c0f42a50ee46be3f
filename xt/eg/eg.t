use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Digest::SHA qw(sha256_hex);
use File::Temp  ();
use Test::More;
use Sirius::Test;
use Sirius::Test::WebSocket;

# Each command of eg/README.md is run, and does what it says

my $root = $Sirius::Test::Server::ROOT;
chdir $root or die "$root: $!";
my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my %sirius = map { m{eg/([\w-]+)} ? ( $1 => $_ ) : () }
    Sirius::Test::Server::slurp('eg/README.md') =~ /^\| `sirius (.*?)` \|/mg;
my %needs = (
    ( map { ( $_ => ['Catalyst'] ) } qw(catalyst catalyst-live) ),
    ( map { ( $_ => ['Dancer2'] ) } qw(dancer2 dancer2-live) ),
    dbi => [qw(DBI DBD::SQLite)],
    ( map { ( $_ => ['Mojolicious'] ) } qw(mojolicious mojolicious-live) ),
);

sub example {
    my ( $name, $code ) = @_;
    subtest $name => sub {
        skip_without($_) for @{ $needs{$name} || [] };
        my @args = split ' ', delete $sirius{$name};
        local $ENV{GUESTBOOK} = "dbi:SQLite:dbname=$dir/guests";
        my $server = Sirius::Test::Server->start( args => [ qw(--listen 127.0.0.1:0), @args ] );
        $code->($server);
        $server->stop;
        unlike $server->log, qr/before the fork|died/, 'and it warns of nothing';
    };
    delete $sirius{$name};
    return;
}

# The answers of a table: request, body (text or pattern)
sub answers {
    my @row = @_;
    return sub {
        my $server = shift;
        for (@row) {
            my ( $request, $want ) = @$_;
            my $answer = $server->ask(@$request);
            is $answer->status, 200, $request->[0];
            ref $want ? like $answer->body, $want, 'what it says' : is $answer->body, $want, 'what it says';
        }
    };
}

# What came, once it has the pattern; undef when that does not come
sub read_until {
    my ( $client, $pattern ) = @_;
    my $in = '';
    return until_true( 20, sub { $in .= $client->some( 1, 1 ); $in =~ $pattern } ) ? $in : undef;
}

example hello => answers( [ ['GET /'], 'Hello World' ] );
example catalyst => answers(
    [ ['GET /'],          'Hello World' ],
    [ ['GET /?name=Ann'], 'Hello Ann' ],
    [ ['GET /count'],     "1\n2\n3\n" ]
);
example dancer2 => answers(
    [ ['GET /'],          'Hello World' ],
    [ ['GET /?name=Ann'], 'Hello Ann' ],
    [ ['GET /count'],     "1\n2\n3\n" ]
);
example env =>
    answers( [ [ 'GET /a?b=c', 'X-Name: value' ], qr/^HTTP_X_NAME: value\n(?:.*\n)*PATH_INFO: \/a\n/m ] );

example mojolicious => sub {
    my $server = shift;
    answers( [ ['GET /'], 'Hello World' ], [ ['GET /?name=Ann'], 'Hello Ann' ] )->($server);
    my $cookie = '';
    for my $visit ( 1 .. 3 ) {
        my $answer = $server->ask( 'GET /visits', $cookie ? "Cookie: $cookie" : () );
        is $answer->body, $visit, "visit $visit, whichever worker it is";
        ($cookie) = split /;/, $answer->header('Set-Cookie');
    }
};

example streaming => sub {
    my $client = shift->connect;
    $client->send( request('GET /') );
    my $in = read_until( $client, qr/\n2\n/ );
    like $in,   qr/^1\n/m, 'the first pieces come';
    unlike $in, qr/^5\n/m, 'before the last is written';
    $client->abort;
};

example events => sub {
    my $server = shift;
    like $server->ask('GET /')->body, qr/new EventSource\("\/events"\)/, 'the page';

    my @held = map { $server->connect } 1 .. 4;
    for my $stream (@held) {
        $stream->send( request('GET /events') );
        like read_until( $stream, qr/(?:id: .*?\n\n.*?){2}/s ), qr/^retry: 1000\n\n/m, 'a stream goes on';
    }
    my $other  = $server->connect;
    my $last   = time - 5;
    my $answer = $other->ask( 'GET /events', "Last-Event-ID: $last" );
    is $answer->header('Content-Type'), 'text/event-stream', 'the fifth of eight workers';
    like $answer->body, qr/^id: @{[ $last + $_ ]}\ndata: \w+ .* \d{4}\n\n/m, "has event $_ after the last"
        for 1 .. 5;
    is $other->ask('GET /')->status, 200, 'and is free again';
    cmp_ok scalar( () = $server->ask( 'GET /events', 'Last-Event-ID: 1' )->body =~ /^id: /mg ), '<=', 11,
        'no more than is kept';

    $_->abort for @held;
    ok until_true( 20,
        sub { my $again = $server->connect; $again->send( request('GET /events') ); two_events($again) } ),
        'when those have gone there is room for a stream';
};

sub two_events { return ( () = shift->some( 9**9, 2.5 ) =~ /^id: /mg ) >= 2 }

example upload => sub {
    my $server = shift;
    like $server->ask('GET /')->body, qr/upload\.onprogress/, 'the page';
    my $body = join '', map { chr( $_ * 7 % 251 ) } 1 .. 3_000_000;
    is $server->ask( 'POST /', \$body )->body, '3000000 bytes, sha256 ' . sha256_hex($body) . "\n", 'a file';
    is $server->ask( 'POST /', 'Content-Length: 200000000' )->status, 413, 'one that is too large';
};

example 'early-hints' => sub {
    my $client = shift->connect;
    $client->send( request('GET /') );
    my $hint = read_until( $client, qr/\r\n\r\n/ );
    like $hint,   qr/\AHTTP\/1\.1 103 .*^Link: <\/style\.css>; rel=preload; as=style\r$/ms, 'a hint';
    unlike $hint, qr/ 200 /,                                                                'before the page';
    like $client->response->body,              qr/style\.css/, 'the page';
    like $client->ask('GET /style.css')->body, qr/sans-serif/, 'what was hinted at';
    like $client->ask('GET / HTTP/1.0')->body, qr/<p>Hello/,   'and for HTTP/1.0';
};

# Connections that the server holds, with HTTP/1.1; xt/live has the same with HTTP/2
sub websocket {
    my ( $server, $target, $status ) = @_;
    my $ws = Sirius::Test::WebSocket->new(
        $server->address,
        path => $target,
        tls  => $Sirius::Test::Client::TLS
    );
    is $ws->status, $status || 101, $target;
    return $ws;
}

sub stream {
    my ( $server, $target, $first, $held ) = @_;
    my $client = $server->connect;
    $client->send( request("GET $target") );
    my $in = read_until( $client, $first ) // 'nothing';
    like $in,   qr/^Content-Type: text\/event-stream\b/m, "$target is an event stream";
    unlike $in, qr/^Grip-/mi,                             'without fields for the server';
    return $client;
}

my @FORM = 'Content-Type: application/x-www-form-urlencoded';

example chat => sub {
    my $server = shift;
    like $server->ask('GET /')->body, qr/new WebSocket/, 'the page';
    my ( $ann, $bob ) = map { websocket( $server, "/chat?name=$_" ) } qw(Ann Bob);
    my $says = sub {    # who comes may be told so itself
        my ( $ws, $own ) = @_;
        my $line = $ws->next;
        $line = $ws->next if $line eq "text $own is here";
        return $line;
    };
    is $ann->next,             'text Hello Ann',   'Ann';
    is $bob->next,             'text Hello Bob',   'Bob';
    is $says->( $ann, 'Ann' ), 'text Bob is here', 'who knows of him';
    $ann->text("gr\xc3\xbcn");
    is $ann->next,             "text Ann: gr\xc3\xbcn", 'says something';
    is $says->( $bob, 'Bob' ), "text Ann: gr\xc3\xbcn", 'to all';
    $ann->{client}->abort;
    is $bob->next, 'text Ann has left', 'and goes';
    is( websocket( $server, '/chat?name=%0a', 400 )->{end}, undef, 'it can ask again' );
};

example progress => sub {
    my $server = shift;
    like $server->ask('GET /')->body, qr/new EventSource/, 'the page';
    my $job = $server->ask('POST /jobs')->body;
    my @seen;
    for ( 1 .. 30 ) {    # as EventSource does it
        my $stream = $server->connect;
        $stream->send( request("GET /jobs?$job") );
        my $in = '';
        until_true(
            20,
            sub {
                $in .= $stream->some( 1, 0.2 );
                $in =~ /^data: 100\n/m || $in =~ /\r\n0\r\n/ || $stream->{end};
            }
        );
        like $in, qr/^Content-Type: text\/event-stream\r$/m, 'a stream';
        push @seen, $in =~ /^id: (\d+)$/mg;
        last if @seen && $seen[-1] == 20;
    }
    is $seen[-1],                                 20,                                    'to the end';
    is join( ' ', @seen ),                        join( ' ', sort { $a <=> $b } @seen ), 'in order';
    is $server->ask('GET /jobs?nothing')->status, 404,                                   'no such job';
};

example 'dancer2-live' => sub {
    my $server = shift;
    like $server->ask('GET /')->body, qr/new EventSource/, 'the page';
    my $ann  = stream( $server, '/events?user=ann', qr/retry: 1000\n\n/, 1 );
    my $bob  = stream( $server, '/events?user=bob', qr/retry: 1000\n\n/, 2 );
    my $in   = '';
    my $tell = sub { return $server->ask( 'POST /tell/ann', @FORM, \'text=gr%C3%BCn%0Adata' )->body };
    ok until_true( 20, sub { $tell->(); ( $in .= $ann->some( 1, 0.2 ) ) =~ /^data: .*\n\n/m } ), 'a message';
    like $in, qr/^data: gr\xc3\xbcn data\n\n/m, 'to one user';
    is $bob->some( 1, 0.3 ),                             '',  'and not to the other';
    is $server->ask('GET /events?user=Ann,bob')->status, 400, 'a channel is chosen by the application';
};

example 'mojolicious-live' => sub {
    my $server = shift;
    like $server->ask('GET /')->body, qr/new EventSource/, 'the page';
    my $stream = stream( $server, '/progress/17', qr/data: 0\n\n/, 1 );
    my $in     = '';
    my $tell   = sub { return $server->ask( 'POST /progress/17', @FORM, \"percent=$_[0]" )->body };
    ok until_true( 20, sub { $tell->(50); ( $in .= $stream->some( 1, 0.2 ) ) =~ /^data: 50\n\n/m } ), '50 %';
    is $tell->(100), "told\n", '100 %';
    like read_until( $stream, qr/^data: 100\n\n/m ), qr/^data: 100\n\n/m, 'to the page';
    is $server->ask( 'POST /progress/17', @FORM, \'percent=many' )->status, 400, 'no number';
};

example 'catalyst-live' => sub {
    my $server = shift;
    like $server->ask('GET /')->body, qr/new WebSocket/, 'the page';
    my @ws = map { websocket( $server, '/votes' ) } 1, 2;
    $ws[0]->text('yes');
    is $_->next, 'text yes', 'a vote' for @ws;
    $ws[1]->text('perhaps');
    is $ws[1]->next, 'close 4000 yes or no', 'something else';
};

example dbi => sub {
    my $server = shift;
    my $again  = $server->ask( 'POST /', 'Content-Type: application/x-www-form-urlencoded', \'name=Ann' );
    is $again->status,             303, 'an entry';
    is $again->header('Location'), '/', 'leads back';
    $server->ask( 'POST /', 'Content-Type: application/x-www-form-urlencoded', \"name=guest+$_" ) for 1 .. 20;
    is $server->ask('GET /')->body, join( '', map {"guest $_\n"} reverse 1 .. 20 ) . "Ann\n", 'all of them';
    ok until_true( 20, sub { $server->workers == 4 } ), 'four workers';
    my $file = "$dir/guests";
    ok until_true(
        20,
        sub {
            4 == grep { opens( $_, $file ) } $server->workers;
        }
        ),
        'each has a connection, also those that served nobody';
    ok !opens( $_, $file ), 'and no other process' for $server->pid, $server->generations;
};

sub opens {
    my ( $pid, $file ) = @_;
    return grep { ( readlink("/proc/$pid/fd/$_") || '' ) eq $file } Sirius::Test::Server->descriptors($pid);
}

is_deeply [ sort keys %sirius ], [], 'each command of the page was run';
is_deeply [ sort map {m{/([\w-]+)\.}} glob 'eg/*.psgi' ],
    [ sort map {m{/([\w-]+)\.}} Sirius::Test::Server::slurp('eg/README.md') =~ /^\| `sirius (.*?)` \|/mg ],
    'and the page has each example';

done_testing;
