use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# The line that says where it listens: not before it is true, and true from then on

my $SLOW = "select undef, undef, undef, 1; warn qq(loaded\\n); sub { [ 200, [], ['ok'] ] }\n";

my %way = (
    'preloaded'   => [qw(--workers 2)],
    '-L Delayed'  => [qw(--workers 2 -L Delayed)],
    '--workers 0' => [qw(--workers 0)],
);
for my $way ( sort keys %way ) {
    subtest "$way: no line before the application is loaded and a worker is ready" => sub {
        my $server = Sirius::Test::Server->spawn( app => $SLOW, args => $way{$way} );
        sleep 0.4;
        unlike $server->log, qr/listening/, 'not yet';
        ok $server->wait_log( qr/listening on/, 30 ), 'then it comes';
        like $server->log, qr/\A(?:\[.*\n)?loaded\n(?:loaded\n|\[.*\n)*\S+ listening on /,
            'after the application was loaded';
        is $server->ask('GET /')->status,               200, 'and it is served';
        is scalar( () = $server->log =~ /listening/g ), 1,   'one line for one address';
        $server->stop;
    };
}

subtest 'a client that connects as soon as it reads the line is served: ten starts' => sub {
    my @server = map {
        Sirius::Test::Server->spawn( app => "sub { [ 200, [], ['ok'] ] }\n", args => [qw(--workers 2)] )
    } 1 .. 10;
    my %status;
    my @wait = @server;
    until_true(
        60,
        sub {
            my @now = grep { $_->log =~ m{listening on \S+\n} } @wait;
            $status{ eval { $_->ask('GET /')->status } || $@ }++ for @now;
            @wait = grep {
                my $server = $_;
                !grep { $_ == $server } @now;
            } @wait;
            return !@wait;
        }
    );
    is_deeply \%status, { 200 => 10 }, 'all of them';
    ok !( grep { $_->port == 0 } @server ), 'port 0 is printed as what it became';
    $_->stop for @server;
};

subtest 'server_ready, for programs' => sub {
    my $server = Sirius::Test::Server->start(
        command => [
            $^X,
            '-MPlack::Loader',
            '-e',
            'Plack::Loader->load( "Sirius", @ARGV, server_ready => sub {'
                . ' my $args = shift; print STDERR "ready: listening on http://$args->{host}:$args->{port}/\n" }'
                . ' )->run(sub { [ 200, [], ["ok"] ] })'
        ],
        args  => [qw(host 127.0.0.1 port 0 workers 2)],
        plain => 1,
    );
    is $server->ask('GET /')->status,               200, 'it knows the real port';
    is scalar( () = $server->log =~ /^ready: /mg ), 1,   'it is called once';
    unlike $server->log, qr/^Sirius.* listening/m, 'in the place of the line';
    $server->stop;
};

done_testing;
