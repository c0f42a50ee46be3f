use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Hosts;
use Sirius::Test::Load;

# Three hosts behind each of the load balancers of deploy/, with its file as it is there: all three restarted
# in turn, one cut off and returned, one killed. With SIRIUS_TEST_LONG=1 more rounds.

Sirius::Test::Hosts->enter;

my $ROUNDS   = $ENV{SIRIUS_TEST_LONG} ? 10 : 1;
my $CLIENTS  = $ENV{SIRIUS_TEST_LONG} ? 8  : 3;    # of each load balancer
my $BALANCER = '10.0.0.2';
my @HOSTS    = map {"10.0.0.$_"} 11 .. 13;
my @OPTIONS  = (
    '--admin', '0.0.0.0:9090,h2c', qw(--workers 2 --drain-delay 2 --admin-public --trust-proxy 10.0.0.0/24)
);
my $ROOT = $Sirius::Test::Server::ROOT;

# Notes which request it has begun, "METHOD ID", and which it has ended, with "end " before. The answer is the
# id and the host. /sleep/SECONDS
my $APP = <<'APP';
my ( $host, $file ) = @ENV{qw(TEST_HOST TEST_FILE)};
open my $out, '>>', $file or die "$file: $!";
sub {
    my $env = shift;
    syswrite $out, "$env->{REQUEST_METHOD} $env->{QUERY_STRING}\n" if $env->{QUERY_STRING};
    select undef, undef, undef, $1 if $env->{PATH_INFO} =~ m{/sleep/([\d.]+)};
    $env->{'psgi.input'}->read( my $body, 100 );
    syswrite $out, "end $env->{REQUEST_METHOD} $env->{QUERY_STRING}\n" if $env->{QUERY_STRING};
    return [ 200, [], ["$env->{QUERY_STRING}$body on $host"] ];
}
APP

my $dir = File::Temp->newdir;
my $net = Sirius::Test::Hosts->new( \@HOSTS, $BALANCER );
my ( %server, %port );

sub serve {
    my $host = shift;
    return $server{$host} = Sirius::Test::Server->start(
        app       => $APP,
        args      => [ '--listen',          "$host:5000,h2c", '--control', "$dir/$host.ctl", @OPTIONS ],
        command   => [ $net->inside($host), $^X,              "$ROOT/bin/sirius", '-E',      'deployment' ],
        env       => { TEST_HOST => $host, TEST_FILE => "$dir/$host.log" },
        plain     => 1,
        may_crash => 1,
    );
}

sub deployed { return Sirius::Test::Server::slurp("$ROOT/deploy/$_[0]") }

# Who is not root can't become another user; each has a port of its own
sub balancers {
    my %path = map { $_ => program($_) } qw(haproxy nginx caddy);
    @path{ 'haproxy-h2', 'caddy-h2' } = @path{qw(haproxy caddy)};
    delete @path{ grep { !$path{$_} } keys %path };
    my $haproxy = deployed('haproxy.cfg') =~ s/^ +(?:user|group) .*\n//mgr;
    my $nginx   = deployed('nginx.conf');
    $nginx =~ s/listen 80;/listen 81;/ or die 'listen';
    my $main = $> == 0 ? 'user root root;' : '';
    $main
        .= "daemon off; worker_processes 2; pid $dir/nginx.pid; error_log stderr; events {} http { access_log off;"
        . join '', map {"${_}_temp_path $dir/$_;"} qw(client_body proxy fastcgi uwsgi scgi);
    my $caddy = deployed('Caddyfile');
    $caddy =~ s/^:80 /:82 /m or die ':80';

    # The same with HTTP/2 to the hosts
    my $haproxy_h2
        = $haproxy =~ s/^( +server \S+ \S+)$/$1 proto h2 check-proto h1/mgr =~ s/bind :80$/bind :83/mr;
    my $caddy_h2 = $caddy =~ s/^(\s+)#(versions h2c)$/$1$2/mr =~ s/^:82 /:84 /mr;
    die 'HTTP/2' if $haproxy_h2 !~ /:5000 proto h2/ || $caddy_h2 !~ /^\s+versions h2c$/m;
    my %start = (
        haproxy => [ 80, '-db', '-f',     spew( "$dir/haproxy.cfg", $haproxy ) ],
        nginx   => [ 81, '-e',  'stderr', '-c', spew( "$dir/nginx.conf", "$main $nginx }\n" ) ],
        caddy   =>
            [ 82, qw(run --adapter caddyfile --config), spew( "$dir/Caddyfile", "{\nadmin off\n}\n$caddy" ) ],
        'haproxy-h2' => [ 83, '-db', '-f', spew( "$dir/haproxy-h2.cfg", $haproxy_h2 ) ],
        'caddy-h2'   => [
            84,
            qw(run --adapter caddyfile --config),
            spew( "$dir/Caddyfile-h2", "{\nadmin off\n}\n$caddy_h2" )
        ],
    );
    my %pid;

    for my $name ( sort keys %path ) {
        my ( $port, @args ) = @{ $start{$name} };
        $port{$name} = $port;
        $pid{$name} = $net->start( $BALANCER, 'env', "HOME=$dir", "XDG_DATA_HOME=$dir", $path{$name}, @args );
    }
    return %pid;
}

sub ask {
    my ( $name, @request ) = @_;
    my $client = eval { Sirius::Test::Client->new("$BALANCER:$port{$name}") } or return '';
    my $answer = $client->ask(@request);
    return $answer->status eq '200' ? $answer->body : $answer->status;
}

# Every load balancer sends to these hosts, and to no other
sub all_used {
    my %want = map { $_ => 1 } @_;
    return until_true(
        20,
        sub {
            for my $name ( sort keys %port ) {
                my %seen = map { ( ask( $name, 'GET /' ) =~ / on (\S+)/ ? $1 : 'none' ) => 1 } 1 .. 9;
                return 0 if "@{[ sort keys %seen ]}" ne "@{[ sort keys %want ]}";
            }
            return 1;
        }
    );
}

# Requests with an id each, from clients of each load balancer, until load_end
my $run = 0;

sub load_begin {
    $run++;
    my $ask = sub {
        my ( $client, $number ) = @_;
        sleep rand 0.006;    # the processors are the same for all hosts
        return $number % 3 ? "GET /?$run-$client-$number" : ( "POST /?$run-$client-$number", \'!' );
    };
    my $load = {};
    for my $name ( sort keys %port ) {
        my $base = 100 * ( 1 + keys %$load );
        $load->{$name} = Sirius::Test::Load->start(
            undef,
            address => "$BALANCER:$port{$name}",
            clients => $CLIENTS,
            ask     => sub { $ask->( $base + $_[0], $_[1] ) },
            sign    => sub {
                my ( $answer, $client, $number ) = @_;
                my $id   = join( '-', $run, $base + $client, $number ) . ( $number % 3 ? '' : '!' );
                my $good = $answer->status eq '200' && $answer->body =~ /\A\Q$id\E on /;
                return $good ? 'good' : "$id: " . $answer->status;
            },
        );
    }
    return $load;
}

# For each load balancer what went wrong, and how many did not
sub load_end {
    my $load = shift;
    my %end;
    for my $name ( reverse sort keys %$load ) {    # the later ones hold the pipes of those before
        my $result = $load->{$name}->stop;
        $end{$name} = { good => delete $result->{good} || 0, bad => [ sort keys %$result ] };
        note "$name: $end{$name}{good} requests answered, bad: @{ $end{$name}{bad} }";
    }
    return %end;
}

# How often each host has begun a request: { 'METHOD ID' => { HOST => times } }
sub begun {
    my %begun;
    for my $host (@HOSTS) {
        $begun{$_}{$host}++ for grep { !/\Aend / } notes($host);
    }
    return %begun;
}

sub notes { my $host = shift; return split /\n/, Sirius::Test::Server::slurp("$dir/$host.log") }

# What is with the application on that host
sub under_way {
    my $host = shift;
    my %open;
    s/\Aend // ? delete $open{$_} : ( $open{$_} = 1 ) for notes($host);
    return sort keys %open;
}

sub total { my $times = shift; my $sum = 0; $sum += $_ for values %$times; return $sum }

serve($_) for @HOSTS;
my %pid = balancers();
plan skip_all => 'neither HAProxy nor nginx nor Caddy is installed' if !%pid;
ok all_used(@HOSTS), 'all hosts are used, by ' . join ', ', sort keys %pid
    or diag map { $net->log($_) } values %pid;

for my $round ( 1 .. $ROUNDS ) {
    subtest "a rolling restart, round $round" => sub {
        my $load = load_begin();
        for my $host (@HOSTS) {
            my @ctl
                = ( $^X, '-Mblib=' . "$ROOT/blib", "$ROOT/bin/sirius", 'ctl', '--control', "$dir/$host.ctl" );
            is system("@ctl reload --wait >/dev/null 2>&1"), 0, "$host: reload";
            $server{$host}->stop;
            serve($host);
            ok all_used(@HOSTS), "$host is back";
        }
        my %end   = load_end($load);
        my %begun = begun();
        for my $name ( sort keys %end ) {
            is_deeply $end{$name}{bad}, [], "$name: no request has failed" or diag $net->log( $pid{$name} );
            cmp_ok $end{$name}{good}, '>', 100, "$name: of many";
        }
        is_deeply [ grep { total( $begun{$_} ) > 1 } sort keys %begun ], [], 'none was served twice';
    };
    subtest "a host is cut off and returns, round $round" => sub {
        my $host = $HOSTS[ $round % @HOSTS ];
        my $load = load_begin();
        sleep 0.3;
        $net->cut($host);
        sleep 2;
        $net->mend($host);
        ok all_used(@HOSTS), 'it is back';
        my %end   = load_end($load);
        my %begun = begun();

        for my $name ( sort keys %end ) {
            my @bad = @{ $end{$name}{bad} };
            cmp_ok @bad, '<=', $CLIENTS, "$name: no more have failed than were under way";
            my %elsewhere = map { $_ => 1 } grep { $_ ne $host } @HOSTS;
            my @wrong     = grep {
                my ($id) = /\A([\d-]+)/;
                grep { $elsewhere{$_} } map { keys %{ $begun{"$_ $id"} || {} } } qw(GET POST);
            } @bad;
            is_deeply \@wrong, [], "$name: and those were with that host";
            cmp_ok $end{$name}{good}, '>', 50, "$name: the others were answered";
        }
        my @twice = grep { /\APOST/ && total( $begun{$_} ) > 1 } sort keys %begun;
        is_deeply \@twice, [], 'no POST was served twice';
    };
}

subtest 'a host is killed: what it has is repeated elsewhere if it is a GET, and never if it is a POST' =>
    sub {
    my ( $host, %asked );
    my $both = sub {
        my @with = under_way(shift);
        return grep( {/^GET/} @with ) && grep {/^POST/} @with;
    };
    for my $try ( 1 .. 5 ) {    # a host may have had all its POSTs before its first GET
        %asked = ();
        for my $name ( sort keys %port ) {
            for my $method ( map {qw(GET POST)} 1 .. 3 ) {
                my $client = Sirius::Test::Client->new("$BALANCER:$port{$name}");
                my $id     = "kill-$try-$name-" . keys %asked;
                my @body   = $method eq 'POST' ? \'!' : ();
                $client->send( request( "$method /sleep/2?$id", @body ) );
                $asked{"$method $id"} = $client;
            }
        }
        last if until_true(
            3,
            sub {
                ($host) = grep { $both->($_) } @HOSTS;
            }
        );
        $_->response( patience => 60 ) for values %asked;
    }
    ok defined $host, 'one has some of each' or return;
    ( delete $server{$host} )->kill_hard;
    my @with  = under_way($host);
    my %got   = map { $_ => $asked{$_}->response( patience => 60 )->status } sort keys %asked;
    my %begun = begun();
    my %with  = map { $_ => 1 } @with;
    note "$host had: @with";
    note map {"$_: $got{$_}, begun at @{[ %{ $begun{$_} || {} } ]}\n"} sort keys %got;
    is_deeply [ grep { /^GET/ && $got{$_} ne '200' } sort keys %got ], [], 'every GET is answered';

    # HAProxy's own 502 has no Date, which the client calls garbage
    ok scalar grep( { /^POST/ && $with{$_} && $got{$_} =~ /\b50[234]\z/ } sort keys %got ),
        'a POST that the host had is an error';
    is_deeply [
        grep {
            $got{$_} ne '200' && grep { $_ ne $host }
                keys %{ $begun{$_} || {} }
        } sort keys %got
        ],
        [],
        'what another host has begun is answered';
    is_deeply [ grep { /^POST/ && total( $begun{$_} ) > 1 } sort keys %begun ], [],
        'and none is served twice';
    };

$_->stop for values %server;
$net->stop;
done_testing;
