# sirius dev: what is saved is served
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;
use Sirius::Test::EventSource;

sub app { return qq(sub { [ 200, [ 'Content-Type', 'text/plain' ], ['$_[0]'] ] }\n) }

sub module { return "package Shop;\nsub name { '$_[0]' }\n1;\n" }

my $USES = <<'APP';
use FindBin;
use lib "$FindBin::Bin/lib";
use Shop;
my $loaded = $$;
sub { [ 200, [ 'Content-Type', 'text/plain' ], [ $_[0]{PATH_INFO} eq '/pid' ? getppid : Shop::name() ] ] }
APP

subtest 'ways to save a file' => sub {
    my $dev = Sirius::Test::Dev->start( $USES, { files => { 'lib/Shop.pm' => module('one') } } );
    is $dev->ask('GET /')->body, 'one', 'before';
    $dev->save( 'lib/Shop.pm', module('two') );
    ok $dev->answers('two'), 'by a rename';
    $dev->write( 'lib/Shop.pm', module('three') );
    ok $dev->answers('three'), 'in place';
    my $folder = $dev->folder;
    rename "$folder/lib/Shop.pm", "$folder/lib/Shop.pm~" or die $!;
    $dev->write( 'lib/Shop.pm', module('four') );
    unlink "$folder/lib/Shop.pm~";
    ok $dev->answers('four'), 'with the previous one as a backup';

    my $pid = $dev->ask('GET /pid')->body;
    utime undef, undef, "$folder/lib/Shop.pm" or die $!;
    ok until_true( 20, sub { $dev->ask('GET /pid')->body != $pid } ), 'touched';
    $dev->write( 'lib/Shop.pm', module('five') . "# five\n" );
    ok $dev->answers('five'), 'and changed again';

    $dev->write( 'lib/Shop/Till.pm', "package Shop::Till;\nsub name { 'till' }\n1;\n" );
    $dev->save( 'app.psgi',
        $USES =~ s/use Shop;/use Shop;\nuse Shop::Till;/r =~ s/Shop::name/Shop::Till::name/r );
    ok $dev->answers('till'), 'a new file in a new folder';
    $dev->write( 'lib/Shop/Till.pm', "package Shop::Till;\nsub name { 'safe' }\n1;\n" );
    ok $dev->answers('safe'), 'which is watched then';
    rename "$folder/lib/Shop", "$folder/lib/Old" or die $!;
    ok $dev->answers(qr/Can't locate Shop\/Till\.pm/), 'its folder gets another name';
    rename "$folder/lib/Old", "$folder/lib/Shop" or die $!;
    ok $dev->answers('safe'), 'and its name back';
    unlink "$folder/lib/Shop/Till.pm";
    ok $dev->answers(qr/Can't locate Shop\/Till\.pm/), 'deleted';
    $dev->save( 'app.psgi', $USES );
    ok $dev->answers('five'), 'not needed any more';
    unlike $dev->log, qr/\bwarn:|\berror:/, 'nothing else to tell';
    $dev->stop;
};

subtest 'several files in one save' => sub {
    my $dev = Sirius::Test::Dev->start( $USES, { files => { 'lib/Shop.pm' => module('one') } } );
    $dev->save( 'app.psgi',       $USES =~ s/Shop::name\(\)/Shop::name(2)/r );
    $dev->save( 'lib/Shop.pm',    "package Shop;\nsub name { 'two' }\n1;\n" );
    $dev->save( "lib/Other$_.pm", "1;\n" ) for 1 .. 5;
    ok $dev->answers('two'),                 'the new code';
    ok $dev->wait_log(qr/reload completed/), 'loaded';
    my $changed = ( $dev->log =~ /^.*reload started as generation \d+: (.*)$/m )[0];
    like $changed, qr/changed\z/, "once, or again for what came later: $changed";
    cmp_ok $dev->reloads, '<=', 3, 'not once for each file';
    $dev->stop;
};

# An application that reads its template in the first request
my $TEMPLATE = <<'APP';
my %text;
sub {
    my ($name) = $_[0]{PATH_INFO} =~ m{\A/(.+)} or return [ 200, [ 'Content-Type', 'text/plain' ], [$$] ];
    $text{$name} //= do { local ( @ARGV, $/ ) = $name; <> };
    return [ 200, [ 'Content-Type', 'text/plain' ], [ $text{$name} ] ];
}
APP

subtest 'templates in folders that are named as those to which applications write' => sub {
    my @names
        = qw(templates/sessions/new.html.ep views/log/index.tt root/cache/a/b.html templates/tmp/x.txt sessions/in.tt);
    my $folder = File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
    my $dev    = Sirius::Test::Dev->start(
        $TEMPLATE =~ s/= \$name;/= "$folder\/\$name";/r,
        { folder => $folder, files => { map { $_ => "one $_" } @names } },
        qw(--workers 1)
    );
    for my $name (@names) {
        is $dev->ask("GET /$name")->body, "one $name", "$name, before";
        $dev->write( $name, "two $name" );
        ok $dev->answers( "two $name", "/$name" ), 'and what was saved';
    }
    $dev->stop;
};

subtest 'a style sheet of --static: the edge has it at once, and the application is not loaded for it' =>
    sub {
    my $folder = File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
    my $dev    = Sirius::Test::Dev->start(
        $TEMPLATE,
        {   folder => $folder,
            files  => {
                'public/a/s.css'       => 'a { }',
                'public/p.html'        => 'one',
                'public/manifest.json' => '{}',
                'style.css'            => 'b { }'
            }
        },
        qw(--workers 1 --live-reload --static),
        "/assets=$folder/public,immutable",
        '--static',
        "/old=$folder/public/a,max-age=1d"
    );
    my $pid     = $dev->ask('GET /')->body;
    my $page    = Sirius::Test::EventSource->new( $dev, sprintf '/__sirius/live?%d', 1000 * time );
    my $is_told = sub {
        my ( $event, $what ) = @_;
        ok $page->hears($event), $what or diag $page->said;
        my $said = $page->said;
        $page->forget;
        return $said;
    };
    my $again = qr/event: generation\ndata: again \d/;
    $is_told->( qr/event: generation\ndata: .*\n\n/, 'a page is open' );

    # the first one shows as well that the page has come to the process that tells it: before, it would be
    # told to load again by any
    for my $case ( [ 'p.html' => qr/$again.*\n\n/ ],
        [ 'a/s.css' => qr/event: styles\ndata: \["s\.css"\]\n\n/ ] )
    {
        my ( $name, $event ) = @$case;
        $dev->write( "public/$name", "new $name" );
        is $dev->ask("GET /assets/$name")->body, "new $name", "$name: the new one";
        my $said = $is_told->( $event, 'the page is told' );
        unlike $said, $again, 'it stays' if $name eq 'a/s.css';
        is $dev->ask('GET /')->body, $pid, 'the application was not loaded again';
    }
    is $dev->ask("GET $_")->header('Cache-Control'), 'no-cache', "$_: browsers ask whether it has changed"
        for qw(/assets/p.html /old/s.css);
    $dev->write( 'public/manifest.json', '{ }' );
    $is_told->( $again, 'data: the page is told' );
    is $dev->ask('GET /')->body, $pid, 'nor was it for them';
    $dev->write( 'style.css', 'c { }' );
    ok until_true( 20, sub { $dev->ask('GET /')->body ne $pid } ),
        'it is for those that are not below --static';
    $dev->stop;
    };

subtest 'files of the application itself' => sub {
    my $folder = File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
    my $app
        = "use Plack::Builder; builder { enable 'Static', path => qr/[.]css/, root => '$folder/css'; sub { [ 200, [ 'Content-Type', 'text/plain' ], ['x'] ] } };\n";
    my $dev = Sirius::Test::Dev->start(
        $app,
        { folder => $folder, files => { 'css/s.css' => 'a { }' } },
        qw(--workers 1)
    );
    is $dev->ask('GET /s.css')->header('Cache-Control'), 'no-cache', 'browsers ask for them again';
    is $dev->ask('GET /')->header('Cache-Control'), undef, 'responses that have no date are as they were';
    $dev->stop;
};

subtest 'what editors and tools write is no change' => sub {
    my $dev   = Sirius::Test::Dev->start( app('one') );
    my $noise = sub {
        $dev->write( $_, "x\n" )
            for '4913', '.app.psgi.swp', '.app.psgi.swx', 'app.psgi~', '#app.psgi#', '.#app.psgi',
            'app.psgi.bak',        '.git/index', '.git/objects/ab/cd.pm',
            'log/development.log', 'tmp/x.pm',   'data.db', 'upload.bin', 'sessions/a.yml',
            'node_modules/a/b.js', 'app.psgi.orig';
        unlink map { $dev->folder . "/$_" } '4913', 'app.psgi~';
    };
    $noise->();
    $noise->();
    $dev->save( 'app.psgi', app('two') );
    ok $dev->answers('two'), 'a change after all of that';
    is_deeply [ $dev->log =~ /reload started as generation (\d+):/g ], [2], 'is the only one'
        or diag $dev->log;
    like + ( $dev->log =~ /generation 2: (.*)$/m )[0], qr{\A\S*app\.psgi changed\z}, 'and names the file';
    $dev->stop;
};

subtest 'requests wait for the new code' => sub {
    my $dev     = Sirius::Test::Dev->start( app('old'), qw(--workers 2) );
    my @clients = map { $dev->connect } 1 .. 4;
    is $_->ask('GET /')->body, 'old', 'a connection' for @clients;
    my $go = File::Temp->newdir;
    $dev->save( 'app.psgi', "select undef, undef, undef, 0.02 until -e '$go/go';\n" . app('new') );
    ok $dev->wait_log(qr/generation 2: \S*app\.psgi changed/), 'it is noticed';
    $_->send( request('GET /') ) for @clients;
    my @late = map { $dev->connect } 1 .. 4;
    $_->send( request('GET /') ) for @late;
    $dev->wait_waiting(8);
    spew( "$go/go", '' );
    is $_->response->body, 'new', 'held, and answered by the new code' for @clients, @late;
    $dev->stop;
};

subtest 'workers that nobody has told' => sub {
    my $dev          = Sirius::Test::Dev->start( app('old'), qw(--workers 2) );
    my @clients      = map { $dev->connect } 1 .. 6;
    my ($base)       = until_true( 10, sub { ( $dev->base )[0] } );
    my ($generation) = grep { $_ != $base } $dev->generations;
    is $_->ask('GET /')->body, 'old', 'a connection' for @clients;
    kill STOP => $generation;    # it passes no signal on
    $dev->save( 'app.psgi', app('new') );
    ok $dev->wait_log(qr/generation 2: app\.psgi changed/), 'the change is noticed';
    is $_->ask('GET /')->body, 'new', 'they begin no request' for @clients;
    kill CONT => $generation;
    $dev->stop;
};

subtest 'the request that runs is finished by the old code' => sub {
    my $go  = File::Temp->newdir;
    my $dev = Sirius::Test::Dev->start( <<"APP", qw(--workers 1) );
sub {
    print STDERR "in it\n";
    until ( -e '$go/go' ) { select undef, undef, undef, 0.01 }
    return [ 200, [ 'Content-Type', 'text/plain' ], ['old'] ];
}
APP
    my $client = $dev->connect;
    $client->send( request('GET /') );
    ok $dev->wait_log(qr/in it/), 'it runs';
    $dev->save( 'app.psgi', app('new') );
    ok $dev->answers('new'), 'the new code serves';
    spew( "$go/go", '' );
    is $client->response->body, 'old', 'and the old one has finished';
    $dev->stop;
};

subtest 'changed again while it loads' => sub {
    my $dev = Sirius::Test::Dev->start( app('one') );
    $dev->save( 'app.psgi', "sleep 60;\n" . app('two') );
    ok $dev->wait_log(qr/generation 2: \S*app\.psgi changed/), 'it loads for a minute';
    my $client = $dev->connect;
    $client->send( request('GET /') );
    $dev->save( 'app.psgi', app('three') );
    is $client->response->body, 'three', 'and is given up for what was saved later';
    $dev->stop;
};

subtest 'Ctrl-C' => sub {
    my $dev = Sirius::Test::Dev->start( $USES, { files => { 'lib/Shop.pm' => module('one') } } );
    $dev->answers('one');
    kill INT => -$dev->pid;    # as a terminal does it, to all of them
    is $dev->wait_exit, 'exit 0', 'ends the server';
    ok until_true( 5, sub { !$dev->processes } ), 'all of it' or diag join q( ), $dev->processes;
};

subtest 'kill -9 of the supervisor' => sub {
    my $dev = Sirius::Test::Dev->start( app('one') );
    ok until_true( 10, sub { $dev->base } ), 'there is a process that generations come from';
    kill KILL => $dev->pid;
    $dev->wait_exit;
    ok until_true( 10, sub { !$dev->processes } ), 'all end' or diag join q( ), $dev->processes;
};

subtest 'the process that generations come from is killed' => sub {
    my $dev = Sirius::Test::Dev->start( app('one') );
    my ($base) = until_true( 10, sub { ( $dev->base )[0] } );
    $dev->{may_crash} = 1;
    kill KILL => $base;
    ok $dev->wait_log(
        qr/the process that generations are forked from was killed by signal 9 \(KILL\); starting another/),
        'it is told';
    $dev->save( 'app.psgi', app('two') );
    ok $dev->answers('two'), 'another takes its place';
    $dev->stop;
};

subtest 'HUP' => sub {
    my $dev = Sirius::Test::Dev->start( app('one') );
    my ($base) = until_true( 10, sub { ( $dev->base )[0] } );
    $dev->signal('HUP');
    ok $dev->wait_log(qr/reload completed/), 'is a reload';
    isnt until_true( 10, sub { ( $dev->base )[0] } ), $base, 'of everything';
    is $dev->ask('GET /')->body,                      'one', 'and it serves';
    $dev->stop;
};

done_testing;
