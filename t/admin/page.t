use strict;
use warnings;
use utf8;
use lib 't/lib';
use File::Temp qw(tempdir);
use JSON::PP   ();
use Test::More;
use Time::HiRes qw(time);
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
    my $snapshot = Sirius::Test::Snapshot->of( workers => \@workers, now => ++$now );
    rename spew( "$file.new", JSON::PP->new->utf8->encode($snapshot) ), $file or die $!;
    return;
}

# True once the expression is in the page
sub comes {
    my $expression = shift;
    return until_true( 30, sub { $browser->value($expression) } );
}

sub text { return $browser->value( sprintf q{document.querySelector('%s').textContent}, shift ) }

show( { state => 'busy' }, {}, {}, {} );
my $server = start_server( sprintf( <<'APP', $file ), '--workers', 1 );
use JSON::PP ();
use Sirius::Admin;
my $file = '%s';
sub snapshot {
    open my $in, '<:raw', $file or die "$file: $!\n";
    local $/;
    return JSON::PP->new->utf8->decode( readline $in );
}
Sirius::Admin->new( snapshot => \&snapshot, version => '1.5', started => 1_699_990_000,
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
    like text('.tile .foot'), qr/\Apid 4000 · 3\.00k req · 46 MiB · 10 conn\z/, 'figures';
    is text('.tile.idle .line'), '',     'an idle one does nothing';
    is text('#load b'),          '1',    'busy';
    is text('#load span'),       'of 4', 'of all';
    like text('#about'), qr{version 1\.5.*pid 4711.*generation 1.*http://0\.0\.0\.0:5000/}, 'which server';
    like text('#responses'), qr/2xx11,000.*5xx50/,              'responses';
    like text('#closed'),    qr/keepalive timeout600client240/, 'why connections were closed';
    is text('#verdict'), '5 waiting for a worker', 'in a word';
    cmp_ok $browser->value(q{document.querySelectorAll('#spread rect').length}), '>', 10, 'a histogram';
};

subtest 'It follows' => sub {
    my ( $turn, $took ) = (0);
    while ( $turn < 10 ) {    # a loaded machine may be late, but not each time
        my ( $slot, $start ) = ( ++$turn % 4, time );
        show( map { $_ == $slot ? { state => 'busy', line => "GET /turn/$turn" } : {} } 0 .. 3 );
        comes("document.querySelectorAll('.tile')[$slot].textContent.includes('/turn/$turn')") or last;
        $took = time - $start;
        last if $took < 1;
    }
    cmp_ok $took, '<', 1, 'a request is seen within a second';
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
    is $browser->value('document.title'), 'No answer – Sirius', 'in the title too';
};

done_testing;
