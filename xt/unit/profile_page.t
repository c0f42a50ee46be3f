use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", "$FindBin::Bin/../../lib";
use File::Temp qw(tempdir);
use JSON::PP   ();
use Test::More;
use Sirius::Profile::Compare;
use Sirius::Profile::FlameGraph;
use Sirius::Profile::Samples;
use Sirius::Test;
use Sirius::Test::Browser;

# The page of a profile in a real browser: its figures, and what clicks and keys do

binmode $_, ':encoding(UTF-8)' for map { Test::More->builder->$_ } qw(output failure_output);

my $browser = Sirius::Test::Browser->start or plan skip_all => 'chromium is not installed';
my $dir     = tempdir( CLEANUP => 1 );

sub samples {
    my ( $samples, @stacks ) = ( Sirius::Profile::Samples->new( hz => 100, seconds => 10 ), @_ );
    for (@stacks) {
        my ( $cpu, $wait, @frames ) = @$_;
        $samples->add( \@frames, 'cpu',  $cpu )  if $cpu;
        $samples->add( \@frames, 'wait', $wait ) if $wait;
    }
    return $samples;
}

# Opens the page of this profile
sub show {
    my ( $samples, %option ) = @_;
    my %window = map { $_ => delete $option{$_} } grep { $option{$_} } qw(height scheme width);
    spew( "$dir/page.html", Sirius::Profile::FlameGraph->html( $samples, %option ) );
    $browser->open( "file://$dir/page.html", %window );
    return comes(q{document.readyState === 'complete' && graph.boxes !== undefined});
}

sub comes { return $browser->comes(shift) }
sub text  { return $browser->text(shift) }
sub click { return $browser->value( sprintf q{document.querySelector('%s').click(); 1}, shift ) }

# The rows of boxes that are seen, from the top, each as the names of its functions with their widths in per
# cent
sub graph {
    return $browser->value( <<'SCRIPT' );
graph.rows.map(row => row.map(({ call, width }) =>
    `${names[call.name].text} ${Math.round(100 * width / graph.element.clientWidth)}`).join(', ')).join('\n')
SCRIPT
}

# The first row of the table, and so on
sub table {
    return $browser->value( <<'SCRIPT' );
[...document.querySelectorAll('#table tbody tr')]
    .map(row => [...row.cells].map(cell => cell.innerText.replace('\n', ' ')).join(' ')).join('\n')
SCRIPT
}

sub zoom {
    my $name = shift;
    return $browser->value(
        "graph.boxes.find(box => names[box.call.name].text === '$name').element.click(); 1");
}

sub key {
    my ( $key, $code ) = @_;
    $browser->call( 'Input.dispatchKeyEvent', type => $_, key => $key, ( $code ? ( text => $code ) : () ) )
        for qw(keyDown keyUp);
    return;
}

my @SHOP = (
    [ 30, 0,  'GET /report', 'Shop::report lib/Shop.pm:10', 'Shop::sum lib/Shop.pm:20' ],
    [ 0,  20, 'GET /report', 'Shop::report lib/Shop.pm:11', 'DBI::st::execute (XS)' ],
    [ 10, 0,  'GET /report', 'Shop::report lib/Shop.pm:11' ],
    [   30, 0, 'GET /list',
        'Template::process /usr/share/perl5/Template.pm:70',
        '(eval) (eval 3):1',
        'Shop::sum lib/Shop.pm:21'
    ],
    [ 0, 10, 'GET /list', 'Shop::list lib/Shop.pm:30', 'DBI::st::execute (XS)' ],
);

subtest 'Calls' => sub {
    ok show( samples(@SHOP), title => 'shop.psgi on web1' ), 'opened';
    is $browser->value('document.title'), 'shop.psgi on web1 – Sirius',      'title';
    is text('#about'), '100 samples, 100 per second and process, in 10.0 s', 'how it was taken';
    is graph(),        <<'GRAPH' =~ s/\n\z//r, 'from requests down, the largest first';
all 100
GET /report 60, GET /list 40
Shop::report 60, Template::process 30, Shop::list 10
Shop::sum 30, DBI::st::execute (XS) 20, (eval) 30, DBI::st::execute (XS) 10
Shop::sum 30
GRAPH
    is table(), <<'TABLE' =~ s/\n\z//r, 'the hottest functions';
Shop::sum 60.0% 60.0%
DBI::st::execute (XS) 30.0% 30.0%
Shop::report 10.0% 60.0%
TABLE
    like text('#legend'), qr/application 70\.0%.*installed modules.*eval, require.*waiting 30\.0%/, 'colours';
    my %class = map { split /=/ } split /,/,
        $browser->value(
        q{graph.boxes.map(box => `${names[box.call.name].text}=${box.element.className.replace(' thin', '')}`).join(',')}
        );
    is_deeply \%class,
        {
        'all'                   => 'all',
        'GET /report'           => 'path',
        'GET /list'             => 'path',
        'Shop::report'          => 'app',
        'Shop::list'            => 'app',
        'Shop::sum'             => 'app',
        'Template::process'     => 'module',
        '(eval)'                => 'eval',
        'DBI::st::execute (XS)' => 'waits',
        },
        'each has its own';
    $browser->value(q{document.querySelector('#table thead th:nth-child(3) button').click(); 1});
    like table(), qr/^\(eval\) – 30\.0%\n.*^Template::process – 30\.0%\n.*^Shop::list – 10\.0%\z/ms,
        'by their totals: all that have called them';
    click('#rows [value=lines]');
    like table(), qr{^Shop::report lib/Shop\.pm:11 30\.0% 30\.0%$}m,
        'lines, with what functions in C took there';
};

subtest 'Time' => sub {
    click('#time [value=wait]');
    is graph(), <<'GRAPH' =~ s/\n\z//r, 'waiting';
all 100
GET /report 67, GET /list 33
Shop::report 67, Shop::list 33
DBI::st::execute (XS) 67, DBI::st::execute (XS) 33
GRAPH
    is text('#here'), '30 samples, 100.0% waiting, about 0.30 s', 'of what';
    click('#time [value=cpu]');
    like graph(), qr/\nShop::report 57, Template::process 43\nShop::sum 43, \(eval\) 43\n/, 'on CPU';
    click('#time [value=all]');
    click('#rows [value=functions]');
    is text('#here'), '100 samples, 100.0% (70.0% on CPU, 30.0% waiting), about 1.00 s', 'both';
};

subtest 'Zoom' => sub {
    zoom('Shop::report');
    is graph(),         "Shop::report 100\nShop::sum 50, DBI::st::execute (XS) 33", 'a click shows it alone';
    is text('#crumbs'), 'AllGET /reportShop::report',                               'what has called it';
    is text('#here'),   '60 samples, 60.0% (40.0% on CPU, 20.0% waiting), about 0.60 s', 'its figures';
    zoom('Shop::report');
    is text('#crumbs'), 'AllGET /report', 'a second click goes one back';
    $browser->value(q{document.querySelector('#crumbs button').click(); 1});
    like graph(), qr/\Aall 100\n/, 'or all the way';
    ok $browser->value(q{document.querySelector('nav').hidden}), 'no more to go back';
    zoom('Shop::list');
    click('#reset');
    like graph(), qr/\Aall 100\n/, 'by a button';
};

subtest 'Callers' => sub {
    click('#view [value=up]');
    is graph(), <<'GRAPH' =~ s/\n\z//r, 'what ran, and who has called it';
all 100
Shop::sum 60, DBI::st::execute (XS) 30, Shop::report 10
Shop::report 30, (eval) 30, Shop::report 20, Shop::list 10, GET /report 10
GET /report 30, Template::process 30, GET /report 20, GET /list 10
GET /list 30
GRAPH
    $browser->value(q{document.querySelector('#table tbody tr:nth-child(2) button').click(); 1});
    like graph(), qr/\A(?:Shop::report|Shop::sum) 100\n/, 'a row of the table';
    click('#reset');
    key('Escape');
    click('#view [value=down]');
    zoom('DBI::st::execute (XS)');
    click('#view [value=up]');
    is graph(), <<'GRAPH' =~ s/\n\z//r, 'those of what was seen before';
DBI::st::execute (XS) 100
Shop::report 67, Shop::list 33
GET /report 67, GET /list 33
GRAPH
    click('#view [value=down]');
};

subtest 'Frames' => sub {
    click('#frames [value=own]');
    is graph(), <<'GRAPH' =~ s/\n\z//r, 'without installed modules';
all 100
GET /report 60, GET /list 40
Shop::report 60, (eval) 30, Shop::list 10
Shop::sum 30, DBI::st::execute (XS) 20, Shop::sum 30, DBI::st::execute (XS) 10
GRAPH
    click('#view [value=up]');
    like graph(), qr/^Shop::report 30, \(eval\) 30, .*\nGET \/report 30, GET \/list 30/m,
        'nor among the callers';
    click('#view [value=down]');
    $browser->value(q{table.by = table.columns[1]; drawTable(); 1});
    $browser->value(
        q{[...document.querySelectorAll('#table button')].find(b => /^Template/.test(b.textContent)).click(); 1}
    );
    is text('#found'), 'in 30.0% of the samples', 'a row of such a module shows them again';
    ok $browser->value(q{document.querySelector('#frames [value=all]').checked}), 'and the control says so';
    key('Escape');
    $browser->value(q{table.by = table.columns[0]; drawAll(); 1});
    is table() =~ /\A(.*)/ && $1, 'Shop::sum 60.0% 60.0%', 'as before';
};

sub search {
    my $words = shift;
    return $browser->value(
        "byId('search').value = '$words'; byId('search').dispatchEvent(new Event('input', { bubbles: true })); 1"
    );
}

subtest 'Search' => sub {
    search('SHOP::');
    is text('#found'), 'in 100.0% of the samples', 'each sample once';
    search('sum');
    is text('#found'), 'in 60.0% of the samples', 'how much of all';
    is $browser->value(q{[...document.querySelectorAll('#graph .hit')].map(e => e.textContent).join()}),
        'Shop::sum,Shop::sum', 'what is found';
    is $browser->value(q{document.querySelectorAll('#graph .miss').length}), 9, 'the others are paler';
    is table(), 'Shop::sum 60.0% 60.0%',                                        'the table has it too';
    search('nothing of it');
    is text('#found'), 'no such function', 'nothing';
    key('Escape');
    is text('#found'),                                                       '', 'Escape ends it';
    is $browser->value(q{document.querySelectorAll('#graph .miss').length}), 0,  'with nothing pale';
};

subtest 'Keys' => sub {
    $browser->value('document.activeElement.blur(); 1');
    key( '/', '/' );
    is $browser->value('document.activeElement.id'),    'search', 'a key for the search';
    is $browser->value('document.activeElement.value'), '',       'which is not typed there';
    $browser->value(q{document.querySelector('#graph [tabindex="0"]').focus(); 1});
    is $browser->value(q{document.querySelectorAll('#graph [tabindex="0"]').length}), 1,
        'one place for the Tab key';
    my $at = sub { return $browser->value('document.activeElement.getAttribute("aria-label")') };
    is $at->(), 'All, 100.0%', 'it begins with all';
    key($_) for qw(ArrowDown ArrowRight ArrowDown);
    is $at->(), 'Template::process, 30.0%', 'arrows';
    key($_) for qw(ArrowRight ArrowRight ArrowRight);
    is $at->(), 'Shop::list, 10.0%', 'to the end of the row';
    key($_) for qw(ArrowLeft ArrowLeft ArrowUp);
    is $at->(), 'GET /report, 60.0%', 'and back';
    key( 'Enter', "\r" );
    like graph(), qr/\AGET \/report 100\n/, 'zooms';
    is $at->(), 'GET /report, 60.0%', 'and stays there';
    key('Escape');
    like graph(), qr/\Aall 100\n/, 'and out';
};

subtest 'A pointer' => sub {
    my $over = sub {
        my $name = shift;
        $browser->value( <<"SCRIPT" );
{
    const { element } = graph.boxes.find(box => names[box.call.name].text === '$name');
    const { left, top } = element.getBoundingClientRect();
    element.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: left + 5, clientY: top + 5 }));
    1
}
SCRIPT
    };
    $over->('Shop::report');
    is $browser->value(q{document.querySelector('#tip').innerText.replace(/\n+/g, '\n')}),
        <<'TIP' =~ s/\n\z//r, 'tells of it';
Shop::report
60 samples, 60.0% (40.0% on CPU, 20.0% waiting), about 0.60 s
10 samples, 10.0%, in itself
lib/Shop.pm:10 50.0% of it
lib/Shop.pm:11 50.0% of it
TIP
    $browser->value(q{document.querySelector('#graph').dispatchEvent(new PointerEvent('pointerleave')); 1});
    ok $browser->value(q{document.querySelector('#tip').hidden}), 'until it leaves';
};

subtest 'Compared' => sub {
    my @old = map { [@$_] } @SHOP;
    $old[0][0] = 300;
    $old[1][1] = 20;
    $old[4]    = [ 0, 680, 'GET /gone', 'Shop::gone lib/Shop.pm:9' ];
    my @new = map { [ 10 * $_->[0], 10 * $_->[1], @$_[ 2 .. $#$_ ] ] } @SHOP;
    ok show( samples(@new), compare => samples(@old) ), 'opened';
    is text('#hottest-title'), 'Largest changes', 'a list of them';
    like table(), qr/\AShop::gone – −65\.4 – −65\.4\n/, 'what is gone is first' or diag table();
    like table(), qr/^DBI::st::execute \(XS\) 30\.0% \+28\.1 30\.0% \+28\.1$/m, 'what has grown';
    is $browser->value(
        q{graph.boxes.find(box => names[box.call.name].text === 'Shop::list').element.className}),
        'grew', 'in its colour';
    is $browser->value(
        q{graph.boxes.find(box => names[box.call.name].text === 'Shop::list').element.getAttribute('aria-label')}
        ),
        'Shop::list, 10.0%, changed by +10.0', 'and in words';
    unlike graph(), qr/gone/, 'what is gone has no width';
    click('#widths [value=before]');
    like graph(), qr/^GET \/gone 65, GET \/report 32, GET \/list 3$/m, 'but it had';
    my $format = sub {
        join ' ', map { sprintf '%.5f', $_ } @_;
    };
    my %seen = %{ JSON::PP->new->decode( $browser->value( <<'SCRIPT' ) ) };
JSON.stringify(Object.fromEntries(data.functions.map(([name, , ...n]) => {
    const self = counts.change([n[0], n[1], n[4], n[5]], whole.total);
    const total = counts.change([n[2], n[3], n[6], n[7]], whole.total);
    return [names[name].text, [self.now, self.was, self.sure, total.now, total.was, total.sure].map(Number)];
})))
SCRIPT
    my %same = map { $_->{name} => $format->( @$_{qw(self self_was self_sure total total_was total_sure)} ) }
        Sirius::Profile::Compare->new( samples(@new), samples(@old) )->changes;
    is_deeply {
        map { $_ => $format->( @{ $seen{$_} } ) } keys %seen
    }, \%same, 'the page and Sirius::Profile::Compare say the same';
    is_deeply [ $browser->problems ], [], 'nothing in the console';
    show( samples(@SHOP), compare => samples(@SHOP) );
    is $browser->value(q{document.querySelectorAll('#graph .grew, #graph .shrank').length}), 0,
        'nothing has changed';
};

# Clients choose the path, applications the names
subtest 'Text is text' => sub {
    my $attack
        = q{<img src=x onerror="alert(1)"></script><script>document.title='x'</script>&lt;b&gt;'"`${1}};
    my $unseen = "\x{202e}gpj\x{200b}\x{7f}";
    utf8::encode( my $bytes = $unseen );
    ok show( samples( [ 5, 1, "GET /$attack", "Shop::$attack", "Shop::$bytes /lib/$bytes.pm:3" ] ),
        title => $attack ),
        'opened';
    ( my $seen = $attack ) =~ tr/;/,/;
    is text('#title'), $attack, 'title';
    ok $browser->value( sprintf q{graph.boxes.some(box => names[box.call.name].text === 'GET /' + %s)},
        JSON::PP->new->allow_nonref->ascii->encode($seen) ),
        'path';
    like table(), qr/Shop::\\u\{202e\}gpj\\u\{200b\}\\u\{7f\} 100\.0%/,
        'what would not be seen is written out';
    is $browser->value(q{document.querySelectorAll('img, #graph script, b script').length}), 0,
        'no element of it';
    $browser->value('tip(graph.boxes[1].call, 5, 5); 1');
    is $browser->value(q{document.querySelectorAll('img').length}), 0, 'nor in what the pointer tells';
    is_deeply [ $browser->problems ], [], 'nothing in the console';
    ok $browser->value(
        q{(() => { try { document.body.innerHTML = '<p>' } catch (error) { return true } return false })()}),
        'HTML from text is refused';
    ok $browser->value(q{(() => { try { eval('1') } catch (error) { return true } return false })()}),
        'code from text is refused';
};

subtest 'Small calls' => sub {
    ok show( samples( [ 100, 0, 'GET /' ], map { [ 1, 0, "GET /$_", 'Shop::a lib/Shop.pm:3' ] } 1 .. 890 ) ),
        'opened';
    my @boxes = map {/(\d+ small)/} split /, /,
        $browser->value(q{graph.rows[1].map(({ call }) => nameOf(call)).join(', ')});
    cmp_ok scalar @boxes, '>', 3, 'are in boxes that are wide enough for a click';
    is $browser->value(q{graph.rows[1].reduce((sum, { call }) => sum + (call.below.length || 1), 0)}), 891,
        'all of them';
    is $browser->value('graph.rows.length'), 2, 'without what they have called';
    search('shop::a');
    is $browser->value(q{[...document.querySelectorAll('#graph .hit')].length}), 0,
        'whose names are not those';
    search('get /500');
    is $browser->value(q{[...document.querySelectorAll('#graph .hit')].length}), 1, 'one of them is found';
    $browser->value(q{document.querySelector('#graph .hit').click(); 1});
    like text('#crumbs'), qr/\AAll\d+ small\z/, 'a click';
    is $browser->value('graph.rows.length'),                                     3, 'shows them';
    is $browser->value(q{[...document.querySelectorAll('#graph .hit')].length}), 2, 'and the one';
    key('Escape') for 1, 2;
    is text('#crumbs'), 'All', 'and back';
    is_deeply [ $browser->problems ], [], 'nothing in the console';
};

subtest 'Any window' => sub {
    my $long = join '::', ('Shop') x 60;
    my @deep = map {"${long}::f$_ lib/Shop.pm:$_"} 1 .. 80;
    show(
        samples( @SHOP, [ 20, 0, 'GET /' . 'x' x 300, @deep ] ),
        compare => samples(@SHOP),
        title   => 'x' x 200
    );
    my %ground;
    for my $width ( 320, 390, 820, 1440, 2560 ) {
        for my $scheme (qw(dark light)) {
            $browser->resize( width => $width, scheme => $scheme );
            ok comes('Math.abs(graph.boxes[0].width - graph.element.clientWidth) < 1'), "$width, $scheme";
            cmp_ok $browser->value('document.documentElement.scrollWidth'), '<=', $width,
                'nothing is cut off';
            $ground{$scheme} = $browser->value('getComputedStyle(document.body).backgroundColor');
        }
    }
    isnt $ground{dark},                      $ground{light}, 'two schemes';
    is $browser->value('graph.rows.length'), 82,             'all of a deep stack';
};

subtest 'Nothing' => sub {
    ok show( samples() ), 'opened';
    is text('#empty'), 'No sample.', 'it says so';
    click('#view [value=up]');
    click('#time [value=cpu]');
    is text('#empty'), 'No sample on CPU.', 'of what';
    is_deeply [ $browser->problems ], [], 'nothing in the console';
};

subtest 'Many' => sub {
    srand 3;
    my @stacks = map { [
        1,
        0,
        'GET /' . int 9 * rand,
        map { "Shop::M$_\::f" . int( 30 * rand() * rand() ) . " lib/Shop/M$_.pm:" . int 1 + rand 60 } 1 .. 20
    ] } 1 .. 5000;
    ok show( samples(@stacks) ), 'opened';
    like text('#notes'),
        qr/\ACalls with less than 0\.1% of the samples are shown as \(other\): in all, [\d,]+ stacks with/,
        'it says what is not there';
    like text('#notes'), qr/The table has \d+ of [\d,]+ lines\./, 'nor in the table';
    my $took = $browser->value(<<'SCRIPT');
(() => {
    const start = performance.now();
    document.querySelector('[value=up]').click();
    return performance.now() - start;
})()
SCRIPT
    cmp_ok $took, '<', 5000, 'turned in less than 5 s also on a loaded machine';
    is_deeply [ $browser->problems ], [], 'nothing in the console';
};

done_testing;
