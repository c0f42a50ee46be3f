# Held connections move to the next edge, and no publication is lost or comes twice on their way
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::WebSocket;

my $APP = <<'APP';
use strict;
use warnings;
use Sirius::Channel;
use Sirius::WebSocket;
my $socket = Sirius::WebSocket->new(
    on_open => sub {
        my $ws = shift;
        $ws->accept;
        $ws->subscribe($_) for qw(room other);
        $ws->meta( user => 'bob' );
    },
    on_message => sub { my ( $ws, $text ) = @_; $ws->send( "$text of " . $ws->meta('user') ) },
    on_disconnect => sub { print STDERR "disconnected\n" },
)->to_app;
my %HEAD = (
    '/stream' => [ 'Grip-Hold' => 'stream',   'Grip-Channel' => 'other, room' ],
    '/own'    => [ 'Grip-Hold' => 'stream',   'Grip-Channel' => 'own; filter=skip-self', 'Grip-Set-Meta' => 'user="bob"',
        'Grip-Keep-Alive' => ':\n\n; format=cstring; timeout=50' ],
    '/poll'   => [ 'Grip-Hold' => 'response', 'Grip-Channel' => 'end', 'Grip-Timeout' => 100, 'X-Own' => 'yes' ],
);
sub {
    my $env  = shift;
    return $socket->($env) if $env->{PATH_INFO} eq '/socket';
    my $head = $HEAD{ $env->{PATH_INFO} } || [];
    Sirius::Channel->publish( room => "$1\n" ) if $env->{PATH_INFO} =~ m{\A/say/(\d+)};
    Sirius::Channel->publish( own => "of $1\n", sender => $1 ) if $env->{PATH_INFO} =~ m{\A/as/(\w+)};
    return [ 200, [ 'Content-Type' => 'text/plain', @$head ], ["begin\n"] ];
}
APP

my $dir = File::Temp->newdir( 'sirius-live-XXXXXX', TMPDIR => 1 );

sub configure { return spew( "$dir/sirius.conf", "max-body = $_[0]\n" ) }

# The edges after a reload with another setting
sub renew {
    my ( $server, $setting ) = @_;
    my %was = map { $_ => 1 } $server->edges;
    configure($setting);
    $server->signal('HUP');
    return until_true(
        40,
        sub {
            my @now = $server->edges;
            @now == keys %was && !grep { $was{$_} } @now;
        }
    );
}

sub streams {
    my ( $server, $n ) = @_;
    my @clients = map { $server->connect } 1 .. $n;
    $_->send( request('GET /stream') ) for @clients;
    $_->comes(qr/begin\n/) for @clients;
    return @clients;
}

# The numbers that it has got
sub numbers {
    my ( $client, $last ) = @_;
    my $text = $client->comes( qr/^$last\r?$/m, 20 );
    $text =~ s/^[\da-f]+\r\n([^\r]*)\r\n/$1/mg;
    return $text;
}

# What is missing, and what came twice or late
sub difference {
    my ( $want,  $got ) = map { [ split m{\n} ] } @_;
    my ( %times, @late );
    my $before = 0;
    for my $n (@$got) {
        $times{$n}++;
        push @late, $n if $n < $before;
        $before = $n;
    }
    return sprintf 'missing %s, late %s, twice %s', join( ',', grep { !$times{$_} } @$want ),
        join( ',', @late ),
        join ',', grep { $times{$_} > 1 } sort { $a <=> $b } keys %times;
}

for my $edges ( 1, 2 ) {
    subtest "--edges $edges: three reloads with other settings, while somebody publishes" => sub {
        my $conf   = configure(1000);
        my $server = start_server( $APP, '--config', $conf, '--edges', $edges, qw(--hold --workers 3) );
        until_true( 10, sub { $edges == $server->edges } );
        my @clients = streams( $server, 12 );
        my @sockets = map { Sirius::Test::WebSocket->new( $server->address, path => '/socket' ) } 1 .. 4;
        my $poll    = $server->connect;
        $poll->send( request('GET /poll') );
        ok until_true(
            10,
            sub {
                my $h = $server->board->{held};
                $h->{stream} == 12 && $h->{response} == 1 && $h->{websocket} == 4;
            }
            ),
            'all are held';
        my $enough = "$dir/enough";
        unlink $enough;
        my $publisher = fork // die "fork: $!";

        if ( !$publisher ) {
            my $n = 0;
            while ( $n < 20_000 && !-e $enough ) { $server->ask( 'GET /say/' . ++$n ); sleep 0.002 }
            spew( "$dir/last", $n );
            POSIX::_exit(0);
        }
        for my $round ( 1 .. 3 ) { ok renew( $server, 1000 + $round ), 'other edges' }
        sleep 0.3;
        spew( $enough, '' );
        waitpid $publisher, 0;
        open my $in, '<', "$dir/last" or die "$dir/last: $!";
        my $last = readline $in;
        cmp_ok $last, '>', 50, "$last publications";
        my $want  = join '', map {"$_\n"} 1 .. $last;
        my %got   = map  { $_ => numbers( $clients[$_], $last ) } 0 .. $#clients;
        my @wrong = grep { $got{$_} ne $want } sort { $a <=> $b } keys %got;
        is "@wrong", '', 'each came to each, once, and in order'
            or diag join "\n", map { difference( $want, $got{$_} ) } @wrong;

        for my $socket (@sockets) {
            my @got;
            while ( @got < $last ) {
                push @got, $socket->next(10) =~ s/\Atext //r;
                last if $got[-1] !~ /\A\d+\n\z/;
            }
            is difference( $want, join '', @got ), 'missing , late , twice ', 'to a WebSocket as well';
            $socket->text('hello');
            is $socket->next, 'text hello of bob', 'which goes on';
        }
        is $server->board->{held}{stream}, 12, 'none was closed';
        unlike $server->log, qr/disconnected/, 'nor said to be';
        $server->signal('TERM');
        is $poll->response( patience => 20 )->header('X-Own'), 'yes',
            'a response that waits has moved as well';
    };
}

subtest 'what a subscription skips' => sub {
    my $server = start_server( $APP, '--config', configure(1), qw(--hold --workers 1) );
    my $client = $server->connect;
    $client->send( request('GET /own') );
    $client->comes(qr/begin\n/);
    ok renew( $server, 2 ), 'another edge';
    $server->ask("GET /as/$_") for qw(bob ann);
    my $heard = $client->comes(qr/of ann\n/);
    like $heard,   qr/of ann\n/, 'comes of others';
    unlike $heard, qr/of bob\n/, 'and not of its user';
};

subtest 'an edge that takes nothing over' => sub {
    my $conf     = spew( "$dir/off.conf", "hold = 1\n" );
    my $server   = start_server( $APP, '--config', $conf, qw(--workers 2) );
    my ($stream) = streams( $server, 1 );
    my $poll     = $server->connect;
    my $socket   = Sirius::Test::WebSocket->new( $server->address, path => '/socket' );
    $poll->send( request('GET /poll') );
    ok until_true(
        10, sub { my $h = $server->board->{held}; $h->{stream} && $h->{response} && $h->{websocket} }
        ),
        'held';
    spew( $conf, "hold = 0\n" );
    $server->signal('HUP');
    like $stream->rest(10), qr/(?:\A|\n)0\r\n\r\n\z/, 'the stream ends as it should';
    is $poll->response( patience => 10 )->header('X-Own'), 'yes', 'the response is that of the application';
    is $socket->all,                                       'close 1012', 'and a WebSocket is closed';
};

done_testing;
