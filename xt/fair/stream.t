use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use File::Temp ();
use POSIX      ();
use Test::More;
use Sirius::Test;
use Fair;

# While a worker streams without a pause, the other one serves, also on connections whose requests the first
# has served before

my $dir = File::Temp->newdir;
local $ENV{STREAM_DIR} = "$dir";
my $APP = <<'APP';
use Time::HiRes qw(time);
sub {
    my $env = shift;
    return [ 200, [], [$$] ] if $env->{PATH_INFO} ne '/stream';
    my $size = $env->{QUERY_STRING};
    return sub {
        my $w     = shift->( [ 200, [] ] );
        my $until = time + 60;
        my $n     = 0;
        open my $fh, '>', "$ENV{STREAM_DIR}/$size.$$" or die $!;
        while ( $n++ % 100 || !-e "$ENV{STREAM_DIR}/$size.end" && time < $until ) { $w->write( 'y' x $size ) or last }
        $w->close;
    };
}
APP

for my $size ( 10, 65_536 ) {
    subtest "pieces of $size bytes" => sub {
        my $server = start_server( $APP, qw(--workers 2) );
        my ( %of, @all );
        for ( 1 .. 120 ) {
            my $client = $server->connect;
            push @{ $of{ $client->ask('GET /')->body } }, $client;
        }
        my ($pid) = sort { @{ $of{$b} } <=> @{ $of{$a} } } keys %of;
        my ( $stream, @kept ) = @{ $of{$pid} };
        $stream->send( request("GET /stream?$size") );
        my $reader = fork;
        die "fork: $!" if !defined $reader;
        if ( !$reader ) {
            my ( $until, $bytes ) = ( time + 65, 0 );
            while ( time < $until ) {
                my $got = sysread $stream->socket, my $piece, 1 << 20;
                last if defined $got && !$got;
                vec( my $ready = '', fileno $stream->socket, 1 ) = 1;
                select $ready, undef, undef, 1;
            }
            POSIX::_exit(0);
        }
        my ($streams) = until_true( 5, sub { ( glob "$dir/$size.*" )[0] } );
        ok $streams, 'a worker streams';
        my ($streamer) = $streams =~ /(\d+)\z/;
        my %by;
        for my $client (@kept) {
            my $answer = $client->ask('GET /');
            $by{ $answer->status eq '200' ? $answer->body : $answer->status }++;
            last if $by{timeout};
        }
        ok @kept >= 10,     'there are others';
        ok !$by{timeout},   'which are answered while it streams' or diag explain \%by;
        ok !$by{$streamer}, 'by the other worker';
        is $server->wait_busy( 1, qr{/stream} ), 1, 'while it still streams';
        spew( "$dir/$size.end", '' );
        kill KILL => $reader;
        waitpid $reader, 0;
        $stream->abort;    # it may wait for this client: how much the kernel takes differs
        $server->stop;
    };
}

done_testing;
