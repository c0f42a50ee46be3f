# sirius dev --live-reload in a browser: an open page shows what was saved, broken code included
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Path  qw(make_path);
use File::Temp  ();
use Time::HiRes qw(time);
use Test::More;
use Sirius::Test;
use Sirius::Test::Browser;
use Sirius::Test::Dev;

my $browser = Sirius::Test::Browser->start or plan skip_all => 'chromium is not installed';

sub page {
    my ( $text, $policy ) = @_;
    return <<"APP";
sub { [ 200, [ 'Content-Type' => 'text/html', 'Content-Security-Policy' => "$policy" ], ['<html><body>$text</body></html>'] ] }
APP
}

# Until the open page has this text: nobody asks for it anew
sub shows {
    my $text = shift;
    return until_true(
        30,
        sub {
            ( eval { $browser->value('document.body.innerText') } // '' ) =~ /$text/;
        }
    );
}

my $policy = q(default-src 'none'; script-src 'self'; connect-src 'self');
my $dev    = Sirius::Test::Dev->start( page( 'one', $policy ), qw(--workers 1 --live-reload) );
$browser->open( 'http://' . $dev->address . '/', width => 800, height => 600 );
ok shows(qr/one/),                  'a page';
ok $dev->wait_log(qr/ready after/), 'the server has settled';
$dev->save( 'app.psgi', page( 'two', $policy ) );
ok shows(qr/two/), 'what was saved, with a policy that allows what comes from the server itself';
$dev->save( 'app.psgi', "die 'broken code';\n" );
ok shows(qr/broken code/), 'the reason of broken code';
$dev->save( 'app.psgi', page( 'three', $policy ) );
ok shows(qr/three/), 'and the application again';
$dev->stop;

# A style sheet that has not been changed for long, which browsers keep by its date
my $folder = File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
my $styled = qq(<html><head><link rel="stylesheet" href="/css/s.css"></head><body>styled</body></html>);
my $STATIC = q(use Plack::Builder; builder { enable 'Static', path => qr{^/css/}, root => '%s'; );
for my $case (
    [ '--static', '', '--static', "/=$folder/public" ],
    [ 'Plack::Middleware::Static', sprintf $STATIC, "$folder/public" ],
    )
{
    my ( $name, $static, @args ) = @$case;
    my $app = "sub { [ 200, [ 'Content-Type' => 'text/html' ], ['$styled'] ] }";
    make_path("$folder/public/css");
    spew( "$folder/public/css/s.css", 'body { color: rgb(0, 0, 255) }' );
    utime time - 3600, time - 3600, "$folder/public/css/s.css" or die $!;
    $dev = Sirius::Test::Dev->start(
        $static ? "$static $app };\n" : "$app\n",
        { folder => $folder, files => {} },
        qw(--workers 1 --live-reload), @args
    );
    $browser->open( 'http://' . $dev->address . '/', width => 800, height => 600 );
    my $color = sub {
        my $want = shift;
        return until_true(
            30,
            sub {
                ( eval { $browser->value('getComputedStyle(document.body).color') } // '' ) eq $want;
            }
        );
    };
    ok $color->('rgb(0, 0, 255)'), "$name: the style sheet";
    $browser->value(
        q{new EventSource('/__sirius/live').addEventListener('generation', () => { window.subscribed = 1; }); 1}
    );
    ok $browser->comes('window.subscribed'), 'a later subscription than that of the page is there';
    $browser->value(
        q{window.mark = 1;
        const look = setInterval(() => {
            if (getComputedStyle(document.body).color !== 'rgb(255, 0, 0)') return;
            window.seen = Date.now();
            clearInterval(look);
        }, 2);
        1}
    );
    my $saved = 1000 * time;
    $dev->write( 'public/css/s.css', 'body { color: rgb(255, 0, 0) }' );
    ok $color->('rgb(255, 0, 0)'), 'and what was saved';
    is $browser->value('window.mark'), 1, 'in the same page, which was not loaded again';
    ok $browser->comes(q{document.querySelectorAll('link').length === 1}), 'with one link';
    note sprintf '%.0f ms after it was saved', $browser->value('window.seen') - $saved;
    is $dev->reloads, 0, 'the application was not loaded again either';
    $dev->write( 'public/css/s.css', 'body { color: rgb(0, 255, 0) }' );
    ok $color->('rgb(0, 255, 0)'), 'and once more';
    $dev->write( 'public/css/other.css', 'p { }' );
    ok $browser->comes('window.mark === undefined'),
        'a style sheet that the page has no link to: it is loaded again';
    $dev->stop;
}

done_testing;
