use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Errno qw(EDQUOT EIO EMFILE ENOSPC EROFS);
use Test::More;
use Sirius::Test;
use Sirius::Test::Faults;
use Traffic;

# A disk that is full or broken: bodies are refused, lines are lost and counted, all else goes on. A disk that
# is really full has xt/security/disk_full.t, one that is full inside a line xt/c/sink.c

my $faults = Sirius::Test::Faults->new;
my $log    = "$faults->{dir}/access.log";
my $server = $faults->start(
    app  => $APP,
    args => [ qw(--workers 1 --admin 127.0.0.1:0), '--access-log', $log, '--tmpdir', "$faults->{dir}" ]
);
my ($worker) = $server->workers;
my @serve    = ( $server->owners, $worker );
my $body     = 'x' x 300_000;

sub lines {
    return scalar( () = Sirius::Test::Server::slurp($log) =~ /\n/g );
}

# docs/PROTOCOL.md: 507 is for a disk that is full
subtest 'a body that can not be written' => sub {
    my %status = ( ENOSPC => 507, EDQUOT => 507, EIO => 500, EROFS => 500, EMFILE => 503 );
    my %errno  = ( ENOSPC => ENOSPC, EDQUOT => EDQUOT, EIO => EIO, EROFS => EROFS, EMFILE => EMFILE );
    for my $name ( sort keys %status ) {
        for my $part ( 'the file', 'its first bytes', 'later ones' ) {
            my $before = $faults->injected('spool');
            $faults->nth( spool => $part eq 'the file' ? 1 : $part eq 'later ones' ? 3 : 2, $errno{$name} );
            my $answer = $server->ask( 'POST /', \$body );
            is $answer->status, $status{$name}, "$name, $part: $status{$name}";
            ok $answer->closes, 'and the connection ends';
            is $faults->injected('spool'), $before + 1, 'once';
        }
    }
    ok $server->wait_log(
        qr/requests? (?:was|were) answered with 503 because no descriptor was free: Too many open files/),
        'without a descriptor the log has advice about those';
    $faults->set( spool => 1 );
    is $server->ask( 'POST /', \'small' )->status, 200, 'a small one needs no disk';
    is $server->ask('GET /file')->status,          200, 'nor does what is read';
    $faults->clear;
    is_whole( $server, 'then all is well' );
};

# One that is too large for the socket, to a client that has not read yet; also, whether it was to be written
sub waiting_answer {
    my $memory = shift;
    my %before = map { $_ => $faults->injected($_) } qw(spool memory);
    my $slow   = $server->connect( rcvbuf => 4096 );
    is $slow->ask('GET /bytes/1')->status, 200, 'a client';
    $faults->set( spool => 1 );
    $faults->nth( memory => $memory ) if $memory;
    $slow->send( request('GET /bytes/5000000') );
    until_true(
        10,
        sub {
            grep { $faults->injected($_) > $before{$_} } $memory ? 'memory' : 'spool';
        }
    );
    my $spooled = $faults->injected('spool') > $before{spool};
    $faults->nth( memory => 0 );
    is $server->ask('GET /bytes/9')->status, 200, 'another client is served';
    $faults->clear;
    return ( $slow->response( patience => 60 ), $spooled );
}

subtest 'an answer that can not wait on the disk' => sub {
    my ( $answer, $spooled ) = waiting_answer();
    is length $answer->body, 5_000_000, 'it waits in memory';
    ok $spooled, 'as it could not be written';
    my %result;
    for my $number ( 1 .. 12 ) {    # of the memory that it needs
        ( $answer, $spooled ) = waiting_answer($number);
        $result{ $spooled ? 'disk' : 'before' }{ $answer->status }++;
    }
    ok $result{disk}{cut} || $result{disk}{reset},
        'when that is short as well, the client sees that it is cut'
        or diag explain \%result;
    is_deeply [ grep { !/\A(?:200|503|cut|reset|eof)\z/ } map { keys %$_ } values %result ], [],
        'and never less';
    ok $server->wait_log(qr{cut off: cannot keep what .* in --tmpdir \Q$faults->{dir}\E: \w}),
        'the log says where there is no room';
};

subtest 'a file that can not be read' => sub {
    my $before = $faults->injected('unread');
    $faults->nth( unread => 3 );
    like $server->ask('GET /file')->status, qr/\A(?:cut|reset)\z/, 'the client sees that it is cut';
    is $faults->injected('unread'), $before + 1, 'once';
    $faults->clear;
    is_whole( $server, 'the next one is whole' );
};

subtest 'the access log' => sub {
    my ( $before, $lines );
    ok until_true( 5, sub { $lines = lines(); select undef, undef, undef, 0.6; $lines == lines() } ),
        'it is calm';
    for my $name (qw(ENOSPC EIO)) {
        $before = $faults->injected('log');
        $faults->set( log => [ 1, $name eq 'EIO' ? EIO : ENOSPC ] );
        is $server->ask('GET /bytes/9')->status, 200, "$name: all is served" for 1 .. 20;
        ok until_true( 5, sub { $faults->injected('log') > $before } ), 'lines could not be written';
        my ( $cpu, $sleeps )
            = Sirius::Test::Faults->load_of( sub { select undef, undef, undef, 0.6 }, @serve );
        cmp_ok $cpu, '<', 0.08, "it does not spin: $cpu s of CPU, $sleeps sleeps";
        $faults->clear;
    }
    is lines(), $lines, 'none of these lines is there';
    $server->ask('GET /bytes/1?after');
    ok until_true( 5, sub { Sirius::Test::Server::slurp($log) =~ m{GET /bytes/1\?after } } ),
        'the next one is';
    is_deeply [ grep { !/\A127\.0\.0\.1 .* \d+\z|"\z/ } split /\n/, Sirius::Test::Server::slurp($log) ], [],
        'and all lines are whole';
    my ($admin) = $server->log =~ m{admin on http://(\S+?)/?$}m;
    my ($counted)
        = $server->connect( to => $admin )->ask('GET /metrics')->body
        =~ /^sirius_access_log_lost_lines_total (\d+)/m;
    is $counted, 40, 'what is lost was counted';
};

is_deeply [ $server->workers ], [$worker], 'the same worker';
$server->stop;
done_testing;
