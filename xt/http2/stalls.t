use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::HTTP2;

# A client that stops within one stream: neither its other streams nor a worker wait for it

my $APP = <<'APP';
sub {
    my $path = $_[0]{PATH_INFO};
    return [ 200, [], [ 'x' x 500_000 ] ] if $path eq '/whole';
    return [ 200, [ 'Content-Length' => 0 ], [] ] if $path eq '/empty';
    return [ 200, [], [ $_[0]{CONTENT_LENGTH} // '' ] ] if $path !~ m{\A/(?:exact|written)\z};
    sub {
        my $w = $_[0]->( [ 200, [] ] );
        if ( $path eq '/exact' ) {
            $w->write( 'x' x 65_535 );
            select undef, undef, undef, 0.2;    # so that the end comes alone
            return $w->close;
        }
        $w->write( 'x' x 10_000 ) for 1 .. 100;
        $w->close;
    };
}
APP

my $server
    = start_server( $APP, qw(--workers 1 --write-timeout 1 --body-timeout 1), @Sirius::Test::HTTP2::LISTEN );

sub greeted { return Sirius::Test::HTTP2->new( $server->address )->greet(@_) }

sub widen {
    my ( $client, $stream, $by ) = @_;
    return $client->send( $client->make( 'WINDOW_UPDATE', 0, $stream, pack 'N', $by ) );
}

# How these streams end: "3 end, 1 INTERNAL_ERROR"
sub ends {
    my ( $client, @streams ) = @_;
    my %wanted = map { $_ => 1 } @streams;
    my @ends;
    my $until = time + 10;
    while ( @ends < @streams and my $frame = $client->frame( $until - time ) ) {
        my $id = $frame->{stream};
        next if !$wanted{$id};
        push @ends, "$id $frame->{error}" if $frame->{type} eq 'RST_STREAM';
        push @ends, "$id end"             if $frame->{type} eq 'DATA' && $frame->{flags} & 1;
    }
    return join ', ', @ends;
}

subtest 'a worker that writes to it' => sub {
    my $client = greeted( [ 4, 1000 ] );    # SETTINGS_INITIAL_WINDOW_SIZE
    $client->open( 1, 'GET /written' );
    is length $client->await( 'DATA', 1 )->{payload}, 1000, 'as much comes as there is room for';
    $client->open( 3, 'GET /' );
    is ends( $client, 1, 3 ), '1 INTERNAL_ERROR, 3 end', 'it is cut off, and the worker goes on';
    $client->open( 5, 'GET /' );
    is ends( $client, 5 ), '5 end', 'the connection goes on as well';
};

subtest 'a response that is complete' => sub {
    my $client = greeted( [ 4, 1000 ] );
    $client->open( 1, 'GET /whole' );
    is length $client->await( 'DATA', 1 )->{payload}, 1000, 'as much comes as there is room for';
    my ( $others, $end, $id ) = ( 0, '', 1 );
    my $until = time + 20;
    $client->open( $id += 2, 'GET /' );
    while ( !$end and my $frame = $client->frame( $until - time ) ) {
        $end = $frame->{error} if $frame->{type} eq 'RST_STREAM' && $frame->{stream} == 1;
        next                   if $frame->{type} ne 'DATA' || !( $frame->{flags} & 1 );
        $others++;
        sleep 0.05;
        $client->open( $id += 2, 'GET /' );
    }
    is $end, 'INTERNAL_ERROR', 'it is cut off while others of the connection move';
    cmp_ok $others, '>', 0, "$others others were answered meanwhile";
};

subtest 'a response of which only the end is missing' => sub {
    my $client = greeted( [ 4, 0 ] );
    $client->open( 1, 'GET /empty' );
    is ends( $client, 1 ), '1 INTERNAL_ERROR', 'is cut off where nothing else moves';
    my $all = greeted( [ 4, 100_000 ] );
    $all->open( 1, 'GET /exact' );
    my $bytes = 0;
    while ( $bytes < 65_535 and my $frame = $all->frame ) {
        $bytes += length $frame->{payload} if $frame->{type} eq 'DATA';
    }
    is $bytes, 65_535, 'as much as the window of the connection';
    ok $all->ends, 'which is closed';
};

subtest 'a client that takes little' => sub {
    my $client = greeted( [ 4, 1000 ] );
    $client->open( 1, 'GET /whole' );
    for ( 1 .. 25 ) {
        widen( $client, 1, 1 );
        sleep 0.1;
    }
    widen( $client, $_, 1_000_000 ) for 0, 1;
    is ends( $client, 1 ), '1 end', 'is waited for as long as it takes something';
};

subtest 'one that waits for others of its connection' => sub {
    my $client = greeted( [ 4, 0x3fffffff ] );
    $client->open( 1, 'GET /whole', priority => 'u=0' );
    $client->await( 'HEADERS', 1 );
    $client->open( 3, 'GET /whole', priority => 'u=7' );
    for ( 1 .. 25 ) {
        widen( $client, 0, 1000 );
        sleep 0.1;
    }
    widen( $client, 0, 10_000_000 );
    is ends( $client, 1, 3 ), '1 end, 3 end', 'has all the time';
};

subtest 'a client that takes nothing of its connection' => sub {
    my $client = greeted( [ 4, 0x3fffffff ] );
    $client->open( $_, 'GET /whole' ) for 1, 3;
    ok $client->ends, 'is closed';
};

subtest 'a body that does not come' => sub {
    my $client = greeted();
    $client->open( 1, 'POST /', 'content-length' => 10 );
    $client->send( $client->make( 'DATA', 0, 1, 'x' ) );
    $client->open( 3, 'GET /' );
    is ends( $client, 3 ), '3 end', 'another stream does not wait for it';
    my $frame = $client->await( 'HEADERS', 1 );
    like $frame->{payload}, qr/408|\x08\x03/s, 'it gets 408';
    is ends( $client, 1 ), '1 end', 'and ends';
    $client->open( 5, 'GET /' );
    is ends( $client, 5 ), '5 end', 'alone';
};

$server->stop;
done_testing;
