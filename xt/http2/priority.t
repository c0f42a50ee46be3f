use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(time);
use Sirius::Test;
use Sirius::Test::HTTP2;

# Whose bytes go first on a connection (RFC 9218)

# A body of three frames, that comes from the worker at once
my $APP = <<'APP';
sub {
    my ( $path, $priority ) = @{ $_[0] }{qw(PATH_INFO QUERY_STRING)};
    [ 200, [ $priority ? ( Priority => $priority ) : () ], [ 'x' x ( $path eq '/large' ? 100_000 : 40_000 ) ] ];
}
APP

my $server = start_server( $APP, qw(--workers 2), @Sirius::Test::HTTP2::LISTEN );

sub update { my ( $stream, $value ) = @_; return pack( 'N', $stream ) . $value }

# The streams of the DATA frames when all responses are complete before the first byte: "3 3 5 5"
sub order {
    my ( $requests, $then ) = @_;
    my $client = Sirius::Test::HTTP2->new( $server->address )->greet( [ 4, 0x3fffffff ] );
    $client->open( 1, 'GET /large', priority => 'u=0' );
    my ( $got, $until, @order ) = ( 0, time + 10 );
    while ( $got < 65_535 and my $frame = $client->frame( $until - time ) ) {
        $got += length $frame->{payload} if $frame->{type} eq 'DATA';
    }
    $then->( $client, 'before' ) if $then;
    for my $stream ( map { 1 + 2 * $_ } 1 .. @$requests ) {
        my ( $priority, $query ) = split /!/, $requests->[ ( $stream - 3 ) / 2 ];
        $client->open(
            $stream,
            'GET /' . ( $query ? "?$query" : q{} ),
            $priority ? ( priority => $priority ) : ()
        );
        $client->await( 'HEADERS', $stream );
    }
    $then->( $client, 'after' ) if $then;
    $client->send( $client->make( 'WINDOW_UPDATE', 0, 0, pack 'N', 10_000_000 ) );
    my $ends = 0;
    while ( $ends <= @$requests and my $frame = $client->frame( $until - time ) ) {
        next if $frame->{type} ne 'DATA';
        push @order, $frame->{stream} if $frame->{stream} > 1 && length $frame->{payload};
        $ends++ if $frame->{flags} & 1;
    }
    return @order;
}

# In one go, one after the other: "3 5"
sub runs {
    my @order = @_;
    return join q{ }, map { $order[$_] == ( $_ ? $order[ $_ - 1 ] : 0 ) ? () : $order[$_] } 0 .. $#order;
}

is runs( order( [ 'u=5', 'u=1' ] ) ), '5 3', 'the urgent one first';
is runs( order( [ 'u=1', 'u=5' ] ) ), '3 5', 'whenever it came';
is runs( order( [ 'u=2', 'u=7', 'u=0', 'u=2' ] ) ), '7 3 9 5', 'equal ones one after the other';
like runs( order( [ 'u=2, i', 'u=2, i' ] ) ),        qr/3 5 3 5 3/,   'incremental ones take turns';
like runs( order( [ 'u=4, i', 'u=4, i', 'u=1' ] ) ), qr/\A7 3 5 3 5/, 'behind one that is urgent';
like runs( order( [ q{}, q{} ] ) ),                  qr/3 5 3 5 3/,   'as do those that say nothing';
is runs( order( [ 'u=9', 'u' ] ) ), '3 5', 'what is not valid counts as the default';

subtest 'the application' => sub {
    is runs( order( [ 'u=3!u=6',  'u=3' ] ) ),      '5 3', 'says less';
    is runs( order( [ 'u=3',      'u=3!u=0' ] ) ),  '5 3', 'or more urgent';
    is runs( order( [ 'u=3!i=?0', 'u=2' ] ) ),      '5 3', 'or only one of both: the client says the other';
    is runs( order( [ q{!u=5},    q{!u=2, i} ] ) ), '5 3', 'also where the client says nothing';
};

subtest 'PRIORITY_UPDATE' => sub {
    my $send = sub {
        my ( $when, @update ) = @_;
        return sub {
            my ( $client, $now ) = @_;
            $client->send( $client->make( 16, 0, 0, update(@update) ) ) if $now eq $when;
        };
    };
    is runs( order( [ 'u=1', 'u=5' ], $send->( 'after',  5, 'u=0' ) ) ), '5 3', 'of a response that waits';
    is runs( order( [ 'u=1', 'u=5' ], $send->( 'after',  3, 'u=7' ) ) ), '5 3', 'down';
    is runs( order( [ 'u=2', 'u=1' ], $send->( 'after',  5, q{} ) ) ),   '3 5', 'to the default';
    is runs( order( [ 'u=3', q{} ],   $send->( 'before', 5, 'u=1' ) ) ), '5 3', 'before the request';
    my $client = Sirius::Test::HTTP2->new( $server->address )->greet;
    is unpack( 'x[n]N', ( $client->await('SETTINGS')->{payload} =~ /(\0\x09.{4})/s )[0] ), 1,
        'SETTINGS_NO_RFC7540_PRIORITIES';
    $client->send( $client->make( 16, 0, 1, update( 1, 'u=1' ) ) );
    is $client->await('GOAWAY')->{error}, 'PROTOCOL_ERROR', 'on a stream it is an error (RFC 9218 7.1)';
    $client = Sirius::Test::HTTP2->new( $server->address )->greet;
    $client->send( join q{}, map { $client->make( 16, 0, 0, update( 2 * $_ + 1, 'u=1' ) ) } 0 .. 299 );
    $client->open( 1, 'GET /' );
    is $client->await( 'HEADERS', 1 )->{status}, 200, 'nghttp2 forgets those of many streams that never come';
};

$server->stop;
done_testing;
