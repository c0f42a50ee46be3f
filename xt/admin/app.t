use strict;
use warnings;
use lib 't/lib';
use Cwd        qw(abs_path);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use JSON::PP   ();
use List::Util qw(min);
use Test::More;
use Time::HiRes qw(clock);
use Sirius::Admin::App;
use Sirius::Test::Snapshot;

# The application of the admin port: what it answers to whom

my $snapshot = Sirius::Test::Snapshot->of;
my ( $line, @asked, %answer ) = bless {}, 'Line';

sub Line::ask {
    shift;
    push @asked, "@_" if $_[0] ne 'memory';
    return ref $answer{ $_[0] } ? $answer{ $_[0] }->(@_) : $answer{ $_[0] };
}
my $admin = Sirius::Admin::App->new(
    line      => $line,
    snapshot  => sub { ref $snapshot ? $snapshot : die "$snapshot\n" },
    version   => '1.5',
    started   => 1_699_990_000,
    listeners => ['http://0.0.0.0:5000/'],
    pid       => 4711,
    app       => '42.psgi',
    host      => '7',
);
my $app    = $admin->to_app;
my $errors = '';

# Status, { header => value }, body
sub ask {
    my ( $path, %env ) = @_;
    open my $log, '>>', \$errors or die $!;
    my $response = $app->( {
        HTTP_HOST      => '127.0.0.1:9090',
        PATH_INFO      => $path,
        REMOTE_ADDR    => '127.0.0.1',
        REQUEST_METHOD => 'GET',
        'psgi.errors'  => $log,
        %env,
    } );
    my ( $status, $headers, $body ) = @$response;
    return ( $status, {@$headers}, join '', @$body );
}

sub status_of { return ( ask(@_) )[0] }

# Status and text
sub said {
    my ( $status, undef, $body ) = ask(@_);
    return "$status $body";
}

sub ready {
    $snapshot = Sirius::Test::Snapshot->of(@_);
    my $said = said('/readyz');
    $snapshot = Sirius::Test::Snapshot->of;
    return $said;
}

my @PATHS   = qw(/ /healthz /history.json /metrics /readyz /status.json);
my @PRIVATE = qw(/ /history.json /profile.html /stack.json /status.json);

subtest 'Paths and methods' => sub {
    my %type = (
        '/'             => 'text/html; charset=utf-8',
        '/healthz'      => 'text/plain; charset=utf-8',
        '/history.json' => 'application/json',
        '/metrics'      => 'text/plain; version=0.0.4; charset=utf-8',
        '/readyz'       => 'text/plain; charset=utf-8',
        '/status.json'  => 'application/json',
    );
    for my $path (@PATHS) {
        my ( $status, $headers, $body ) = ask($path);
        is $status,                      200,          $path;
        is $headers->{'Content-Type'},   $type{$path}, 'its type';
        is $headers->{'Content-Length'}, length $body, 'its length';
        ok !utf8::is_utf8($body) || $body !~ /[^\x00-\xff]/, 'bytes';
        my ( $head, $same, $none ) = ask( $path, REQUEST_METHOD => 'HEAD' );
        is $head, 200, 'HEAD';
        is_deeply $same, $headers, 'the same head';
        is $none, '', 'and nothing else';

        for my $method (qw(POST PUT DELETE OPTIONS TRACE GETS)) {
            my ( $refused, $allow ) = ask( $path, REQUEST_METHOD => $method );
            is "$refused $allow->{Allow}", '405 GET, HEAD', $method;
        }
    }
    is status_of(''), 200, 'no path is /';
    is status_of($_), 404, "'$_'"
        for qw(// /status /status.json/ /metrics/x /page.js /page.css /../Admin.pm /favicon.ico), "/\0",
        '/%2e', "/metrics\n";
    is status_of( '/nothing', REQUEST_METHOD => 'POST' ), 404,
        'a path that is not there, whatever the method';
};

subtest 'Nobody keeps it or makes something else of it' => sub {
    for my $case (
        ( map { [$_] } @PATHS, '/nothing' ),
        [ '/', REQUEST_METHOD => 'POST' ],
        [ '/', HTTP_HOST      => 'a.example' ]
        )
    {
        my ( undef, $headers ) = ask(@$case);
        is $headers->{'Cache-Control'},                'no-store',    "@$case";
        is $headers->{'X-Content-Type-Options'},       'nosniff',     'type';
        is $headers->{'Referrer-Policy'},              'no-referrer', 'referrer';
        is $headers->{'Cross-Origin-Resource-Policy'}, 'same-origin', 'not for other pages';
        like $headers->{'Content-Security-Policy'}, qr/\Adefault-src 'none'; .*frame-ancestors 'none'/,
            'policy';
        unlike $headers->{'Content-Security-Policy'}, qr/unsafe|\*|https?:/, 'a strict one';
    }
};

subtest 'The page' => sub {
    my ( undef, $headers, $html ) = ask('/');
    my $policy = $headers->{'Content-Security-Policy'};
    require Digest::SHA;
    for my $element (qw(script style)) {
        my @texts = $html =~ m{<$element>(.*?)</$element>}gs;
        my @hash  = map { q{'sha256-} . Digest::SHA::sha256_base64($_) . q{='} } @texts;
        cmp_ok scalar @texts, '>', 0, "$element in the page";
        like $policy, qr/(?:\A|; )$element-src \Q@hash\E(?:;|\z)/, 'these alone may be used';
    }
    my @from = grep { !m{\Ahttp://www\.w3\.org/} } $html =~ m{(?:https?:)?//[\w.-]+\.[^\s'"]+}g;
    is_deeply \@from, [], 'nothing from elsewhere';
    my @files = $html =~ m{<link[^>]*href="(?!data:)[^"]*|<script\s[^>]*|<img[^>]*|\@import[^;]*|url\([^)]*}g;
    is_deeply \@files, [], 'no file but itself';
    my @unsafe = $html
        =~ /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|\bon[a-z]+="|\bstyle="/g;
    is_deeply \@unsafe, [], 'no HTML from text, no code from text';
};

subtest 'status.json' => sub {
    my $json  = JSON::PP->new->utf8;
    my $euro  = "\xe2\x82\xac";
    my $bytes = qq(GET /\xff"<script>alert(1)</script>\\\n\x7f\0);
    $snapshot = Sirius::Test::Snapshot->of(
        workers => [
            { state => 'busy',     line   => $bytes, mark => $euro },
            { mark  => "\x{263a}", client => '12',   odd  => 'new', none => undef, endless => 9**9**9 }
        ]
    );
    my $status = $json->decode( ( ask('/status.json') )[2] );
    my %about  = map { $_ => delete $status->{$_} } qw(app host listeners pid started uptime version);
    is_deeply [ map { delete $status->{$_} } qw(profile verdict) ],
        [ { phase => 'none' }, { mood => 'slow', text => '5 requests waiting for a worker' } ],
        'what is to be said of it';
    is_deeply \%about,
        {
        app       => '42.psgi',
        host      => '7',
        listeners => ['http://0.0.0.0:5000/'],
        pid       => 4711,
        started   => 1_699_990_000,
        uptime    => 10_000,
        version   => '1.5'
        },
        'about the server';
    is( ( ask('/status.json') )[2] =~ /"closed":\{"client":(.*?),/ ? $1 : '', 240, 'a count is a number' );
    is $status->{workers}[0]{line},    $bytes,     'bytes that are no UTF-8';
    is $status->{workers}[0]{mark},    "\x{20ac}", 'bytes that are';
    is $status->{workers}[1]{mark},    "\x{263a}", 'characters';
    is $snapshot->{workers}[0]{mark},  $euro,      'the snapshot is as it was';
    is $status->{workers}[1]{odd},     'new',      'text that nobody knew of';
    is $status->{workers}[1]{none},    undef,      'null';
    is $status->{workers}[1]{endless}, undef,      'infinity is null';
    is_deeply [ $json->decode( ( ask('/status.json') )[2] )->{workers}[1]{client} ], ['12'], 'digits';
    like( ( ask('/status.json') )[2], qr/"client":"12"/, 'are text where text is' );
    delete @$_{qw(odd none endless)} for map { @{ $_->{workers} } } $status, $snapshot;
    $_->{mark} = $_->{line} = '' for map { @{ $_->{workers} } } $status, $snapshot;
    is_deeply $status, $snapshot, 'all else is the snapshot';
    my ($text) = ( ask('/status.json') )[2] =~ /("requests":[^,}]+)/;
    like $text, qr/:\d+\z/, 'numbers are numbers';
};

subtest 'Ready' => sub {
    is said('/healthz'),                            "200 ok\n",    'alive';
    is ready(),                                     "200 ready\n", 'ready';
    is ready( workers => [ { state => 'busy' } ] ), "200 ready\n", 'busy is ready';
    is ready( stopping => 1 ),                      "503 not ready: the server is stopping\n", 'stopping';
    my %edge = ( connections => 0, idle => 0, number => 0, pid => 4711, waiting => 0 );
    my $with = sub {
        return ready( edges_wanted => 2, edges => [ map { { %edge, state => $_ } } @_ ] );
    };
    is $with->( 'idle', 'hanging' ), "200 ready\nan edge does not respond: PID 4711 for 0.0 s\n",
        'one edge of two responds';
    is $with->( 'idle',    'starting' ), "200 ready\nan edge is starting: PID 4711\n", 'one of two starts';
    is $with->( 'busy',    'draining' ), "200 ready\n",                                'one leaves';
    is $with->( 'hanging', 'draining' ), "503 not ready: no edge responds: 4711\n",
        'none that stays responds';
    is $with->('starting'),    "503 not ready: no edge is serving\n",        'none has started';
    is $with->(),              "503 not ready: no edge is serving\n",        'there is none';
    is ready( workers => [] ), "503 not ready: no worker has started yet\n", 'no worker';
    is ready( workers => [ { state => 'starting' } ] ), "503 not ready: no worker has started yet\n",
        'starting';
    is ready( workers => [ {}, { state => 'starting', generation => 2 } ] ), "200 ready\n",
        'the old one serves meanwhile';
    is ready( workers => [ {}, { generation => 2 }, { state => 'starting', generation => 2 } ] ),
        "200 ready\n",
        'one of the new ones serves';
    is ready( workers => [ {}, { state => 'draining', generation => 2 } ] ),
        "503 not ready: no worker of generation 2 is serving\n", 'none of the newest';
};

subtest 'A snapshot that fails' => sub {
    $snapshot = 'no scoreboard';
    for my $path (qw(/metrics /readyz /status.json)) {
        is said($path), "500 The figures cannot be read; see the error log\n", $path;
    }
    is $errors,       "sirius: --admin: no scoreboard\n" x 3, 'in the log';
    is status_of($_), 200,                                    "$_ as ever" for qw(/ /healthz);
    $snapshot = Sirius::Test::Snapshot->of;
};

subtest 'Names that lead here' => sub {
    my @own = (
        '127.0.0.1',        '127.0.0.1:9090', '10.1.2.3:80',    '[::1]',
        '[::1]:9090',       'localhost',      'localhost:9090', 'LOCALHOST',
        'shop.localhost:1', ''
    );
    my @other
        = qw(attacker.example attacker.example:9090 localhost.attacker.example 127.0.0.1.attacker.example
        xlocalhost [::1].example 127.0.0.1:x);
    for my $path (@PRIVATE) {
        is status_of( $path, HTTP_HOST => $_ ), 403, "$path '$_'" for @other;
    }
    for my $path ( '/', '/history.json', '/status.json' ) {
        is status_of( $path, HTTP_HOST => $_ ), 200, "$path '$_'" for @own;
        is status_of( $path, HTTP_HOST => 'a.example', REMOTE_ADDR => $_ ), 403, "from $_"
            for qw(127.9.9.9 ::1 ::ffff:127.0.0.1);
        is status_of( $path, HTTP_HOST => 'a.example', REMOTE_ADDR => $_ ), 200, "from '$_'"
            for '10.0.0.1', '2001:db8::1', '';
        is status_of( $path, HTTP_HOST => undef, REMOTE_ADDR => undef ), 200, 'a unix socket';
    }
    is status_of( $_, HTTP_HOST => 'a.example' ), 200, $_ for qw(/metrics /healthz /readyz);
    my ( undef, undef, $own )     = ask('/metrics');
    my ( undef, undef, $foreign ) = ask( '/metrics', HTTP_HOST => 'a.example' );
    like $own,       qr{path="/report/:id"}, 'metrics have paths';
    unlike $foreign, qr/path/,               'which no other page may read';
    is $foreign, join( '', grep { !/sirius_path_/ } split /^/, $own ), 'but all the rest';
    $snapshot = Sirius::Test::Snapshot->of;
};

subtest 'The stack of a worker' => sub {
    my @ask = ( '/stack.json', QUERY_STRING => 'pid=4711' );
    $answer{stack} = '{"pid":4711}';
    is said(@ask),          qq(200 {"pid":4711}\n), 'what the supervisor says';
    is "@asked",            'stack 4711',           'which was asked once';
    is said('/stack.json'), "400 The PID of a worker is missing: /stack.json?pid=4711\n", 'without a PID';
    is status_of( '/stack.json', QUERY_STRING => $_ ), 400, "'$_'"
        for '', 'pid=', 'pid=0', 'pid=-1', 'pid=x', 'pid=1 2', 'pid=1&pid=2', 'pid=12345678901', "pid=1\n";
    is scalar @asked, 1, 'nothing of that goes to the supervisor';
    $answer{stack} = 'error there is no worker 4711';
    is said(@ask), "404 there is no worker 4711\n", 'no worker';
    $answer{stack} = 'error cannot read the memory of process 4711';
    is said(@ask), "503 cannot read the memory of process 4711\n", 'the kernel forbids it';
    $answer{stack} = undef;
    is said(@ask),                                  "503 the supervisor does not answer\n", 'no answer';
    is status_of( @ask, REQUEST_METHOD => 'POST' ), 405,                                    'POST';
};

subtest 'A profile' => sub {
    my @take  = ( '/profile', REQUEST_METHOD => 'POST' );
    my $state = sub { return JSON::PP->new->utf8->decode( ( ask('/status.json') )[2] )->{profile} };
    @asked = ();
    is status_of('/profile'), 405, 'not by GET, as a link or a picture of elsewhere would';
    is( ( ask('/profile') )[1]{Allow}, 'POST', 'but by POST' );
    for my $from (
        [ HTTP_SEC_FETCH_SITE => 'cross-site' ],
        [ HTTP_SEC_FETCH_SITE => 'same-site' ],
        [ HTTP_SEC_FETCH_SITE => 'none' ],
        [ HTTP_SEC_FETCH_SITE => '' ],
        [ HTTP_SEC_FETCH_SITE => 'cross-site', HTTP_ORIGIN => 'http://127.0.0.1:9090' ],
        map { [ HTTP_ORIGIN => $_ ] } 'null',
        '',
        'http://127.0.0.1',
        'http://127.0.0.1:9091',
        'http://127.0.0.1:9090.example',
        'http://a.example/127.0.0.1:9090',
        'file://127.0.0.1:9090'
        )
    {
        is status_of( @take, @$from ), 403, "@$from";
    }
    is status_of( @take, HTTP_HOST => 'a.example' ), 403, 'nor by another name';
    is "@asked",                                     '',  'the supervisor hears nothing of that';

    $answer{profile} = 'error cannot read the memory of process 4711';
    is said(@take),         "503 cannot read the memory of process 4711\n", 'why it is not possible';
    is $state->()->{phase}, 'none',                                         'there is none';
    is said('/profile.html'), "404 No profile was taken. Take one on the status page, or by POST /profile\n",
        'as its page says';

    $answer{profile} = 'begun 0.2';
    is status_of( @take, @$_ ), 202, "@$_"
        for [], [ HTTP_SEC_FETCH_SITE => 'same-origin' ], [ HTTP_ORIGIN => 'http://127.0.0.1:9090' ],
        [ HTTP_ORIGIN => 'https://127.0.0.1:9090' ];
    is "@asked", 'profile profile', 'others begin while one is taken: no more questions';
    my $runs = $state->();
    is $runs->{phase}, 'running', 'it runs';
    cmp_ok $runs->{left}, '<=', 0.2, 'for so long';
    is status_of('/profile.html'), 404, 'there is nothing yet';
    select undef, undef, undef, 0.25;
    @asked = ();
    my $text = join "\n",
        JSON::PP->new->encode(
        { cut => 1, failed => 2, hz => 99, left_out => 3, seconds => 0.2, taken => 30, workers => 2 } ),
        map {"GET /x$_;main::f app.psgi:$_ 1"} 1 .. 30;
    $answer{samples} = sub {
        my $part = substr $text, $_[1], 400;
        return 'left ' . ( length($text) - $_[1] - length $part ) . " $part";
    };
    $state->();
    for ( 1 .. 200 ) { last if $state->()->{phase} ne 'running'; select undef, undef, undef, 0.05 }
    is_deeply { %{ $state->() }, at => 0 },
        {
        at       => 0,
        cut      => 1,
        failed   => 2,
        left_out => 3,
        samples  => 30,
        seconds  => 0.2,
        phase    => 'done',
        workers  => 2
        },
        'it is done';
    is "@asked", 'samples 0 samples 400 samples 800', 'in several parts';
    my ( $status, $headers, $html ) = ask('/profile.html');
    is $status,                               200,                        'the flame graph';
    is $headers->{'Content-Security-Policy'}, q{frame-ancestors 'none'},  'not in a frame';
    is $headers->{'Content-Type'},            'text/html; charset=utf-8', 'HTML';
    like $html, qr/<meta http-equiv="Content-Security-Policy" content="default-src 'none'; /i,
        'the rest of its policy is its own';
    like $html, qr/"title":"42\.psgi on 7, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"/, 'of which server, and when';
    like $html, qr{GET /x30},                                                'with what was seen';
    is( ( ask('/profile.html') )[2], $html, 'again' );
    is scalar @asked, 3, 'without a question';

    $answer{profile} = 'error the kernel forbids it now';
    is status_of(@take),    503,    'another one is not possible';
    is $state->()->{phase}, 'done', 'the last one stays';

    for my $lost (
        [ none           => qr/\Athe profile is lost: it was interrupted/ ],
        [ 'error broken' => qr/\Athe profile is lost: broken/ ],
        [ undef, qr/\Athe profile is lost: the supervisor does not answer/ ]
        )
    {
        ( $answer{samples}, my $says ) = @$lost;
        $answer{profile} = 'running';    # of another admin process, which has ended
        is status_of(@take), 202, 'an earlier one is under way';
        $admin->{profile}{until} = Sirius::Base::Clock::now() - 10;
        my $is = $state->();
        is $is->{phase}, 'failed', $lost->[0] // 'no answer';
        like $is->{text}, $says, 'why';
        is status_of('/profile.html'), 404, 'there is none';
    }
};

subtest 'Its files' => sub {
    my $path = abs_path('lib');
    my $said
        = `cd / && '$^X' -I'$path' -MSirius::Admin::App -e 'print ref Sirius::Admin::App->new->to_app' 2>&1`;
    is $said, 'CODE', 'are found from anywhere, before an installation too';
    my $gone = tempdir( CLEANUP => 1 );
    mkdir $_ or die $! for "$gone/Sirius", "$gone/Sirius/Admin";
    for my $module (qw(App Metrics Profile Status Verdict)) {
        copy( "lib/Sirius/Admin/$module.pm", "$gone/Sirius/Admin" ) or die $!;
    }
    is `'$^X' -I'$gone' -MSirius::Admin::App -e 'Sirius::Admin::App->new' 2>&1`,
        "sirius: $gone/Sirius/Admin/page.html: No such file or directory\n", 'or missed in one line';
};

# CPU time, so that others on the machine don't count
subtest '64 workers' => sub {
    $snapshot = Sirius::Test::Snapshot->of( workers => [ map { { state => 'busy' } } 1 .. 64 ] );
    for my $path (@PATHS) {
        my $best = min map { my $start = clock(); ask($path); clock() - $start } 1 .. 20;
        cmp_ok $best, '<', 0.01, sprintf '%s in %.1f ms', $path, $best * 1000;
    }
};

done_testing;
