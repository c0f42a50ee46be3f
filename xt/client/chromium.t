use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Browser;

# A page of 300 pictures, half of them files of --static, in a browser: over HTTP/2 on one connection, over
# HTTP/1.1 on six

my $browser = Sirius::Test::Browser->start or plan skip_all => 'chromium is not installed';
my $dir     = File::Temp->newdir;
spew( "$dir/" . 2 * $_ . '.svg',
    '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><circle cx="4" cy="4" r="4"/></svg>' )
    for 1 .. 150;

my $PICTURES = 'Array.from(document.images).filter( i => i.complete && i.naturalWidth === 8 ).length';
my $PROTOCOLS
    = q{Array.from( new Set( performance.getEntriesByType('resource').map( r => r.nextHopProtocol ) ) ).join(' ')};

for my $case ( [ h2 => 1, 1 ], [ 'http/1.1' => 2, 6, '--disable-http2' ] ) {
    my ( $protocol, $least, $most, @option ) = @$case;
    subtest $protocol => sub {
        my $server = start_server(
            "$FindBin::Bin/../../bench/waterfall.psgi",
            qw(--workers 4 --enable-ssl --tls-self-signed --static),
            "/files=$dir", @option
        );
        $browser->open('about:blank');
        $browser->call( 'Security.setIgnoreCertificateErrors', ignore => JSON::PP::true );
        $browser->call( 'Page.navigate',                       url => 'https://' . $server->address . '/' );
        ok $browser->comes("$PICTURES === 300"), 'all pictures are there' or diag $browser->value($PICTURES);
        is $browser->value($PROTOCOLS), $protocol, 'by this protocol';
        my $connections = $server->board->{connections}{open};
        ok $connections >= $least && $connections <= $most, "$connections connections";
        is_deeply [ $browser->problems ], [], 'no error in the console';
        $server->stop;
    };
}

done_testing;
