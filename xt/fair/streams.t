use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::HTTP2;

# The streams of one HTTP/2 connection wait in a line of their own, of which the connections take turns: one
# client's hundred streams do not stand before another's first

my $APP = <<'APP';
use Fcntl qw(O_APPEND O_CREAT O_WRONLY);
use Time::HiRes qw(sleep time);
sub {
    my ( $path, $who ) = @{ $_[0] }{qw(PATH_INFO QUERY_STRING)};
    my $until = time + 60;
    if ( $path eq '/hold' ) { sleep 0.005 while !-e "$ENV{STREAMS_DIR}/go" && time < $until }
    sysopen my $fh, "$ENV{STREAMS_DIR}/order", O_APPEND | O_CREAT | O_WRONLY or die $!;
    syswrite $fh, "$who\n";
    sleep 0.01;    # so that a worker that stands still for a moment is not overtaken by many
    [ 200, [], [$who] ];
}
APP

my $DIR;

# What may begin out of order: what two workers take at the same moment, and what was queued while both were
# busy
use constant NEIGHBOURS => 8;

# A server both of whose workers are busy until go()
sub busy_server {
    my @args = @_;
    $DIR = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    local $ENV{STREAMS_DIR} = "$DIR";
    my $server = start_server( $APP, qw(--workers 2), @Sirius::Test::HTTP2::LISTEN, @args );
    my @hold   = map { $server->connect } 1, 2;
    $_->send( request('GET /hold?hold') ) for @hold;
    $server->wait_busy( 2, qr{/hold} );
    return ( $server, @hold );
}

sub go { return spew( "$DIR/go", '' ) }

sub order {
    open my $fh, '<', "$DIR/order" or return;
    return map { /\A(\w+?)(\d+)\n/ ? [ $1, $2 ] : () } readline $fh;
}

sub client { return Sirius::Test::HTTP2->new( shift->address ) }

sub begin {
    my ( $client, $name, $count, $path, $priority ) = @_;
    return map {
        $client->begin( 'GET ' . ( $path || q{/} ) . "?$name$_", $priority && { priority => $priority } )
    } 1 .. $count;
}

# "200" if all have that
sub statuses {
    my %status = map { ( $_->{status} // $_->{error} // 'none' ) => 1 } @_;
    return join q{ }, sort keys %status;
}

sub place {
    my ( $name, @order ) = @_;
    return ( grep { $order[$_][0] eq $name } 0 .. $#order )[0] // 'none';
}

# How far the clients of these names are from having had the same number of turns, while all of them wait
sub uneven {
    my ( $each, @order ) = @_;
    my ( %count, $worst );
    $worst = 0;
    for (@order) {
        next if !exists $each->{ $_->[0] };
        $count{ $_->[0] }++;
        last if grep { ( $count{$_} // 0 ) == $each->{$_} } keys %$each;
        my @n = sort { $a <=> $b } map { $count{$_} // 0 } keys %$each;
        $worst = $n[-1] - $n[0] if $n[-1] - $n[0] > $worst;
    }
    return $worst;
}

subtest 'one with many streams beside two with one' => sub {
    my ( $server, @hold ) = busy_server();
    my ( $greedy, $modest ) = map { client($server) } 1, 2;
    my @many = begin( $greedy, 'greedy', 100 );
    ok $server->wait_waiting(100), 'a hundred wait';
    my ($one) = begin( $modest, 'modest', 1 );
    ok $server->wait_waiting(101), 'then one of another client';
    my $plain = $server->connect;
    $plain->send( request('GET /?plain1') );
    ok $server->wait_waiting(102), 'and one by HTTP/1.1';
    go();
    is $plain->response->status,           '200', 'it is answered';
    is statuses( $modest->finish($one) ),  '200', 'the other one, too';
    is statuses( $greedy->finish(@many) ), '200', 'and all the others';
    my @order = order();
    cmp_ok place( 'modest', @order ), '<=', NEIGHBOURS, 'the one is among the first' or diag explain \@order;
    cmp_ok place( 'plain',  @order ), '<=', NEIGHBOURS, 'and so is that by HTTP/1.1';
    my @greedy = map { $_->[0] eq 'greedy' ? $_->[1] : () } @order;
    is scalar @greedy, 100, 'each of the hundred has run once';
    my @worst = sort { $b <=> $a } map { $_ + 1 - $greedy[$_] } 0 .. $#greedy;
    cmp_ok $worst[0], '<=', NEIGHBOURS, 'in the order in which they came';
    $server->stop;
};

subtest 'several with many take turns' => sub {
    my ( $server, @hold ) = busy_server();
    my %client = map { $_ => client($server) } qw(a b c);
    my ( %many, $n );
    for ( sort keys %client ) {
        $many{$_} = [ begin( $client{$_}, $_, 40 ) ];
        $server->wait_waiting( $n += 40 );
    }
    go();
    is statuses( $client{$_}->finish( @{ $many{$_} } ) ), '200', "$_ is answered" for sort keys %client;
    cmp_ok uneven( { a => 40, b => 40, c => 40 }, order() ), '<=', NEIGHBOURS, 'one after the other';
    $server->stop;
};

subtest 'priorities' => sub {
    my ( $server, @hold ) = busy_server();
    my ( $greedy, $modest ) = map { client($server) } 1, 2;
    my @many = (
        begin( $greedy, 'low',  20, undef, 'u=6' ),
        begin( $greedy, 'high', 20, undef, 'u=0' ),
        begin( $greedy, 'mid',  20 )
    );
    ok $server->wait_waiting(60), 'sixty of one client wait';
    my ($one) = begin( $modest, 'modest', 1, undef, 'u=7' );
    ok $server->wait_waiting(61), 'then one of another client';
    go();
    is statuses( $modest->finish($one) ),  '200', 'it is answered';
    is statuses( $greedy->finish(@many) ), '200', 'and all the others';
    my @order = order();
    cmp_ok place( 'modest', @order ), '<=', NEIGHBOURS,
        'none is too urgent for the other one to be among the first';
    my @last = map {
        my $name = $_;
        ( grep { $order[$_][0] eq $name } 0 .. $#order )[-1]
    } qw(high mid low);
    cmp_ok $last[0], '<', 40,              'the urgent ones come first';
    cmp_ok $last[1], '>', 40 - NEIGHBOURS, 'then those that say nothing';
    cmp_ok $last[2], '>', 60 - NEIGHBOURS, 'then the others';
    $server->stop;
};

subtest 'who leaves while it waits' => sub {
    my ( $server, @hold ) = busy_server();
    my $client = client($server)->greet;
    $client->open( 2 * $_ - 1, "GET /?cancelled$_" ) for 1 .. 50;
    ok $server->wait_waiting(50), 'fifty wait';
    my $other = client($server);
    my @kept  = begin( $other, 'kept', 20 );
    my $ended = client($server);
    begin( $ended, 'ended', 20 );
    ok $server->wait_waiting(90), 'and twenty of each of two others';
    $client->send( $client->make( 'RST_STREAM', 0, 2 * $_ - 1, pack 'N', 8 ) ) for 11 .. 50;
    close $ended->{socket};
    ok until_true( 10, sub { $server->board->{connections}{waiting} == 30 } ),
        'those that are cancelled leave, and those of a connection that is closed'
        or diag $server->board->{connections}{waiting};
    go();
    is statuses( $other->finish(@kept) ), '200', 'the others are answered';
    ok until_true( 10, sub { $server->board->{connections}{waiting} == 0 } ), 'nobody waits any more';
    my %ran = map { ( "$_->[0]$_->[1]" => 1 ) } order();
    is scalar( grep {/kept/} keys %ran ),                                            20, 'and have run';
    is join( q{ }, sort grep { /ended/ || /cancelled(\d+)/ && $1 > 10 } keys %ran ), '', 'no other has';
    $server->stop;
};

subtest 'limits' => sub {
    my ( $server, @hold ) = busy_server(qw(--queue-timeout 1 --max-queue 50));
    my $client = client($server);
    my @many   = begin( $client, 'late', 60 );
    $client->finish(@many);
    is statuses(@many), '503', 'all that wait too long, or find the queue full, are told';
    my $refused = $server->board->{connections};
    is $refused->{waiting}, 0, 'nobody waits any more';
    go();
    is statuses( $client->finish( begin( $client, 'next', 1 ) ) ), '200', 'the connection goes on';
    is scalar( grep { $_->[0] eq 'late' } order() ),               0,     'none of them has run';
    $server->stop;
};

subtest 'a graceful stop' => sub {
    my ( $server, @hold ) = busy_server();
    my $client = client($server);
    my @many   = begin( $client, 'many', 50 );
    ok $server->wait_waiting(50), 'fifty wait';
    $server->signal('TERM');
    go();
    is statuses( $client->finish(@many) ), '200', 'and are answered';
    ok $server->wait_exit, 'before the end';
};

subtest 'a fast stop' => sub {
    my ( $server, @hold ) = busy_server();
    my $client = client($server);
    my @many   = begin( $client, 'many', 50 );
    ok $server->wait_waiting(50), 'fifty wait';
    $server->signal('INT');
    is statuses( $client->finish(@many) ), '503', 'and are told';
    go();
    ok $server->wait_exit, 'before the end';
};

subtest 'in a lane' => sub {
    my ( $server, @hold ) = busy_server( '--lane', '/lane=1' );
    my ( $greedy, $modest ) = map { client($server) } 1, 2;
    my @many = begin( $greedy, 'greedy', 30, '/lane' );
    my $lane = sub { ( $server->board->{lanes} || [] )->[0]{waiting} // -1 };
    ok until_true( 10, sub { $lane->() == 29 } ), 'one has the place, and the others wait for it';
    my ($one) = begin( $modest, 'modest', 1, '/lane' );
    ok until_true( 10, sub { $lane->() == 30 } ), 'then one of another client';
    go();
    is statuses( $modest->finish($one) ),  '200', 'it is answered';
    is statuses( $greedy->finish(@many) ), '200', 'and so are the others';
    cmp_ok place( 'modest', order() ), '<=', 2, 'it was among the first' or diag explain [ order() ];
    $server->stop;
};

done_testing;
