use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use JSON::PP ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Browser;

# eg/chat.psgi in two windows of a browser: what one says, both show; and the progress bar of
# eg/progress.psgi. Plain, over TLS, and over HTTP/2 with TLS. Pictures are in build/

my $ROOT    = $Sirius::Test::Server::ROOT;
my $browser = Sirius::Test::Browser->start or plan skip_all => 'chromium is not installed';
my $SAID    = q{Array.from(document.querySelectorAll('#said li')).map( item => item.textContent ).join('|')};

# Writes a line into the form, as a user does
sub enter {
    my $line = JSON::PP->new->allow_nonref->encode(shift);
    return $browser->value(
        "document.getElementById('text').value = $line; document.forms[0].requestSubmit(); true");
}

sub shows {
    my ( $window, $line, $name ) = @_;
    $browser->window($window);
    return ok( $browser->comes("($SAID).split('|').includes('$line')"), $name )
        || diag $browser->value($SAID);
}

my @TLS = qw(--enable-ssl --tls-self-signed);
for my $case ( [ plain => 'http' ], [ tls => 'https', @TLS, '--disable-http2' ], [ h2 => 'https', @TLS ] ) {
    my ( $name, $scheme, @option ) = @$case;
    subtest $name => sub {
        my $server = start_server( "$ROOT/eg/chat.psgi", qw(--workers 2 --hold), @option );
        my @window;
        for my $who (qw(Ann Bob)) {
            $browser->open( 'about:blank', width => 480, height => 320, scheme => 'light' );
            $browser->call( 'Security.setIgnoreCertificateErrors', ignore => JSON::PP::true );
            $browser->call( 'Page.navigate', url => "$scheme://" . $server->address . '/' );
            push @window, $browser->window;
            ok $browser->comes(q{document.title === 'Chat'}), "a window for $who";
            enter($who);
            shows( $window[-1], "Hello $who", 'it is connected' );
        }
        shows( $window[0], 'Bob is here', 'the other one is told' );
        enter('Hello to all');
        shows( $_, 'Ann: Hello to all', 'a message' ) for @window;
        $browser->window( $window[1] );
        enter("gr\x{fc}n <b>\x{1f600}</b>");
        shows( $_, "Bob: gr\x{fc}n <b>\x{1f600}</b>", 'text of all kinds' ) for @window;
        is $server->board->{connections}{open}, 1, 'one connection for the pages and both WebSockets'
            if $name eq 'h2';

        for ( 0, 1 ) {
            $browser->window( $window[$_] );
            $browser->screenshot("$ROOT/build/chat-$name-$_.png");
        }
        is_deeply [ $browser->problems ], [], 'no error in the console';
        $browser->window( $window[1] );
        $browser->call('Page.close');
        shows( $window[0], 'Bob has left', 'who closes the window leaves' );
        $browser->call('Page.close');
        delete $browser->{session};
        $server->stop;
    };
    subtest "$name: a progress bar" => sub {
        my $server = start_server( "$ROOT/eg/progress.psgi", qw(--workers 2 --hold), @option );
        $browser->open( 'about:blank', width => 480, height => 320, scheme => 'light' );
        $browser->call( 'Security.setIgnoreCertificateErrors', ignore => JSON::PP::true );
        $browser->call( 'Page.navigate',                       url => "$scheme://" . $server->address . '/' );
        ok $browser->comes(q{document.title === 'Progress'}), 'the page';
        $browser->value(
            q{ window.seen = [];
               new MutationObserver( () => seen.push(bar.value) ).observe( bar, { attributes: true } );
               document.querySelector('button').click(); true }
        );
        ok $browser->comes('seen[seen.length - 1] === 100'), 'all of it';
        my $seen = $browser->value('seen.join(" ")');
        is $seen, join( ' ', sort { $a <=> $b } split / /, $seen ), 'only forward';
        cmp_ok scalar( split / /, $seen ), '>=', 5, "in steps: $seen";
        is_deeply [ grep { !/ 404 / } $browser->problems ], [], 'no error in the console, but for the icon';
        $browser->call('Page.close');
        delete $browser->{session};
        $server->stop;
    };
}

done_testing;
