use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# A call of the server's that waits for its client: handlers of signals run meanwhile, and whatever they do,
# the bytes on the wire are those that were given.

my $SIZE = 16_000_000;

# Each changes the string that is being written, as a handler may
my %change = (
    undef   => 'undef $$data',
    assign  => '$$data = "b" x 100',
    substr  => 'substr( $$data, 0, length $$data, "c" x length $$data )',
    chop    => 'substr( $$data, 0, 7_000_000, "" ); $$data .= "d" x 100',
    element => '@main::queue = ()',
);

for my $change ( sort keys %change ) {
    subtest "a write whose string is changed meanwhile: $change" => sub {
        my $server = start_server( <<"APP", qw(--workers 1) );
use Time::HiRes ();
our ( \@queue, \@junk );
sub {
    my \$how = \$_[0]{PATH_INFO};
    return sub {
        my \$w = \$_[0]->( [ 200, [ 'Content-Length' => $SIZE ] ] );
        { my \$warm = 'w' x 24_000_000; undef \$warm }    # so that the next string is of memory that is used again
        \@queue = ( 'x' . 'a' x $SIZE );
        substr( \$queue[0], 0, 1, '' );
        \$queue[0] .= '' if \$how eq '/plain';
        my \$shared = \$how eq '/shared' ? \$queue[0] : '';
        my \$data   = \\\$queue[0];
        my \$ran;
        local \$SIG{ALRM} = sub { \$ran = 1; $change{$change}; \@junk = map { 'SECRET!' x 20_000 } 1 .. 110 };
        Time::HiRes::ualarm(200_000);
        \$w->write( \$queue[0] );
        warn "a handler has run\\n" if \$ran;
        \$w->close;
    };
}
APP
        for my $how (qw(/plain /shared)) {
            my $client = $server->connect;
            $client->send( request("GET $how") );
            sleep 0.6;
            my $body = eval { $client->response( patience => 20 )->body } || '';
            is length $body,     $SIZE, "$how: its length";
            is $body =~ tr/a//c, 0,     'nothing but its bytes';
            ok $server->wait_log(qr/a handler has run/), 'and a handler has run meanwhile';
        }
        is join( '', $server->crashes ), '', 'no crash';
        $server->stop;
    };
}

my $HINTS = <<'APP';
use Time::HiRes qw(setitimer ITIMER_REAL);
our ( $n, $told ) = ( 0, '' );
sub hints {
    my $env = shift;
    return eval { $env->{'psgix.informational'}->( 103, [ Link => '<' . 'a' x 7000 . '>' ] ) for 1 .. 4000; 1 } ? 'all sent' : $@;
}
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return [ 200, [], ["$told pid $$"] ] if $path eq '/told';
    local $SIG{ALRM} = $path eq '/die' ? sub { die "time is over\n" } : sub { $n++; warn "many\n" if $n == 300 };
    setitimer( ITIMER_REAL, $path eq "/die" ? 0.5 : 0.005, $path eq "/die" ? 0 : 0.005 );
    $told = hints($env);
    setitimer( ITIMER_REAL, 0, 0 );
    [ 200, [], ["n=$n $told"] ];
}
APP

subtest 'early hints to a client that does not read: a time limit ends them' => sub {
    my $server = start_server( $HINTS, qw(--workers 1 --write-timeout 60) );
    my ($pid)  = $server->workers;
    my $client = $server->connect;
    $client->send( request('GET /die') );
    $server->wait_board( sub { $_[0]{totals}{requests} == 1 } );
    my $other = $server->connect;
    $other->send( request('GET /told') );
    my $told = eval { $other->response( patience => 20 )->body } // $@;

    is $told, "all sent pid $pid", 'the call does not wait, and the worker goes on';
    my $answer = eval { $client->response( patience => 20 ) };
    is $answer ? $answer->body : $@, 'n=0 all sent', 'the client has its answer';
    is_deeply [ grep { length $_->header('Link') != 7002 } $answer ? $answer->interim : () ], [],
        'and whole hints';
    is join( '', $server->crashes ), '', 'no crash';
    $server->stop;
};

subtest 'early hints to a client that does not read: more signals than perl lets wait' => sub {
    my $server = start_server( $HINTS, qw(--workers 1) );
    my $client = $server->connect;
    $client->send( request('GET /many') );
    my $answer = eval { $client->response( patience => 20 ) };
    my @hints  = $answer ? grep { $_->status eq '103' } $answer->interim : ();
    cmp_ok @hints, '>', 0, 'hints come, but for those that the client does not take' or diag $@;
    like $answer ? $answer->body : $@, qr/\An=\d+ all sent\z/, 'and the response';
    is join( '', $server->crashes ), '', 'no crash';
    $server->stop;
};

subtest
    'a signal that comes very often to a worker that waits for its client without code of the application' =>
    sub {
    my $server = start_server( <<'APP', qw(--workers 1) );
use Time::HiRes qw(setitimer ITIMER_REAL);
our $writes;
$SIG{ALRM} = sub { die "a late handler\n" if $writes };
sub {
    my $path = $_[0]{PATH_INFO};
    return sub {
        my $w = $_[0]->( [ 200, [] ] );
        setitimer( ITIMER_REAL, 0.002, 0.002 );
        for ( 1 .. 3 ) {
            eval { local $writes = 1; $w->write( 'x' x 8_000_000 ) };
        }
        setitimer( ITIMER_REAL, 0, 0 );
        eval { $w->close };
    } if $path eq '/stream';
    [ 200, [], ["$$"] ];
}
APP
    my ($pid) = $server->workers;
    my $client = $server->connect;
    $client->send( request('GET /stream') );
    is eval { $server->ask('GET /')->body }, $pid, 'it serves on';
    is join( '', $server->crashes ),         '',   'no crash';
    $server->stop;
    };

done_testing;
