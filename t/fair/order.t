use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use IO::Select ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# Complete requests that wait are served in the order in which they were complete, on whatever connections they came, and
# while others keep coming.

my $APP = <<'APP';
use Fcntl qw(LOCK_EX O_APPEND O_CREAT O_WRONLY);
use Time::HiRes qw(sleep);
sub {
    my $path = $_[0]{PATH_INFO};
    sysopen my $fh, $ENV{ORDER_FILE}, O_APPEND | O_CREAT | O_WRONLY or die $!;
    syswrite $fh, "$path\n";
    close $fh;
    sleep( $path =~ m{\A/hold} ? 0.6 : 0.015 );
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

for my $limit ( [], [qw(--queue-timeout 0)], [qw(--queue-timeout 15)] ) {
    subtest "new connections @$limit" => sub {
        my ( $server, $file ) = server_with_file( qw(--workers 2), @$limit );
        my @client;
        $_->send( request('GET /hold') ) for @client = map { $server->connect } 1, 2;
        for my $n ( 0 .. 159 ) {
            push @client, $server->connect;
            $client[-1]->send( request("GET /$n") );
            sleep 0.003;
        }
        is_deeply [ grep { $_->response( patience => 15 )->status ne '200' } @client ], [],
            'all are answered';
        my ( $worst, $count, $order ) = overtaken($file);
        is $count, 160, 'once each';
        cmp_ok $worst, '<=', NEIGHBOURS, 'in the order in which they came' or diag $order;
        $server->stop;
    };
}

subtest 'connections that are kept, of which each worker has some' => sub {
    my ( $server, $file ) = server_with_file(qw(--workers 3));
    my @kept = map { $server->connect } 1 .. 60;
    $_->ask('GET /first') for @kept;
    my @hold = map { $server->connect } 1 .. 3;
    $_->send( request('GET /hold') ) for @hold;
    sleep 0.1;
    my $n = 0;
    for my $round ( 0, 1 ) {    # the second half while the first is being served
        for my $client ( @kept[ 30 * $round .. 30 * $round + 29 ] ) {
            $client->send( request( 'GET /' . $n++ ) );
            sleep 0.004;
        }
        sleep 0.5 if !$round;
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
    my ( %since, %client, @waited, %status );
    my $select = IO::Select->new;
    my $ask    = sub {
        my $client = $server->connect;
        $client->send( request('GET /0') );
        @{ $client{ $client->socket } }{qw(client since)} = ( $client, time );
        $select->add( $client->socket );
    };
    $ask->() for 1 .. 60;
    my $end = time + 4;
    while ( time < $end ) {
        for my $socket ( $select->can_read(0.1) ) {
            my $one = delete $client{$socket};
            $select->remove($socket);
            $status{ $one->{client}->response->status }++;
            push @waited, time - $one->{since};
            $ask->();
        }
    }
    is_deeply [ keys %status ], [200], 'all answers are 200' or diag explain \%status;
    @waited = sort { $a <=> $b } splice @waited, 60;
    my ( $usual, $most ) = @waited[ $#waited / 2, -1 ];
    cmp_ok $most, '<', 3 * $usual, sprintf 'usual wait %.2f s, longest %.2f s', $usual, $most;
    my ($oldest) = sort { $a <=> $b } map { $_->{since} } values %client;
    cmp_ok time - $oldest, '<', 3 * $usual, 'nobody is left behind';
    $server->stop;
};

done_testing;
