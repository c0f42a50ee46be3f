package Sirius::Test::Behind;

# What must get through any proxy in front of the server. Nothing that the server refuses or closes may become
# a 502 of the proxy.
#
#   my $behind = Sirius::Test::Behind->new( ways => [...], new => 'closed' );    # starts the servers
#   $behind->through($proxy);                                                     # which has a path for each way
#   $behind->test;

use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use File::Temp;
use Sirius::Test;
use Test::More;

my $APP = <<'APP';
use Digest::MD5;
my $large = substr join( '', map { chr( $_ * 7 % 251 ) } 1 .. 251 ) x 80_000, 0, 20_000_000;
my $file = __FILE__ . '.large';
open my $out, '>:raw', $file or die "$!";
print {$out} $large;
close $out or die "$!";
sub {
    my $env = shift;
    my ($what) = $env->{PATH_INFO} =~ m{([^/]*)\z};
    return [ 200, [], [ join ' ', @{$env}{qw(SERVER_PROTOCOL REMOTE_ADDR REMOTE_PORT)} ] ] if $what eq 'peer';
    return [ 200, [], [$large] ] if $what eq 'large';
    if ( $what eq 'file' ) { open my $in, '<:raw', $file or die "$!"; return [ 200, [], $in ] }
    return sub { my $w = shift->( [ 200, [] ] ); $w->write("part $_\n") for 1 .. 3; $w->close } if $what eq 'stream';
    die "on purpose\n" if $what eq 'die';
    return [ 200, [], ["Hello World"] ] if $env->{REQUEST_METHOD} eq "GET";
    my $in = $env->{"psgi.input"};
    return [ 200, [], [ join " ", $env->{REQUEST_METHOD}, $env->{CONTENT_LENGTH} || 0, Digest::MD5->new->addfile($in)->hexdigest ] ];
};
APP

# ways: names, each the first part of a path. new: the way that makes a connection for each request; its
# protocol may differ. refused: a sub that gets a client whose request is malformed, and returns the status
# and whether the server has sent the answer
sub new {
    my ( $class, %arg ) = @_;
    my $self = bless { protocol => 'HTTP/1.1', %arg, dir => File::Temp->newdir }, $class;
    my @app  = ( $APP, qw(--workers 2) );
    $self->{server}
        = start_server( @app, qw(--max-body 1m --max-request-line 8k --listen 127.0.0.1:0 --listen),
        $self->socket );
    $self->{mortal} = start_server( @app, qw(--max-reqs-per-child 200 --max-keepalive-reqs 50) );
    return $self;
}

# Where the servers are: an address and a unix socket of the first, and the address of the one whose
# connections and workers end
sub address { return ( shift->{server}->listeners )[0] }

sub socket { return shift->{dir} . '/sock' }

sub mortal { return shift->{mortal}->address }

sub through {
    my ( $self, $proxy ) = @_;
    $self->{proxy} = $proxy;
    return $self;
}

sub test {
    my $self = shift;
    subtest $_->[0] => sub { $_->[1]->($self); $self->no_errors }
        for [ 'the ways' => \&_ways ], [ '2000 requests' => \&_many ], [ 'responses' => \&_responses ],
        [ 'bodies' => \&_bodies ], [ '10 MB when 1 MB is allowed' => \&_too_large ],
        [ 'malformed requests' => \&_malformed ];
    return;
}

sub no_errors {
    my $self = shift;
    return is $self->{proxy}->log, '', 'the proxy has nothing to complain about';
}

sub stop {
    my $self = shift;
    return map { $_->stop } @{$self}{qw(server mortal)};
}

sub _client { return shift->{proxy}->connect }

sub _ways {
    my $self = shift;
    for my $way ( @{ $self->{ways} } ) {
        my ( %peer, $protocol, $addr );
        my $client = $self->_client;
        for ( 1 .. 20 ) {
            ( $protocol, $addr, my $peer ) = split / /, $client->ask("GET /$way/peer")->body;
            $peer{$peer}++;
        }
        my $new = $way eq $self->{new};
        is $protocol, $new ? $self->{protocol} : 'HTTP/1.1', "$way: protocol";
        next if $way eq 'unix';
        is $addr, '127.0.0.1', "$way: address";
        my $count = keys %peer;
        ok $new ? $count == 20 : $count == 1, "$way: 20 requests on $count connections";
    }
    return;
}

sub _many {
    my $self = shift;
    plan skip_all => 'ab is not installed' if !program('ab');
    my $url = 'http://127.0.0.1:' . $self->{proxy}->port;
    _ab( $_,                                 2000, '-k', '-c', 8, "$url/$_/hello" ) for @{ $self->{ways} };
    _ab( 'connections and workers that end', 2000, '-k', '-c', 8, "$url/mortal/hello" );
    return;
}

# A test: every request of ab is answered with 2xx and its whole body
sub _ab {
    my ( $name, $count, @args ) = @_;
    my $pid = open my $pipe, '-|', 'ab', '-q', '-s', 10, '-n', $count, @args or die "ab: $!";
    local $SIG{ALRM} = sub { kill KILL => $pid };
    alarm 30;
    my $out = do { local $/ = undef; readline $pipe };
    alarm 0;
    close $pipe;
    my %seen = $out =~ /^(Complete requests|Failed requests|Write errors|Non-2xx responses): +(\d+)/mg;
    my $want = { 'Complete requests' => $count, 'Failed requests' => 0 };
    return is_deeply( \%seen, $want, $name ) || diag $out;
}

sub _responses {
    my $self  = shift;
    my $large = md5_hex( substr join( '', map { chr( $_ * 7 % 251 ) } 1 .. 251 ) x 80_000, 0, 20_000_000 );
    for my $way ( @{ $self->{ways} } ) {
        my $client = $self->_client;
        is $self->_md5_of("/$way/$_"),             $large, "$way: 20 MB, $_" for qw(large file);
        is $client->ask("GET /$way/stream")->body, "part 1\npart 2\npart 3\n",        "$way: a stream";
        is $client->ask("GET /$way/die")->status,  500,                               "$way: 500 stays 500";
        is $client->ask("HEAD /$way/large")->header('Content-Length'), 20_000_000,    "$way: HEAD";
        is $client->ask("GET /$way/hello")->body,                      'Hello World', "$way: and it goes on";
    }
    return;
}

# The strict client is too slow for that many requests
sub _md5_of {
    my ( $self, $path ) = @_;
    my $client = $self->_client;
    $client->send( request( "GET $path", 'Connection: close' ) );
    my ( undef, $body ) = split /\r\n\r\n/, $client->rest(10), 2;
    return md5_hex($body);
}

sub _bodies {
    my $self = shift;
    my $body = join '', map { chr( $_ * 7 % 251 ) } 1 .. 900_000;
    for my $way ( @{ $self->{ways} } ) {
        my $client = $self->_client;
        is $client->ask( "POST /$way/x", \$body )->body, 'POST 900000 ' . md5_hex($body), "$way: 900 kB";
        $client->send( request( "PUT /$way/x", 'Transfer-Encoding: chunked' ) . join '',
            map( { sprintf "%x\r\n%s\r\n", length, $_ } unpack '(a10000)*', $body ), "0\r\n\r\n" );
        is $client->response->body, 'PUT 900000 ' . md5_hex($body), "$way: 900 kB in chunks";
        is $client->ask( "DELETE /$way/x", \'' )->body, 'DELETE 0 ' . md5_hex(''), "$way: DELETE";
        is $client->ask( "POST /$way/x", 'Expect: 100-continue', \'abc' )->body, 'POST 3 ' . md5_hex('abc'),
            "$way: Expect";
    }
    return;
}

sub _too_large {
    my $self  = shift;
    my $body  = 'x' x 10_000_000;
    my $chunk = "2710\r\n" . 'x' x 10_000 . "\r\n";
    for my $way ( @{ $self->{ways} } ) {
        my ( %status, %chunked );
        for ( 1 .. 20 ) {
            $status{ $self->_client->ask( "POST /$way/x", \$body )->status }++;
            my $client = $self->_client;
            $client->send(
                request( "POST /$way/x", 'Transfer-Encoding: chunked' ) . $chunk x 1000 . "0\r\n\r\n" );
            $chunked{ $client->response->status }++;
        }
        is_deeply \%status,  { 413 => 20 }, "$way: 413 each time";
        is_deeply \%chunked, { 413 => 20 }, "$way: 413 each time, in chunks";
    }
    return;
}

# Some of these are refused by the proxy, others are passed on and refused by the server: 400 from either is
# right, 502 would blame the server
sub _malformed {
    my $self  = shift;
    my ($way) = @{ $self->{ways} };
    my @bytes = (
        map( {"GET /$way/$_ HTTP/1.1\r\nHost: a\r\n\r\n"} "a\x7fb", 'a#b', 'a\\b', '%zz', "a\x01b",
            "a?\x7f" ),
        map( {"GET /$way/hello HTTP/1.1\r\nHost: $_\r\n\r\n"} '[::1',
            'a?b', 'a@b', "a\x80", 'a:99999', 'a b' ),
        map( {"GET /$way/hello HTTP/1.1\r\nHost: a\r\n$_\r\n\r\n"} 'X : a',
            "X: a\x01b", 'Content-Length: 5x',
            'Host: b',   "X: a\rb" ),
    );
    my $passed = 0;
    for my $bytes (@bytes) {
        my $client = $self->_client;
        $client->send($bytes);
        my ( $status, $ours ) = $self->{refused}->($client);
        ( my $name = $bytes ) =~ s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ge;
        is $status, 400, $name;
        $passed++ if $ours;
    }
    cmp_ok $passed, '>=', 6, "$passed of them were passed on";
    is $self->_client->ask( "GET /$way/" . 'a' x 9000 )->status, 414, 'too long a target';
    return;
}

1;
