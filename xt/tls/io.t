# psgix.io over TLS: the application gets one end of a pair of sockets, and the edge encrypts what goes
# through it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp      ();
use IO::Socket::SSL qw(SSL_VERIFY_NONE);
use Net::SSLeay;
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Sirius::Test;

my $dir = File::Temp->newdir;
spew( "$dir/big", 'x' x 3_000_000 );
local $ENV{BIG} = "$dir/big";
my $server = start_server( <<'APP', '--listen', '127.0.0.1:0,tls', qw(--tls-self-signed --workers 2) );
sub {
    my $env = shift;
    my $io  = $env->{'psgix.io'};
    my $path = $env->{PATH_INFO};
    return [ 200, [], [ ref $io ] ] if $path eq '/look';
    return [ 200, [], [ fileno $io > 2 ? 'used' : 'not' ] ] if $path eq '/use';
    if ( $path eq '/file' ) { fileno $io; open my $in, '<', $ENV{BIG} or die; return [ 200, [], $in ] }
    return sub {
        my $writer = shift->( [ 200, [] ] );
        $writer->write('us');
        fileno $io;
        close $io;
        select undef, undef, undef, 0.1;
        $writer->write('ed');
        $writer->close;
    } if $path eq '/stream';
    return sub {
        my $n;
        if ( $path eq '/echo' ) {
            syswrite $io, "HTTP/1.1 101 Switching\r\n\r\n";
            while ( $n = sysread $io, my $bytes, 65_536 ) { print {$io} $bytes; $io->flush }
            print {$io} 'end'; $io->flush;
        }
        if ( $path eq '/flood' ) { print {$io} 'x' x 1_000_000 for 1 .. 5; $io->flush }
        close $io;
        return;
    };
};
APP

sub connect_to {
    my $socket = IO::Socket::SSL->new(
        PeerAddr        => $server->address,
        SSL_verify_mode => SSL_VERIFY_NONE,
        Timeout         => 10
    ) or die "connect: $IO::Socket::SSL::SSL_ERROR";
    print {$socket} 'GET ', shift, " HTTP/1.1\r\nHost: a\r\n\r\n", @_;
    return $socket;
}

local $SIG{ALRM} = sub { die "too slow\n" };
alarm 60;

subtest 'echo' => sub {
    my $socket = connect_to( '/echo', 'ahead ' );
    is readline $socket, "HTTP/1.1 101 Switching\r\n", 'what the application writes comes';
    readline $socket;
    read $socket, my $bytes, 6;
    is $bytes, 'ahead ', 'what was sent with the request comes back';
    for my $size ( 1, 100, 16_384, 100_000 ) {
        my $sent = join '', map { chr( 32 + $_ % 90 ) } 1 .. $size;
        my ( $at, $got ) = ( 0, '' );
        while ( length $got < $size ) {
            if ( $at < $size ) { my $n = syswrite $socket, substr $sent, $at, 8_000; $at += $n }
            sysread $socket, $got, 65_536, length $got
                if $socket->pending || $at == $size || $at - length $got > 16_000;
        }
        ok $got eq $sent, "$size bytes there and back";
    }
    Net::SSLeay::shutdown( $socket->_get_ssl_object );
    read $socket, $bytes, 3;
    is $bytes,                        'end', 'the application is told of the end of the client, and answers';
    is sysread( $socket, $bytes, 1 ), 0,     'and then its own end comes';
};

subtest 'a flood' => sub {
    my $socket = connect_to('/flood');
    wait_full($socket);
    my ( $got, $n ) = (0);
    $got += $n while $n = sysread $socket, my $bytes, 65_536;
    is $got, 5_000_000, 'five megabytes, to a client that was slow to begin';
};

subtest 'one that is looked at only' => sub {
    my $socket = connect_to('/look');
    like readline $socket, qr/200/, 'is an ordinary response';
};

# The application closes its end with %env: before its response has left the worker, or while it goes on
subtest 'one that is used, and answered in the ordinary way' => sub {
    my %body = ( '/use' => qr/used\z/, '/stream' => qr/us.*ed\r\n0\r\n\r\n\z/s, '/file' => qr/x{3000}\z/ );
    for my $path ( sort keys %body ) {
        for my $behind ( '', "GET /look HTTP/1.1\r\nHost: a\r\n\r\n" ) {
            my $socket = connect_to( $path, $behind );
            my $got    = join '', readline $socket;
            my $name   = $path . ( $behind ? ', with bytes behind the request' : '' );
            like $got, qr/\AHTTP\/1\.1 200 .*^Connection: close\r$/ms, "$name: the response, if it can say so"
                if $path ne '/stream';
            like $got, $body{$path}, "$name: all of it, and it is the last";
            cmp_ok length $got, '>', 3_000_000, "$name: the file" if $path eq '/file';
        }
    }
};

subtest 'bytes that the application does not read' => sub {
    my $socket = connect_to( '/flood', 'unread ' x 1000 );
    print {$socket} 'more' x 1000;
    my ( $got, $n ) = (0);
    $got += $n while $n = sysread $socket, my $bytes, 65_536;
    is $got, 5_000_000, 'do not cut what it has written';
};

# It ends the connection, not TLS before that. Two workers would wait for two clients
subtest 'a client that is gone' => sub {
    for my $how (qw(closes resets)) {
        for ( 1, 2 ) {
            my $socket = connect_to('/echo');
            is readline $socket, "HTTP/1.1 101 Switching\r\n", 'the application waits for bytes';
            setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $how eq 'resets';
            $socket->close( SSL_no_shutdown => 1 );
        }
        like readline connect_to('/look'), qr/200/,
            "it $how: the application is told, and both workers are free";
    }
};

alarm 0;
$server->stop;

# The same application on an address with TLS and on one without, to which it writes by itself
my $both = start_server(
    <<'APP', qw(--workers 1 --graceful-timeout 30 --tls-self-signed --listen 127.0.0.1:0 --listen), '127.0.0.1:0,tls' );
my @kept;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return [ 200, [], ['hello'] ] if $path eq '/';
    my $io = $env->{'psgix.io'};
    if ( $path =~ m{\A/keep/(\d+)} ) {
        print {$io} 'k' x $1;
        $io->flush;
        push @kept, $io;
        return sub { };
    }
    my $size = $path =~ /(\d+)/ ? $1 : 3;
    if ( $path =~ m{\A/silent} ) {
        fileno $io;
        kill KILL => $$ if $path eq '/silent-died';
        die "on purpose\n";
    }
    print {$io} 'r' x $size;
    $io->flush;
    kill KILL => $$ if $path eq '/died';
    return [ 200, [], ['body'] ] if $path =~ /array/;
    return [ 200, [ 'Content-Length' => 4 ], do { open my $in, '<', \'body'; $in } ] if $path eq '/handle';
    if ( $path eq '/file' ) { open my $in, '<', $ENV{BIG} or die; return [ 200, [], $in ] }
    die "on purpose\n" if $path eq '/dies';
    return sub {
        my $writer = shift->( [ 200, [] ] );
        $writer->write('begin');
        print {$io} 'r' x $size;
        $io->flush;
        $writer->write('end');
        $writer->close;
    };
};
APP
my ( $plain, $encrypted ) = $both->listeners;

# All bytes until the end, without the date
sub bytes_of {
    my ( $address, $path, $waits ) = @_;
    local $Sirius::Test::Client::TLS = $address eq $encrypted;
    my $client = $both->connect( to => $address, rcvbuf => 8192 );
    $client->send( request("GET $path") );
    wait_full( $client->socket ) if $waits;
    my $bytes = $client->rest(20);
    return $bytes =~ s/^Date: .*\r\n//mr, $client->{end};
}

subtest 'bytes beside a response' => sub {
    for my $path (qw(/array /array/8000000 /handle /file)) {
        my ( $want, $end ) = bytes_of( $plain, $path );
        like $want, qr{\Ar+HTTP/1\.1 }, "$path: first what it has written, then its response";
        my ( $got, $ends ) = bytes_of( $encrypted, $path, $path =~ /000/ );
        ok $got eq $want, 'the same over TLS' or diag substr( $got, 0, 300 ), "\nnot\n", substr $want, 0, 300;
        is $ends, $end, 'and the same end';
    }
    for my $address ( $plain, $encrypted ) {
        my ($got) = bytes_of( $address, '/stream' );
        like $got, qr/\Arrr.*begin.*end\r\n0\r\n\r\n/s, 'a stream behind it';
        like $got, qr/rrr.*rrr.*end/s,                  'before its end';
    }
    for my $address ( $plain, $encrypted ) {
        my $where = $address eq $plain ? 'without TLS' : 'over TLS';
        for my $path (qw(/dies /died)) {
            my ( $got, $end ) = bytes_of( $address, $path );
            is $got, 'rrr',   "$path $where: nothing comes behind what it has written";
            is $end, 'reset', 'and the end is none that could be taken for that of a response';
        }
        like(
            ( bytes_of( $address, '/silent' ) )[0],
            qr{\AHTTP/1\.1 500 .*Error\n\z}s,
            "an error when it has not, $where"
        );
        like(
            ( bytes_of( $address, '/silent-died' ) )[0],
            qr{\AHTTP/1\.1 502 .*Gateway\n\z}s,
            'or its worker has died'
        );
    }
    $both->{may_crash} = 1;    # workers were killed
};

subtest 'kept by the application when the server stops' => sub {
    my @client;
    for my $path (qw(/keep/4 /keep/150000)) {
        for my $address ( $plain, $encrypted ) {
            local $Sirius::Test::Client::TLS = $address eq $encrypted;
            my $client = $both->connect( to => $address );
            $client->send( request("GET $path") );
            is $client->some( 4, 10 ) =~ s/k+//r, '', "$path: is written to";
            push @client, $client;
        }
    }
    my $start = time;
    $both->stop;
    cmp_ok time - $start, '<', 15, 'it does not wait for them';
    for my $client (@client) {
        my $bytes = $client->rest(10);
        is $bytes =~ s/k+//r, '', 'nothing else comes';
        like $client->{end}, qr/\A(?:eof|reset)\z/, 'but the end';
    }
};

done_testing;
