# What is wrong with certificates and keys is named at the start, with exit 2; keys are in no process that
# runs the application.
use strict;
use warnings;
use Errno qw(ENOENT ESRCH);
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Socket::SSL        qw(SSL_VERIFY_NONE SSL_VERIFY_PEER);
use IO::Socket::SSL::Utils qw(PEM_key2string);
use MIME::Base64           qw(decode_base64);
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;

my $made = Sirius::Test::Certificates->new('An authority of tests');
my ( $cert, $key ) = $made->issue('one.example');
my $app = "sub { [ 200, [], ['hello'] ] }\n";

# How a start with these options ends, and what it says
sub fails {
    my @args   = @_;
    my $server = Sirius::Test::Server->spawn(
        app  => $app,
        args => [ '--listen', '127.0.0.1:0,tls', qw(--workers 1), @args ]
    );
    my $how = $server->wait_exit || 'runs';
    $server->kill_hard;
    return "$how: " . $server->log;
}

my $today = time;
my ( $wrong_cert, $wrong_key ) = $made->issue('wrong.example');
my ( $old,    $old_key ) = $made->issue( 'old.example', from => $today - 200_000, to => $today - 100_000 );
my ( $future, $future_key )
    = $made->issue( 'future.example', from => $today + 100_000, to => $today + 200_000 );
my ($old_alone)
    = $made->issue( 'older.example', from => $today - 200_000, to => $today - 100_000, chain => 0 );
my ( $alone, $alone_key ) = $made->issue( 'alone.example', chain => 0 );
my $rubbish = $made->file( 'rubbish.pem', "no certificate\n" );
my $foreign = Sirius::Test::Certificates->new('Another authority');
my $broken
    = $made->file( 'broken.pem', ( $made->pem( 'broken.example', chain => 0 ) )[0] . slurp( $foreign->ca ) );
my $damaged = $made->file( 'damaged.pem',
    slurp($cert) . "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" );
system( qw(openssl pkey -aes128 -passout pass:x -in), $key, '-out', $made->dir . '/locked.key' ) == 0
    or die 'openssl';

my ( $weak, $weak_key ) = map { $made->dir . "/weak.$_" } qw(pem key);
system(   'openssl req -x509 -newkey rsa:1024 -nodes -days 9 -subj /CN=weak'
        . " -addext subjectAltName=DNS:weak -out $weak -keyout $weak_key 2>/dev/null" ) == 0
    or die 'openssl';

sub client_ca { return '--tls-cert' => $cert, '--tls-key' => $key, '--tls-client-ca' => $made->ca }

# A CRL of an authority, as text
sub crl {
    my $of  = shift;
    my $dir = $of->dir;
    spew( "$dir/crl.$_->[0]", $_->[1] )
        for [ 'key', PEM_key2string( $of->{key} ) ], [ 'index', '' ], [ 'number', "01\n" ],
        [
        'conf',
        "[ca]\ndefault_ca=d\n[d]\ndatabase=$dir/crl.index\ncrlnumber=$dir/crl.number\ndefault_md=sha256\n"
        ];
    return
        qx(openssl ca -config $dir/crl.conf -gencrl -crldays 9 -cert @{[ $of->ca ]} -keyfile $dir/crl.key 2>/dev/null)
        || die 'openssl ca';
}
my $namesake = Sirius::Test::Certificates->new('An authority of tests');

my @wrong = (
    [   'a key that is too short',
        [ '--tls-cert' => $weak, '--tls-key' => $weak_key ],
        qr/--tls-cert \Q$weak\E: the key is too short: use RSA with 2048 bits, or ECDSA with P-256/
    ],
    [   'a damaged CA for clients',
        [ '--tls-cert' => $cert, '--tls-key' => $key, '--tls-client-ca' => $damaged ],
        qr/--tls-client-ca \Q$damaged\E: contains a certificate after the first that is damaged/
    ],
    [   'a CA for clients that has expired',
        [ '--tls-cert' => $cert, '--tls-key' => $key, '--tls-client-ca' => $old_alone ],
        qr/--tls-client-ca \Q$old_alone\E: each certificate in it has expired/
    ],
    [ 'no certificate', [], qr/--listen 127\.0\.0\.1:0,tls: TLS needs a certificate: give --tls-cert/ ],
    [   'a key of another certificate',
        [ '--tls-cert' => $cert, '--tls-key' => $wrong_key ],
        qr/--tls-key \Q$wrong_key\E: the key does not belong to the certificate in \Q$cert\E/
    ],
    [   'an expired certificate',
        [ '--tls-cert' => $old, '--tls-key' => $old_key ],
        qr/--tls-cert \Q$old\E: the certificate expired on \d{4}-\d\d-\d\d/
    ],
    [   'one that is not valid yet',
        [ '--tls-cert' => $future, '--tls-key' => $future_key ],
        qr/is not valid before \d{4}/
    ],
    [   'a missing chain',
        [ '--tls-cert' => $alone, '--tls-key' => $alone_key ],
        qr/--tls-cert \Q$alone\E: the chain is missing: .*alone\.example.*An authority of tests/
    ],
    [ 'a broken chain', [ '--tls-cert' => $broken, '--tls-key' => $key ], qr/--tls-key|the chain is broken/ ],
    [   'a damaged certificate in the chain',
        [ '--tls-cert' => $damaged, '--tls-key' => $key ],
        qr/--tls-cert \Q$damaged\E: contains a certificate after the first that is damaged/
    ],
    [   'a file that is not there',
        [ '--tls-cert' => '/no/such/file', '--tls-key' => $key ],
        qr{--tls-cert /no/such/file: No such file}
    ],
    [   'a file that has no certificate',
        [ '--tls-cert' => $rubbish, '--tls-key' => $key ],
        qr/--tls-cert \Q$rubbish\E: contains no certificate in PEM format/
    ],
    [   'a file that has no key',
        [ '--tls-cert' => $cert, '--tls-key' => $rubbish ],
        qr/--tls-key \Q$rubbish\E: contains no private key in PEM format/
    ],
    [   'a certificate, and no key anywhere',
        [ '--tls-cert' => $cert ],
        qr/--tls-cert \Q$cert\E: contains no private key in PEM format; if the key is in another file, name that with --tls-key/
    ],
    [   'a key with a passphrase',
        [ '--tls-cert' => $cert, '--tls-key' => $made->dir . '/locked.key' ],
        qr/is encrypted with a passphrase/
    ],
    [   'a key too many',
        [ '--tls-cert' => $cert, '--tls-key' => $key, '--tls-key' => $key ],
        qr/--tls-key: 2 given for 1 --tls-cert/
    ],
    [   'unknown ciphers',
        [ '--tls-cert' => $cert, '--tls-key' => $key, '--tls-ciphers' => 'NONSENSE' ],
        qr/--tls-ciphers selects nothing that OpenSSL knows: no cipher match/
    ],
    [   'an unknown version',
        [ '--tls-cert' => $cert, '--tls-key' => $key, '--tls-min' => '1.1' ],
        qr/--tls-min: '1\.1' is not one of 1\.2, 1\.3/
    ],
    [   'no CA for clients',
        [ '--tls-cert' => $cert, '--tls-key' => $key, '--tls-client-ca' => $rubbish ],
        qr/--tls-client-ca \Q$rubbish\E: contains no certificate/
    ],
    [   'a CRL without a CA',
        [ '--tls-cert' => $cert, '--tls-key' => $key, '--tls-client-crl' => $rubbish ],
        qr/--tls-client-crl: requires --tls-client-ca, which is not given/
    ],
    [   'no CRL',
        [ client_ca(), '--tls-client-crl' => $rubbish ],
        qr/--tls-client-crl \Q$rubbish\E: contains no CRL in PEM format/
    ],
    [   'a CRL that is not there',
        [ client_ca(), '--tls-client-crl' => "$rubbish.none" ],
        qr/--tls-client-crl \Q$rubbish.none\E: No such file or directory/
    ],
    [   'a damaged CRL behind a good one',
        [   client_ca(),
            '--tls-client-crl' =>
                $made->file( 'damaged-crl.pem', crl($made) . crl($made) =~ s/\n.{9}/\nAAAAAAAAA/r )
        ],
        qr/--tls-client-crl \S+: contains a CRL that is damaged/
    ],
    [   'a CRL with the name of the CA and another signature',
        [ client_ca(), '--tls-client-crl' => $made->file( 'forged-crl.pem', crl($namesake) ) ],
        qr/--tls-client-crl \S+: the CRL of An authority of tests is not signed with the key of that CA/
    ],
    [   'one in the file of the CA',
        [   '--tls-cert'      => $cert,
            '--tls-key'       => $key,
            '--tls-client-ca' => $made->file( 'ca-crl.pem', slurp( $made->ca ) . crl($namesake) )
        ],
        qr/--tls-client-ca \S+: the CRL of An authority of tests is not signed with the key of that CA/
    ],
    [   'an empty directory',
        [ '--tls-dir' => $made->dir ],
        qr/--tls-dir \Q@{[ $made->dir ]}\E: no directory in it has a fullchain\.pem/
    ],
);

for my $wrong (@wrong) {
    my ( $name, $args, $pattern ) = @$wrong;
    my $said = fails(@$args);
    like $said, qr/\Aexit 2: sirius: [^\n]*$pattern/, $name;
}

# As where only FIPS is allowed, and nobody has installed that: each cipher and each digest is missing
{
    my $conf = $made->file( 'openssl.cnf',
        "openssl_conf = a\n[a]\nalg_section = b\n[b]\ndefault_properties = fips=yes\n" );
    local $ENV{OPENSSL_CONF} = $conf;
    like fails( '--tls-cert' => $cert, '--tls-key' => $key ),
        qr/\Aexit 2: sirius: --tls-cert \Q$cert\E: OpenSSL refuses the certificate: [a-z]/,
        'an OpenSSL without ciphers';
    like fails('--tls-self-signed'), qr/\Aexit 2: sirius: --tls-self-signed: [a-z]/, 'or without digests';
}

sub slurp {
    open my $in, '<:raw', shift or return '';
    local $/;
    return readline($in) // '';
}

subtest 'the layout of certbot, and a file with both' => sub {
    my $dir = $made->dir . '/letsencrypt';
    mkdir $_ or die "$_: $!" for $dir, "$dir/live", map {"$dir/live/$_"} qw(a.example b.example);
    spew( "$dir/live/README", "text\n" );
    for my $name (qw(a.example b.example)) {
        my ( $chain, $private ) = $made->pem($name);
        spew( "$dir/live/$name/fullchain.pem", $chain );
        spew( "$dir/live/$name/privkey.pem",   $private );
    }
    my $both   = $made->file( 'both.pem', join '', $made->pem('both.example') );
    my $server = start_server(
        $app, '--listen', '127.0.0.1:0,tls',
        '--tls-cert' => $both,
        '--tls-dir'  => $dir,
        qw(--workers 1)
    );
    for my $name (qw(a.example b.example both.example)) {
        my $socket = IO::Socket::SSL->new(
            PeerAddr            => $server->address,
            SSL_ca_file         => $made->ca,
            SSL_hostname        => $name,
            SSL_verifycn_scheme => 'http'
        );
        ok $socket, $name or diag $IO::Socket::SSL::SSL_ERROR;
    }
    $server->stop;
};

subtest 'one in a directory has expired' => sub {
    my $dir     = $made->dir . '/some';
    my @expired = ( from => $today - 200_000, to => $today - 100_000 );
    my $put     = sub {
        my ( $name,  @option )  = @_;
        my ( $chain, $private ) = $made->pem( $name, @option );
        mkdir "$dir/$name";
        spew( "$dir/$name/fullchain.pem", $chain );
        spew( "$dir/$name/privkey.pem",   $private );
    };
    mkdir $dir or die "$dir: $!";
    $put->( $_, @expired ) for qw(a.example b.example);
    like fails( '--tls-dir' => $dir ),
        qr{\Aexit 2: sirius: [^\n]*--tls-cert \Q$dir\E/[ab]\.example/fullchain\.pem: the certificate expired on},
        'all: the server does not start';
    $put->('c.example');
    mkdir "$dir/d.example";
    symlink '../../archive/d.example/fullchain1.pem', "$dir/d.example/fullchain.pem" or die "symlink: $!";
    like fails( '--tls-dir' => $dir ),
        qr{\Aexit 2: sirius: [^\n]*--tls-cert \Q$dir\E/d\.example/fullchain\.pem: No such file},
        'a link that leads nowhere is told, and not skipped';
    unlink "$dir/d.example/fullchain.pem";
    my $server = start_server( $app, '--listen', '127.0.0.1:0,tls', '--tls-dir' => $dir, qw(--workers 1) );
    my $name   = sub {
        my $socket = IO::Socket::SSL->new(
            PeerAddr        => $server->address,
            SSL_hostname    => shift,
            SSL_verify_mode => SSL_VERIFY_NONE
        ) or return $IO::Socket::SSL::SSL_ERROR;
        return $socket->peer_certificate('commonName');
    };
    my $warned
        = qr{warn: --tls-dir: \Q$dir\E/a\.example/fullchain\.pem expired on \d{4}-\d\d-\d\d; it is used};
    like $server->log, $warned, 'the log warns at the start';
    is $name->('a.example'),     'a.example', 'it is in use';
    is $name->('c.example'),     'c.example', 'as the others are';
    is $name->('other.example'), 'c.example', 'a valid one is for all other names';
    my ($output)
        = map { scalar qx($_) }
        "$^X -Mblib=$FindBin::Bin/../../blib $FindBin::Bin/../../bin/sirius check --listen 127.0.0.1:0,tls --tls-dir $dir -e 'sub { [ 200, [], [] ] }' 2>&1";
    like $output, qr{^warning\b[^\n]*a\.example/fullchain\.pem expired}m, 'sirius check warns, too';

    $put->('b.example');
    $put->('c.example');
    my $from = length $server->log;
    $server->signal('HUP');
    ok $server->wait_log( qr/certificates reloaded: 3 certificates/, 30 ), 'others are renewed';
    my $since = substr $server->log, $from;
    like $since,   $warned,                 'it is told again';
    unlike $since, qr/b\.example.*expired/, 'what is renewed is valid';
    $server->stop;
};

subtest 'a certificate for development' => sub {
    my $server = start_server( $app, '--listen', '127.0.0.1:0,tls', qw(--tls-self-signed --workers 1) );
    my $socket = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE );
    ok $socket, 'connects';
    is join( q( ), map { $_ // '' } ( $socket->peer_certificate('subjectAltNames') )[ 0, 1 ] ),
        '2 localhost', 'for localhost';
    print {$socket} "GET / HTTP/1.0\r\n\r\n";
    like join( '', readline $socket ), qr/hello\z/, 'and serves';
    $server->stop;
    $server = start_server( $app, '--listen', '127.0.0.1:0,tls', qw(--tls-self-signed --workers 0) );
    $socket = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE );
    ok $socket, 'without workers, too';
    print {$socket} "GET / HTTP/1.0\r\n\r\n";
    like join( '', readline $socket ), qr/hello\z/, 'and serves';
    $server->stop;
};

# What a client sees of it, and how its start went: with this directory of state, or this environment
sub seen {
    my ( $state, @args ) = @_;
    my %env    = ref $state ? %$state : ( XDG_STATE_HOME => $state );
    my $server = Sirius::Test::Server->start(
        app  => $app,
        args => [ '--listen', '127.0.0.1:0,tls', '--tls-self-signed', @args ],
        env  => \%env
    );
    my $socket = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE )
        or die 'no connection';
    my $print = $socket->get_fingerprint('sha256');
    undef $socket;
    $server->stop;
    return $print;
}

subtest 'the certificate for development stays for the next start' => sub {
    my $dir   = File::Temp->newdir;
    my $file  = "$dir/some/state/sirius/self-signed.pem";
    my $first = seen( "$dir/some/state", qw(--workers 1) );
    is sprintf( '%o', ( stat $file )[2] & 07777 ), '600', 'kept in a file that nobody else can read';
    is sprintf( '%o', ( stat "$dir/some/state/sirius" )[2] & 07777 ), '700',  'nor its directory';
    is seen( "$dir/some/state", qw(--workers 1) ),                    $first, 'the next start has the same';
    is seen( "$dir/some/state", qw(--workers 0) ),                    $first, 'one without workers, too';
    isnt seen( "$dir/other", qw(--workers 1) ),                       $first, 'another user has another';
    my %home = ( XDG_STATE_HOME => '', HOME => "$dir/none" );
    isnt seen( \%home, qw(--workers 1) ), seen( \%home, qw(--workers 1) ),
        'one whose home does not exist has it anew each time';
    ok !-e $home{HOME}, 'which is not made';
    chmod 0644, $file or die $!;
    my $second = seen( "$dir/some/state", qw(--workers 1) );
    isnt $second,                                  $first, 'a key that others could read is used no more';
    is sprintf( '%o', ( stat $file )[2] & 07777 ), '600',  'the new one has a file of its own';
    spew( $file, substr slurp($file), 0, 300 );
    chmod 0600, $file or die $!;
    my $third = seen( "$dir/some/state", qw(--workers 1) );
    isnt $third,                                   $second, 'a damaged file is replaced';
    is seen( "$dir/some/state", qw(--workers 1) ), $third,  'for good';
    my @soon = $made->pem( 'localhost', self => 1, to => time + 20 * 86_400 );
    spew( $file, join '', @soon );
    isnt seen( "$dir/some/state", qw(--workers 1) ), $third, 'one that expires in 20 days is made anew';
    unlike slurp($file), qr/\Q$soon[1]\E/, 'in its place';
    unlink $file or die $!;
    symlink "$dir/elsewhere", $file or die $!;
    seen( "$dir/some/state", qw(--workers 1) );
    ok !-e "$dir/elsewhere",  'a link leads nowhere';
    ok -f $file && !-l $file, 'and is replaced';
    my $nowhere = spew( "$dir/nowhere", '' );
    ok seen( "$nowhere/state", qw(--workers 1) ), 'where it cannot be kept there is one nevertheless';
    is_deeply [ map {s{.*/}{}r} glob "$dir/some/state/sirius/*" ], ['self-signed.pem'],
        'nothing else is left';
};

subtest 'the certificate for development stays when the application changes' => sub {
    my $dir  = File::Temp->newdir;
    my $file = spew( "$dir/app.psgi", "sub { [ 200, [], ['0'] ] }\n" );
    my $server
        = start_server( "$file", '--listen', '127.0.0.1:0,tls', qw(--tls-self-signed --workers 1 --reload) );
    my $ask = sub {
        my $socket = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE )
            or return '';
        print {$socket} "GET / HTTP/1.0\r\n\r\n" or return '';
        return $socket->get_fingerprint . ( join( '', readline $socket ) =~ /\r\n\r\n(.*)/ )[0];
    };
    my $first = $ask->();
    like $first, qr/0\z/, 'before';
    for my $n ( 1, 2 ) {
        spew( $file, "sub { [ 200, [], ['$n'] ] }\n" );
        ok until_true( 30, sub { $ask->() =~ /$n\z/ } ), "change $n is there";
    }
    is $ask->(), $first =~ s/0\z/2/r, 'the certificate is the same';
    $server->stop;
};

no warnings qw(portable);    # addresses have 64 bits

# How many key bytes are in memory or in an open file of a process. Undefined if it has ended meanwhile
sub has_key {
    my ( $pid, @needles ) = @_;
    my $found = 0;
    open my $maps,   '<',     "/proc/$pid/maps" or return $! == ENOENT || $! == ESRCH ? undef : "maps: $!";
    open my $memory, '<:raw', "/proc/$pid/mem"  or return $! == ENOENT || $! == ESRCH ? undef : "mem: $!";
    while ( my $line = readline $maps ) {
        my ( $from, $to, $rights, $name ) = $line =~ /\A([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+\s*(.*)/
            or next;
        next if $rights !~ /\Ar/ || $name =~ /\A\[v/ || hex($to) - hex($from) > 2**28;
        sysseek $memory, hex $from, 0 or next;
        my $bytes = '';
        1 while sysread $memory, $bytes, 2**20, length $bytes and length $bytes < hex($to) - hex $from;
        $found += grep { index( $bytes, $_ ) >= 0 } @needles;
    }
    for my $fd ( glob "/proc/$pid/fd/*" ) {
        my $name = readlink $fd // '';
        $found++ if $name =~ /sirius-keys/;
        $found += grep { index( slurp($fd), $_ ) >= 0 } @needles
            if $name =~ m{\A/} && -f $name && -s _ < 2**24;
    }
    return $found;
}

subtest 'where the key is' => sub {
    plan skip_all => 'only root can look into all processes' if $>;
    my $private  = slurp($key);
    my ($base64) = $private =~ /-----\n(.*?)\n-----/s;
    my $der      = decode_base64($base64);
    my $number   = substr $der, index( $der, "\x04\x20" ) + 2, 32;    # the octet string of 32 bytes
    my @needles  = ( $number, scalar reverse($number), substr( $base64, 10, 40 ) );
    my $server   = start_server(
        "my \$x = 1;\n$app", '--listen', '127.0.0.1:0,tls',
        '--tls-cert' => $cert,
        '--tls-key'  => $key,
        qw(--workers 2)
    );
    my $ask = sub {
        my $socket = IO::Socket::SSL->new( PeerAddr => $server->address, SSL_verify_mode => SSL_VERIFY_NONE )
            or return '';
        print {$socket} "GET / HTTP/1.0\r\n\r\n";
        return join '', readline $socket;
    };
    like $ask->(), qr/hello\z/, 'serves';
    my $look = sub {
        my $when = shift;
        for my $pid ( $server->pid, $server->generations, $server->workers ) {
            next if Sirius::Test::Server::comm($pid) =~ /\Asirius: (?:keeper|admin)/;
            my ( $name, $has ) = ( Sirius::Test::Server::comm($pid), has_key( $pid, @needles ) );
            is $has, 0, "$when: not in $name" if defined $has;
        }
        my ($edge) = $server->edges;
        isnt has_key( $edge, @needles ), 0, "$when: but in the edge, so the search finds it";
    };
    $look->('at first');
    my @before = ( $server->generations, $server->workers );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload completed/, 30 ), 'a reload';
    ok until_true(
        30,
        sub {
            !grep { kill 0 => $_ } @before;
        }
        ),
        'and its predecessors have ended';
    ok $server->wait_log( qr/certificates reloaded/, 10 ), 'reads the files again';
    like $ask->(), qr/hello\z/, 'serves';
    $look->('after a reload');
    my ($edge) = $server->edges;
    kill KILL => $edge;
    ok until_true( 10, sub { my ($new) = $server->edges; $new && $new != $edge && $ask->() =~ /hello\z/ } ),
        'another edge has the key';
    $look->('after the end of an edge');
    my ($keeper) = grep { Sirius::Test::Server::comm($_) =~ /keeper/ } $server->processes;
    ok $keeper, 'there is a keeper';
    kill KILL => $keeper;
    ok $server->wait_log(qr/keeper $keeper was killed by signal 9/), 'which was killed';
    ok until_true(
        10,
        sub {
            grep { $_ != $keeper && Sirius::Test::Server::comm($_) =~ /keeper/ } $server->processes;
        }
        ),
        'and comes again';
    like $ask->(), qr/hello\z/, 'which nobody notices';
    $server->{may_crash} = 1;
    $server->stop;
};

done_testing;
