use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# psgix.cleanup: work after the client has its response

my $dir    = File::Temp->newdir;
my $server = start_server( <<'APP' =~ s/DIR/$dir/r, qw(--workers 2) );
sub {
    my $env      = shift;
    my $handlers = $env->{'psgix.cleanup.handlers'};
    my $path     = $env->{PATH_INFO};
    push @$handlers, sub { select undef, undef, undef, 0.01 while !-e 'DIR/go'; warn "cleaned up\n" } if $path eq '/slow';
    push @$handlers, sub { die "died in cleanup\n" }, sub { warn "the next one ran\n" } if $path eq '/die';
    push @$handlers, sub { warn "saw $_[0]{PATH_INFO}\n" } if $path eq '/env';
    push @$handlers, sub { warn "after the stream\n" } if $path eq '/stream';
    push @$handlers, map { my $n = $_; sub { warn "handler $n\n" } } 1 .. 3 if $path eq '/order';
    return sub { my $w = shift->( [ 200, [] ] ); $w->write('streamed'); $w->close } if $path eq '/stream';
    return [ 200, [], [ $env->{'psgix.cleanup'} ? 'ok' : 'none' ] ];
}
APP

subtest 'a handler that takes its time' => sub {
    my $client = $server->connect;
    is $client->ask('GET /slow')->body, 'ok', 'the response';
    ok $server->wait_busy( 1, qr{/slow} ), 'is there while the worker is busy';
    unlike $server->log, qr/cleaned up/, 'before the handler is done';
    spew( "$dir/go", '' );
    ok $server->wait_log( qr/cleaned up/, 5 ), 'which runs';
};

subtest 'one that dies' => sub {
    my $client = $server->connect;
    is $client->ask('GET /die')->body, 'ok', 'the response';
    ok $server->wait_log(qr/died in cleanup/),  'is logged';
    ok $server->wait_log(qr/the next one ran/), 'the others run';
    is $client->ask('GET /')->body, 'ok', 'the connection and the worker live';
};

subtest 'handlers get the environment, in order' => sub {
    $server->ask('GET /env');
    ok $server->wait_log(qr{saw /env}), 'the environment';
    $server->ask('GET /order');
    ok $server->wait_log(qr/handler 1\n.*handler 2\n.*handler 3\n/s), 'in order';
};

subtest 'after a streamed response' => sub {
    is $server->ask('GET /stream')->body, 'streamed', 'the response';
    ok $server->wait_log(qr/after the stream/), 'the handler';
};

$server->stop;
done_testing;
