use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;
use Sirius::Test::Faults;

# --static where memory or descriptors are short: a whole answer, a refusal or a visible cut, and then the
# next request

my $dir = File::Temp->newdir;
spew( "$dir/small.txt", 'small' );
mkdir "$dir/deep" or die $!;
spew( "$dir/deep/index.html", 'index' );
spew( "$dir/large.bin",       'x' x 10_000_000 );

# A reader of a large file holds a descriptor of the edge
subtest 'no descriptor' => sub {
    my $root   = $Sirius::Test::Server::ROOT;
    my $server = Sirius::Test::Server->start(
        app     => "sub { [ 200, [], ['app'] ] }\n",
        args    => [ qw(--workers 1 --max-connections 110), '--static', "/assets=$dir" ],
        command =>
            [ 'sh', '-c', 'ulimit -n 130; exec "$@"', 'sh', $^X, "$root/bin/sirius", qw(-E deployment) ]
    );

    my ( @readers, %got );
    for ( 1 .. 90 ) {
        my $client = eval { $server->connect( rcvbuf => 4096 ) } or last;
        $client->send( request('GET /assets/large.bin') );
        push @readers, $client;
    }
    ok until_true( 30, sub { $server->log =~ /Too many open files/ } ),
        'the descriptors are used up, and the log says so';
    for my $client (@readers) {
        vec( my $read = '', fileno $client->socket, 1 ) = 1;
        next if !select $read, undef, undef, 0.2;
        sysread $client->socket, my $start, 12;
        $got{ substr $start, 9, 3 }++;
    }
    ok $got{200}, "$got{200} readers got a file";
    is join( ' ', grep { !/\A(?:200|503)\z/ } sort keys %got ), '',
        'and the others 503, or wait to be accepted';
    @readers = ();
    ok until_true(
        10,
        sub {
            eval { $server->ask('GET /assets/small.txt')->body } // '' eq 'small';
        }
        ),
        'files are sent when the readers are gone';
    is length $server->ask('GET /assets/large.bin')->body, 10_000_000, 'large ones, too';
    is $server->ask('GET /')->body,                        'app',      'and the application is served';
    $server->stop;
};

# Each allocation of the edge in turn, until there is none left to fail
subtest 'no memory' => sub {
    my $faults = Sirius::Test::Faults->new;
    my $server = $faults->start(
        app  => "sub { [ 200, [], ['app'] ] }\n",
        args => [
            qw(--workers 1),      '--access-log',
            "$faults->{dir}/log", '--static',
            "/assets=$dir,index,pass-through"
        ]
    );
    my %request = (
        'a small file'   => [ request('GET /assets/small.txt'),                           'small' ],
        'in two pieces'  => [ "GET /assets/small.txt HTTP/1.1\r\nHo|st: a\r\n\r\n",       'small' ],
        'pipelined'      => [ request('GET /assets/small.txt') x 2,                       'small' ],
        'a large file'   => [ request('GET /assets/large.bin'),                           'x' x 10_000_000 ],
        'several ranges' => [ request( 'GET /assets/small.txt', 'Range: bytes=0-1,3-3' ), qr/sm.*l/s ],
        'another location' => [ request('GET /assets/deep'),                            '' ],
        'content'          => [ request( 'GET /assets/small.txt', \( 'x' x 100_000 ) ), 'small' ],
    );
    for my $name ( sort keys %request ) {
        my ( $bytes, $want ) = @{ $request{$name} };
        my ( @wrong, $failures );
        for my $number ( 1 .. 60 ) {
            my $before = $faults->injected('memory');
            my $client = $server->connect;
            $faults->nth( memory => $number );
            for my $piece ( split /[|]/, $bytes ) {
                $client->send($piece);
                select undef, undef, undef, 0.01;
            }
            my $answer = $client->response;
            my $failed = $faults->injected('memory') > $before;
            $faults->clear;
            my $is
                = $answer->status =~ /\A20/
                && ( ref $want ? $answer->body =~ $want : $answer->body eq $want )
                ? 'whole'
                : $answer->status;
            push @wrong, "allocation $number: $is"  if $is !~ /\A(?:whole|301|503|eof|cut|reset)\z/;
            push @wrong, "after allocation $number" if $server->ask('GET /assets/small.txt')->body ne 'small';
            last if !$failed;
            $failures = $number;
        }
        is join( "\n", @wrong ), '', "$name: " . ( $failures || 0 ) . ' failures';
        cmp_ok $failures || 0, '<', 60, 'and an end of them';
    }
    $server->stop;
};

done_testing;
