use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# psgix.informational: interim responses before the final one

my $server = start_server( <<'APP', qw(--workers 1) );
my $LINK = [ Link => '</style.css>; rel=preload' ];
my %answer = (
    '/103'    => sub { $_[0]->( 103, $LINK ); [ 200, [], ['ok'] ] },
    '/two'    => sub { $_[0]->( 103, $LINK ); $_[0]->( 102, [] ); [ 200, [], ['ok'] ] },
    '/bad'    => sub { [ 200, [], [ join ',', map { my $code = $_; eval { $_[0]->( $code, [] ); 1 } ? 'sent' : 'died' } 101, 200, 404, 99 ] ] },
    '/why'    => sub { [ 200, [], [ map { eval { $_[0]->( $_, [] ) }; $@ =~ /(the status is.*?) at/ ? "$1\n" : "fine\n" } 100, 101, 102, 199, 200, -1 ] ] },
    '/inject' => sub { eval { $_[0]->( 103, [ "X\r\nY" => 1 ] ) }; eval { $_[0]->( 103, [ X => "1\r\nY: 2" ] ) }; [ 200, [], ['ok'] ] },
    '/late'   => sub {
        my $inform = shift;
        return sub { my $w = shift->( [ 200, [] ] ); eval { $inform->( 103, $LINK ) }; $w->write('ok'); $w->close };
    },
    '/early'  => sub { my $inform = shift; return sub { my $respond = shift; $inform->( 103, $LINK ); $respond->( [ 200, [], ['ok'] ] ) } },
    '/keep'   => sub { our $kept = shift; [ 200, [], ['ok'] ] },
    '/kept'   => sub { our $kept; eval { $kept->( 103, $LINK ) }; [ 200, [], ['ok'] ] },
);
sub { my $env = shift; my $code = $env->{'psgix.informational'}; return [ 200, [], ['none'] ] if !$code; $answer{ $env->{PATH_INFO} }->($code) }
APP

sub asked {
    my ( $client, @request ) = @_;
    my $answer = $client->ask(@request);
    return join ' ', ( map { $_->status } $answer->interim ), $answer->status, $answer->body;
}

subtest 'before the final response' => sub {
    my $client = $server->connect;
    is asked( $client, 'GET /103' ),   '103 200 ok',     'one';
    is asked( $client, 'GET /two' ),   '103 102 200 ok', 'two';
    is asked( $client, 'GET /early' ), '103 200 ok',     'before a delayed response';
    my ($hint) = $client->ask('GET /103')->interim;
    is $hint->header('Link'), '</style.css>; rel=preload', 'its fields';
};

subtest 'it is on the wire before the application returns' => sub {
    my $slow = start_server( <<'APP', qw(--workers 1) );
sub { $_[0]{'psgix.informational'}->( 103, [ Link => '</a>' ] ); sleep 2; [ 200, [], ['ok'] ] }
APP
    my $client = $slow->connect;
    $client->send( request('GET /') );
    like $client->some( 20, 1 ), qr/\AHTTP\/1\.1 103 /, 'within a second';
    is $client->response->status, 200, 'then the response';
    $slow->stop;
};

subtest 'after the final head nothing goes on the wire, a warning is logged' => sub {
    my $client = $server->connect;
    is asked( $client, 'GET /late' ), '200 ok', 'nothing';
    ok $server->wait_log(qr/informational/i), 'a warning';
    is asked( $client, 'GET /103' ), '103 200 ok', 'the connection goes on';
};

subtest 'one that was kept from a request before' => sub {
    my $client = $server->connect;
    is asked( $client, 'GET /keep' ), '200 ok', 'kept';
    is asked( $client, 'GET /kept' ), '200 ok', 'says nothing in the next';
};

subtest 'a field that frees the sub which is sending it, or its list, when it is made text' => sub {
    my $freed = start_server( <<'APP', qw(--workers 1) );
package Frees { use overload '""' => sub { $_[0][0]->(); '</a>' }, fallback => 1; sub new { bless [ $_[1] ] } }
sub {
    my $env = shift;
    our $list = [ Link => Frees->new( sub { undef our $list } ), X => 1 ];
    $list = [ Link => Frees->new( sub { %$env = (); our @more = map { my $n = $_; sub {$n} } 1 .. 100 } ) ]
        if $env->{PATH_INFO} eq '/sub';
    $env->{'psgix.informational'}->( 103, $list );
    return [ 200, [], ['ok'] ];
}
APP
    for my $path ( ('/sub') x 5, ('/list') x 5 ) {
        my $answer = $freed->ask("GET $path");
        is join( ' ', map( { $_->status, $_->header('Link') } $answer->interim ), $answer->body ),
            '103 </a> ok', $path;
    }
    unlike $freed->log, qr/informational/, 'no warning';
    $freed->stop;
};

subtest 'fields that do not fit into one piece' => sub {
    my $large = start_server( <<'APP', qw(--workers 1) );
sub { my $env = shift;
    $env->{'psgix.informational'}->( 103, [ map { ( "X-Hint-$_" => 'h' x 1000 ) } 1 .. 30 ] ) for 1 .. 2;
    return [ 200, [ map { ( "X-Last-$_" => 'l' x 1000 ) } 1 .. 30 ], ['ok'] ] }
APP
    my $answer = $large->ask('GET /');
    my @hints  = $answer->interim;
    is scalar @hints, 2, 'two interim responses';
    is scalar( grep { length $hints[1]->header("X-Hint-$_") == 1000 } 1 .. 30 ), 30,
        'the second has its fields';
    is scalar( $hints[1]->names ),                                      30, 'and those alone';
    is scalar( grep { defined $answer->header("X-Last-$_") } 1 .. 30 ), 30, 'the response has its own';
    is scalar( grep { defined $answer->header("X-Hint-$_") } 1 .. 30 ), 0,  'and none of theirs';
    $large->stop;
};

subtest 'what is no interim response' => sub {
    like asked( $server->connect, 'GET /bad' ), qr/\A200 /, 'codes that are none never reach the wire';
    my $allowed = 'expected 102 to 199';
    is asked( $server->connect, 'GET /why' ),
        "102 199 200 fine\nthe status is 101, $allowed\nfine\nfine\n"
        . "the status is 200, $allowed\nthe status is -1, $allowed\n",
        'it is said what is allowed; 100 is the server\'s to send, and ignored';
    my $answer = $server->ask('GET /inject');
    is $answer->status,                                     200, 'no field can be injected';
    is scalar( grep { $_->header('Y') } $answer->interim ), 0,   'in no way';
};

subtest 'HTTP/1.0 has none' => sub {
    http1_only('HTTP/1.0');
    my $client = $server->connect;
    like asked( $client, 'GET /103 HTTP/1.0' ), qr/\A200 (?:ok|none)\z/, 'nothing is sent';
};

$server->stop;
done_testing;
