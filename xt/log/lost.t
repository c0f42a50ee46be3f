use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# A request that ends with its worker is told in the error log, in the access log and by the counters

my $APP = <<'APP';
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    select undef, undef, undef, $path =~ /kill/ ? 0.5 : 30 if $path =~ /waits/;
    kill SEGV => $$ if $path eq '/segv';
    kill KILL => $$ if $path =~ /kill/;
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { kill KILL => $$ } if $path eq '/behind';
    return sub { my $w = shift->( [ 200, [] ] ); $w->write('begun'); kill KILL => $$ } if $path eq '/stream';
    if ( $path eq '/deaf' ) { sleep 1 for 1 .. 30 }
    [ 200, [], ["$$"] ];
}
APP

my $dir = File::Temp->newdir;

sub server {
    my ( $name, @more ) = @_;
    my $server = start_server( $APP, qw(--workers 2 --err-respawn-interval 0.1 --graceful-timeout 1),
        '--access-log', "$dir/$name.log", '--access-log-format', '%h %P %r %s %X %m', @more );
    $server->{may_crash} = 1;
    return $server;
}

sub lines {
    my ($name) = @_;
    open my $fh, '<', "$dir/$name.log" or return '';
    return join '', readline $fh;
}

for my $path (qw(/segv /kill /stream)) {
    subtest $path => sub {
        my $name   = substr $path, 1;
        my $server = server($name);
        my $client = $server->connect;
        my $status = $client->ask("GET $path?a=b")->status;
        if   ( $path ne '/stream' ) { is $status,     502,         'the client gets an answer of the server' }
        else                        { unlike $status, qr/\A\d+\z/, 'the client gets no whole answer' }
        my $got = $path eq '/stream' ? 'the response was cut off' : 'the client got 502';
        my ($pid)
            = until_true( 10, sub { $server->log =~ m{worker \d+ exited while serving GET \Q$path\E\?a=b} } )
            ? $server->log
            =~ m{worker (\d+) exited while serving GET \Q$path\E\?a=b for 127\.0\.0\.1:\d+, after \d+\.\d s: $got; request id [0-9a-f]{32}$}m
            : ();
        my $aborted = $status eq '502' ? qr/[+-]/ : 'X';
        ok $pid, 'the error log says what was lost' or diag $server->log;
        ok until_true(
            5,
            sub {
                lines($name)
                    =~ m{^127\.0\.0\.1 \Q$pid\E GET \Q$path\E\?a=b(?: HTTP/1\.1)? \S+ $aborted GET$}m;
            }
            ),
            'the access log has its line'
            or diag lines($name);
        is $server->ask('GET /')->status, 200, 'the server goes on';
        $server->stop;
    };
}

# The kernel tells that of a unix socket at once
subtest 'a client that has left before' => sub {
    my $server = server( 'left', '--listen', "unix:$dir/socket", qw(--request-timeout 1) );
    my $leave  = sub {
        my $path   = shift;
        my $client = $server->connect( to => "unix:$dir/socket" );
        $client->send( request("GET $path") );
        $server->wait_busy( 1, qr/\Q$path\E/ );
        $client->close;
    };
    $leave->('/waits/kill');
    ok $server->wait_log(
        qr{exited while serving GET /waits/kill for unix, after \d\.\d s: the client was gone; }, 20
        ),
        'did not get 502'
        or diag $server->log;
    $leave->('/waits?2');
    ok $server->wait_log( qr{GET /waits\?2 ran for \d\.\d s, the client was gone; }, 20 ), 'nor 504'
        or diag $server->log;
    $server->stop;
};

subtest 'a worker that is killed behind its response' => sub {
    my $server = server('behind');
    is $server->ask('GET /behind')->status, 200, 'the response was given';
    ok $server->wait_log(qr/killed by signal 9/), 'the worker is gone';
    unlike $server->log, qr/exited while serving/, 'nothing was lost';
    $server->stop;
    my $count = () = lines('behind') =~ m{/behind}g;
    cmp_ok $count, '<=', 1, 'no second line';
};

subtest '--graceful-timeout' => sub {
    my $server = server('graceful');
    my $client = $server->connect;
    $client->send( request('GET /deaf') );
    $server->wait_busy( 1, qr{/deaf} );
    $server->signal('TERM');
    $server->wait_exit(10);
    like $server->log, qr{exited while serving GET /deaf for }, 'a request that did not end in time is told';
    like lines('graceful'), qr{GET /deaf(?: HTTP/1\.1)? (?:502 [+-]|\S+ X) GET$}m, 'and logged';
    $server->kill_hard;
};

done_testing;
