# What is published to WebSockets, while workers come and go
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::HTTP2;
use Sirius::Test::WebSocket;

my $APP = <<'APP';
use strict;
use warnings;
use Sirius::Channel;
use Sirius::WebSocket;
my $ws = Sirius::WebSocket->new(
    on_open    => sub { my $ws = shift; $ws->accept; $ws->subscribe( $ws->env->{QUERY_STRING} || 'news' ) },
    on_message => sub {
        my ( $ws, $text ) = @_;
        return $ws->unsubscribe('news') && $ws->send('done') if $text eq 'unsubscribe';
        kill KILL => $$ if $text eq 'kill';
        Sirius::Channel->publish( news => $text );
        $ws->send("published $text");
    },
)->to_app;
sub {
    my $env = shift;
    return $ws->($env) if ( $env->{CONTENT_TYPE} // '' ) eq 'application/websocket-events';
    my ( $channel, $what, $count ) = split m{/}, substr $env->{PATH_INFO}, 1;
    if    ( $what eq 'close' )  { Sirius::Channel->publish( $channel => undef, formats => { 'ws-message' => { action => 'close', code => 4010, reason => 'over' } } ) }
    elsif ( $what eq 'binary' ) { Sirius::Channel->publish( $channel => "\xff\0" ) }
    elsif ( $what eq 'other' )  { Sirius::Channel->publish( $channel => undef, formats => { 'http-stream' => { content => 'x' } } ) }
    elsif ( $what eq 'large' )  { Sirius::Channel->publish( $channel => 'x' x 60_000 ) for 1 .. $count }
    else                        { Sirius::Channel->publish( $channel => "$what $_" ) for 1 .. $count || 1 }
    return [ 200, [], ["ok\n"] ];
};
APP

my $server
    = start_server( $APP, qw(--hold --workers 2), @Sirius::Test::HTTP2::LISTEN, '--listen', '127.0.0.1:0' );
my ( $h2, $h1 ) = $server->listeners;

sub ws {
    my ( $path, %option ) = @_;
    return Sirius::Test::WebSocket->new( $option{h2} ? $h2 : $h1, path => $path, %option );
}

sub publish {
    my $path   = shift;
    my $client = Sirius::Test::Client->new($h1);
    return $client->ask("GET $path")->body;
}
sub held { return $server->held('websocket') }

subtest 'to those who listen' => sub {
    my @ws = ( ws('/'), ws( '/', h2 => 1 ), ws('/?other') );
    is held(), 3, 'three are held';
    publish('/news/hello');
    is $ws[$_]->next, 'text hello 1', "number $_" for 0, 1;
    publish('/other/here');
    is $ws[2]->next, 'text here 1', 'another channel';
    publish('/news/binary');
    is $_->next, "binary \xff\0", 'what is not UTF-8' for @ws[ 0, 1 ];
    publish('/news/other');
    $ws[0]->text('from me');
    is join( '|', sort map { $ws[0]->next } 1, 2 ), 'text from me|text published from me',
        'the publisher listens, too';
    is $ws[1]->next, 'text from me', 'and the others; what is for streams has not come';
    $ws[0]->text('unsubscribe');
    is $ws[0]->next, 'text done', 'unsubscribed';
    publish('/news/last');
    is $ws[1]->next, 'text last 1', 'who listens gets it';
    $ws[0]->send( ping => 'x' );
    is $ws[0]->next, 'pong x', 'who does not, nothing';
    publish('/news/close');
    is $ws[1]->next, 'close 4010 over', 'a close that is published';
    $ws[1]->send( close => pack 'n', 4010 );
    is $ws[1]->end, 'eof', 'which the client answers';
    $_->close for @ws[ 0, 2 ];
    until_true( 10, sub { !held() } );
    is held(), 0, 'none is held';
};

subtest 'nothing is lost, whatever happens to workers' => sub {
    $server->{may_crash} = 1;
    my @ws = map { ws( '/', h2 => $_ % 2 ) } 1 .. 20;
    for my $round ( 1 .. 5 ) {
        $server->signal('HUP') if $round % 2;
        my $other = ws('/?other');
        $other->text('kill');
        publish("/news/round$round/20");
        is $other->all, 'close 1011', 'the one whose worker is killed';
    }
    my $want = join '|', map {
        my $round = $_;
        map {"text round$round $_"} 1 .. 20
    } 1 .. 5;
    my @wrong = grep {
        my $ws = $_;
        join( '|', map { $ws->next } 1 .. 100 ) ne $want
    } @ws;
    is @wrong, 0, 'all 20 have all 100 in order';
    $_->close for @ws;
};

subtest 'a client that does not read' => sub {
    my $slow = ws( '/?slow', rcvbuf => 4096 );
    my $fast = ws('/?slow');
    for my $n ( 1 .. 200 ) {
        publish('/slow/large/1');
        $fast->next;
        last if held() == 1;
    }
    until_true( 10, sub { held() == 1 } );
    is held(),                              1, 'is dropped';
    is $server->board->{totals}{hold_slow}, 1, 'and counted';
    publish('/slow/still');
    is $fast->next, 'text still 1', 'others go on';
};
$server->stop;
done_testing;
