# sirius dev: the log of requests, and pages that are told of new code
use strict;
use warnings;
use File::Temp;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use POSIX ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;
use Sirius::Test::EventSource;
use Sirius::Test::HTTP2;
use Sirius::Test::Terminal;

my $PAGE = <<'APP';
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    my $html = [ 'Content-Type' => 'text/html; charset=utf-8' ];
    return [ 404, [ 'Content-Type' => 'text/plain' ], ['no'] ] if $path eq '/missing';
    return [ 200, [ @$html, 'Content-Length' => 44, ETag => '"a"' ], [ '<html><body>', 'one</BODY>', '<!-- </body> --></html>' ] ] if $path eq '/list';
    return [ 200, $html, ['a part'] ] if $path eq '/part';
    return [ 200, [ 'Content-Type' => 'application/json' ], ['{}'] ] if $path eq '/json';
    return [ 200, [ @$html, 'Content-Encoding' => 'gzip' ], ['packed</body>'] ] if $path eq '/gzip';
    if ( $path eq '/stream' ) {
        return sub {
            my $w = shift->( [ 200, $html ] );
            $w->write($_) for '<html>', '<body>', 'streamed</body>';
            $w->close;
        };
    }
    if ( $path eq '/handle' ) {
        open my $fh, '<', \'<html><body>from a handle</body></html>' or die;
        return [ 200, [ @$html, 'Content-Length' => 39 ], $fh ];
    }
    return [ 200, [ 'Grip-Hold' => 'stream', 'Grip-Channel' => 'news' ], ['x'] ] if $path eq '/grip';
    return [ 200, [], [ eval { require Sirius::Channel; Sirius::Channel->publish( news => 'x' ) } // $@ ] ] if $path eq '/publish';
    return [ 200, [ 'Content-Type' => 'text/plain' ], ['text'] ];
};
APP

subtest 'the log of requests' => sub {
    my $dev = Sirius::Test::Dev->start( $PAGE, '--workers', 1 );
    like $dev->log, qr{listening on http://localhost:\d+/$}m, 'the address is a link';
    $dev->ask('GET /a%20path?x=1');
    $dev->ask('POST /missing');
    ok $dev->wait_log(qr{^\d\d:\d\d:\d\d GET  /a%20path\?x=1 200 [\d.]+ ms(?: \(waited [\d.]+ ms\))?$}m),
        'method, path, status, time'
        or diag $dev->log;
    ok $dev->wait_log(qr{^\d\d:\d\d:\d\d POST /missing 404 }m), 'another';
    $dev->save( 'app.psgi', "select undef, undef, undef, 0.2;\n$PAGE" );
    ok $dev->wait_log(qr/generation 2: \S*app\.psgi changed/), 'a change';
    $dev->ask('GET /waits');
    ok $dev->wait_log(qr{GET  /waits 200 \d+ ms \(waited \d+ ms\)$}m),
        'and the time that a request has waited'
        or diag $dev->log;
    $dev->stop;
    $dev = Sirius::Test::Dev->start( $PAGE, '--access-log', '-' );
    $dev->ask('GET /x');
    ok until_true( 10, sub { $dev->output =~ m{"GET /x HTTP/1\.1" 200} } ), '--access-log: that one';
    unlike $dev->log, qr{GET  /x}, 'instead';
    $dev->stop;
};

subtest 'colours' => sub {
    require Sirius::Dev::RequestLog;
    my $log = Sirius::Dev::RequestLog->new( colours => 1 );
    for my $case ( [ 200 => 32 ], [ 301 => 36 ], [ 404 => 33 ], [ 500 => '1;31' ] ) {
        my ( $status, $code ) = @$case;
        like $log->line("GET / HTTP/1.1\t$status\t1500\t0\t-"), qr/\e\[${code}m$status\e\[0m 1\.5 ms\z/,
            "status $status";
    }
    my $plain = Sirius::Dev::RequestLog->new;
    unlike $plain->line("GET / HTTP/1.1\t200\t1500\t5000\t-"), qr/\e/, 'none where none are wanted';
    like $plain->line("GET / HTTP/1.1\t200\t1500\t0\t$_->[0]"), qr/200 1[.]5 ms\Q$_->[1]\E\z/,
        "cut by: $_->[0]"
        for [ '-' => '' ], [ client => ' the client closed the connection' ],
        [ server => ' the response was cut' ];
};

# sirius dev in a terminal of its own, which is closed. STDERR is a file, so that it can be read then
sub close_terminal {
    my ( $dir, $how ) = @_;
    my $terminal = Sirius::Test::Terminal->open or plan skip_all => "/dev/ptmx: $!";
    my $pid      = $terminal->run( sub {
        my $root = $Sirius::Test::Server::ROOT;
        open STDOUT, '>',  "$dir/$$" or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT  or POSIX::_exit(126);
        $SIG{HUP}      = $how eq 'nohup' ? 'IGNORE' : 'DEFAULT';    # whatever the tests were started with
        $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
        exec $^X, "$root/bin/sirius", qw(dev --port 0 --workers 1), "$dir/app.psgi";
    } );
    my $log = sub { Sirius::Test::Server::slurp("$dir/$pid") };
    ok until_true( 30, sub { -e "$dir/$pid" && $log->() =~ /listening on/ } ), 'it serves';
    $terminal->close;
    return ( $pid, $log );
}

subtest 'the terminal is closed' => sub {
    my $dir = File::Temp->newdir;
    spew( "$dir/app.psgi", $PAGE );
    my ( $pid, $log ) = close_terminal( $dir, 'shell' );
    ok until_true( 30, sub { waitpid( $pid, POSIX::WNOHANG() ) == $pid } ), 'the server ends'
        or kill KILL => $pid;
    is $?, 0, 'as with Ctrl-C';
    like $log->(), qr/stopping at once: HUP .*, and the terminal is closed;/, 'and says why';
    ( $pid, $log ) = close_terminal( $dir, 'nohup' );
    ok until_true( 30, sub { $log->() =~ /reload started as generation \d+: HUP/ } ),
        'HUP is a reload with nohup';
    kill TERM => $pid;
    waitpid $pid, 0;
    is $?, 0, 'the server ends when it is told to';
};

subtest '--live-reload over HTTP/2' => sub {
    my $dev  = Sirius::Test::Dev->start( $PAGE, qw(--workers 1 --live-reload), @Sirius::Test::HTTP2::LISTEN );
    my $page = Sirius::Test::HTTP2->new( $dev->address );
    my $said = '';
    my $told = sub {
        my $number = shift;
        return until_true( 20,
            sub { $said .= $page->receive(0.1) // ''; ( () = $said =~ /^data: \S+$/mg ) >= $number } );
    };
    ok $dev->wait_log(qr/ready after/), 'the server is ready';
    my %field = ( ':method' => 'GET', ':path' => '/__sirius/live', ':scheme' => 'http', ':authority' => 'a' );
    $page->send( $page->preface
            . $page->make( 'HEADERS', 5, 1, $page->fields( map { $_ => $field{$_} } sort keys %field ) ) );
    ok $told->(1), 'a page is a stream of its connection';
    $dev->save( 'app.psgi', "# new\n$PAGE" );
    ok $told->(2), 'and is told of new code';
    $dev->stop;
};

subtest '--live-reload' => sub {
    my $dev    = Sirius::Test::Dev->start( $PAGE, qw(--workers 1 --live-reload) );
    my $script = qr{<script src="/__sirius/live\.js\?[\w.]+"></script>};
    my $list   = $dev->ask('GET /list');
    like $list->body, qr{\A<html><body>one</BODY><!-- $script\n</body> --></html>\z},
        'before the last </body>';
    unlike $dev->log, qr/before the fork/, 'the socket of the server itself is not one of the application';
    is $list->header('Content-Length'), length $list->body, 'with its length';
    is $list->header('ETag'),           undef,              'it is not what the ETag says';
    like $dev->ask('GET /stream')->body, qr{\A<html><body>streamed</body>$script\z}, 'after what is streamed';
    like $dev->ask('GET /handle')->body, qr{\A<html><body>from a handle</body></html>$script\z},
        'after what is read';
    like $dev->ask('GET /part')->body, qr{\Aa part$script\z}, 'a page without an end';
    is $dev->ask( 'GET /part', $_ )->body, 'a part', "not with $_"
        for 'X-Requested-With: XMLHttpRequest', 'Sec-Fetch-Dest: empty', 'HX-Request: true';
    is $dev->ask('GET /json')->body,                      '{}',               'not in JSON';
    is $dev->ask('GET /gzip')->body,                      'packed</body>',    'not in what is packed';
    is $dev->ask('HEAD /list')->header('Content-Length'), length $list->body, 'HEAD: the same';
    like $dev->ask('GET /__sirius/live.js?1')->header('Content-Type'), qr{javascript}, 'the script';

    my @pages = map { Sirius::Test::EventSource->new( $dev, '/__sirius/live' ) } 1 .. 3;
    my $hears = sub {
        my ( $page, $number ) = @_;
        return $page->hears( sub { shift->data >= $number } );
    };
    ok $hears->( $_, 1 ), 'an open page' for @pages;
    like $pages[0]->said,   qr{\r\nContent-Type: text/event-stream\r\n}, 'is a stream of events';
    unlike $pages[0]->said, qr/grip/i,                                   'which the edge holds';
    is $dev->ask('GET /')->body, 'text', 'and occupies no worker';
    $dev->save( 'app.psgi', "die 'broken';\n" );
    ok $hears->( $_, 2 ), 'is told of broken code' for @pages;
    my @scripts = $dev->ask( 'GET /', 'Accept: text/html' )->body =~ /$script/g;
    is @scripts, 1, 'whose page has the script once';
    $dev->save( 'app.psgi', $PAGE );
    ok $hears->( $_, 3 ), 'and of good code' for @pages;
    is scalar $_->data, 3, 'by different names' for @pages;
    unlike $dev->log, qr/__sirius/, 'nothing of it is in the log';
    is $dev->ask( 'GET /__sirius/live', 'Sec-Fetch-Site: cross-site' )->status, 403,
        'not for pages of others';
    is $dev->ask('POST /__sirius/live')->status,       405,    'only for GET';
    is $dev->ask('GET /grip')->header('Grip-Channel'), 'news', 'without --hold nothing else is held';
    like $dev->ask('GET /publish')->body, qr/start it with --hold/, 'and nothing can be published';
    $dev->stop;
};

subtest '--live-reload: directories of --static elsewhere' => sub {
    my $assets = File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
    spew( "$assets/LICENSE", 'one' );
    my $dev  = Sirius::Test::Dev->start( $PAGE, qw(--workers 1 --live-reload --static), "/assets=$assets" );
    my $page = Sirius::Test::EventSource->new( $dev, '/__sirius/live' );
    ok $page->hears(qr/^data: /m),      'a page';
    ok $dev->wait_log(qr/ready after/), 'the server is ready';
    spew( "$assets/s.css", 'p { }' );
    ok $page->hears(qr/^event: styles\ndata: \["s\.css"\]$/m), 'is told of a style sheet';
    spew( "$assets/LICENSE", 'two' );
    ok $page->hears(qr/^data: again /m), 'and of any other file';
    is $dev->reloads, 0, 'the application is not loaded again';
    $dev->stop;
};

done_testing;
