# What is published while the application is still sending its response: a client that has seen the first
# bytes of it listens
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

my $APP = <<'APP';
use strict;
use warnings;
use Sirius::Channel;
my %PUBLISH = (
    stream => sub { Sirius::Channel->publish( a => "early $_\n" ) for 1 .. 3 },
    close  => sub { Sirius::Channel->publish( a => "early\n", close => 1 ) },
    large  => sub { Sirius::Channel->publish( a => 'x' x 30_000 ) for 1 .. 9 },
    gap    => sub { Sirius::Channel->publish( a => "early\n", id => 9, prev_id => 8 ) },
    poll   => sub {
        Sirius::Channel->publish( a => undef, formats => { 'http-response' => { code => 201, body => $_ } } ) for qw(first second);
    },
);
sub {
    my $env = shift;
    my ($how) = $env->{PATH_INFO} =~ m{\A/(\w+)};
    if ( $how eq 'publish' ) { Sirius::Channel->publish( a => "later\n" ); return [ 200, [], [] ] }
    my @fields = ( 'Content-Type' => 'text/plain', 'Grip-Hold' => $how eq 'poll' ? 'response' : 'stream' );
    push @fields, 'Grip-Channel' => $how eq 'gap' ? 'a; prev-id=1' : 'a', 'Grip-Timeout' => 20;
    return sub {
        my $writer = $_[0]->( [ 200, \@fields ] );
        $writer->write("one\n");
        $PUBLISH{$how}->();
        select undef, undef, undef, 0.2;    # it is with the edge by then
        $writer->write("two\n");
        $writer->close;
    };
}
APP

my $server = start_server( $APP, qw(--hold --workers 2) );
sub held { return $server->board->{held}{stream} }

# What comes until it looks so, without the framing
sub text {
    my ( $client, $like ) = @_;
    return join '', $client->comes($like) =~ /^[a-z]+(?: \d)?\n/mg;
}

subtest 'a stream' => sub {
    my $client = $server->connect;
    $client->send( request('GET /stream') );
    is text( $client, qr/early 3/ ), "one\ntwo\nearly 1\nearly 2\nearly 3\n", 'behind the response, in order';
    ok until_true( 10, sub { held() == 1 } ), 'it is held';
    is $server->ask('GET /publish')->status, 200,       'another publication';
    is text( $client, qr/later/ ),           "later\n", 'comes, too';
    $client->close;
    ok until_true( 10, sub { held() == 0 } ), 'the client has gone';
};

subtest 'its end' => sub {
    my $answer = $server->ask('GET /close');
    is $answer->body,                  "one\ntwo\nearly\n", 'as a publication says';
    is $server->ask('GET /gap')->body, "one\ntwo\n",        'or since one was missed';
    ok until_true( 10, sub { held() == 0 } ), 'nothing is held';
};

subtest 'long polling' => sub {
    my $answer = $server->ask('GET /poll');
    is_deeply [ $answer->status, $answer->body ], [ 201, 'first' ], 'the first publication is the answer';
};

subtest 'more than --hold-buffer' => sub {
    my $client = $server->connect;
    $client->send( request('GET /large') );
    my $in = $client->rest;
    unlike $in, qr/x{30000}|\r\n0\r\n\r\n\z/, 'is not sent, and the response does not look complete';
    ok until_true( 10, sub { held() == 0 } ), 'nor held';
    is $server->ask('GET /publish')->status, 200, 'the server goes on';
};

$server->stop;
done_testing;
