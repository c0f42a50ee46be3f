use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# psgix.harakiri: a worker that the application ends after this request

my $server = start_server( <<'APP', qw(--workers 2) );
sub {
    my $env = shift;
    die "no psgix.harakiri\n" if !$env->{'psgix.harakiri'};
    $env->{'psgix.harakiri.commit'} = 1 if $env->{PATH_INFO} eq '/end';
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { warn "cleaned up before the end\n" } if $env->{PATH_INFO} eq '/end';
    return [ 200, [], [$$] ];
}
APP

my $answer = $server->ask('GET /end');
my $pid    = $answer->body;
is $answer->status, 200, 'the response';
ok until_true( 5, sub { !kill 0, $pid } ),           "worker $pid ends";
ok $server->wait_log(qr/cleaned up before the end/), 'its cleanup handlers have run';

my %pid;
ok until_true( 5, sub { $pid{ $server->ask('GET /')->body }++; $server->processes >= 3 } ),
    'starting another in its place';
ok !$pid{$pid}, 'the old one serves no more';

subtest 'nobody is left behind' => sub {
    my %status;
    $status{ $server->ask( $_ % 5 ? 'GET /' : 'GET /end' )->status }++ for 1 .. 50;
    is_deeply \%status, { 200 => 50 }, 'while every fifth request ends its worker';
};

$server->stop;
done_testing;
