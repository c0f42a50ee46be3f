use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# A response that is complete is sent and over, whatever the application does behind it. It goes on here until
# the test lets it go, 30 s at most, so a response that waits for the end of the call is not there in time.

$Sirius::Test::Client::PATIENCE *= 0.6;
my $dir = File::Temp->newdir;
local $ENV{ANSWERED_DIR} = "$dir";
spew( "$dir/file.txt", 'f' x 300_000 );
my $APP = <<'APP';
use Time::HiRes qw(sleep time);
package Lines {
    sub new { my ( $class, @lines ) = @_; return bless [@lines], $class }
    sub getline { my $self = shift; my $next = shift @$self; return ref $next ? $next->() : $next }
    sub close { }
}
my $dir = $ENV{ANSWERED_DIR};
my $go;
my $wait = sub { my $until = time + 30; sleep 0.02 while !-e "$dir/$go" && time < $until; return };
my %give = (
    array    => sub { $_[0]->( [ 200, [], [ 'a', 'rray' ] ] ) },
    nothing  => sub { $_[0]->( [ 200, [], [] ] ) },
    large    => sub { $_[0]->( [ 200, [], [ ( 'l' x 1_000_000 ) x 12 ] ] ) },
    file     => sub { open my $fh, '<', "$dir/file.txt" or die; $_[0]->( [ 200, [], $fh ] ) },
    object   => sub { $_[0]->( [ 200, [], Lines->new( 'ob', 'ject' ) ] ) },
    objects  => sub { $_[0]->( [ 200, [], Lines->new( ('o' x 1_000_000) x 12 ) ] ) },
    writer   => sub { my $w = $_[0]->( [ 200, [] ] ); $w->write('writer'); $w->close },
    length   => sub { my $w = $_[0]->( [ 200, [ 'Content-Length' => 6 ] ] ); $w->write('length'); $w->close },
    status   => sub { $_[0]->( [ $_[1], [], [] ] ) },
    close    => sub { $_[0]->( [ 200, [ Connection => 'close' ], ['close'] ] ) },
    broken   => sub { $_[0]->( [ 200, [], Lines->new( 'begun', sub { die "in the middle\n" } ) ] ) },
    useless  => sub { $_[0]->( [ 'x', [], [] ] ) },
);
sub {
    my $env = shift;
    my ( undef, $what, $then ) = split m{/}, $env->{PATH_INFO};
    $go = $env->{HTTP_X_GO};
    return [ 200, [], ["$$"] ] if !$what;
    return [ 200, [], Lines->new( ('s' x 1_000_000) x 12, sub { $wait->(); 'end' } ) ] if $what eq 'slow';
    return sub {
        my $respond = shift;
        $give{$what}->( $respond, $env->{QUERY_STRING} );
        die "behind the response\n" if $then && $then eq 'die';
        exit 0 if $then && $then eq 'exit';
        if ( $then && $then eq 'twice' ) { eval { $respond->( [ 201, [], ['twice'] ] ) }; warn "again: $@" }
        $wait->();
    };
}
APP

my %want = (
    array        => [ 200, 'array' ],
    nothing      => [ 200, '' ],
    large        => [ 200, l => 12_000_000 ],
    file         => [ 200, f => 300_000 ],
    object       => [ 200, 'object' ],
    objects      => [ 200, o => 12_000_000 ],
    writer       => [ 200, 'writer' ],
    length       => [ 200, 'length' ],
    'status?204' => [ 204, '' ],
    'status?304' => [ 304, '' ],
    useless      => [ 500, "Internal Server Error\n" ],
);

# Each call waits for a file of its own
my $calls = 0;
sub let_go { spew( "$dir/go.$calls", '' ); return }
sub hold   { $calls++;                     return "X-Go: go.$calls" }

# The connection must be the server's again: another worker serves its next request meanwhile
for my $limit ( [], [qw(--request-timeout 2 --stream-timeout 2)] ) {
    subtest "the client gets all of it while the application goes on @$limit" => sub {
        my $server = start_server( $APP, qw(--workers 2), @$limit );
        for my $what ( sort keys %want ) {
            for my $method (qw(GET HEAD)) {
                my $client = $server->connect;
                my $answer = $client->ask( "$method /$what", hold() );
                my ( $status, $body, $length ) = @{ $want{$what} };
                is $answer->status, $status, "$method $what";
                ok $answer->body eq ( $length ? $body x $length : $body ), 'its body' if $method eq 'GET';
                my $next = $client->ask('GET /');
                is $next->status, 200, 'the next request on the same connection' or diag $server->log;
                let_go();
            }
        }
        $server->stop;
    };
}

subtest 'one that ends with its connection' => sub {
    my $server = start_server( $APP, qw(--workers 1) );
    http1_only('a response ends its stream');
    for my $request ( 'GET /writer HTTP/1.0', 'GET /close', 'GET /large HTTP/1.0', 'GET /array HTTP/1.0' ) {
        my $client = $server->connect;
        my $answer = $client->ask( $request, hold() );
        is $answer->status, 200,   $request;
        is $client->end(8), 'eof', 'and the end';
        let_go();
        is $server->ask('GET /')->status, 200, 'the worker is free again';
    }
    my $client = $server->connect;
    is $client->ask( 'GET /broken', hold() )->status, 'cut', 'one that is cut is cut at once';
    let_go();
    $server->stop;
};

subtest 'bytes of a body that is read line by line' => sub {
    my $server = start_server( $APP, qw(--workers 1) );
    my $client = $server->connect;
    $client->send( request( 'GET /slow', hold() ) );
    my $got = $client->some( 12_000_000, 10 );
    cmp_ok length $got, '>', 12_000_000, 'are sent while it waits for the next line';
    let_go();
    like $client->rest(1), qr/end\r\n0\r\n\r\n\z/, 'which comes then';
    $server->stop;
};

subtest 'the log' => sub {
    my $log    = "$dir/access.log";
    my $server = start_server( $APP, qw(--workers 1 --access-log), $log );
    my $client = $server->connect;
    $client->ask( 'GET /array', hold() );
    my $lines = sub { open my $fh, '<', $log or return ''; local $/ = undef; return scalar <$fh> };
    ok until_true( 8, sub { $lines->() =~ m{"GET /array HTTP/(?:1\.1|2\.0)" 200 } } ),
        'has its line meanwhile';
    let_go();
    $server->stop;
};

subtest 'what the application does behind it' => sub {
    my $server = start_server( $APP, qw(--workers 1) );
    my $go     = hold();
    let_go();
    my $client = $server->connect;
    is $client->ask( 'GET /large/die', $go )->status, 200, 'it dies';
    ok $server->wait_log(qr{GET /large/die from .*: the application died: behind the response}),
        'the log says so';
    is $client->ask( 'GET /array/twice', $go )->body, 'array', 'it calls the responder again';
    ok $server->wait_log(qr/again: the responder was called twice/), 'which dies';
    is $client->ask( 'GET /file', $go )->status, 200, 'the connection goes on';
    my $last = $server->connect;
    is length $last->ask( 'GET /large/exit', $go )->body, 12_000_000, 'it exits: nothing is lost';
    $server->stop;
};

done_testing;
