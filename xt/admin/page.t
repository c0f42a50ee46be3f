use strict;
use warnings;
use utf8;
use lib 't/lib';
use File::Temp qw(tempdir);
use JSON::PP   ();
use Test::More;
use Time::HiRes qw(time);
use Sirius::Admin::History;
use Sirius::Test;
use Sirius::Test::Browser;
use Sirius::Test::Snapshot;

# The status page in a real browser: it shows what is, as text, in any window

binmode $_, ':encoding(UTF-8)' for map { Test::More->builder->$_ } qw(output failure_output);

my $browser = Sirius::Test::Browser->start or plan skip_all => 'chromium is not installed';

my $dir  = tempdir( CLEANUP => 1 );
my $file = "$dir/snapshot";
my $now  = 5000;
my %requests;

# What the server says from now on; time passes
sub show {
    my (@workers) = @_;
    my %more      = ref $workers[0] eq 'ARRAY' ? @{ shift @workers } : ();
    my $snapshot  = Sirius::Test::Snapshot->of( workers => \@workers, now => ++$now, %more );
    $snapshot->{totals} = { %{ $snapshot->{totals} }, %{ $more{totals} } } if $more{totals};
    rename spew( "$file.new", JSON::PP->new->utf8->encode($snapshot) ), $file or die $!;
    return;
}

sub comes { return $browser->comes(shift) }
sub text  { return $browser->text(shift) }

# Five minutes before, with a gap of 100 seconds in them
my $past = Sirius::Admin::History->new( started => 1_699_990_000 );
for my $ago ( grep { $_ <= 100 || $_ >= 200 } map { 300 - 5 * $_ } 0 .. 59 ) {
    my $snapshot = Sirius::Test::Snapshot->of( now => $now - $ago );
    $snapshot->{totals}{requests} += 5 * ( 300 - $ago );
    $past->look($snapshot);
}

show( { state => 'busy' }, {}, {}, {} );
my $server = start_server( sprintf( <<'APP', $file, unpack( 'H*', $past->state ), $now ), '--workers', 1 );
use JSON::PP ();
use Sirius::Admin::App;
my $file = '%s';
{
    package Line;    # to a supervisor, that says what is in files
    sub ask {
        my ( $self, $what ) = @_;
        open my $in, '<:raw', "$file.$what" or return;
        local $/;
        return readline $in;
    }
}
sub snapshot {
    open my $in, '<:raw', $file or die "$file: $!\n";
    local $/;
    return JSON::PP->new->utf8->decode( readline $in );
}
Sirius::Admin::App->new( past => [ pack( 'H*', '%s' ), %d ], app => 'shop.psgi', host => 'web1',
    line => bless( {}, 'Line' ), snapshot => \&snapshot, version => '1.5', started => 1_699_990_000,
    listeners => ['http://0.0.0.0:5000/'], pid => 4711 )->to_app;
APP
my $url = 'http://' . $server->address . '/';
$browser->open($url);

subtest 'What is seen' => sub {
    ok comes(q{document.querySelectorAll('.tile').length === 4}), 'a tile for each worker'
        or diag $browser->problems;
    is text('.tile .line'),   'GET /books/0',   'what it does';
    is text('.tile .client'), '192.0.2.0:5555', 'for whom';
    is text('.tile .age'),    '250 ms',         'for how long';
    is text('.tile .state'),  'busy',           'state';
    like text('.tile .foot'), qr/\APID 4000 · 3\.00k req · 46 MiB\z/, 'figures';
    is text('.tile.idle .line'),   'GET /last/1',           'what an idle one did last';
    is text('.tile.idle .client'), 'last: 200, 500 ms ago', 'how it ended, and when';
    is text('#load b'),            '1',                     'busy';
    is text('#load span'),         'of 4',                  'of all';
    like text('#about'),     qr{Sirius 1\.5.*PID 4711.*generation 1.*http://0\.0\.0\.0:5000/}, 'which server';
    like text('#responses'), qr/Requests12,400Refused/,                                        'requests';
    like text('#responses'), qr/2xx11,000.*5xx50/,                                             'responses';
    is text('#closed'), 'keep-alive timeout600by the client240idle, to make room1',
        'why connections were closed';
    is text('#accepted'), 'Accepted900Moved to another edge20Open now40Floods over HTTP/23',
        'and how many came: a table of its own';
    is text('#exits'), 'recycled: requests6crash2', 'why workers have ended';
    is text('#limits'), 'request header4waiting for a worker3request in the application1',
        'what took too long';
    is text('#verdict'), '5 requests waiting for a worker', 'in a word';
    is text('#spoken'), 'requests waiting for a worker',
        'for a screen reader without the figure that changes';
    is text('h1') =~ s/\s+/ /gr, ' shop.psgi on web1 ', 'what is served, and where';
    is $browser->value('document.title'), 'shop.psgi on web1: 1/4 busy, 5 waiting – Sirius',
        'in the title, too';
    ok $browser->value(q{document.querySelector('#reload').hidden}), 'nothing of reloads';
    cmp_ok $browser->value(q{document.querySelectorAll('#spread rect').length}), '>', 10, 'a histogram';
};

subtest 'Edges' => sub {
    ok $browser->value(q{document.querySelector('#edges').hidden}),      'nothing of them without them';
    ok $browser->value(q{document.querySelector('#edge-exits').hidden}), 'nor of their ends';
    my $snapshot = Sirius::Test::Snapshot->of_edges( now => ++$now );
    my $put = sub { rename spew( "$file.new", JSON::PP->new->utf8->encode( shift() ) ), $file or die $! };
    $put->($snapshot);
    ok comes(q{!document.querySelector('#edges').hidden}), 'with one it is there';
    my @cells = qw(4500 40 30 8 2 1.5 900 34.3);
    is $browser->value(
        q{[...document.querySelectorAll('#edge tr:nth-child(2) *')].slice(0, 8).map(c => c.textContent.split(' ')[0]).join(' ')}
        ),
        "@cells", 'PID, connections, requests that wait and how long, accepted, bytes';
    ok comes(q{document.querySelector('#edge .waits')}), 'a row in which a request waits stands out';
    is text('#edge-exits'), 'killed by a signal2crash1',              'why edges have ended';
    is text('#accepted'), 'Accepted900Open now40Floods over HTTP/23', 'no connection moves to another worker';
    like text('.tile .foot'), qr/\APID 4000 · 3\.00k req · 46 MiB\z/, 'and none is a worker\'s';
    $now += 2;
    $put->( Sirius::Test::Snapshot->of_edges(
        now   => $now,
        edges => [ { cpu => 1 + ( $now - 2 ) / 20, started => 1300 }, { state => 'draining' } ]
    ) );
    ok comes(q{document.querySelectorAll('#edge tr').length === 3}), 'two of them';
    is text('#edges-title'),             'Edges',          'which the heading says';
    is text('#edge tr:nth-child(3) th'), '4501, draining', 'one that finishes its requests and ends';
    is text('#edge tr:nth-child(2) td:nth-child(9)'), '50.0%',
        'the part of a processor that one has used lately';
    $put->( Sirius::Test::Snapshot->of_edges( now => ++$now, edges => [] ) );
    ok comes(q{document.querySelector('#edge').textContent.includes('no edge is running')}),
        'none: that is told';
    show( { state => 'busy' }, {}, {}, {} );
    ok comes(q{document.querySelector('#edges').hidden}), 'and gone';
};

subtest 'HTTP/2' => sub {
    my $snapshot = Sirius::Test::Snapshot->of_edges( now => ++$now );
    $snapshot->{totals}{http2} = 700;
    @{ $snapshot->{connections} }{qw(http2 streams)} = ( 5, 12 );
    rename spew( "$file.new", JSON::PP->new->utf8->encode($snapshot) ), $file or die $!;
    ok comes(q{document.querySelector('#accepted').textContent.includes('Streams now')}), 'its connections';
    is text('#accepted'), 'Accepted900Open now40HTTP/2700HTTP/2, open now5Streams now12Floods over HTTP/23',
        'and streams';
    show( { state => 'busy' }, {}, {}, {} );
};

subtest 'Held connections' => sub {
    my $snapshot = Sirius::Test::Snapshot->of_edges( now => ++$now );
    $snapshot->{held} = { stream => 4000, response => 2, websocket => 30 };
    @{ $snapshot->{totals} }{qw(published delivered hold_slow)} = ( 12, 900, 7 );
    rename spew( "$file.new", JSON::PP->new->utf8->encode($snapshot) ), $file or die $!;
    ok comes(q{document.querySelector('#accepted').textContent.includes('Held now')}), 'how many';
    like text('#accepted'), qr/Open now40Held now4,?032Published12Delivered900Held, but too slow7Floods/,
        'and what they were sent';
    show( { state => 'busy' }, {}, {}, {} );
};

# The cells of a row
sub row {
    my ( $table, $row ) = @_;
    return $browser->value(
        "[...document.querySelectorAll('#$table tr:nth-child($row) *')].map(c => c.textContent).join('|')");
}

subtest 'Where the time goes' => sub {
    show( { state => 'busy' }, {}, {}, {} );
    ok comes(q{!document.querySelector('#calls').hidden}), 'is there';
    is row( path => 2 ), '/report/:id|60.0%|3 min 0 s|40|4.50 s|9.00 s|2|200 ms',
        'share, time, calls, percentiles, errors, how long each has waited';
    is row( path => 5 ), 'other|4.0%|12.0 s|960|5.00 ms|100 ms|1|521 µs', 'all others are one row';
    ok $browser->value(q{document.querySelector('#path tr:nth-child(2)').classList.contains('fails')}),
        'errors stand out';
    ok $browser->value(q{document.querySelector('#all-paths').hidden}), 'no button for a few';

    my $some  = Sirius::Test::Snapshot->of;
    my @paths = map {
        { %{ $some->{calls}{paths}[0] }, path => "/p$_<b>\x{202e}", share => 0.02 }
    } 1 .. 37;
    my @many  = ( { state => 'busy', cpu => 100 }, { cpu => 50 } );
    my $calls = { %{ $some->{calls} }, paths => \@paths };
    show( [ calls => $calls, exceptions => $some->{exceptions} ], @many );
    ok comes(q{document.querySelectorAll('#path tr').length === 12}), 'the first ten, and the others';
    is text('#all-paths'), 'Show all 37 paths', 'and a button for more';
    $browser->value(q{document.querySelector('#all-paths').click()});
    is $browser->value(q{document.querySelectorAll('#path tr').length}), 39, 'which shows them';
    is index( row( path => 2 ), '/p1<b>\u{202e}|' ),                     0,  'as text';
    $browser->value(q{document.querySelector('#all-paths').click()});

    # 8 s, in which one worker was in a call all the time; it has computed for 2 s
    $now += 7;
    $many[0]{cpu} += 2;
    show( [ calls => { %$calls, seconds => 307.75 } ], @many );
    ok comes(q{document.querySelector('#computing').textContent.includes('computing')}),
        'how much of it was computation'
        or diag text('#computing');
    like text('#computing'), qr/workers busy, computing \d[\d.]*% of that time, waiting \d[\d.]*%\z/,
        'in words';
    my ( $computing, $waiting ) = text('#computing') =~ /([\d.]+)%/g;
    cmp_ok abs( $computing + $waiting - 100 ), '<', 0.2, 'both are all';
    cmp_ok $waiting,                           '>', 50,  'it has waited more';
    show( [ calls => { %$calls, calls => 0 }, exceptions => { count => 0, last => [] } ], @many );
    ok comes(q{document.querySelector('#calls').hidden && document.querySelector('#exceptions').hidden}),
        'nothing of this before the first call';
};

subtest 'Exceptions' => sub {
    my $some = Sirius::Test::Snapshot->of;
    $some->{exceptions}{last}[1]{text} = "<script>alert(1)</script> \x{202e}\x{7}";
    show( [ exceptions => $some->{exceptions} ], {}, {}, {}, {} );
    ok comes(q{!document.querySelector('#exceptions').hidden}), 'are there';
    is row( exception => 2 ), 'no row N at lib/Shop.pm line 42|/books|48|10 s ago|2 h 45 min ago',
        'what, where, how often, when';
    is row( exception => 3 ),
        '<script>alert(1)</script> \u{202e}\u{7}|/report/:id|2|1 h 23 min ago|1 h 56 min ago', 'as text';
    is text('#exceptions-count'), '50 since the start, the last first', 'all of them';
    show( { state => 'busy' }, {}, {}, {} );
    ok comes(q{document.querySelector('#load b').textContent === '1'}), 'as before';
};

# Where the pointer is: so many seconds ago, on the first plot
sub point {
    my $ago = shift;
    return $browser->value(
        "(() => {
            const box = plots[0].plot.svg.getBoundingClientRect();
            const x = box.right - (box.width - LEFT) * $ago / SPAN;
            plots[0].plot.svg.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: box.top + 9 }));
            return 1;
        })()"
    );
}

subtest 'The minutes before' => sub {
    ok comes('samples.length > 40'), 'what was is there when the page is opened';
    cmp_ok $browser->value('samples[0].t'), '<', $browser->value('now() - 290'), 'five minutes of it';
    ok comes(q{/−4 min/.test(document.querySelector('#requests svg').textContent)}),         'on the axis';
    ok $browser->value(q{samples.every((sample, i) => !i || sample.t >= samples[i - 1].t)}), 'in order';
    ok comes('samples.length > 48'),                                                         'and what is';
    is $browser->value('samples.filter(sample => sample.first && sample.rate === null).length'), 0,
        'one goes on with the other';
    point(50);
    like text('#requests span'), qr/\Aper second, 5\d s ago\z|\Aper second, 4\d s ago\z/,
        'the pointer tells of then';
    is text('#requests b'), 5, 'requests of then';
    point(150);

    for my $id (qw(requests latency load connections)) {
        is text("#$id b"), '–', "$id: nothing is said where nothing is known";
        like text("#$id span"), qr/\Ano data, 2 min \d+ s ago\z/, 'but that';
        is text("#$id ul"),                                                             '', 'no figure';
        is $browser->value("document.querySelector('#$id .cursor').getAttribute('d')"), '', 'and no line';
    }
    point(310);    # beside the axis
    unlike text('#requests span'), qr/ago/, 'beside the plot is now';
    $browser->value(q{plots[0].plot.svg.dispatchEvent(new PointerEvent('pointerleave')); 1});
    is text('#load b'), 1, 'now again';
};

my @CALM = ( connections => { open => 40, idle => 30, waiting => 0 } );

sub verdict_is {
    my ( $want, $name ) = @_;
    return
           ok comes("document.querySelector('#verdict').textContent === '$want'"), $name
        || $want
        || diag text('#verdict');
}

subtest 'Errors' => sub {
    my $totals = sub {
        my ( $good, $bad ) = @_;
        return [
            @CALM,
            totals => { responses => { 1 => 0, 2 => 11_000 + $good, 3 => 500, 4 => 450, 5 => 50 + $bad } }
        ];
    };
    show( $totals->( 0, 0 ), {}, {} );
    verdict_is( 'Serving', 'old errors are no trouble' );
    show( $totals->( 0, 1 ), {}, {} );
    ok comes('status.totals.responses[5] === 51'), 'one more';
    is text('#verdict'), 'Serving', 'one is none either';
    show( $totals->( 2000, 8 ), {}, {} );
    ok comes('status.totals.responses[5] === 58'), 'eight of two thousand';
    is text('#verdict'), 'Serving', 'are few';
    show( $totals->( 2000, 100 ), {}, {} );
    verdict_is( 'Serving, with errors: 100 of 2,100 responses of the last minute (5xx)', 'more than 1 %' );
    is $browser->value('document.body.dataset.mood'), 'slow', 'in its colour';
};

subtest 'A reload' => sub {
    my %was  = ( failed => 0, ok => 1, loading => 0, loading_since => 0 );
    my %good = ( %was, last_at => 1_700_000_000 - 300, last_ok => 1, last_seconds => 1.5, last_text => 'x' );
    $browser->open($url);
    show( [ @CALM, reload => \%good ], {}, {} );
    ok comes(q{/reloaded 5 min ago, in 1\.50 s/.test(document.querySelector('#about').textContent)}),
        'a good one';
    ok $browser->value(q{document.querySelector('#reload').hidden}), 'no more of it';
    my %failed = (
        %was,
        last_at      => 1_700_000_000 - 65,
        last_ok      => 0,
        last_seconds => 2,
        last_text    => 'reload failed: generation 2 exited with status 1; generation 1 keeps serving',
        last_said    => join '',
        "<img src=x onerror=alert(1)>\ttab\x{202e}\n", map {"line $_\n"} 2 .. 40,
    );
    show( [ @CALM, reload => \%failed ], {}, {} );
    verdict_is('Serving the old code: the last reload failed');
    is text('#reload h2'), 'The last reload failed', 'a part of its own';
    is text('#reload-text'),
        'Reload failed: generation 2 exited with status 1; generation 1 keeps serving. It was 1 min ago, after 2.00 s.',
        'why and when';
    my @said = split /\n/, text('#reload-said');
    is $said[0], '<img src=x onerror=alert(1)>    tab\\u{202e}', 'what it said, as text';
    is_deeply [ scalar @said, @said[ 11, 12 ] ], [ 13, 'line 12', '…' ], 'the first lines of it';
    like text('#reload-hint'), qr/sirius ctl reload --wait/, 'what to do';
    is $browser->value(q{document.querySelectorAll('#reload img').length}), 0, 'no element of it';
    show( [ @CALM, reload => { %failed, loading => 3, loading_since => $now - 70 } ], {}, {} );
    verdict_is('Serving while reloading');
    is text('#reload-text'), 'Generation 3 has been loading for 1 min; generation 1 keeps serving.',
        'for how long';
    ok $browser->value(q{document.querySelector('#reload-said').hidden}), 'the old output is gone';
    is_deeply [ $browser->problems ], [], 'nothing in the console';
};

subtest 'As fine as the server can tell' => sub {
    my @bounds = map { $_->[0] } @{ Sirius::Test::Snapshot->histogram( 1, 1 )->{buckets} };
    my %fast   = (
        count   => 100,
        sum     => 0,
        buckets => [ map { [ $_, 100 ] } @bounds ],
        p50     => 8e-6,
        p90     => 14e-6,
        p99     => 16e-6,
        p999    => 137.438953472
    );
    show( [ @CALM, latency => { %fast, count => 0, buckets => [ map { [ $_, 0 ] } @bounds ] } ], {}, {} );
    $browser->open($url);
    ok comes('samples.length > 0'), 'begun';
    show( [ @CALM, latency => \%fast ], {}, {} );
    ok comes(q{document.querySelector('#latency b').textContent === '< 16 µs'}), 'less than the first bucket';
    is text('#latency ul'), '90% in < 16 µs99% in < 16 µs', 'and so on';
    my @cells = split /\|/,
        $browser->value(
        q{[...document.querySelectorAll('#times tr:nth-child(2) td')].map(cell => cell.textContent).join('|')}
        );
    is_deeply \@cells, [ '< 16 µs', '< 16 µs', '< 16 µs', '> 2 min 17 s' ], 'and more than the last';
};

subtest 'Lanes and files' => sub {
    my @lanes = (
        {   name          => '/report<b>',
            limit         => 2,
            queue_limit   => 9,
            timeout       => 30,
            running       => 2,
            waiting       => 48,
            waiting_since => $now - 6,
            requests      => 100,
            waited        => 250,
            refused       => 3,
            timed_out     => 1
        },
        {   name          => 'POST /import',
            limit         => 1,
            queue_limit   => 9,
            timeout       => 0,
            running       => 0,
            waiting       => 0,
            waiting_since => 0,
            requests      => 0,
            waited        => 0,
            refused       => 0,
            timed_out     => 0
        },
    );
    my $cells = sub {
        return $browser->value(
            "[...document.querySelectorAll('#$_[0] tr:nth-child($_[1]) > *')].map(c => c.textContent).join('|')"
        );
    };
    show( [ @CALM, totals => { requests => 12_000, files => 0, responses => { 5 => 0 } } ], {}, {} );
    ok comes(q{document.querySelector('#lanes').hidden && document.querySelector('#files').hidden}),
        'nothing of them without them';
    show(
        [   @CALM,
            lanes  => \@lanes,
            totals => {
                requests        => 12_000,
                responses       => { 5 => 0 },
                files           => 4000,
                files_bytes     => 8 << 20,
                files_unchanged => 3000,
                files_missing   => 12
            }
        ],
        {},
        {}
    );
    ok comes(q{document.querySelector('#lane .waits')}), 'a lane in which a request waits stands out';
    is $cells->( lane => 1 ),
        'Requests|places|running|waiting|longest wait|all so far|mean wait|refused|timed out', 'the columns';
    is $cells->( lane => 2 ), '/report<b>|2|2|48|8.0 s|100|2.50 s|3|1', 'of each';
    is $cells->( lane => 3 ), 'POST /import|1|0|0|–|0|–|0|0',           'also of one that nobody has used';
    is $cells->( file => 1 ), '|requests|of all|sent|not modified (304)|not found (404)', 'files';
    is $cells->( file => 2 ), '--static|4,000|25.0%|8.00 MiB|3,000|12',                   'have a row';
};

# What the supervisor answers
sub say_of {
    my ( $what, $answer ) = @_;
    return rename spew( "$file.$what~", $answer ), "$file.$what";
}

subtest 'The stack of a worker' => sub {
    my $open = q{document.querySelector('#stack').open};
    my $click
        = sub { $browser->value("document.querySelectorAll('.tile')[$_[0]].querySelector('.line').click(); 1") };
    my $frames = [
        'Shop::__ANON__[app.psgi:20] app.psgi:22',
        'Shop::<img src=x onerror=alert(1)> lib/Shop.pm:4',
        'DBI::st::execute (XS)'
    ];
    say_of(
        stack => JSON::PP->new->encode( {
            pid     => 4000,
            state   => 'busy',
            line    => 'GET /books/<b>',
            seconds => 2.5,
            kind    => 'wait',
            frames  => $frames
        } )
    );
    show( [@CALM], { state => 'busy', id => 'from-the-proxy' }, {} );
    ok comes(q{document.querySelectorAll('.tile.busy').length === 1}), 'one is busy';
    like $browser->value(q{document.querySelector('.tile').title}), qr/^id from-the-proxy$/m,
        'the id of its request';
    $click->(1);
    ok !$browser->value($open), 'nothing happens at one that is idle';
    ok $browser->value(q{document.querySelectorAll('.tile')[1].querySelector('.ask').hidden}),
        'which has no button';
    $click->(0);
    ok comes("$open && document.querySelectorAll('#frames li').length === 3"), 'a click shows it';
    is text('#stack-title'), 'Worker 0, PID 4000',                   'of whom';
    is text('#stack-line'),  'GET /books/<b>',                       'in which request';
    is text('#stack-how'),   'Waiting, for 2.5 s, innermost first:', 'on CPU or not';
    is text('#frames'),      join( '', reverse @$frames ),           'as text';
    is $browser->value(q{document.querySelector('#frames b').textContent}), 'DBI::st::execute (XS)',
        'the innermost first';
    say_of( stack => JSON::PP->new->encode( { pid => 4000, state => 'idle' } ) );
    $browser->value(q{document.querySelector('#again').click(); 1});
    ok comes(q{document.querySelector('#stack-how').textContent === 'It has no request now: idle'}),
        'once more';
    is text('#frames'), '', 'the old one is gone';
    say_of( stack => 'error cannot read the memory of process 4000: <b>' );
    $browser->value(q{document.querySelector('#again').click(); 1});
    ok comes(
        q{document.querySelector('#stack-how').textContent === 'cannot read the memory of process 4000: <b>'}
    ), 'why there is none';
    $browser->value(q{document.querySelector('#close').click(); 1});
    ok !$browser->value($open), 'it closes';
    $browser->value(q{document.querySelector('.ask').click(); 1});
    ok comes($open), 'the button opens it too';

    for my $width ( 390, 1440 ) {
        $browser->resize( width => $width );
        my $box = q{document.querySelector('#stack').getBoundingClientRect()};
        ok until_true(
            10, sub { $browser->value("$box.left >= 0 && $box.right <= $width && $box.width > 300") }
            ),
            "it fits $width";
    }
    $browser->value(q{document.querySelector('#stack').click(); 1});
    ok !$browser->value($open), 'a click beside it closes it';
    is_deeply [ $browser->problems ],
        [ ('Failed to load resource: the server responded with a status of 503 (Service Unavailable)') x 2 ],
        'else nothing in the console';
};

subtest 'A profile' => sub {
    my $take = sub { $browser->value(q{document.querySelector('#take').click(); 1}) };
    my $said = sub {
        my $text = shift;
        return ok comes("document.querySelector('#taken').textContent.match(/$text/)"),
            $text || diag text('#taken');
    };
    say_of( profile => 'error cannot read <b>' );
    $take->();
    $said->('^cannot read <b>$');
    ok !$browser->value(q{document.querySelector('#take').disabled}), 'it may be tried again';
    say_of( profile => 'begun 1.5' );
    my %facts
        = ( cut => 0, failed => 0, hz => 99, left_out => 0, seconds => 1.5, taken => 1234, workers => 2 );
    say_of( samples => 'left 0 ' . JSON::PP->new->encode( \%facts ) . "\nGET /;main::f app.psgi:1 1234\n" );
    $take->();
    $said->('^Taking samples, \\d s left$');
    ok $browser->value(
        q{document.querySelector('#take').disabled && document.querySelector('#graph').hidden}), 'meanwhile';
    $said->('^\\d+:\\d\\d:\\d\\d.*: 1,234 samples of 2 workers$');
    ok !$browser->value(q{document.querySelector('#graph').hidden}), 'a link';
    my $page = $browser->value(q{document.querySelector('#graph').href});
    $browser->open($page);
    ok comes(q{document.readyState === 'complete' && graph.boxes.length > 0}), 'the flame graph';
    like $browser->value('document.title'), qr/shop\.psgi on web1, \d/, 'of which server';
    is_deeply [ grep { !/503/ } $browser->problems ], [], 'nothing in the console';
    $browser->open($url);
    $said->('samples of 2 workers$');
};

subtest 'On a phone' => sub {
    show( [@CALM], { state => 'busy' }, {}, {} );
    $browser->open( $url, width => 390, height => 844 );
    ok comes(q{document.querySelectorAll('.tile').length === 3}), 'three workers';
    my $seen = q{[...document.querySelectorAll('.tile')].filter(tile => tile.offsetHeight).length};
    is $browser->value($seen), 1,                     'who is idle is folded away';
    is text('#fold'),          'Show 2 idle workers', 'a button for them';
    $browser->value(q{document.querySelector('#fold').click(); 1});
    is $browser->value($seen), 3,                   'and they are there';
    is text('#fold'),          'Hide idle workers', 'it goes back';
    is $browser->value(q{document.querySelector('#fold').getAttribute('aria-expanded')}), 'true',
        'said to all';
    $browser->open( $url, width => 1440 );
    ok comes("$seen === 3"), 'on a desk all are seen';
    is $browser->value(q{document.querySelector('#fold').offsetHeight}), 0, 'without a button';
};

subtest 'It follows' => sub {
    show( {}, { state => 'busy', line => 'GET /turn' }, {}, {} );
    my $before = asked();
    ok comes(q{document.querySelectorAll('.tile')[1].textContent.includes('/turn')}), 'a request is seen';
    cmp_ok asked() - $before, '<=', 2, 'with the next answer or the one after that';
    ok comes(
        q{samples.length > 2 && document.querySelector('#load path.busy').getAttribute('d').length > 20}),
        'a plot';

    show( {}, { state => 'busy', generation => 2, began => $now - 70 }, { state => 'draining' } );
    ok comes(q{document.querySelectorAll('.tile').length === 3}), 'a worker has gone';
    ok comes(q{document.querySelector('.tile.stuck .age')?.textContent === '1 min 11 s'}), 'one is late';
    is text('.tile.draining .generation'), 'gen 1', 'two generations';

    show( map { {} } 1 .. 64 );
    ok comes(q{document.querySelectorAll('.dense .tile').length === 64}), '64 workers';
    is $browser->value(q{[...document.querySelectorAll('.slot')].map(e => e.textContent).join(' ')}),
        "@{[0 .. 63]}", 'in order';
};

# Clients choose the URL, applications the mark
subtest 'Text is text' => sub {
    my $attack = q{GET /<img src=x onerror="alert(1)"><script>document.title='x'</script>&lt;b&gt;'"`${1}};
    show(
        { state => 'busy', line => $attack, client => '<b>1', mark => qq(\x{202e}<i>gpj.exe\x{200b}\n\x{0}) },
        {}
    );
    ok comes(q{document.querySelectorAll('.tile').length === 2}), 'shown';
    is text('.tile .line'),   $attack,                                'to the letter';
    is text('.tile .client'), '<b>1',                                 'client';
    is text('.tile .mark'),   '\u{202e}<i>gpj.exe\u{200b}\u{a}\u{0}', 'what would not be seen is written out';
    is $browser->value(q{document.querySelectorAll('.tile img, .tile script, .tile b, .tile i').length}), 0,
        'no element of it';
    is_deeply [ $browser->problems ], [], 'nothing in the console';

    $browser->value(
        q{try { const s = document.createElement('script'); s.append('window.ran = 1'); document.body.append(s) }
        catch (error) { } 1}
    );
    ok $browser->value('window.ran === undefined'), 'a script that is put in does not run';
    ok $browser->value(
        q{(() => { try { document.body.innerHTML = '<p>' } catch (error) { return true } return false })()}),
        'HTML from text is refused';
    ok $browser->value(q{(() => { try { eval('1') } catch (error) { return true } return false })()}),
        'code from text is refused';
    $browser->open($url);
};

subtest 'Any window' => sub {
    my $long = 'GET /' . 'x' x 190;
    show( { state => 'busy', line => $long, mark => 'm' x 500 }, { state => 'busy', line => $long } );
    my %ground;
    for my $width ( 320, 390, 820, 1440, 2560 ) {
        for my $scheme (qw(dark light)) {
            $browser->resize( width => $width, scheme => $scheme );
            ok comes(q{document.querySelectorAll('.tile').length === 2}), "$width, $scheme";
            cmp_ok $browser->value('document.documentElement.scrollWidth'), '<=', $width,
                'nothing is cut off';
            $ground{$scheme} = $browser->value('getComputedStyle(document.body).backgroundColor');
        }
    }
    isnt $ground{dark}, $ground{light}, 'two schemes';
    is_deeply [ $browser->problems ], [], 'nothing in the console';
};

# What of the plots, and of the words beside them, lies outside of its place
my $OUTSIDE = <<'SCRIPT';
(() => {
    const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
        && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    const box = element => element.getBoundingClientRect();
    const wrong = [];
    for (const svg of document.querySelectorAll('figure svg, #spread')) {
        const name = svg.id || svg.parentElement.id;
        if (!within(box(svg), box(svg.parentElement))) wrong.push(`${name}: svg`);
        for (const part of svg.querySelectorAll('path, rect, text')) {
            const { left, right } = box(part);
            if (right > left && !within(box(part), box(svg))) {
                wrong.push(`${name}: ${part.tagName} ${part.textContent} ${left} ${right} in ${box(svg).right}`);
            }
        }
        for (const text of svg.querySelectorAll(':scope:not(#spread) text[x="0"]')) {
            if (box(text).width > LEFT) wrong.push(`${name}: ${text.textContent} over the plot`);
        }
    }
    for (const p of document.querySelectorAll('figcaption p')) {
        const words = document.createRange();
        words.selectNodeContents(p);
        const hidden = getComputedStyle(p).overflow === 'hidden';
        const inside = within(hidden ? box(p) : box(words), box(p));
        if (!inside || !within(box(p), box(p.closest('figure')))) wrong.push(`words: ${p.textContent}`);
    }
    return wrong.join('; ');
})()
SCRIPT

subtest 'Plots stay in their places' => sub {
    my @bounds  = map { $_->[0] } @{ Sirius::Test::Snapshot->histogram( 1, 1 )->{buckets} };
    my $latency = sub {
        my $count = shift;
        my @slow  = map { [ $_, $_ > 100 ? $count : 0 ] } @bounds;
        return latency =>
            { count => $count, sum => 0, buckets => \@slow, map { $_ => 110 } qw(p50 p90 p99 p999) };
    };
    show( [ @CALM, $latency->(0) ], {}, {} );
    $browser->open($url);
    ok comes('samples.length > 2'), 'begun';
    show( [ @CALM, $latency->(100) ], {}, {} );
    ok comes(q{/min/.test(document.querySelector('#latency b').textContent)}), 'requests take minutes';
    for my $paused ( 0, 1 ) {
        $browser->value('document.querySelector("#pause").click(); 1') if $paused;
        for my $width ( 1440, 420, 700, 320, 1200, 360, 621 ) {
            $browser->resize( width => $width );
            ok until_true( 10, sub { $browser->value($OUTSIDE) eq '' } ),
                ( $paused ? 'paused' : 'live' ) . ", $width"
                or diag $browser->value($OUTSIDE);
            point( 50 + 25 * $_ ), is( $browser->value($OUTSIDE), '', 'also with the pointer on it' )
                for 0, 1;
        }
    }

    # As a scroll bar does that comes later
    $browser->value(q{document.body.style.marginRight = '200px'; 1});
    ok until_true( 10, sub { $browser->value($OUTSIDE) eq '' } ),
        'the window is the same, its content smaller'
        or diag $browser->value($OUTSIDE);
    $browser->open($url);
};

# How often the page has asked so far
sub asked {
    return $browser->value(
        q{performance.getEntriesByType('resource').filter(e => /status/.test(e.name)).length});
}

sub hide {
    my $hidden = shift;
    return $browser->value(
        "Object.defineProperty(document, 'hidden', { value: $hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange')); 1"
    );
}

subtest 'It rests' => sub {
    for my $case ( [ 'hidden', sub { hide('true') }, sub { hide('false') } ],
        [ 'paused', ( sub { $browser->value('document.querySelector("#pause").click(); 1') } ) x 2 ] )
    {
        my ( $name, $stop, $go ) = @$case;
        $stop->();
        my $before = asked();
        select undef, undef, undef, 1.6;
        cmp_ok asked() - $before, '<=', 1, "$name: it does not ask, but for what was on its way";
        $before = asked();
        $go->();
        ok until_true( 30, sub { asked() > $before + 1 } ), 'and goes on';
    }
};

subtest 'The server is gone' => sub {
    $server->stop;
    ok comes(q{/^No answer for .*: no connection$/.test(document.querySelector('#verdict').textContent)}),
        'it says so';
    is $browser->value('document.title'), 'shop.psgi on web1: No answer – Sirius', 'in the title too';
};

done_testing;
