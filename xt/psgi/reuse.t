use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# What an application does with the file of its body once it has answered is its own business: the client gets
# the bytes that the file had when the application answered. Clients that do not read show it, as most of
# their response is still to be sent.

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $tmp = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

my $app = <<'APP';
use Fcntl qw(:flock :DEFAULT);
use File::Temp;
use IO::File;
my $dir  = 'DIR';
my $size = 0;
my $next = sub { };
sub path  { return "$dir/file$$" }
sub fresh { open my $out, '>', path() or die "open: $!"; print {$out} 'a' x $size; close $out or die "close: $!"; return }
sub read_only { open my $in, '<', path() or die "open: $!"; return $in }
sub write_all { my $out = shift; seek $out, 0, 0; truncate $out, 0; print {$out} 'b' x $size; $out->flush; return }
package Closing { our ( @ISA, $later ) = 'IO::File'; sub close { my $self = shift; $later->(); return $self->SUPER::close } }
$Closing::later = \&later;
my $scratch;
sub later {
    open my $out, '>', path() or die "open: $!";
    print {$out} 'b' x $size;
    return close $out;
}
# Each answers with a file, and returns with it what is done next
my %way = (
    scratch => sub {
        $scratch ||= File::Temp->new( DIR => $dir );
        seek $scratch, 0, 0;
        truncate $scratch, 0;
        print {$scratch} 'a' x $size;
        $scratch->flush;
        open my $in, '<', "$scratch" or die "open: $!";
        return $in, sub { write_all($scratch) };
    },
    unlinked => sub {
        open my $out, '+>', undef or die "open: $!";
        print {$out} 'a' x $size;
        $out->flush;
        seek $out, 0, 0;
        open my $body, '+<&', $out or die "dup: $!";
        return $body, sub { write_all($out) };
    },
    kept => sub {
        open my $out, '+>', path() or die "open: $!";
        print {$out} 'a' x $size;
        $out->flush;
        return read_only(), sub { write_all($out) };
    },
    replaced   => sub { fresh(); return read_only(), \&later },
    emptied    => sub { fresh(); return read_only(), sub { truncate path(), 0 or die "truncate: $!" } },
    shortened  => sub { fresh(); return read_only(), sub { truncate path(), $size - 10 or die "truncate: $!" } },
    patched    => sub { fresh(); return read_only(), sub { open my $out, '+<', path() or die "open: $!"; seek $out, $size / 2, 0; print {$out} 'b' x 5_000; close $out } },
    continued  => sub { fresh(); return read_only(), sub { open my $out, '>>', path() or die "open: $!"; print {$out} 'b' x 5_000; close $out } },
    removed    => sub { fresh(); return read_only(), sub { unlink path(); later() } },
    renamed    => sub { fresh(); return read_only(), sub { rename path(), path() . '.old'; later(); rename path() . '.old', path() } },
    program    => sub { fresh(); return read_only(), sub { system( 'dd', 'if=/dev/zero', 'of=' . path(), 'bs=1000', 'count=' . $size / 1000, 'status=none' ) == 0 or die "dd: $?" } },
    waiting    => sub { fresh(); return read_only(), sub { my $out; for ( 1 .. 200 ) { last if sysopen $out, path(), O_WRONLY | O_NONBLOCK; select undef, undef, undef, 0.05 } syswrite $out, 'b' x 9_000 or die "write: $!" } },
    same       => sub { fresh(); my $in = read_only(); open my $mine, '<&', $in or die "dup: $!"; return $in, sub { seek $mine, 5, 0; read $mine, my $some, 10; later() } },
    object     => sub { fresh(); return IO::File->new( path(), 'r' ), \&later },
    memory     => sub { my $text = 'a' x $size; open my $in, '<', \$text or die "open: $!"; return $in, sub { substr $text, 0, $size, 'b' x $size } },
    array      => sub { my $text = 'a' x $size; return [ $text ], sub { $text = 'b' x $size } },
    closing    => sub { fresh(); return Closing->new( path(), 'r' ), sub { } },
    cleaning   => sub { my $env = shift; fresh(); push @{ $env->{'psgix.cleanup.handlers'} }, \&later; return read_only(), sub { } },
    delayed    => sub { fresh(); return read_only(), \&later, 1 },
);
sub {
    my $env = shift;
    ( undef, my $name, $size ) = split m{/}, $env->{PATH_INFO};
    if ( $name eq 'next' ) { $next->(); return [ 200, [], ['done'] ] }
    if ( $name eq 'ways' ) { return [ 200, [], [ join q( ), sort keys %way ] ] }
    if ( $name eq 'system' ) { open my $in, '<', $^X or die "open: $!"; return [ 200, [], $in ] }
    ( my $body, $next, my $delayed ) = $way{$name}->($env);
    my $response = [ 200, [ 'Content-Type' => 'text/plain' ], $body ];
    return $response if !$delayed;
    return sub { $_[0]->($response); $next->(); $next = sub { } };
};
APP
$app =~ s/DIR/$dir/;

my $server = start_server( $app, qw(--workers 1 --tmpdir), "$tmp" );
my @ways   = split q( ), $server->ask('GET /ways')->body;

# The sizes: what is read at once, and what is sent from the file while the application goes on
for my $size ( 1_000, 9_000_000 ) {
    for my $way (@ways) {
        my $slow = $server->connect( rcvbuf => 8192 );
        $slow->send( request("GET /$way/$size") );
        is $server->ask("GET /next/$size")->body, 'done', "$size bytes, $way: the application goes on";
        my $body = $slow->response( patience => 30 )->body;
        is( ( $body =~ tr/a// ) . ' of ' . length $body,
            "$size of $size",
            'and the client gets the bytes of its response'
        );
    }
}

subtest 'a file that belongs to somebody else' => sub {
    open my $in, '<:raw', $^X or die "open: $!";
    my $want = do { local $/; <$in> };
    ok $server->ask('GET /system')->body eq $want, 'is sent as it is';
};

# How far each client has read differs, and one goes away
subtest 'many clients of one file' => sub {
    my @slow = map { $server->connect( rcvbuf => 8192 ) } 1 .. 4;
    my %rest;
    for my $client (@slow) {
        $client->send( request('GET /object/9000000') );
        $rest{$client} = $client->some( 1_000, 10 );
    }
    $slow[1]->abort;
    is $server->ask('GET /next/9000000')->body, 'done', 'are not waited for';
    for my $client ( @slow[ 0, 2, 3 ] ) {
        my $text = $rest{$client};
        while ( $text !~ /\r\n\r\n/ || length($text) - $+[0] < 9_000_000 ) {
            my $more = $client->some( 1, 20 );
            last if !length $more;
            $text .= $more;
        }
        my ($body) = $text =~ /\r\n\r\n(.*)/s;
        is $body =~ tr/a//, 9_000_000, 'and each gets all of it';
    }
};

subtest 'when all is sent' => sub {
    my @left;
    ok until_true(
        10,
        sub {
            !( @left = grep {/LEASE/} leases() );
        }
        ),
        'nobody would have to wait for the server'
        or diag @left;
    my @open;
    ok until_true(
        10,
        sub {
            !( @open = grep {m{\Q$dir\E/|\Q$tmp\E/}} map { opened($_) } $server->owners );
        }
        ),
        'and no file is left open'
        or diag "@open";
};

# Each dies so many microseconds later: before, between and after the lease, the file and what is said of it
subtest 'workers that die while they pass a file' => sub {
    my $mortal = start_server(
        <<'DYING' =~ s/DIR/$dir/r, qw(--workers 2 --err-respawn-interval 0.1 --tmpdir), "$tmp" );
use Time::HiRes qw(ualarm);
my $path = "DIR/dying$$";
open my $out, '>', $path or die "open: $!";
print {$out} 'a' x 200_000;
close $out or die "close: $!";
sub {
    my ( $slow, $wait ) = $_[0]{PATH_INFO} =~ m{/(?:(pid)|(\d+))};
    return [ 200, [], [ select( undef, undef, undef, 0.1 ) . $$ ] ] if $slow;
    open my $in, '<', $path or die "open: $!";
    ualarm $wait if $wait;
    return [ 200, [ 'Content-Type' => 'text/plain' ], $in ];
};
DYING
    my $whole
        = sub { my $r = $mortal->ask('GET /'); return $r->status eq '200' && length $r->body == 200_000 };
    ok $whole->(), 'a response';
    ok until_true(
        10,
        sub {
            my @clients = map { $mortal->connect } 1 .. 2;
            $_->send( request('GET /pid') ) for @clients;
            my %pid = map { ( $_->response->body => 1 ) } @clients;
            return keys %pid == 2;
        }
        ),
        'the edge knows both workers';
    my ($edge) = $mortal->owners;
    my @before = opened($edge);
    my %status;
    for my $i ( 1 .. 40 ) {
        my $client = $mortal->connect( rcvbuf => 8192 );
        $client->send( request( 'GET /' . $i * 10 ) );
        $status{ $client->response( patience => 30 )->status }++;
        $client->abort;
    }
    note join ', ', map {"$_: $status{$_}"} sort keys %status;
    ok until_true( 10, sub { ( () = $mortal->log =~ /worker \d+ .*ALRM/g ) == 40 } ), 'each has died'
        or diag $mortal->log;
    ok until_true( 10, sub { $whole->() } ), 'the server goes on';
    my @left;
    ok until_true(
        10,
        sub {
            !( @left = grep {/LEASE/} leases() );
        }
        ),
        'no lease is left'
        or diag @left;
    my @after;
    ok until_true( 10, sub { @after = opened($edge); @after <= @before } ), 'and no descriptor of the edge'
        or diag "@after, before @before";
    is( ( $mortal->owners )[0], $edge, 'which is the same' );
    $mortal->stop;
};

# Better a response that is cut than one with bytes of another
subtest 'no room for a copy' => sub {
    linux_only('no leases: what an application could change is copied at once');
    rmdir $tmp or die "rmdir: $!";
    my $slow = $server->connect( rcvbuf => 8192 );
    $slow->send( request('GET /replaced/9000000') );
    is $server->ask('GET /next/9000000')->body,   'done', 'the application goes on';
    is $slow->response( patience => 30 )->status, 'cut',  'and the client sees that something is missing';
    is $server->ask('GET /ways')->status,         200,    'the server goes on';
};

$server->stop;
done_testing;

# Locks of the processes of the server that own connections
sub leases {
    open my $in, '<', '/proc/locks' or die "/proc/locks: $!";
    my %inode = map { ( stat $_ )[1] => 1 } glob "$dir/*";
    return grep { / [0-9a-f]+:[0-9a-f]+:(\d+) / && $inode{$1} } <$in>;
}

sub opened {
    my $pid = shift;
    return grep {defined} map { readlink $_ } glob "/proc/$pid/fd/*";
}
