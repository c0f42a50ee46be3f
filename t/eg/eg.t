use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Digest::SHA qw(sha256_hex);
use File::Temp  ();
use Test::More;
use Sirius::Test;

# Each command of eg/README.md is run, and does what it says

my $root = $Sirius::Test::Server::ROOT;
chdir $root or die "$root: $!";
my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my %sirius = map { m{eg/([\w-]+)} ? ( $1 => $_ ) : () }
    Sirius::Test::Server::slurp('eg/README.md') =~ /^\| `sirius (.*?)` \|/mg;
my %needs = (
    catalyst    => ['Catalyst'],
    dancer2     => ['Dancer2'],
    dbi         => [qw(DBI DBD::SQLite)],
    mojolicious => ['Mojolicious'],
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
