use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use IO::Select;
use JSON::PP qw(decode_json);
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# what the server has done and what it does now, exact, also when workers come and go

# /board: a snapshot. /mark?FILE: marked until there is that file, then not until it is gone. /x/PORT/aaa:
# marked with the letter. /watch/S: looks at rows all the time, for S seconds and until it has seen some (with
# one processor it seldom does)
my $APP = <<'APP';
use utf8;
use JSON::PP ();
use Sirius::Scoreboard;
use Time::HiRes ();

sub torn {
    my $row = shift;
    return if $row->{line} !~ m{\AGET /x/(\d+)/((\w)\3*)\z};
    return "$row->{line} $row->{client} $row->{mark}"
        if $row->{client} ne "127.0.0.1:$1" || $row->{mark} !~ /\A\Q$3\E*\z/;
    $seen++;
    return;
}

sub {
    my $env = shift;
    my ( undef, $what, $with, $text ) = split m{/}, $env->{PATH_INFO};
    my $answer = "$$";
    if ( $what eq 'board' ) {
        $answer = JSON::PP->new->utf8->encode( Sirius::Scoreboard->snapshot );
    }
    elsif ( $what eq 'mark' ) {
        my ( $file, $end ) = ( $env->{QUERY_STRING}, time + 30 );
        Sirius::Scoreboard->mark("Bericht für 7\n");
        Time::HiRes::sleep(0.01) while !-e $file && time < $end;
        Sirius::Scoreboard->mark(undef);
        Time::HiRes::sleep(0.01) while -e $file && time < $end;
    }
    elsif ( $what eq 'marked' ) { Sirius::Scoreboard->mark('again') }
    elsif ( $what eq 'fork' ) {
        Sirius::Scoreboard->mark('parent');
        my $pid = fork;
        if ( !$pid ) { Sirius::Scoreboard->mark('child'); POSIX::_exit(0) }
        waitpid $pid, 0;
        $answer = Sirius::Scoreboard->current->row(0)->{mark};
    }
    elsif ( $what eq 'x' ) {
        for ( 1 .. 3 ) {
            Sirius::Scoreboard->mark( substr( $text, 0, 1 ) x rand 60 );
            Time::HiRes::sleep(0.0005) if rand() < 0.1;
        }
    }
    elsif ( $what eq 'watch' ) {
        my ( $board, %torn ) = Sirius::Scoreboard->current;
        our $seen = 0;
        my $began = Time::HiRes::time();
        while ( ( my $for = Time::HiRes::time() - $began ) < 30 ) {
            last if $for > $with && $seen > 9;
            $torn{$_}++ for map { torn( $board->row($_) ) } $board->occupied;
        }
        $answer = JSON::PP->new->utf8->encode( { seen => $seen, torn => [ keys %torn ] } );
    }
    elsif ( $what eq 'stream' ) {
        return sub {
            my $writer = shift->( [ 203, [] ] );
            $writer->write($_) for 1 .. 10;
            $writer->close;
        };
    }
    elsif ( $what eq 'die' ) { die 'on purpose' }
    elsif ( $what eq 'status' ) { return [ $with, [], [] ] }
    elsif ( $what eq 'short' ) { return [ 200, [ 'Content-Length' => 9 ], ['half'] ] }
    return [ 200, [ 'Content-Type' => 'text/plain' ], [$answer] ];
};
APP
$APP = "use POSIX ();\nour \$seen;\n$APP";

# All bytes that all clients have read
my $bytes = 0;
{
    no warnings 'redefine';
    my $read = \&Sirius::Test::Client::_read;
    *Sirius::Test::Client::_read = sub {
        my $before = length $_[0]{in};
        my @result = $read->(@_);
        $bytes += length( $_[0]{in} ) - $before;
        return wantarray ? @result : $result[0];
    };
}

# Asks for snapshots until one is as wanted, for a response is counted just after it was sent. The code gets
# the snapshot, and what was asked for by this sub before, which is in it: requests and their bytes. Returns
# the same
sub board {
    my ( $server, $wanted ) = @_;
    my ( $asked,  $own )    = ( 0, 0 );
    my $client = $server->connect;
    my @last;
    until_true(
        15,
        sub {
            my $before   = $bytes;
            my $response = $client->ask('GET /board');
            $client = $server->connect if $response->closes;
            @last   = ( decode_json( $response->body ), $asked, $own );
            $asked++;
            $own += $bytes - $before;
            return $wanted->(@last);
        }
    );
    return @last;
}

sub sum {
    my $sum = 0;
    $sum += $_ for @_;
    return $sum;
}

# A test: it can be what requests took
sub times_ok {
    my ( $time, $count ) = @_;
    my @buckets = @{ $time->{buckets} };
    is $time->{count},  $count, 'each is in it';
    is $buckets[-1][1], $count, 'the last bucket has all of them';
    ok !( grep { $buckets[$_][1] < $buckets[ $_ - 1 ][1] } 1 .. $#buckets ),
        'none has less than the one before';
    my @part = @{$time}{qw(p50 p90 p99 p999)};
    ok !( grep { $part[ $_ - 1 ] > $part[$_] } 1 .. $#part ), 'percentiles in order' or diag "@part";
    return;
}

subtest 'every request is counted, over reloads and recycling' => sub {
    my $server = start_server( $APP, qw(--workers 2 --max-reqs-per-child 9) );
    my ( $requests, %status ) = (0);
    $bytes = 0;
    my @client = map { $server->connect } 1 .. 4;
    my $ask    = sub {
        my $client   = \$client[ $requests++ % @client ];
        my $response = $$client->ask("GET $_[0]");
        $status{ substr $response->status, 0, 1 }++;
        $$client = $server->connect if $response->closes;
    };
    for my $round ( 1 .. 3 ) {
        $ask->($_) for map { ( '/', '/stream', '/status/404', '/status/302', '/die' ) } 1 .. 8;
        my %old = map { $_ => 1 } $server->generations;
        $server->signal('HUP');
        ok until_true(
            20,
            sub {
                $ask->('/');
                my @now = $server->generations;
                !grep { $old{$_} } @now;
            }
            ),
            'reloaded'
            or diag $server->log;
    }
    my $read = $bytes;

    # A connection that ends while the snapshot is taken is closed in one of its numbers and open in another
    my $unclosed = sub { $_[0]{accepted} - sum( values %{ $_[0]{closed} } ) };
    my ( $board, $asked, $own ) = board(
        $server,
        sub {
            my ( $got, $asked, $own ) = @_;
            return
                   $got->{totals}{bytes} == $read + $own
                && $got->{latency}{count} == $requests + $asked
                && $unclosed->( $got->{totals} ) == $got->{connections}{open};
        }
    );
    my $totals = $board->{totals};
    is $totals->{requests}, $requests + $asked + 1, "$requests requests, and the snapshots";
    is $totals->{bytes},    $read + $own,           'the bytes that clients have read';
    is_deeply $totals->{responses}, { %status, 1 => 0, 2 => $status{2} + $asked }, 'by status';
    times_ok( $board->{latency}, $requests + $asked );
    times_ok( $board->{queue},   $requests + $asked + 1 );
    is $totals->{aborted} + $totals->{refused}, 0,        'none was aborted or refused';
    is $unclosed->($totals), $board->{connections}{open}, 'connections that are not closed are open';
    $server->stop;
};

subtest 'what is refused, and what ends early' => sub {
    my $server = start_server( $APP, qw(--workers 1 --max-body 10 --max-request-line 100) );
    $bytes = 0;
    for my $bad (
        "BAD\r\n\r\n",
        request( 'POST /', \( 'x' x 11 ) ),
        request( 'GET /' . 'x' x 100 ),
        request( 'POST /', 'Transfer-Encoding: x' )
        )
    {
        my $client = $server->connect;
        $client->send($bad);
        $client->rest;
    }
    is $server->ask('GET /short')->status, 'cut', 'a response that is shorter than it says';
    my $read = $bytes;
    my ( $board, $asked, $own )
        = board( $server, sub { my ( $got, $asked, $own ) = @_; $got->{totals}{bytes} == $read + $own } );
    my $totals = $board->{totals};
    is $totals->{refused}, 4, 'bad requests';
    is_deeply $totals->{responses}, { 1 => 0, 2 => 1 + $asked, 3 => 0, 4 => 3, 5 => 1 }, 'by status';
    is $totals->{requests},        $asked + 2,   'no application has seen them';
    is $totals->{bytes},           $read + $own, 'their bytes are counted';
    is $totals->{aborted},         1,            'what was cut';
    is $board->{latency}{count},   $asked,       'neither has taken time';
    is $totals->{closed}{refused}, 4,            'their connections were closed for that';
    $server->stop;
};

subtest 'what workers do' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    my $client = $server->connect;
    my $marked = sub {
        my $mark = shift;
        my ($got) = board(
            $server,
            sub {
                grep { $_->{line} =~ m{/mark[?]} && $_->{mark} eq $mark } @{ $_[0]{workers} };
            }
        );
        return $got, grep { $_->{line} =~ m{/mark[?]} } @{ $got->{workers} };
    };
    my $file = $server->dir . '/go-on';
    $client->send( request("GET /mark?$file") );
    my ( $board, $row ) = $marked->("Bericht f\xfcr 7 ");
    is $row->{mark},   "Bericht f\xfcr 7 ",          'what the application says';
    is $row->{line},   "GET /mark?$file",            'what it was asked';
    is $row->{client}, '127.0.0.1:' . $client->port, 'by whom';
    is $row->{state},  'busy',                       'it is busy';
    ok $row->{began} <= $board->{now} && $row->{began} > $board->{now} - 60, 'since when';
    is_deeply [ sort map { $_->{pid} } @{ $board->{workers} } ], [ sort $server->workers ],
        'the other is there too';

    for my $worker ( @{ $board->{workers} } ) {
        my $kib = $server->memory( $worker->{pid} );
        ok abs( $worker->{rss} / 1024 - $kib ) < $kib / 2, 'memory' or diag "$worker->{rss}, $kib KiB";
    }
    is $board->{wanted}, 2, 'as many as wanted';
    $server->file( 'go-on', '' );
    ( undef, $row ) = $marked->('');
    is $row->{mark}, '', 'cleared';
    unlink $file or die $!;
    is $client->response->status,           200, 'answered';
    is $client->ask('GET /marked')->status, 200, 'another one, marked';
    ($board) = board(
        $server,
        sub {
            1 == grep { $_->{line} } @{ $_[0]{workers} };
        }
    );
    is_deeply [ map {"$_->{line}$_->{mark}"} grep { $_->{line} } @{ $board->{workers} } ], ['GET /board'],
        'nothing is left of it';
    $server->stop;
};

subtest 'a child of the application has no mark' => sub {
    my $server = start_server( $APP, qw(--workers 1) );
    is $server->ask('GET /fork')->body, 'parent', 'its parent has';
    $server->stop;
};

subtest 'rows are whole while they change' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    my $watch  = $server->connect;
    $watch->send( request('GET /watch/1.5') );
    my @client  = map { $server->connect } 1 .. 3;
    my $watched = IO::Select->new( $watch->socket );
    for ( my ( $i, $end ) = ( 0, time + 30 ); time < $end && !$watched->can_read(0); $i++ ) {
        for my $client (@client) {
            my $letters = chr( ord('a') + $i % 26 ) x ( 1 + $i % 90 );
            $client->send( request( join '/', 'GET /x', $client->port, $letters ) );
        }
        $_->response for @client;
    }
    my $got = decode_json( $watch->response->body );
    is_deeply $got->{torn}, [], 'none is torn';
    cmp_ok $got->{seen}, '>', 9, "$got->{seen} were seen";
    $server->stop;
};

subtest 'the edge is killed' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    $server->{may_crash} = 1;
    my @client = map { my $client = $server->connect; $client->ask('GET /'); $client } 1 .. 6;
    kill KILL => $server->edges;
    is $_->end, 'eof', 'its clients see the end' for @client;
    my ($board) = board(
        $server,
        sub {
            my $totals = $_[0]{totals};
            return $totals->{requests} == 7 + $_[1] && $totals->{closed}{error} == 6;
        }
    );
    is $board->{totals}{requests},      $board->{queue}{count}, 'requests are counted on';
    is $board->{totals}{closed}{error}, 6,                      'and its connections are closed';
    $server->stop;
};

subtest '--workers 0' => sub {
    my $server = start_server( $APP, qw(--workers 0) );
    my ($board) = board( $server, sub { $_[0]{totals}{requests} == 3 } );
    is scalar @{ $board->{workers} }, 1,            'one worker';
    is $board->{workers}[0]{pid},     $server->pid, 'which is all';
    is $board->{workers}[0]{line},    'GET /board', 'and asks that itself';
    is $board->{latency}{count},      2,            'it has answered two before';
    $server->stop;
};

done_testing;
