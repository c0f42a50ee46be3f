# Certificates are swapped all or none, and no connection is closed for it. Tickets hold over edges and their
# ends.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Copy      qw(copy);
use IO::Socket::SSL qw(SSL_VERIFY_NONE);
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

my $made = Sirius::Test::Certificates->new;
my ( $cert, $key ) = map { $made->dir . "/now.$_" } qw(pem key);

sub install {
    my ( $name, %option )  = @_;
    my ( $pem,  $private ) = $made->pem( $name, names => ['one.example'], %option );
    spew( "$cert.new", $pem );
    spew( "$key.new",  $option{key} || $private );
    rename "$_.new", $_ or die "$_: $!" for $cert, $key;
    return;
}

install('first');
my $server = start_server(
    "die if -e '@{[ $made->dir ]}/broken'; sub { [ 200, [], [ \$\$ ] ] }\n", '--listen', '127.0.0.1:0,tls',
    '--tls-cert' => $cert,
    '--tls-key'  => $key,
    qw(--workers 1 --edges 2)
);

sub connect_to {
    my $socket = IO::Socket::SSL->new(
        PeerAddr        => $server->address,
        SSL_verify_mode => SSL_VERIFY_NONE,
        Timeout         => 10,
        @_
    ) or die "connect: $IO::Socket::SSL::SSL_ERROR";
    return $socket;
}

# Sends a request and reads the response. Returns its head, or "cut"
sub head_of {
    my ( $socket, $path ) = @_;
    print {$socket} "GET $path HTTP/1.1\r\nHost: a\r\n\r\n";
    my $head = '';
    while ( $head !~ /\r\n\r\n/ ) {
        my $line = readline $socket;
        return 'cut' if !defined $line;
        $head .= $line;
    }
    my ($length) = $head =~ /^Content-Length: (\d+)/mi;
    read $socket, my ($body), $length;
    return $head;
}

sub get {
    my ( $socket, $path ) = ( @_, '/' );
    return head_of( $socket, $path ) =~ s/\AHTTP\/1\.1 (\d+).*/$1/sr;
}

sub name_of { return shift->peer_certificate('commonName') }

my @kept = map { connect_to() } 1 .. 8;    # of both edges, in all likelihood
is join( q( ), map { get($_) } @kept ), join( q( ), (200) x @kept ), 'connections';
is name_of( $kept[0] ),                 'first',                     'with the first certificate';
my @edges = sort $server->edges;

subtest 'another certificate' => sub {
    install('second');
    $server->signal('HUP');
    ok $server->wait_log(
        qr/certificates reloaded: 1 certificate, the first to expire is that of one\.example, in \d+ days/,
        30 ),
        'is read at HUP';
    ok until_true(
        10,
        sub {
            !grep { name_of( connect_to() ) ne 'second' } 1 .. 6;
        }
        ),
        'new connections get it from all edges';
    is join( q( ), map { get($_) } @kept ), join( q( ), (200) x @kept ), 'those that were open go on';
    is join( q( ), sort $server->edges ),   "@edges",                    'in the same edges';
};

subtest 'one that is noticed' => sub {
    install('third');
    ok until_true( 45, sub { name_of( connect_to() ) eq 'third' } ), 'without being told';
};

subtest 'an application that does not load' => sub {
    install('third and a half');
    spew( $made->dir . '/broken', '' );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload failed: generation \d+ exited/, 30 ), 'the reload fails';
    ok until_true( 8, sub { name_of( connect_to() ) eq 'third and a half' } ),
        'certificates are read all the same';
    unlink $made->dir . '/broken' or die "$!";
    is scalar( () = $server->log =~ /certificates have changed/g ), 1, 'at once, not by a look at the files';
    is join( q( ), map { get($_) } @kept ), join( q( ), (200) x @kept ), 'connections go on';
};

subtest 'a wrong one' => sub {
    install( 'fourth', key => ( $made->pem('another') )[1] );
    $server->signal('HUP');
    ok $server->wait_log(
        qr/certificates not reloaded: --tls-key \Q$key\E: the key does not belong to the certificate in \Q$cert\E; the previous ones stay in use/,
        45
        ),
        'the log says why it is not used';
    is name_of( connect_to() ),             'third and a half',          'and the one before stays';
    is join( q( ), map { get($_) } @kept ), join( q( ), (200) x @kept ), 'connections go on';
};

subtest 'tickets' => sub {
    my $cache   = IO::Socket::SSL::Session_Cache->new(10);
    my @session = ( SSL_session_cache => $cache, SSL_session_key => 'x', SSL_version => 'TLSv1_2' );
    my $first   = connect_to(@session);
    is get($first), 200, 'a connection';
    close $first;
    my $resumed = sub {
        my $socket = connect_to(@session);
        my $is     = $socket->get_session_reused;
        get($socket);
        close $socket;    # with close_notify, or the client forgets the session
        return $is ? 1 : 0;
    };
    is join( q( ), map { $resumed->() } 1 .. 8 ), join( q( ), (1) x 8 ),
        'the session is resumed by whichever edge';
    kill KILL => $server->edges;
    ok until_true(
        15,
        sub {
            eval { get( connect_to() ) eq '200' }
        }
        ),
        'the edges have ended, others serve';
    is join( q( ), map { $resumed->() } 1 .. 4 ), '1 1 1 1', 'and know the session';
    install('fifth');
    $server->signal('HUP');
    ok until_true( 30, sub { name_of( connect_to() ) eq 'fifth' } ), 'another keeper';
    is join( q( ), map { $resumed->() } 1 .. 4 ), '1 1 1 1', 'knows it, too';
};

$server->{may_crash} = 1;    # two edges were killed
$server->stop;

# The supervisor becomes a new program at the end of each reload
subtest 'once for each reload' => sub {
    for my $self_signed ( 0, 1 ) {
        $server = start_server(
            "sub { [ 200, [], ['app'] ] }\n",
            '--listen', '127.0.0.1:0,tls',
            ( $self_signed ? '--tls-self-signed' : ( '--tls-cert' => $cert, '--tls-key' => $key ) ),
            qw(--workers 1 --edges 1)
        );
        my $count = sub { my $what = shift; return scalar( () = $server->log =~ /$what/g ) };
        my $print = sub { connect_to()->get_fingerprint };
        my $first = $print->();
        for my $n ( 1 .. 3 ) {
            $server->signal('HUP');
            ok until_true(
                30,
                sub {
                    $count->(qr/the supervisor now runs/) == $n
                        && ( $self_signed || $count->(qr/certificates reloaded/) >= $n );
                }
                ),
                "reload $n";
        }
        is $count->(qr/certificates reloaded/), $self_signed ? 0 : 3, 'the files are read as often';
        is $print->(), $first, 'the certificate of --tls-self-signed stays' if $self_signed;
        $server->stop;
    }
};

# Other connections go on in the new edge (moved.t). With a cipher that only OpenSSL knows they stay where
# they are, and close after the next response
subtest 'settings of the edge change' => sub {
    my $dir  = $made->dir;
    my $conf = "$dir/sirius.conf";
    mkdir "$dir/public" or die "$dir/public: $!";
    spew( "$dir/public/file.txt", 'file' );
    spew( $conf,                  "keepalive-timeout = 60\n" );
    $server = start_server(
        "sub { kill KILL => \$\$ if \$_[0]{PATH_INFO} eq '/die'; [ 200, [], ['app'] ] }\n",
        '--listen', '127.0.0.1:0,tls', '--tls-self-signed', '--config', $conf,
        '--static' => "/public=$dir/public",
        qw(--workers 2 --edges 1 --tls-ciphers ECDHE-ECDSA-AES128-SHA256)
    );
    my %status = ( '/' => 200, '/public/file.txt' => 200, '/public/none' => 404, '/die' => 502 );
    my %open   = map { $_ => connect_to( SSL_version => 'TLSv1_2' ) } keys %status, qw(first silent);
    is get($_), 200, 'a connection' for values %open;
    my ($before) = $server->edges;
    spew( $conf, "keepalive-timeout = 50\n" );
    $server->signal('HUP');
    ok until_true( 40, sub { head_of( $open{first}, '/' ) =~ /^Connection: close\r$/m } ),
        'the edge that has them says close';
    is scalar( grep { $_ == $before } $server->edges ), 1, 'and lives as long as they do';

    for my $path ( sort keys %status ) {
        my $head = head_of( $open{$path}, $path );
        like $head, qr{\AHTTP/1.1 $status{$path} }, "$path is answered";
        like $head, qr/^Connection: close\r$/m,     'the response says that it is the last';
        is sysread( $open{$path}, my $more, 1 ), 0, 'and it is';
    }
    close $_ for values %open;
    ok until_true(
        10,
        sub {
            !grep { $_ == $before } $server->edges;
        }
        ),
        'it ends with the last of them';
    my $new = connect_to();
    is join( q( ), map { get($new) } 1 .. 3 ), '200 200 200', 'new connections are kept';
    $server->{may_crash} = 1;    # a worker was killed
    $server->stop;
};

# Both start at a reload: the edges ask the previous keeper, which may be slow
subtest 'edges that start while the keeper changes' => sub {
    my $conf = $made->dir . '/edges.conf';
    spew( $conf, "keepalive-timeout = 60\n" );
    $server = start_server(
        "sub { [ 200, [], [] ] }\n", '--listen', '127.0.0.1:0,tls', '--config', $conf,
        '--tls-cert' => $cert,
        '--tls-key'  => $key,
        qw(--workers 1 --edges 2)
    );
    my @before = $server->edges;
    my ($keeper) = grep { $server->is_edge($_) == 3 } $server->processes;
    kill STOP => $keeper or die "kill: $!";
    spew( $conf, "keepalive-timeout = 50\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/certificates reloaded/, 20 ), 'another keeper is there';
    kill CONT => $keeper;
    my %was = map { $_ => 1 } @before;
    ok until_true(
        20,
        sub {
            my @now = $server->edges;
            @now == 2 && !grep { $was{$_} } @now;
        }
        ),
        'other edges';
    unlike $server->log, qr/cannot start/, 'each at its first attempt';
    ok until_true( 20, sub { !kill 0 => $keeper } ), 'the previous keeper ends';
    is get( connect_to() ), 200, 'they serve';
    $server->stop;
};

done_testing;
