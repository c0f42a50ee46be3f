use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# Delayed responses and the writer: what is written is on the wire when write returns; no hang when nobody
# reads

my $dir    = File::Temp->newdir;
my $server = start_server( <<'APP' =~ s/DIR/$dir/r, qw(--workers 2 --write-timeout 2) );
use Time::HiRes qw(sleep time);
sub seen {    # by the client
    my ( $file, $until ) = ( "DIR/$_[0]", time + 20 );
    while ( !-e $file ) {
        if ( time > $until ) { warn "not seen: $_[0]\n"; last }
        sleep 0.002;
    }
    return;
}
my %answer = (
    '/delayed' => sub { my $respond = shift; sleep 0.1; $respond->( [ 200, [], ['delayed'] ] ) },
    '/nested'  => sub { my $respond = shift; ( sub { ( sub { $respond->( [ 200, [], [ 'nested' ] ] ) } )->() } )->() },
    '/file'    => sub { my $respond = shift; open my $fh, '<', __FILE__ or die $!; $respond->( [ 200, [], $fh ] ) },
    '/events'  => sub {
        my $writer = shift->( [ 200, [ 'Content-Type' => 'text/event-stream' ] ] );
        for my $n ( 1 .. 10 ) {
            $writer->write("$n\n");
            seen("event-$n");
        }
        $writer->close;
    },
    '/gone' => sub {
        my $writer = shift->( [ 200, [ 'X-Pid' => $$ ] ] );
        my $n      = 0;
        while ( $writer->write( 'x' x 65_536 ) ) { $n++; last if $n > 10_000; sleep 0.001 }
        warn "write was false after $n\n" if $n <= 10_000;
        $writer->close;
    },
    '/true' => sub {
        my $writer = shift->( [ 200, [] ] );
        my $true   = $writer->write('x') ? 1 : 0;
        $writer->write($true);
        $writer->close;
    },
    '/large' => sub {
        my $writer = shift->( [ 200, [] ] );
        $writer->write( chr( 97 + $_ ) x 1_000_000 ) for 0 .. 19;
        $writer->close;
    },
    '/unclosed' => sub { my $writer = shift->( [ 200, [] ] ); $writer->write('unclosed'); return },
    '/head'     => sub { my $writer = shift->( [ 200, [ 'X-Early' => 1 ] ] ); seen('head'); $writer->write('late'); $writer->close },
);
sub {
    my $env = shift;
    my $answer = $answer{ $env->{PATH_INFO} };
    return [ 200, [], ['plain'] ] if !$answer;
    return $answer;
}
APP

subtest 'delayed responses' => sub {
    my $client = $server->connect;
    is $client->ask('GET /delayed')->body, 'delayed', 'later';
    is $client->ask('GET /nested')->body,  'nested',  'from inside';
    like $client->ask('GET /file')->body, qr/X-Early/, 'a file';
    is $client->ask('GET /')->body, 'plain', 'the connection goes on';
};

subtest 'each event is on the wire when it is written' => sub {
    my $client = $server->connect;
    $client->send( request('GET /events') );
    my @event;
    my $until = time + 60;
    while ( @event < 10 && time < $until ) {
        my $more = $client->some( 1, 30 );
        last if $more eq '';
        for my $n ( $more =~ /^(\d+)\n\r$/mg ) {
            push @event, $n;
            spew( "$dir/event-$n", '' );
        }
    }
    is scalar @event, 10, 'ten events';
    is_deeply \@event, [ 1 .. 10 ], 'in their order';
    unlike $server->log, qr/not seen: event/, 'each before the next is written';
};

subtest 'the head goes out before the first piece' => sub {
    my $client = $server->connect;
    $client->send( request('GET /head') );
    like $client->some(10), qr/^X-Early: 1\r$/m, 'the head';
    spew( "$dir/head", '' );
    like $client->some(10), qr/late/, 'the piece';
};

subtest 'write says whether the client is there' => sub {
    is $server->ask('GET /true')->body, 'x1', 'true while it is';
    for my $how (qw(abort close)) {
        my $client = $server->connect;
        $client->send( request('GET /gone') );
        $client->some( 1, 5 );
        $client->$how;
        my $count = my @before = $server->log =~ /write was false/g;
        ok $server->wait_log( qr/(?:write was false.*){@{[ $how eq 'abort' ? 1 : 2 ]}}/s, 6 ),
            "false after $how";
    }
};

subtest 'a client that does not read stops a writer only until the write timeout' => sub {
    my @silent = map { $server->connect( rcvbuf => 4096 ) } 1 .. 2;
    $_->send( request('GET /gone') ) for @silent;
    ok $server->wait_log( qr/(?:write was false.*){4}/s, 12 ), 'false for both';
    is $server->ask('GET /')->body, 'plain', 'the workers are free again';
};

subtest 'large pieces' => sub {
    my $answer = $server->ask('GET /large');
    is length $answer->body, 20_000_000,                                             'all of them';
    is $answer->body,        join( '', map { chr( 97 + $_ ) x 1_000_000 } 0 .. 19 ), 'in order';
};

subtest 'a writer that is never closed' => sub {
    like $server->ask('GET /unclosed')->status, qr/\A(?:200|cut)\z/, 'does not hang';
    is $server->ask('GET /')->body, 'plain', 'the server goes on';
};

# There is nothing to be sent that would tell that the client has gone
subtest 'a body that goes on without bytes' => sub {
    my $app = <<'APP';
package Silent { sub getline { my $self = shift; return $self->{n}-- > 0 ? '' : $self->{n} == -1 ? 'late' : undef } sub close { warn "closed with @{[ $_[0]{n} > 0 ? 'some' : 'none' ]} left\n" } }
sub {
    my ( undef, $how, $n ) = split m{/}, $_[0]{PATH_INFO};
    return [ 200, [], ['plain'] ] if !$how;
    return [ 200, [ 'Content-Length' => 4 ], bless { n => $n }, 'Silent' ] if $how eq 'length';
    return [ 200, [], bless { n => $n }, 'Silent' ] if $how eq 'object';
    return sub {
        my $writer = shift->( [ 200, [] ] );
        for ( 1 .. $n ) { $writer->write('') or last }
        my $late = $writer->write('late');
        $writer->close;
        warn "closed with some left\n" if !$late;
    };
}
APP
    my $own = start_server( $app, qw(--workers 1) );
    for my $how (qw(object length writer)) {
        my $client = $own->connect;
        $client->send( request("GET /$how/200000") );
        $client->finish if $how ne 'writer' && !$ENV{SIRIUS_TEST_H2};    # there a client needs both sides
        is $client->response( patience => 30 )->body, 'late',
            "$how: a client gets what comes late, also one that has ended its side";
        for my $end (qw(abort close)) {
            my $before = () = $own->log =~ /closed with some left/g;
            $client = $own->connect;
            $client->send( request("GET /$how/1000000000") );
            ok until_true( 10, sub { $client->begins } ), 'the head is sent, though no bytes follow';
            $client->$end;
            ok $own->wait_log( qr/(?:closed with some left.*){@{[ $before + 1 ]}}/s, 30 ), "$end: it stops";
            is $own->ask('GET /')->body, 'plain', 'and the worker is free';
        }
    }
    my $client = $own->connect;
    $client->send( request('GET /object/1000000000') );
    ok until_true( 10, sub { $client->begins } ), 'one more';
    $client->close;
    $own->stop;
};

$server->stop;
done_testing;
