use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# The server closes behind a response that the kernel has not delivered yet, and the client, who does not
# know, sends its next request: a close would make a reset of that, and the rest of the response were lost
# (RFC 9112 9.6)

my $APP = <<'APP';
sub {
    my $env = shift;
    my @close = $env->{PATH_INFO} =~ /close/ ? ( Connection => 'close' ) : ();
    my ( $size, $n ) = ( $env->{QUERY_STRING}, 0 );
    return [ 200, [@close], [ 'x' x $size ] ] if $env->{PATH_INFO} !~ /stream/;
    return sub {
        my $w = shift->( [ 200, [@close] ] );
        $w->write( 'x' x 50_000 ) while ( $n += 50_000 ) <= $size;
        $w->close;
    };
}
APP

for my $how (
    [ '/close',        'Connection: close of the application' ],
    [ '/',             '--max-keepalive-reqs', qw(--max-keepalive-reqs 1) ],
    [ '/close-stream', 'a stream' ]
    )
{
    my ( $path, $name, @args ) = @$how;
    subtest $name => sub {
        http1_only('an application does not end the connection of other streams') if $path =~ /close/;
        my $server = start_server( $APP, qw(--workers 1), @args );
        for my $size ( 50_000, 450_000, 3_000_000 ) {
            my %got;
            for my $when (qw(before after never)) {
                my $client = $server->connect;
                $client->send(
                    request("GET $path?$size") . ( $when eq 'before' ? request('GET /next?1') : '' ) );
                sleep 0.1;    # the response is in the kernel, as much of it as has room
                if ( $when eq 'after' ) {
                    local $SIG{PIPE} = 'IGNORE';
                    syswrite $client->socket, request('GET /next?1');
                    sleep 0.05;
                }
                my $answer = $client->response( patience => 8 );
                $got{$when} = join q( ), $answer->status, length( eval { $answer->body } || '' ),
                    $client->end(2);
            }
            is_deeply \%got, { map { $_ => "200 $size eof" } qw(before after never) }, "$size bytes";
        }
        $server->stop;
    };
}

subtest 'a reader that is slower than the server lingers' => sub {
    http1_only('an application does not end the connection of other streams');
    my $server = start_server( $APP, qw(--workers 1) );
    my $client = $server->connect( rcvbuf => 16_384 );
    $client->send( request('GET /close?900000') );
    my $got = '';
    for ( 1 .. 34 ) {    # 7 s; what is read by hand counts, so the harness must not read ahead
        sysread $client->socket, my $piece, 20_000;
        $got .= defined $piece ? $piece : '';
        sleep 0.2;
        syswrite $client->socket, request('GET /next?1') if $_ == 32;
    }
    $got .= $client->rest(5);
    like $got, qr/\AHTTP\/1\.1 200 /, 'an answer';
    is length( $got =~ s/.*?\r\n\r\n//sr ), 900_000, 'all of it';
    $server->stop;
};

done_testing;
