use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Channel;
use Sirius::Test;

# What subscribers get of what is published: all of it, whole, in the order of each publisher, of any kind

my $APP = <<'APP';
use POSIX ();
use Sirius::Channel;

sub {
    my $env = shift;
    my ( undef, $what, @args ) = split m{/}, $env->{PATH_INFO};
    return [ 200, [ 'Content-Type' => 'text/plain', 'Grip-Hold' => $what, 'Grip-Channel' => $args[0], 'Grip-Timeout' => 30 ], ["begin\n"] ]
        if $what =~ /\A(?:stream|response)\z/;
    my ( $channel, $from, $to, $bytes ) = @args;
    my $pid = $what eq 'fork' ? fork : undef;
    if ( defined $pid && $pid ) {
        waitpid $pid, 0;
        return [ 200, [], [ $? >> 8 ] ];
    }
    my $failed = 0;
    for my $number ( $from .. $to ) {
        eval { Sirius::Channel->publish( $channel => "$what$number" . '.' x ( $bytes || 0 ) . "\n" ) } or $failed++;
    }
    POSIX::_exit($failed) if defined $pid;
    return [ 200, [], [$failed] ];
}
APP

my $dir  = File::Temp->newdir( 'sirius-published-XXXXXX', TMPDIR => 1 );
my $path = "$dir/control";
delete $ENV{SIRIUS_CONTROL};

sub server  { return start_server( $APP, '--hold', '--control' => $path, @_ ) }
sub publish { return Sirius::Channel->publish( @_, control => $path ) }

# The bodies, each once
sub bodies {
    my %body;
    $body{ $_->response( patience => 30 )->body }++ for @_;
    return sort keys %body;
}

subtest 'In order' => sub {
    my $server = server(qw(--workers 4 --edges 2));
    my @all    = $server->subscribers( 30, '/stream/news' );
    my @other  = $server->subscribers( 2,  '/stream/other' );
    my @pids;
    for my $name ( 'cron', 'job' ) {
        my $pid = fork // die $!;
        if ( !$pid ) {
            publish( news => "$name$_\n" ) for 1 .. 100;
            POSIX::_exit(0);
        }
        push @pids, $pid;
    }
    my @clients = map {
        my ( $what, $bytes ) = @$_;
        my $client = $server->connect;
        $client->send( request("GET /$what/news/1/100/$bytes") );
        $client;
    } [ web => 0 ], [ large => 20_000 ], [ fork => 10 ];
    is $_->response( patience => 30 )->body, '0', 'a worker has published' for @clients;
    waitpid $_, 0 for @pids;
    publish( $_ => undef, close => 1 ) for qw(news other);
    my ( @kinds, @wrong );
    for my $body ( map { $_->response( patience => 30 )->body } @all ) {
        my %next;
        for my $line ( split /\n/, $body ) {
            my ( $name, $number, $dots ) = $line =~ /\A([a-z]+)(\d+)?(\.*)\z/ or push @wrong, $line;
            push @wrong, $line if defined $number && $number != ++$next{$name};
            push @wrong, $line if length $dots != ( $name eq 'large' ? 20_000 : $name eq 'fork' ? 10 : 0 );
        }
        push @kinds, join ' ', map {"$_ $next{$_}"} sort keys %next;
    }
    is_deeply [ grep { $_ ne 'cron 100 fork 100 job 100 large 100 web 100' } @kinds ], [],
        'each has all that was published';
    is scalar @kinds, 30, 'on both edges';
    is_deeply \@wrong,            [],          'whole, and in the order of its publisher';
    is_deeply [ bodies(@other) ], ["begin\n"], 'nobody gets what is of another channel';
    is $server->board->{totals}{delivered}, 30 * 501 + 2, 'deliveries';
};

subtest 'Formats' => sub {
    my $server = server(qw(--workers 1));
    my @stream = $server->subscribers( 3, '/stream/a' );
    my @wait   = $server->subscribers( 3, '/response/a' );
    publish( a => "one\n" );
    my %response = ( code => 201, headers => { 'X-Own' => 'yes', 'Content-Length' => 3 }, body => "two\n" );
    publish( a => undef, formats => { 'http-response' => \%response } );
    my @answers = map { $_->response( patience => 10 ) } @wait;
    is_deeply [ map { $_->status . $_->body . $_->header('X-Own') } @answers ], [ ("201two\nyes") x 3 ],
        'a response is for those that wait for one';
    is_deeply [ map { $_->header('Content-Type') } @answers ], [ ('text/plain') x 3 ],
        'it has the fields of the one that was held, but for its own';
    my $large = join '', map { chr rand 256 } 1 .. 1_000_000;
    publish( a => $large, close => 1 );
    my @got = map { $_->response( patience => 10 ) } @stream;
    is_deeply [ map { $_->status . q( ) . md5_hex( $_->body ) } @got ],
        [ ( "200 " . md5_hex("begin\none\n$large") ) x 3 ], 'the rest for streams, also a large one';
    is $server->held, 0, 'nobody is held any more';
    my ($late) = $server->subscribers( 1, '/stream/a' );
    publish( a => undef, close => 1 );
    is_deeply [ bodies($late) ], ["begin\n"], 'nobody gets what was published before';
};

subtest 'A client that does not read' => sub {
    my $server = server(qw(--workers 1 --hold-buffer 100k));
    my $slow   = $server->connect( rcvbuf => 4096 );
    $slow->send( request('GET /stream/a') );
    until_true( 20, sub { $server->held == 1 } );
    my @fast = $server->subscribers( 2, '/stream/a' );
    my $sum  = 0;
    until_true(
        30,
        sub {
            publish( a => ( 'x' x 50_000 ) . "\n" );
            $sum++;
            $_->some( 50_000, 5 ) for @fast;
            return $server->board->{totals}{hold_slow};
        }
    );
    is $server->board->{totals}{hold_slow},             1, 'is closed, and counted';
    is $server->board->{totals}{closed}{'hold-buffer'}, 1, 'by its reason';
    is $server->held,                                   2, 'the others stay';
};

subtest 'A publisher that is killed' => sub {
    my $server = server(qw(--workers 2 --edges 2));
    my @all    = $server->subscribers( 4, '/stream/a' );
    for my $bytes ( 10, 60_000 ) {
        my $client = $server->connect;
        my $before = $server->board->{totals}{published};
        $client->send( request("GET /kill/a/1/1000000/$bytes") );
        until_true( 20, sub { $server->board->{totals}{published} > $before + 10 } );
        $server->kill_busy;
        is $client->response( patience => 60 )->status, 502, 'a worker';
    }
    publish( a => "after\n", close => 1 );
    my @bodies = map { $_->response( patience => 60 )->body } @all;
    is_deeply [ grep { !/\nafter\n\z/ } @bodies ], [], 'what follows comes';
    is_deeply [ grep { !/\A(?:kill\d+(?:\.{10}|\.{60000})|begin|after)\z/ } map { split /\n/ } @bodies ], [],
        'nobody gets a part of an item';
};

done_testing;
