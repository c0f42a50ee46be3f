use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Time::HiRes qw(sleep);
use Sirius::Test;

# The units of systemd, the Containerfile and the script for Server::Starter: read by who has to understand them, and the
# commands in them run.

my $ROOT   = $Sirius::Test::Server::ROOT;
my $DEPLOY = "$ROOT/deploy";
my $dir    = File::Temp->newdir;
my $APP    = "sub { [ 200, [], [ \$ENV{SERVER_STARTER_GENERATION} || 'app' ] ] }\n";

sub deployed { return Sirius::Test::Server::slurp("$DEPLOY/$_[0]") }

sub file {
    my ( $name, $text, $mode ) = @_;
    chmod $mode || 0644, spew( "$dir/$name", $text );
    return "$dir/$name";
}

# As installed: in PATH, with the modules of this build
my $sirius
    = file( 'sirius',
    "#!/bin/sh\nPERL5LIB=$ROOT/blib/lib:$ROOT/blib/arch exec $^X $ROOT/bin/sirius \"\$@\"\n", 0755 );

subtest 'systemd' => sub {
    plan skip_all => 'systemd-analyze is not installed' if !program('systemd-analyze');
    my $service = deployed('systemd/sirius@.service') =~ s{/usr/local/bin/sirius}{$sirius}gr
        =~ s/^Documentation=.*\n//mr;
    my @units = (
        file( 'sirius@.service', $service ),
        file( 'sirius@.socket',  deployed('systemd/sirius@.socket') )
    );
    for my $unit (@units) {
        my $said = `systemd-analyze verify $unit 2>&1`;
        is "$?: $said", '0: ', "it has nothing to say against $unit";
    }
    my ($exposure)
        = `systemd-analyze security --offline=true $units[0] 2>/dev/null` =~ /exposure level.*: ([\d.]+)/;
    cmp_ok defined $exposure ? $exposure : 10, '<', 2, 'what a service can do is little';
    my ($delay) = deployed('systemd/sirius@.service') =~ /drain-delay += (\d+)/;
    my ($stop)  = $service                            =~ /^TimeoutStopSec=(\d+)$/m;
    cmp_ok $stop, '>=', $delay + 30 + 2, 'it may stop in peace';
};

subtest 'the commands of the unit' => sub {
    my ($start)  = deployed('systemd/sirius@.service') =~ /^ExecStart=(.+)$/m;
    my ($reload) = deployed('systemd/sirius@.service') =~ /^ExecReload=(.+)$/m;
    my $app      = file( 'app.psgi', $APP );
    file( 'shop.conf', "app = $app\nworkers = 2\nlisten = 127.0.0.1:0\ndrain-delay = 0.5\n" );
    for ( $start, $reload ) {
        s{/usr/local/bin/sirius}{$sirius};
        s{/etc/sirius/%i\.conf}{$dir/shop.conf};
        s{/run/sirius/%i/}{$dir/};
    }
    my $server = Sirius::Test::Server->start( command => [ split q{ }, $start ], plain => 1 );
    is $server->ask('GET /')->body,       'app', 'it serves';
    is system("$reload >/dev/null 2>&1"), 0,     'it reloads';
    file( 'app.psgi', "die 'broken'\n" );
    isnt system("$reload >/dev/null 2>&1"), 0,     'and says when it does not';
    is $server->ask('GET /')->body,         'app', 'it serves still';
    $server->stop;
};

subtest 'the container' => sub {
    my $text = deployed('container/Containerfile') =~ s/\\\n//gr;
    my %env  = map {/(\w+)=(\S+)/g} $text          =~ /^ENV (.+)$/mg;
    my $port = free_port();
    $env{SIRIUS_LISTEN} = '127.0.0.1:0';
    is $env{SIRIUS_ADMIN}, '0.0.0.0:9090', 'the admin port';
    $env{SIRIUS_ADMIN} = "127.0.0.1:$port";
    my ($health) = $text =~ /^HEALTHCHECK .*CMD \[(.+)\]$/m;
    my @health = map {s/:9090/:$port/r} $health =~ /"([^"]+)"/g;
    is system( 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', @health ) >> 8, 1,
        'without a server it is not healthy';
    my ($entry) = $text =~ /^ENTRYPOINT \["(.+)"\]$/m;
    my ($cmd)   = $text =~ /^CMD \["(.+)"\]$/m;
    is "$entry $cmd", 'sirius app.psgi', 'what it runs';
    file( 'app.psgi', $APP );

    # As the first process, where that can be had
    my @first = ( [qw(unshare --pid --fork --mount-proc --kill-child)] );
    push @first, [ @{ $first[0] }, qw(--user --map-root-user) ];
    my ($unshare) = grep { !system( join q{ }, @$_, 'true >/dev/null 2>&1' ) } @first;
    my $server = Sirius::Test::Server->start(
        command => [ @{ $unshare || [] }, 'sh', '-c', "cd $dir && exec ./$entry $cmd" ],
        env     => \%env,
        plain   => 1,
    );
    is $server->ask('GET /')->status, 200, 'it serves';
    is system(@health),               0,   'it is healthy';
    like $server->output, qr/\A\{.*"GET/, 'the access log is on STDOUT'
        if until_true( 5, sub { length $server->output } );
    my ($signal) = $text =~ /^STOPSIGNAL SIG(\w+)$/m;
    kill $signal => $unshare ? $server->generations : $server->pid;
    is $server->wait_exit, 'exit 0', "$signal ends it";
    $server->stop;
};

subtest 'Server::Starter' => sub {
    my $starter = program('start_server') or plan skip_all => 'start_server is not installed';
    my $port    = free_port();
    my $server  = Sirius::Test::Server->start(
        app     => $APP,
        command => [ "$DEPLOY/server-starter", qw(--workers 2) ],
        env     => { PORT => "127.0.0.1:$port", RUN => "$dir", PATH => "$dir:$ENV{PATH}" },
        plain   => 1,
    );
    my $ask = sub { $server->connect( to => "127.0.0.1:$port" )->ask('GET /')->body };
    is $ask->(), 1, 'the first';
    my @restart
        = ( $starter, '--restart', '--pid-file', "$dir/starter.pid", '--status-file', "$dir/starter.status" );
    until_true( 10, sub { -s "$dir/starter.status" } );    # it waits a second for the first one to survive
    is system("@restart >/dev/null 2>&1"), 0, 'a restart';
    is $ask->(),                           2, 'the second';
    $server->stop;
};

subtest 'nginx of the composition' => sub {
    my $nginx = program('nginx') or plan skip_all => 'no nginx';
    my $conf  = deployed('container/nginx.conf') =~ s/app:5000/127.0.0.1:5000/r
        =~ s/listen 80;/'listen 127.0.0.1:' . free_port() . ';'/er;
    my $file = file( 'nginx.conf',
              "events {} pid $dir/nginx.pid; error_log stderr; http { access_log off; "
            . join( q{ }, map {"${_}_temp_path $dir/$_;"} qw(client_body proxy fastcgi uwsgi scgi) )
            . "$conf}\n" );
    my $said = `$nginx -t -e stderr -c $file 2>&1`;
    like $said, qr/syntax is ok/, 'nginx reads it';
};

subtest 'compose.yaml' => sub {
    skip_without('YAML::XS');
    my $compose = YAML::XS::LoadFile("$DEPLOY/container/compose.yaml");
    my $app     = $compose->{services}{app};
    ok -e "$DEPLOY/container/$app->{build}{context}/$app->{build}{dockerfile}", 'the Containerfile is there';
    ok -e "$DEPLOY/container/$_", "$_ is there" for map {/seccomp:(.+)/} @{ $app->{security_opt} };
    ok -e "$DEPLOY/container/" . ( split /:/ )[0], "$_ is there" for @{ $compose->{services}{web}{volumes} };
    my ($grace) = $app->{stop_grace_period} =~ /\A(\d+)s\z/;
    cmp_ok $grace, '>=', $app->{environment}{SIRIUS_GRACEFUL_TIMEOUT} + 2, 'it may stop in peace';
};

done_testing;
