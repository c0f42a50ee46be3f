use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Time::HiRes qw(sleep);
use Sirius::Test;

# The units of systemd, the Containerfile and the script for Server::Starter: read by who has to understand
# them, and the commands in them run.

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
    like $text, qr/^[#] +podman build --format docker /m, 'podman is told the format that has a HEALTHCHECK';
    my @images = grep {/^ENTRYPOINT /m} split /^(?=FROM )/m, $text;
    is scalar @images, 2, 'two images';
    my @same = map {
        join q{}, sort grep {/\A(?:CMD|ENTRYPOINT|ENV|EXPOSE|HEALTHCHECK|STOPSIGNAL|USER|WORKDIR) /}
            split /^/
    } @images;
    s/ENV PATH=\S+ +/ENV /, s/ +/ /g for @same;
    is $same[1], $same[0], 'that differ in nothing but what is in them';
    my %env  = map {/(\w+)=(\S+)/g} $text =~ /^ENV (.+)$/mg;
    my $port = free_port();
    $env{SIRIUS_LISTEN} = '127.0.0.1:0';
    is $env{SIRIUS_ADMIN}, '0.0.0.0:9090', 'the admin port';
    $env{SIRIUS_ADMIN} = "127.0.0.1:$port";
    my ($health) = $text =~ /^HEALTHCHECK .*CMD \[(.+)\]$/m;
    my @health = $health =~ /"([^"]+)"/g;
    is "@health", 'sirius ctl ready --timeout 2', 'its health is asked at the control socket';
    $env{SIRIUS_CONTROL} = "$dir/control";
    unshift @health, 'env', "SIRIUS_CONTROL=$dir/control";
    $health[2] = "./$health[2]";
    my $is_healthy
        = sub { return system( 'sh', '-c', "cd $dir && " . 'exec "$@" >/dev/null 2>&1', 'sh', @health ) >> 8 };
    is $is_healthy->(), 3, 'without a server it is not healthy';
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
    is $is_healthy->(),               0,   'it is healthy';
    like $server->output, qr/\A\{.*"GET/, 'the access log is on STDOUT'
        if until_true( 5, sub { length $server->output } );
    my ($signal) = $text =~ /^STOPSIGNAL SIG(\w+)$/m;
    kill $signal => $unshare ? $server->generations : $server->pid;
    is $server->wait_exit, 'exit 0', "$signal ends it";
    $server->stop;
};

# The Containerfile has it run in Debian; dev/image builds and runs all of it
subtest 'the root of the small image' => sub {
    plan skip_all => 'for root' if $>;
    plan skip_all => 'Plack is not a package of Debian here'
        if system 'dpkg -s libplack-perl >/dev/null 2>&1';
    mkdir "$dir/root";
    like `$DEPLOY/container/rootfs $dir/root base-files dash libplack-perl perl 2>&1`,
        qr/\Arootfs: \d+ packages, \d+ files\n\z/, 'is made';
    spew( "$dir/root/tmp/try.pl",
        'use Plack; use Socket; print -e "/usr/bin/dpkg" ? "dpkg" : "Plack", `echo shell;`' );
    is `env LC_ALL=C chroot $dir/root /usr/bin/perl /tmp/try.pl`, "Plackshell\n",
        'perl, modules and a shell run in it';
    like `$DEPLOY/container/rootfs $dir/root nonsense 2>&1`, qr/\Arootfs: nonsense is not installed\n/,
        'what is missing is named';
};

# As "--read-only --tmpfs /tmp --user 12345 --cap-drop ALL"
subtest 'a read-only root, and a user without a name' => sub {
    plan skip_all => 'for root' if $>;
    my @nobody  = qw(setpriv --reuid 12345 --regid 12345 --clear-groups --no-new-privs --bounding-set -all);
    my @command = ( @nobody, 'env', "PERL5LIB=$ROOT/blib/lib:$ROOT/blib/arch", $^X, "$ROOT/bin/sirius" );
    my $inside
        = 'mount -o remount,bind,ro / && mount -t tmpfs none /tmp && ! touch /new 2>/dev/null && exec "$@"';
    my @there = ( qw(unshare --mount --propagation private sh -c), $inside, 'sh' );
    plan skip_all => 'there are no such namespaces here' if system "@there[0 .. 3] true 2>/dev/null";
    plan skip_all => 'they cannot read this folder'
        if $ROOT =~ m{\A/tmp/} || system( @nobody, 'test', '-r', "$ROOT/bin/sirius" );
    local $ENV{SIRIUS_CONTROL};
    delete @ENV{qw(RUNTIME_DIRECTORY SIRIUS_CONTROL XDG_RUNTIME_DIR)};
    my $server = Sirius::Test::Server->start(
        command => [ @there, @command, qw(--listen 127.0.0.1:0 --workers 1), "$ROOT/eg/hello.psgi" ],
        plain   => 1,
    );
    is $server->ask('GET /')->body, 'Hello World', 'it serves';
    my $body = 'x' x 1_000_000;
    is $server->ask( 'POST /', \$body )->status, 200, 'a body that needs a temporary file';
    my ($pid) = ( $server->generations )[0];
    my $ready = `nsenter -t $pid -m @command ctl ready --timeout 5 2>&1`;
    is $ready, "ready\n", 'the health check finds it';
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
