use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Chunked responses: only to 1.1, only when the length is not known

my $server = start_server( <<'APP', qw(--workers 1) );
package Lines;
sub new { my $class = shift; return bless [@_], $class }
sub getline { return shift @{ $_[0] } }
sub close { }
package main;
my %answer = (
    '/array'   => sub { [ 200, [], [ 'a', 'b', 'c' ] ] },
    '/none'    => sub { [ 200, [], [] ] },
    '/getline' => sub { [ 200, [], Lines->new(qw(one two three)) ] },
    '/empties' => sub { [ 200, [], Lines->new( '', 'one', '', 'two', '' ) ] },
    '/nothing' => sub { [ 200, [], Lines->new ] },
    '/zero'    => sub { [ 200, [], Lines->new('0') ] },
    '/length'  => sub { [ 200, [ 'Content-Length' => 11 ], Lines->new(qw(one two three)) ] },
    '/writer'  => sub { sub { my $w = shift->( [ 200, [] ] ); $w->write($_) for qw(one two three); $w->close } },
    '/wlength' => sub { sub { my $w = shift->( [ 200, [ 'Content-Length' => 6 ] ] ); $w->write($_) for qw(one two); $w->close } },
    '/silent'  => sub { sub { shift->( [ 200, [] ] )->close } },
    '/big'     => sub { [ 200, [], Lines->new( map { chr( 97 + $_ % 26 ) x 100_000 } 1 .. 50 ) ] },
);
sub { my $r = $answer{ $_[0]{PATH_INFO} }; $r ? $r->() : [ 200, [ 'X-Path' => $_[0]{PATH_INFO} ], ['ok'] ] }
APP

sub framing {
    my ( $client, @request ) = @_;
    my $r  = $client->ask(@request);
    my $te = $r->header('Transfer-Encoding');
    my $cl = $r->header('Content-Length');
    return join ' ', $r->status, defined $te ? $te : defined $cl ? $cl : 'close', $r->body;
}

subtest 'HTTP/1.1: a length when it is known, else chunks' => sub {
    my $client = $server->connect;
    is framing( $client, 'GET /array' ),   '200 3 abc',               'array';
    is framing( $client, 'GET /none' ),    '200 0 ',                  'empty array';
    is framing( $client, 'GET /getline' ), '200 chunked onetwothree', 'object with getline';
    is framing( $client, 'GET /empties' ), '200 chunked onetwo',      'empty pieces are skipped';
    is framing( $client, 'GET /nothing' ), '200 chunked ',            'nothing at all';
    is framing( $client, 'GET /zero' ),    '200 chunked 0',           'the string 0';
    is framing( $client, 'GET /length' ),  '200 11 onetwothree',      'the length is told by the application';
    is framing( $client, 'GET /writer' ),  '200 chunked onetwothree', 'writer';
    is framing( $client, 'GET /wlength' ), '200 6 onetwo',            'writer with a length';
    is framing( $client, 'GET /silent' ),  '200 chunked ',            'writer without a write';
    is framing( $client, 'GET /end' ),     '200 2 ok',                'all on one connection';
};

subtest 'HTTP/1.0 gets no chunks: the close is the end' => sub {
    http1_only('HTTP/1.0');
    is framing( $server->connect, 'GET /array HTTP/1.0' ),   '200 3 abc',             'array';
    is framing( $server->connect, 'GET /getline HTTP/1.0' ), '200 close onetwothree', 'object with getline';
    is framing( $server->connect, 'GET /writer HTTP/1.0' ),  '200 close onetwothree', 'writer';
    is framing( $server->connect, 'GET /getline HTTP/1.0', 'Connection: keep-alive' ),
        '200 close onetwothree',
        'even if it asked to be kept';
    is framing( $server->connect, 'GET /length HTTP/1.0', 'Connection: keep-alive' ), '200 11 onetwothree',
        'a length';
};

subtest 'HEAD: the head of GET, no chunk' => sub {
    my $client = $server->connect;
    for my $path (qw(array getline writer zero silent)) {
        is $client->ask("HEAD /$path")->status, 200,  $path;
        is $client->ask('GET /end')->body,      'ok', 'and the next';
    }
};

subtest 'many large pieces' => sub {
    my $answer = $server->ask('GET /big');
    is length $answer->body, 5_000_000,                                                 'all bytes';
    is $answer->body,        join( '', map { chr( 97 + $_ % 26 ) x 100_000 } 1 .. 50 ), 'in order';
};

$server->stop;
done_testing;
