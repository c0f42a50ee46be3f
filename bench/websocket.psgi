# Echoes texts over WebSockets at /echo. Sirius asks it for each message, and it may block. Under a server
# with an event loop (BENCH_EVENTS) it takes the socket, and speaks the protocol by Protocol::WebSocket
use strict;
use warnings;

my $events = sub {
    my $env = shift;
    my $io  = $env->{'psgix.io'};
    my $hs  = Protocol::WebSocket::Handshake::Server->new_from_psgi($env);
    $hs->parse('');
    syswrite $io, $hs->to_string;
    my $frame = Protocol::WebSocket::Frame->new;
    my $watcher;
    $watcher = AnyEvent->io(
        fh   => $io,
        poll => 'r',
        cb   => sub {
            my $n = sysread $io, my $bytes, 65_536;
            return if !defined $n && $!{EAGAIN};
            if ( !$n ) { undef $watcher; close $io; return }
            $frame->append($bytes);
            while ( defined( my $text = $frame->next ) ) {
                syswrite $io, Protocol::WebSocket::Frame->new($text)->to_bytes;
            }
        }
    );
    return sub { };
};

my $echo = $events;
if ( $ENV{BENCH_EVENTS} ) {
    require AnyEvent;
    require Protocol::WebSocket::Frame;
    require Protocol::WebSocket::Handshake::Server;
} else {
    require Sirius::WebSocket;
    $echo = Sirius::WebSocket->new( on_message => sub { my ( $ws, $text ) = @_; $ws->send($text) } )->to_app;
}
sub {
    return $_[0]{PATH_INFO} eq '/echo'
        ? $echo->( $_[0] )
        : [ 200, [ 'Content-Type' => 'text/plain' ], ["hello\n"] ];
};
