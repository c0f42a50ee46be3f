use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# Extensions: cleanup, harakiri, io, informational responses

my $server = start_server( <<'APP', qw(--workers 1) );
my $cleaned = 0;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { $cleaned++ } if $path eq '/cleanup';
    $env->{'psgix.harakiri.commit'} = 1 if $path eq '/harakiri';
    $env->{'psgix.informational'}->( 103, [ Link => '</a.css>; rel=preload' ] ) if $path eq '/hint';
    if ( $path eq '/io' ) {
        my $io = $env->{'psgix.io'};
        return sub { syswrite $io, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"; sysread $io, my $word, 10; syswrite $io, uc $word };
    }
    return [ 200, [], ["$cleaned $$"] ];
}
APP
my $client = $server->connect;
like $client->ask('GET /cleanup')->body, qr/\A0 /, 'cleanup handlers';
like $client->ask('GET /')->body,        qr/\A1 /, 'have run behind the response';
my $answer = $client->ask('GET /hint');
is join( ',', map { $_->status } $answer->interim ), '103', 'an early hint';
is $answer->status,                                  200,   'then the answer';
my ($pid) = $client->ask('GET /harakiri')->body =~ / (\d+)/;
unlike $client->ask('GET /')->body, qr/ $pid\z/, 'harakiri: the next one is served by another worker';
my $io = $server->connect;
$io->send( request( 'GET /io', 'Connection: Upgrade', 'Upgrade: x' ) );
like $io->some(10), qr{\AHTTP/1\.1 101 }, 'psgix.io is the connection';
$io->send('word');
like $io->some(4), qr/WORD/, 'both ways';
$server->stop;
done_testing;
