use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use JSON::PP ();
use Test::More;
use Sirius::Channel;
use Sirius::Test;
use Sirius::Test::WebSocket;

# What an operator sees of held connections: sirius ctl, metrics, /status.json and the access log

my $APP = <<'APP';
sub {
    my $env = shift;
    my ( undef, $hold, @channels ) = split m{/}, $env->{PATH_INFO};
    return [ 200, [ 'Content-Type' => 'text/plain', 'Grip-Hold' => $hold, map { ( 'Grip-Channel' => $_ ) } @channels ], ["begin\n"] ]
        if @channels;
    return [ 200, [ 'Content-Type' => 'application/websocket-events', 'Sec-WebSocket-Extensions' => 'grip' ],
        ["OPEN\r\nTEXT 25\r\nc:{\"type\":\"subscribe\",\"channel\":\"ws\"}\r\nTEXT 5\r\nm:one\r\n"] ]
        if $hold eq 'ws' && ( $env->{CONTENT_LENGTH} || 0 ) == 6;
    return [ 200, [ 'Content-Type' => 'text/plain' ], ["hello\n"] ];
}
APP

my $root  = $Sirius::Test::Server::ROOT;
my $dir   = File::Temp->newdir( 'sirius-seen-XXXXXX', TMPDIR => 1 );
my $path  = "$dir/control";
my $admin = free_port();
delete $ENV{SIRIUS_CONTROL};

my $server = start_server( $APP, qw(--hold --workers 2 --edges 2 --control),
    $path, '--admin', "127.0.0.1:$admin", '--access-log', "$dir/access.log",
    '--access-log-format', '%m %U %>s %{messages}x %{held}D %D %{app}D' );

sub ctl {
    my @args = @_;
    local $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
    my $said = qx($^X $root/bin/sirius ctl --control $path @args 2>&1);
    return ( $? >> 8 ) . " $said";
}

sub admin {
    my $way = shift;
    return $server->connect( to => "127.0.0.1:$admin", plain => 1 )
        ->ask( "GET $way", "Host: 127.0.0.1:$admin" )->body;
}

is ctl('channels'), "0 0 channels, 0 subscriptions\n", 'there is no channel';
unlike ctl('status'), qr/HELD/, 'and nothing is held';

my @stream = ( $server->subscribers( 5, '/stream/news' ), $server->subscribers( 2, '/stream/news/caf%e9' ) );
my @wait   = $server->subscribers( 3, '/response/b' );
Sirius::Channel->publish( news => "one\n", control => $path ) for 1 .. 3;
until_true( 20, sub { $server->board->{totals}{delivered} == 21 } );

subtest 'sirius ctl' => sub {
    is ctl('channels'),
        join( "\n",
        '0 CHANNEL  SUBSCRIBERS  MESSAGES',
        'news               7         3',
        'b                  3         0',
        'caf\xe9            2         0',
        '',
        '3 channels, 12 subscriptions',
        '' ),
        'channels';
    my $json = JSON::PP->new->decode( ctl( 'channels', '--json' ) =~ s/\A0 //r );
    is_deeply $json->{channels}[0], { name => 'news', subscribers => 7, messages => 3 }, '--json';
    like ctl('status'), qr/^ *EDGE +STATE +AGE +CONNECTIONS +IDLE +HELD +WAITING +WAIT +ACCEPTED$/m, 'status';
    my @held = ctl('status') =~ /^ *\d+ +\w+ +[\d.]+ \w+ +\d+ +\d+ +(\d+) +\d+ +\S+ +\d+$/mg;
    is eval { join '+', sort @held } && $held[0] + $held[1], 10, 'of both edges';
};

subtest 'The admin port' => sub {
    my $status = JSON::PP->new->decode( admin('/status.json') );
    is_deeply $status->{held}, { stream => 7, response => 3, websocket => 0 }, '/status.json';
    my $metrics = admin('/metrics');
    like $metrics, qr/^\Q$_\E$/m, $_
        for 'sirius_held_connections{kind="stream"} 7', 'sirius_held_connections{kind="response"} 3',
        'sirius_publications_total 6',
        'sirius_deliveries_total 21', 'sirius_hold_dropped_total{reason="slow"} 0',
        'sirius_publications_dropped_total 0';
};

subtest 'The access log' => sub {
    Sirius::Channel->publish(
        b       => undef,
        formats => { 'http-response' => { code => 201, body => 'x' } },
        control => $path
    );
    Sirius::Channel->publish( news => "two\n", close => 1, control => $path );
    $_->response( patience => 10 ) for @stream, @wait;
    $server->ask('GET /');
    my @lines;
    until_true( 20, sub { 11 == ( @lines = split /\n/, Sirius::Test::Server::slurp("$dir/access.log") ) } );
    is scalar( grep {m{\AGET /stream/news(?:/caf\\xe9)? 200 4 \d+ \d+ \d+\z}} @lines ), 7,
        'streams with all messages'
        or diag join "\n", @lines;
    is scalar( grep {m{\AGET /response/b 201 1 \d+ \d+ \d+\z}} @lines ), 3,
        'responses with that which has answered them';
    is scalar( grep {m{\AGET / 200 - - \d+ \d+\z}} @lines ), 1, 'others have no value';
    is_deeply [
        grep { my ( $held, $all, $app ) = /(\d+) (\d+) (\d+)\z/; defined $held && $held + $app > $all }
            @lines ], [],
        'a part of the whole time, which is none in the application';
};

subtest 'A WebSocket' => sub {
    my $ws = Sirius::Test::WebSocket->new( $server->address, path => '/ws' );
    is $ws->next, 'text one', 'what the application sends';
    like ctl('channels'), qr/^ws +1 +0$/m, 'its channel';
    my $said = qx(echo one | $^X -Mblib=$root $root/bin/sirius ctl --control $path publish ws 2>&1);
    is $ws->next, "text one\n", "what sirius ctl publishes: $said";
    Sirius::Channel->publish( ws => 'two', close => 1, control => $path );
    is $ws->next, 'text two', 'what is published';
    $ws->all;
    my @lines;
    until_true(
        20,
        sub {
            @lines = grep {m{ /ws 101 }} split /\n/, Sirius::Test::Server::slurp("$dir/access.log");
        }
    );
    like $lines[0], qr{\AGET /ws 101 3 \d+ \d+ -\z}, 'a line at its end';
};

subtest 'Many channels' => sub {
    my @many = map {
        $server->subscribers( 1, join '/', '/stream', map {"c$_"} 20 * $_ .. 20 * $_ + 19 )
    } 0 .. 29;
    push @many,
        $server->subscribers( 6, '/stream/most' );    # of two edges, one has three: there it is among the 256
    my ( $status, @lines ) = split /\n/, ctl('channels');
    like $lines[-1], qr/\A\d+ channels, 606 subscriptions\z/, 'all subscriptions are counted';
    like $lines[0],  qr/\Amost +[3-6] +0\z/,                  'the first has the most';
    cmp_ok scalar @lines, '<=', 2 * 256 + 1, 'not all are printed';
};

$server = start_server( $APP, '--workers' => 1, '--control' => "$dir/other" );
$path   = "$dir/other";
is ctl('channels'), "1 sirius ctl: the server holds no connections: start it with --hold\n", 'without --hold';

done_testing;
