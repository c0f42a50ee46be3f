use strict;
use warnings;
use File::Temp ();
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Requests that come before the answer to the last one: each its own answer, in order, with exactly its body

my $server = start_server( corpus_file('echo.psgi'), qw(--workers 1) );
my @METHOD = qw(GET POST PUT DELETE PATCH OPTIONS PROPFIND M-SEARCH REPORT);

subtest 'every method, with a body and without, split everywhere' => sub {
    my ( $bytes, @body, @head ) = ('');
    for my $method ( @METHOD, 'HEAD' ) {
        $bytes .= request("$method /$method") . request( "$method /with", \"<$method>" );
        push @body, $method eq 'HEAD' ? ( '', '' ) : ( "$method /$method []", "$method /with [<$method>]" );
        push @head, ( $method eq 'HEAD' ) x 2;
    }
    my @job = every_delivery(
        $server, 'all are answered', $bytes, join( ' ', ('200') x @body, 'after' ),
        answers => scalar @body,
        head    => \@head,
        $ENV{SIRIUS_TEST_H2} ? ( at_once => 20 ) : ()    # all of each are in the queue, which takes 1024
    );
    my @wrong = grep {
        join( '|', map { $_->body } @{ $_->{responses} } ) ne join '|', @body, 'GET /after []'
    } @job;
    is scalar @wrong, 0, 'with their own bodies, in order'
        or diag join "\n", map { $_->body } @{ $wrong[0]{responses} };
};

subtest 'a chunked body between two others' => sub {
    my $chunked
        = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n";
    my $bytes = request( 'POST /a', \'one' ) . $chunked . request('GET /b');
    my @job   = every_delivery( $server, 'three answers', $bytes, '200 200 200 after', answers => 3 );
    my %body  = map {
        join( '|', map { $_->body } @{ $_->{responses} }[ 0 .. 2 ] ) => 1
    } @job;
    is join( "\n", keys %body ), 'POST /a [one]|POST /c [abcde]|GET /b []', 'the same each time';
};

subtest 'a thousand requests in one write' => sub {
    my $client = $server->connect;
    $client->send( join '',
        map { $_ % 3 ? request("GET /$_") : request( "POST /$_", \"body $_" ) } 1 .. 1000 );
    my @got  = map { $_->body } $client->responses(1000);
    my @want = map { $_ % 3 ? "GET /$_ []" : "POST /$_ [body $_]" } 1 .. 1000;
    is_deeply \@got, \@want, 'a thousand answers in order';
    is $client->ask('GET /one-more')->body, 'GET /one-more []', 'and the connection goes on';
};

subtest 'the rest of a request comes later' => sub {
    my $client = $server->connect;
    $client->send( request('GET /1') . request('GET /2') . "GET /3 HTTP/1.1\r\nHo" );
    is join( ' ', map { $_->body } $client->responses(2) ), 'GET /1 [] GET /2 []',
        'what is whole is answered';
    $client->send("st: a\r\n\r\n");
    is $client->response->body, 'GET /3 []', 'the third when it is';
};

subtest 'a refused request ends the connection, what was before it is answered' => sub {
    every_delivery(
        $server,
        'two answers, 400, close',
        request('GET /1') . request( 'POST /2', \'x' ) . "BAD\r\n\r\n" . request('GET /smuggled'),
        '200 200 400 closed',
        answers => 3
    );
};

subtest 'one client with many requests does not keep another waiting' => sub {
    my $go    = File::Temp->newdir;
    my $alone = start_server( <<"APP", qw(--workers 1) );
my \$n = 0;
sub {
    \$n++;
    select undef, undef, undef, 0.01 until \$n != 3 || -e '$go/go';
    return [ 200, [], [\$n] ];
};
APP
    my $busy = $alone->connect;
    $busy->send( request('GET /busy') x 3000, 0.2 );
    $alone->wait_busy(1);
    my $others
        = $ENV{SIRIUS_TEST_H2} ? 97 : 0;   # of 100 streams two are over and one runs; the others wait as well
    $alone->wait_waiting($others);
    my $other = $alone->connect;
    $other->send( request('GET /other') );
    $alone->wait_waiting( $others + 1 );
    spew( "$go/go", '' );
    my $next
        = $ENV{SIRIUS_TEST_H2}
        ? 50
        : 4;    # there the worker has as many at hand as take 300 us (src/edge/turns.c)
    cmp_ok $other->response->body, '<=', $next, 'the other is the next';
    my @rest = $busy->responses(3000);
    is scalar( grep { $_->status eq '200' } @rest ), 3000, 'and the first in full';
    like join( q( ), map { $_->body } @rest[ 2, 3 ] ), $ENV{SIRIUS_TEST_H2} ? qr/\A3 [45]\z/ : qr/\A3 5\z/,
        'before and behind it';
    $alone->stop;
};

$server->stop;
done_testing;
