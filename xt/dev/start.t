# sirius dev in the directory of a project: which application it serves, on which port
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Path qw(make_path);
use File::Temp;
use IO::Socket::INET;
use Test::More;
use Sirius::Test;
use Sirius::Test::Client;

# The usual port, which other servers and tests of this machine have, is free in a network of its own
if ( !$ENV{TEST_OWN_NETWORK} ) {
    my ($way) = grep { !system "@$_ sh -c 'ip link set lo up' >/dev/null 2>&1" } [qw(unshare --net)],
        [qw(unshare --net --user --map-root-user)];
    local $ENV{TEST_OWN_NETWORK} = $way ? 'yes' : 'no';
    exec @{ $way || [] }, ( $way ? ( 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh' ) : () ), $^X,
        ( map {"-I$_"} grep { !ref } @INC ), $0, @ARGV
        or die "exec: $!";
}

my $root = $Sirius::Test::Server::ROOT;
my $text = q([ 200, [ 'Content-Type' => 'text/plain' ], );

# The command in a directory with these files, without a port
sub begin {
    my ( $files, @args ) = @_;
    my $folder = File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
    for my $name ( keys %$files ) {
        make_path( "$folder/$name" =~ s{/[^/]*\z}{}r );
        spew( "$folder/$name", $files->{$name} );
    }
    my %env = ref $args[0] ? %{ shift @args } : ();
    return Sirius::Test::Server->spawn(
        plain   => 1,
        command => [ 'sh', '-c', 'cd "$0" && exec "$@"', "$folder", $^X, "$root/bin/sirius", 'dev', @args ],
        env     => { NO_COLOR => 1, %env },
        folder  => $folder,
    );
}

# The port that it has told, and what it answers
sub answer {
    my $dev = shift;
    ok $dev->wait_log( qr{listening on http://localhost:\d+/}, 30 ), 'it serves' or diag $dev->log;
    my ($port) = $dev->log =~ m{listening on http://localhost:(\d+)/} or return ( 0, '' );
    return ( $port, Sirius::Test::Client->new("127.0.0.1:$port")->ask('GET /')->body );
}

subtest 'projects' => sub {
    for my $case (
        [ 'app.psgi' => { 'app.psgi' => "sub { $text ['plain'] ] }\n" }, 'plain' ],
        [   'dancer2 gen' => {
                'bin/app.psgi' =>
                    qq(use FindBin;\nuse lib "\$FindBin::Bin/../lib";\nuse Shop;\nShop->to_app;\n),
                'lib/Shop.pm' => "package Shop;\nsub to_app { sub { $text ['dancer'] ] } }\n1;\n",
            },
            'dancer'
        ],
        [   'catalyst.pl' => {
                'shop.psgi'   => "use Shop;\nmy \$app = Shop->psgi_app;\n\$app;\n",
                'lib/Shop.pm' => "package Shop;\nsub psgi_app { sub { $text ['catalyst'] ] } }\n1;\n",
            },
            'catalyst'
        ],
        [   'mojo generate app' => {
                'script/shop' =>
                    "#!/usr/bin/env perl\nuse lib 'mocks';\nuse Mojolicious::Commands;\nMojolicious::Commands->start_app('Shop');\n",
                'mocks/Mojolicious/Commands.pm' =>
                    "package Mojolicious::Commands;\nsub start_app { sub { $text ['mojo'] ] } }\n1;\n",
                'lib/Shop.pm' => "package Shop;\n1;\n",
            },
            'mojo'
        ],
        [   'a module' => { 'lib/My/Till.pm' => "package My::Till;\nsub { $text ['module'] ] }\n" },
            'module', qw(-I lib My::Till)
        ],
        )
    {
        my ( $name, $files, $want, @args ) = @$case;
        my $dev = begin( $files, qw(--port 0 --workers 1), @args );
        is + ( answer($dev) )[1], $want, $name;
        $dev->stop;
    }
    my $dev = begin( { 'a.psgi' => '1', 'b.psgi' => '1' } );
    is $dev->wait_exit, 'exit 2', 'two applications';
    is $dev->log, "sirius: which application? a.psgi, b.psgi: sirius dev a.psgi, for example\n",
        'which it asks for';
    $dev = begin( {} );
    is $dev->wait_exit, 'exit 2', 'none';
    like $dev->log,
        qr{\Asirius: there is no application in this directory, such as app\.psgi, bin/app\.psgi, [^\n]*: name its file\n\z},
        'which it says';
    $dev = begin( { 'shop.psgi' => '1', 'lib/Shop.pm' => '1' }, qw(--chdir lib) );
    is $dev->wait_exit, 'exit 2', 'a folder of a project';
    like $dev->log,
        qr{\Asirius: there is no application in this directory, [^\n]*; the one above has shop\.psgi: run sirius dev there\n\z},
        'which it says';
};

subtest 'a directory, or a file that cannot be read' => sub {
    my $files = {
        'MyShop/bin/app.psgi' => "sub { }\n",
        'Till.pm'             => "package Till;\n1;\n",
        'Till/app.psgi'       => "sub { }\n"
    };
    for my $name (qw(. MyShop MyShop/)) {
        my $dev = begin( $files, $name );
        is $dev->wait_exit, 'exit 2', $name;
        is $dev->log,
            "sirius: $name is a directory: change into it and run sirius dev there, or name its .psgi file\n",
            'is a directory';
    }
    my @as
        = $>
        ? ()
        : (
        program('setpriv') // plan( skip_all => 'setpriv is not installed' ),
        qw(--reuid 65534 --clear-groups)
        );
    my $dev = begin( { 'app.psgi' => "sub { }\n" }, qw(--port 0 --workers 1) );
    answer($dev);
    $dev->stop;
    chmod 0755, $dev->{folder};
    chmod 0,    "$dev->{folder}/app.psgi" or die $!;
    for my $command ( [], ['dev'] ) {
        my $server = Sirius::Test::Server->spawn(
            plain   => 1,
            command => [
                @as, $^X, "$root/bin/sirius", @$command, qw(--port 0 --workers 1),
                "$dev->{folder}/app.psgi"
            ],
            env => { NO_COLOR => 1 },
        );
        ok $server->wait_log( qr{^(?:sirius: )?\Q$dev->{folder}\E/app\.psgi: Permission denied$}m, 30 ),
            "@$command: a file that cannot be read"
            or diag $server->log;
        unlike $server->log, qr/\(eval/, 'is named without a line of an eval';
        @$command ? $server->stop : is $server->wait_exit, 'exit 1', 'and nothing serves';
    }
};

subtest 'the port' => sub {
    plan skip_all => 'no network of its own can be made here' if $ENV{TEST_OWN_NETWORK} ne 'yes';
    my $holder
        = IO::Socket::INET->new( LocalAddr => '127.0.0.1', LocalPort => 5000, Listen => 1, ReuseAddr => 1 );
    my $app = { 'app.psgi' => "sub { $text ['one'] ] }\n" };
    my $dev = begin( $app, qw(--workers 1) );
    my ( $port, $body ) = answer($dev);
    is $body, 'one', 'an application while the port is in use';
    cmp_ok $port, '>', 5000, 'the next one';
    like $dev->log, qr/^port 5000 is already in use.*, so this is port $port$/m, 'with a word';
    spew( "$dev->{folder}/app.psgi", "sub { $text ['two'] ] }\n" );
    ok until_true( 20, sub { ( answer($dev) )[1] eq 'two' } ), 'it reloads';
    unlike $dev->log, qr/--listen/, 'with the same port';
    $dev->stop;
    $dev = begin( $app, qw(--workers 1 --port 5000) );
    is $dev->wait_exit, 'exit 1', 'a port that is asked for';
    like $dev->log, qr/\Asirius: cannot listen on 127\.0\.0\.1:5000: /, 'is no other one';
    $dev = begin( $app, { PORT => 5000 }, qw(--workers 1) );
    is $dev->wait_exit, 'exit 1', 'PORT is asked for, too';
};

subtest 'options' => sub {
    my $app = { 'app.psgi' => "sub { }\n", 'lib/Shop.pm' => "1;\n" };
    my $dev = begin( $app, qw(--port 0 --workers 1 -I lib -I nolib) );
    ok $dev->wait_log( qr/ready after/, 30 ), 'a folder of -I that is not there';
    my @lines = $dev->log =~ /^(.*\blib\b.*|.*nolib.*)$/mg;
    is "@lines", '-I nolib: No such file or directory', 'which it says once';
    $dev->stop;
    $dev = begin( $app, qw(--editor vim) );
    is $dev->wait_exit, 'exit 2', 'no editor';
    like $dev->log,
        qr/\Asirius: --editor: 'vim' is neither the name of an editor \(.*\) nor a URL with %f\n\z/,
        'which it says';
    $dev = begin( $app, { SIRIUS_EDITOR => 'javascript:%f' } );
    like $dev->wait_exit && $dev->log, qr/\Asirius: --editor: .* \(from SIRIUS_EDITOR\)\n\z/,
        'a URL that runs code, in a variable';
    $dev = begin( $app, '--show-config' );
    $dev->wait_exit;
    like $dev->output, qr/^slow-log\s*=\s*5\b/m, 'a request that takes long is told';
};

done_testing;
