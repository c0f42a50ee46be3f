use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# --max-connections: the oldest idle connection of the whole server makes room

my $dir = File::Temp->newdir;
my $APP = <<'APP' =~ s/DIR/$dir/r;
use Time::HiRes qw(sleep);
sub { my $env = shift; sleep 0.01 while $env->{PATH_INFO} eq '/long' && !-e 'DIR/go'; [ 200, [], ["$$"] ] };
APP

subtest 'the oldest idle one is closed, and only that' => sub {
    my $server = start_server( $APP, qw(--workers 3 --max-connections 10) );
    my @clients;
    for my $n ( 1 .. 30 ) {
        push @clients, $server->connect;
        is $clients[-1]->ask('GET /')->status, 200, "connection $n is served";
        sleep 0.02;    # which of two was idle first is seen to the millisecond
    }
    $server->wait_open(10);
    is join( ' ', map { $_->end(0.05) } @clients ), join( ' ', ('eof') x 20, ('timeout') x 10 ),
        'the ten newest are open';
    $server->stop;
};

subtest 'none is idle' => sub {
    my $server = start_server( $APP, qw(--workers 2 --max-connections 2) );
    my @busy   = map { $server->connect } 1 .. 2;
    $_->send( request('GET /long') ) for @busy;
    $server->wait_busy( 2, qr{/long} );
    my $answer = $server->connect->ask('GET /');
    if ( $ENV{SIRIUS_TEST_TLS} ) {    # an answer would need a handshake
        like $answer->status, qr/\A(?:eof|reset)\z/, 'refused';
    } else {
        is $answer->status, 503, 'refused';
        ok $answer->header('Retry-After'), 'with a time to come again';
    }
    spew( "$dir/go", '' );
    is $_->response->status, 200, 'who was served is served' for @busy;
    $server->stop;
};

done_testing;
