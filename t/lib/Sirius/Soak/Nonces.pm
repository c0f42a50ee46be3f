package Sirius::Soak::Nonces;

# Does each response carry what its request has sent, whatever is killed, renewed or too late meanwhile?
# t/lib/nonce.c sends requests with a nonce, fast, and checks each byte of the responses; here are the
# application, the servers and the faults.

use strict;
use warnings;
use Config     qw(%Config);
use File::Path qw(make_path);
use File::Temp;
use List::Util  qw(max sum);
use POSIX       ();
use Time::HiRes qw(sleep time);
use Sirius::Test::Server;
use Test::More;

# The kinds of responses: a array, l with its length, m many pieces, w by a callback, g getline, s stream, e
# after an early hint, f a new file, F one that is written anew at once, p a stream with pauses, o one that
# takes long, d dies before it, x within it, c sends less than it has announced, k is killed within it
my $APP = <<'APP';
use strict;
use warnings;
use IO::Handle;
use Time::HiRes qw(sleep);
my $data = do { open my $in, '<:raw', $ENV{NONCE_DATA} or die "$ENV{NONCE_DATA}: $!"; local $/; readline $in };
my $scratch;
package Pieces { sub new { my ( $class, @pieces ) = @_; bless \@pieces, $class } sub getline { shift @{ $_[0] } } sub close { } }

sub derived {
    my ( $nonce, $length ) = @_;
    return substr( $data, hex substr( $nonce, 0, 4 ), $length ) ^ substr( $nonce x ( 1 + $length / 16 ), 0, $length );
}

sub pieces {
    my ( $body, $most ) = @_;
    $most = int $most;
    return unpack "(a$most)*", $body;
}

sub streamed {
    my ( $head, $code ) = @_;
    return sub { my $writer = $_[0]->( [ 200, $head ] ); $code->($writer); $writer->close };
}

my %kind = (
    a => sub { my ( $head, $body ) = @_; [ 200, $head, [$body] ] },
    c => sub {
        my ( $head, $body ) = @_;
        [ 200, [ @$head, 'Content-Length' => length $body ], [ substr $body, 0, length($body) / 2 ] ];
    },
    d => sub { die "on purpose\n" },
    e => sub {
        my ( $head, $body, $env ) = @_;
        $env->{'psgix.informational'}->( 103, [ Link => '</a>' ] );
        [ 200, $head, [$body] ];
    },
    f => sub {
        my ( $head, $body ) = @_;
        open my $file, '+>', undef or die "no file: $!";
        print {$file} $body;
        seek $file, 0, 0;
        [ 200, $head, $file ];
    },
    F => sub {
        my ( $head, $body ) = @_;
        my $path = "$ENV{NONCE_DATA}.$$";
        if ( ord($body) & 1 || !$scratch ) { open $scratch, '+>', $path or die "$path: $!" }
        seek $scratch, 0, 0;
        truncate $scratch, 0;
        print {$scratch} $body;
        $scratch->flush;
        open my $file, '<', $path or die "$path: $!";
        [ 200, $head, $file ];
    },
    g => sub { my ( $head, $body ) = @_; [ 200, $head, Pieces->new( pieces( $body, 3000 ) ) ] },
    k => sub {
        my ( $head, $body ) = @_;
        streamed( $head, sub { shift->write( substr $body, 0, length($body) / 2 ); kill KILL => $$; sleep 5 } );
    },
    l => sub { my ( $head, $body ) = @_; [ 200, [ @$head, 'Content-Length' => length $body ], [$body] ] },
    m => sub { my ( $head, $body ) = @_; [ 200, $head, [ pieces( $body, 1 + length($body) / 9 ) ] ] },
    o => sub {
        my ( $head, $body ) = @_;
        my $before = ord($body) & 1;
        sleep 0.05 if $before;
        streamed(
            $head,
            sub {
                my $half = length($body) / 2;
                $_[0]->write( substr $body, 0, $half );
                sleep 0.05 if !$before;
                $_[0]->write( substr $body, $half );
            }
        );
    },
    p => sub {
        my ( $head, $body ) = @_;
        streamed( $head, sub { for ( pieces( $body, 1 + length($body) / 4 ) ) { $_[0]->write($_); sleep 0.005 * rand 4 } } );
    },
    s => sub { my ( $head, $body ) = @_; streamed( $head, sub { $_[0]->write($_) for pieces( $body, 2500 ) } ) },
    w => sub { my ( $head, $body ) = @_; sub { $_[0]->( [ 200, $head, [$body] ] ) } },
    x => sub {
        my ( $head, $body ) = @_;
        streamed( $head, sub { $_[0]->write( substr $body, 0, length($body) / 2 ); die "on purpose\n" } );
    },
);

sub {
    my $env = shift;
    my ( undef, $nonce, $kind, $length ) = split m{/}, $env->{PATH_INFO};
    my $head = [ 'X-Nonce' => $nonce ];
    my $sent = '';
    1 while $env->{'psgi.input'}->read( $sent, 65_536, length $sent );
    my $right = $env->{HTTP_X_NONCE} eq $nonce && $sent eq derived( $nonce, length $sent );
    return [ 500, $head, ['another request'] ] if !$right;
    return $kind{$kind}->( $head, derived( $nonce, $length ), $env );
};
APP

# Each server, with its part of the requests, the options of the server and of the client, the average time
# between two faults of a kind in seconds, and the part of the requests that has to be answered whole
my %USUAL = ( worker => 0.2, edge => 1, reload => 5 );
my @PLACE = (
    { name => 'plain', part => 22, faults => {%USUAL} },
    {   name   => 'TLS',
        part   => 18,
        args   => [qw(--enable-ssl --tls-self-signed)],
        client => [qw(tls=1)],
        faults => {%USUAL}
    },
    { name => 'two edges', part => 22, args => [qw(--edges 2)], faults => {%USUAL} },
    { name => 'an update', part => 20, args => [qw(--edges 2)], faults => { worker => 1, update => 3 } },
    {   name   => 'recycling',
        part   => 6,
        args   => [qw(--max-reqs-per-child 3 --edges 2)],
        faults => { worker => 1, edge => 2, reload => 5 }
    },
    {   name   => 'limits',
        part   => 12,
        args   => [qw(--request-timeout 0.02 --stream-timeout 0.02 --queue-timeout 0.02)],
        client => [qw(slow=1)],
        faults => { worker => 1, edge => 5, reload => 5 },
        whole  => 0.1,
    },
);

# Options: requests, of all servers together; seed; clients (connections at a time); build, a folder with
# another build, for the updates; pace, a factor for the times between two faults; only, names of servers
sub run {
    my ( $class, %option ) = @_;
    my $self = bless {
        clients => 32,
        pace    => 1,
        seed    => time,
        %option, dir => File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 )
        },
        $class;
    my ( $client, $tls ) = $self->_client;
    if ( !$client ) {
        fail 'a client can be compiled';
        return;
    }
    note "seed $self->{seed}";
    srand $self->{seed};
    $self->{data} = "$self->{dir}/data";
    system( $client, 'data', $self->{data} ) == 0 or die "no data\n";
    my %only  = map     { $_ => 1 } @{ $option{only} || [ map { $_->{name} } @PLACE ] };
    my @place = grep    { $only{ $_->{name} } && ( $tls || $_->{name} ne 'TLS' ) } @PLACE;
    my $parts = sum map { $_->{part} } @place;
    my %sum;

    for my $place (@place) {
        my $count
            = $self->_place( $place, $client, POSIX::ceil( $option{requests} * $place->{part} / $parts ) );
        $sum{$_} += $count->{$_} for keys %$count;
    }
    note join ' ', 'all:', map {"$_=$sum{$_}"} sort keys %sum;
    is $sum{wrong_party},        0, "of $sum{requests} requests none got the response of another";
    is $sum{wrong} + $sum{hung}, 0, 'none was wrong and complete, or had no end';
    return;
}

# The program, and whether it speaks TLS
sub _client {
    my $self   = shift;
    my $root   = $Sirius::Test::Server::ROOT;
    my $source = "$root/t/lib/nonce.c";
    make_path("$root/build");
    for my $tls ( 1, 0 ) {
        my $built = "$root/build/nonce" . ( $tls ? '-tls' : '' );
        return ( $built, $tls ) if -e $built && -M $built <= -M $source;
        my @flags     = ( qw(-std=gnu11 -Wall -Wextra -Werror -O2), $tls ? '-DNONCE_TLS' : () );
        my $log       = "$self->{dir}/compiler";
        my @libraries = $tls ? qw(-lssl -lcrypto) : ();
        return ( $built, $tls )
            if system("$Config{cc} @flags -o $built.$$ $source @libraries >$log 2>&1") == 0
            && rename "$built.$$", $built;
        diag Sirius::Test::Server::slurp($log) if !$tls;
    }
    return;
}

# Two builds beside each other, and a link to the one that is installed
sub _install {
    my $self = shift;
    my $root = $Sirius::Test::Server::ROOT;
    my @from = ( $root, $self->{build} || $root );
    if ( !$self->{built} ) {
        for my $i ( 0, 1 ) {
            mkdir "$self->{dir}/$i";
            system( 'cp', '-a', "$from[$i]/blib", "$from[$i]/bin", "$self->{dir}/$i" ) == 0
                or die "cannot copy $from[$i]\n";
        }
        $self->{built} = 1;
    }
    $self->{installed} = 1 - ( $self->{installed} // 1 );
    symlink $self->{installed}, "$self->{dir}/new" or die "symlink: $!";
    rename "$self->{dir}/new", "$self->{dir}/sirius" or die "rename: $!";
    return "$self->{dir}/sirius";
}

# One server and its clients. Returns what was counted
sub _place {
    my ( $self, $place, $client, $requests ) = @_;
    my %faults  = %{ $place->{faults} };
    my @command = ( $^X, "$Sirius::Test::Server::ROOT/bin/sirius" );
    if ( $faults{update} ) {
        my $folder = $self->_install;
        @command = ( $^X, "-I$folder/blib/lib", "-I$folder/blib/arch", "$folder/bin/sirius" );
    }
    my $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [ qw(--workers 4 --body-memory 20k --err-respawn-interval 0.05), @{ $place->{args} || [] } ],
        command => [ @command, '-E', 'deployment' ],
        env     => { NONCE_DATA => $self->{data} },
    );
    $server->{may_crash} = 1;
    my @words = (
        "requests=$requests",
        "connections=$self->{clients}",
        'seed=' . int rand 1e9,
        'cancel=10', 'dies=1', 'reuse=1', @{ $place->{client} || [] }
    );
    open my $said, '-|', $client, $server->port, $self->{data}, @words or die "$client: $!";
    my ( $lines, %done ) = $self->_storm( $server, $said, %faults );
    my $status = close($said) ? 0 : $? >> 8;
    my %count  = $lines =~ /\b(\w+)=([\d.]+)/g;
    my $name   = $place->{name};
    note "$name: ", $lines =~ s/\n\z//r;
    note "$name: ", join ', ', map {"$done{$_} x $_"} sort keys %done;
    is $status, 0, "$name: $requests requests, nothing was wrong" or diag $lines, $server->log;
    cmp_ok $count{whole} || 0, '>', ( $place->{whole} || 0.3 ) * $requests, 'and enough responses are whole';
    $server->stop;
    return { map { $_ => $count{$_} || 0 }
            qw(requests whole cut unanswered refused cancelled wrong wrong_party hung) };
}

# Kills, renews and reloads until the client is done. Returns its output, and the number of each
sub _storm {
    my ( $self, $server, $said, %each ) = @_;
    my ( $lines, %done ) = ('');
    $_ *= $self->{pace} for values %each;
    my %next = map { $_ => time + rand $each{$_} } keys %each;
    for ( ;; ) {
        my ($first) = sort { $next{$a} <=> $next{$b} } keys %next;
        vec( my $read = '', fileno $said, 1 ) = 1;
        if ( select $read, undef, undef, max( 0, $next{$first} - time ) ) {
            sysread( $said, $lines, 4096, length $lines ) or return ( $lines, %done );
            next;
        }
        $done{$first} += $self->_do( $server, $first );
        $next{$first} = time + 2 * rand $each{$first};
    }
}

sub _do {
    my ( $self, $server, $what ) = @_;
    return kill HUP => $server->pid if $what eq 'reload';
    if ( $what eq 'update' ) {
        $self->_install;
        return kill HUP => $server->pid;
    }
    my @pid = $what eq 'edge' ? $server->edges : $server->workers;
    return @pid ? kill KILL => $pid[ rand @pid ] : 0;
}

1;
