use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use IO::Select ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# Complete requests that wait are served in the order in which they were complete, on whatever connections
# they came, and while others keep coming.

my $APP = <<'APP';
use Fcntl qw(LOCK_EX O_APPEND O_CREAT O_WRONLY);
use Time::HiRes qw(sleep);
sub {
    my $path = $_[0]{PATH_INFO};
    sysopen my $fh, $ENV{ORDER_FILE}, O_APPEND | O_CREAT | O_WRONLY or die $!;
    syswrite $fh, "$path\n";
    close $fh;
    sleep 0.015;
    if ( $path eq '/hold' ) {
        my $until = time + 60;
        sleep 0.005 while !-e "$ENV{ORDER_FILE}.go" && time < $until;
    }
    [ 200, [], ["$path"] ];
}
APP

sub server_with_file {
    my @args = @_;
    my $file = File::Temp->new;
    local $ENV{ORDER_FILE} = "$file";
    return ( start_server( $APP, @args ), $file );
}

# The order in which the application got them: places by which a request was overtaken
sub overtaken {
    my ($file) = @_;
    open my $fh, '<', "$file" or die $!;
    my @order = map { m{\A/(\d+)} ? $1 : () } readline $fh;
    my $worst = 0;
    for my $place ( 0 .. $#order ) {
        my $by = $place - $order[$place];
        $worst = $by if $by > $worst;
    }
    return ( $worst, scalar @order, "@order" );
}

# Two workers may begin two requests in either order, and a third may just be on its way
use constant NEIGHBOURS => 3;

# What two clients send at nearly the same time the edge may read in either order
use constant TOGETHER => 10;

sub release {
    my $file = shift;
    return spew( "$file.go", '' );
}

for my $limit ( [], [qw(--queue-timeout 0)], [qw(--queue-timeout 15)] ) {
    subtest "new connections @$limit" => sub {
        my ( $server, $file ) = server_with_file( qw(--workers 2), @$limit );
        my @client;
        $_->send( request('GET /hold') ) for @client = map { $server->connect } 1, 2;
        $server->wait_busy( 2, qr{/hold} );
        for my $n ( 0 .. 159 ) {    # the second half while the first is being served
            release($file) if $n == 80;
            push @client, $server->connect;
            $client[-1]->send( request("GET /$n") );
            if   ( $n < 80 ) { $server->wait_waiting( $n + 1 ) }
            else             { sleep 0.003 }
        }
        is_deeply [ grep { $_->response( patience => 15 )->status ne '200' } @client ], [],
            'all are answered';
        my ( $worst, $count, $order ) = overtaken($file);
        is $count, 160, 'once each';
        cmp_ok $worst, '<=', NEIGHBOURS, 'in the order in which they came' or diag $order;
        $server->stop;
    };
}

subtest 'connections that are kept' => sub {
    my ( $server, $file ) = server_with_file(qw(--workers 3));
    my @kept = map { $server->connect } 1 .. 60;
    $_->ask('GET /first') for @kept;
    my @hold = map { $server->connect } 1 .. 3;
    $_->send( request('GET /hold') ) for @hold;
    $server->wait_busy( 3, qr{/hold} );
    for my $n ( 0 .. 59 ) {    # the second half while the first is being served
        release($file) if $n == 30;
        $kept[$n]->send( request("GET /$n") );
        if   ( $n < 30 ) { $server->wait_waiting( $n + 1 ) }
        else             { sleep 0.004 }
    }
    is_deeply [ grep { $_->response( patience => 15 )->status ne '200' } @kept, @hold ], [],
        'all are answered';
    my ( $worst, $count, $order ) = overtaken($file);
    is $count, 60, 'once each';
    cmp_ok $worst, '<=', NEIGHBOURS, 'in the order in which they came' or diag $order;
    $server->stop;
};

# 60 clients, each of which asks again as soon as it has its answer: nobody waits much longer than the others
subtest 'a queue that never ends' => sub {
    my ( $server, $file ) = server_with_file(qw(--workers 2 --queue-timeout 8));
    my ( %client, %status );
    my $asked  = 0;
    my $select = IO::Select->new;
    my $ask    = sub {
        my $client = $server->connect;
        $client->send( request("GET /$asked") );
        $client{ $client->socket } = { client => $client, number => $asked++ };
        $select->add( $client->socket );
    };
    $ask->() for 1 .. 60;
    while ( $asked < 500 ) {
        for my $socket ( $select->can_read(10) ) {
            my $one = delete $client{$socket};
            $select->remove($socket);
            $status{ $one->{client}->response->status }++;
            $ask->();
        }
    }
    is_deeply [ keys %status ], [200], 'all answers are 200' or diag explain \%status;
    my ( $worst, undef, $order ) = overtaken($file);
    cmp_ok $worst, '<=', TOGETHER, "nobody was passed by more than $worst others" or diag $order;
    my ($oldest) = sort { $a <=> $b } map { $_->{number} } values %client;
    cmp_ok $oldest, '>=', $asked - 60 - TOGETHER, 'nobody is left behind';
    $server->stop;
};

done_testing;
