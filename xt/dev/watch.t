# sirius dev: what is watched, and how
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;

# Says what is in a file, as it was when the application was loaded
sub reads {
    my $file = shift;
    return <<"APP";
open my \$in, '<', '$file' or die "$file: \$!";
my \$text = join '', readline \$in;
sub { [ 200, [ 'Content-Type', 'text/plain' ], [\$text] ] }
APP
}

# A link to there takes the name at once
sub lead {
    my ( $folder, $name, $to ) = @_;
    symlink $to, "$folder/next" or die $!;
    return rename( "$folder/next", "$folder/$name" ) || die $!;
}

subtest 'files of the folder' => sub {
    my $dev = Sirius::Test::Dev->start( "sub { [ 200, [], ['first'] ] }\n",
        { files => { 'views/index.tt' => 'one' } } );
    my $folder = $dev->folder;
    $dev->save( 'app.psgi', reads("$folder/views/index.tt") );
    ok $dev->answers('one'), 'a template';
    $dev->save( 'views/index.tt', 'two' );
    ok $dev->answers('two'), 'changed';
    for my $name ( 'config.yml', '.env', 'environments/development.yml', 'a.css', 'a.ini' ) {
        $dev->write( $name, 'x' );
        ok $dev->wait_log( qr/: \Q$name\E changed\n(?:.*\n)*?.*reload completed/, 20 ), $name
            or diag $dev->log;
    }
    my $reloads = $dev->reloads;
    $dev->write( 'public/css/a.css', 'x' );
    $dev->write( 'b.ini',            'x' );
    ok $dev->wait_log( qr/: b\.ini changed\n(?:.*\n)*?.*reload completed/, 20 ), 'the last one';
    is $dev->reloads, $reloads + 1, 'but a style sheet in public is for browsers alone';
    unlike $dev->log, qr/a\.css and|public/, 'and not named';
    $dev->stop;
};

for my $case ( [ 'inotify' => () ], [ 'scan' => '--watch-scan' ] ) {
    my ( $name, @args ) = @$case;
    subtest "--watch, $name" => sub {
        my $other = File::Temp->newdir;
        spew( "$other/data", 'one' );
        my $dev = Sirius::Test::Dev->start( reads("$other/data"), @args, '--watch', "$other" );
        is $dev->ask('GET /')->body, 'one', 'before';
        spew( "$other/data", 'two.' );
        ok $dev->answers('two.'), 'any file in it';
        $dev->save( 'app.psgi', "use lib '@{[ $dev->folder ]}/lib'; use Shop; Shop::app();\n" );
        ok $dev->answers(qr/Can't locate Shop/), 'the application itself';
        $dev->write( 'lib/Shop.pm',
            "package Shop;\nsub app { sub { [ 200, [ 'Content-Type', 'text/plain' ], ['shop'] ] } }\n1;\n" );
        ok $dev->answers('shop'), 'a new file in a new folder';
        $dev->save( 'lib/Shop.pm',
            "package Shop;\nsub app { sub { [ 200, [ 'Content-Type', 'text/plain' ], ['shopping'] ] } }\n1;\n"
        );
        ok $dev->answers('shopping'), 'a changed one';
        unlink $dev->folder . '/lib/Shop.pm';
        ok $dev->answers(qr/Can't locate Shop/), 'deleted';
        $dev->stop;
    };
}

subtest 'a folder at the top is replaced' => sub {
    my $dev = Sirius::Test::Dev->start(
        undef,
        {   app   => 'shop/app.psgi',
            files => { 'shop/app.psgi' => "sub { [ 200, [ 'Content-Type', 'text/plain' ], ['one'] ] }\n" }
        }
    );
    my $folder = $dev->folder;
    is $dev->ask('GET /')->body, 'one', 'before';
    rename "$folder/shop", "$folder/old" or die $!;
    $dev->write( 'shop/app.psgi', "sub { [ 200, [ 'Content-Type', 'text/plain' ], ['two'] ] }\n" );
    ok $dev->answers('two'), 'by another of its name';
    $dev->save( 'shop/app.psgi', "sub { [ 200, [ 'Content-Type', 'text/plain' ], ['three'] ] }\n" );
    ok $dev->answers('three'), 'which is watched';
    $dev->stop;
};

subtest 'the files of --config and --env-file' => sub {
    my $other = File::Temp->newdir;
    my $env   = spew( "$other/env",    "COLOUR=red\n" );
    my $conf  = spew( "$other/config", "max-body = 100\n" );
    my $app   = "sub { [ 200, [ 'Content-Type', 'text/plain' ], [ \$ENV{COLOUR} ] ] }\n";
    my $dev   = Sirius::Test::Dev->start( $app, '--config', $conf, '--env-file', $env );
    is $dev->ask('GET /')->body, 'red', 'before';
    spew( $env, "COLOUR=blue\n" );
    ok $dev->answers('blue'), 'variables are read again';
    my $post = sub { return $dev->ask( 'POST /', \( 'x' x 200 ) )->status };
    is $post->(), 413, 'a limit';
    spew( $conf, "max-body = 1000\n" );
    ok until_true( 20, sub { $post->() == 200 } ), 'options, too';
    $dev->stop;
};

subtest 'one folder by two names' => sub {
    my $other = File::Temp->newdir;
    my $text  = "sub { [ 200, [ 'Content-Type', 'text/plain' ], [Shop::text()] ] }\n";
    my $dev   = Sirius::Test::Dev->start(
        "use lib '$other/link';\nuse Shop;\n$text",
        {   files => {
                'lib/Cart.pm' => "package Cart;\n1;\n",
                'lib/Shop.pm' => "package Shop;\nuse Cart;\nsub text { 'one' }\n1;\n"
            }
        }
    );
    my $folder = $dev->folder;
    symlink "$folder/lib", "$other/link" or die $!;
    $dev->save( 'app.psgi', "use lib '$other/link';\nuse Shop;\n$text" );
    ok $dev->answers('one'), 'modules come from a link';
    $dev->save( 'lib/Shop.pm', "package Shop;\nuse Till;\nsub text { 'two' }\n1;\n" );
    ok $dev->answers(qr/Can't locate Till[.]pm/), 'one of them is changed';
    $dev->write( 'lib/Till.pm', "package Till;\n1;\n" );
    ok $dev->answers('two'), 'what it needs is made in the folder itself';
    $dev->save( 'app.psgi', "$text;\n" );
    ok $dev->answers(qr/Undefined subroutine/), 'the other name is no longer needed';
    $dev->save( 'app.psgi', "use lib '$folder/lib'; use Shop;\n$text" );
    ok $dev->answers('two'), 'used again, by its own name';
    $dev->save( 'lib/Shop.pm', "package Shop;\nsub text { 'three' }\n1;\n" );
    ok $dev->answers('three'), 'and still watched';
    $dev->stop;
};

# What perl says of "use lib 'lib'" and require './shop.pl'
subtest 'a message with a path that is relative' => sub {
    my $dev    = Sirius::Test::Dev->start("sub { [ 200, [ 'Content-Type', 'text/plain' ], ['one'] ] }\n");
    my $folder = $dev->folder;
    $dev->save( 'app.psgi', "chdir '$folder' or die;\ndie qq(no good at app.psgi line 2.\\n);\n" );
    ok $dev->answers(qr/no good.*^\Q$folder\E\/app[.]psgi:$/ms), 'shown with the whole path';
    $dev->stop;
};

subtest 'bin/app.psgi beside lib' => sub {
    my $dev = Sirius::Test::Dev->start(
        undef,
        {   app   => 'bin/app.psgi',
            files => {
                'bin/app.psgi' => 'placeholder',
                'lib/Shop.pm'  => "package Shop;\n1;\n",
                'views/a.tt'   => 'one'
            }
        }
    );
    $dev->save( 'bin/app.psgi', reads( $dev->folder . '/views/a.tt' ) );
    ok $dev->answers('one'), 'a folder beside';
    $dev->save( 'views/a.tt', 'two' );
    ok $dev->answers('two'), 'is watched';
    $dev->stop;
};

for my $scan ( [], ['--watch-scan'] ) {
    subtest "a link to the folder of the application @$scan" => sub {
        my $folder = File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
        my $app
            = "use FindBin;\nuse lib \"$folder/current/lib\";\nuse Shop;\nsub { [ 200, [ 'Content-Type' => 'text/plain' ], [Shop::name()] ] }\n";
        my %files
            = map { ( "$_/app.psgi" => $app, "$_/lib/Shop.pm" => "package Shop;\nsub name { '$_' }\n1;\n" ) }
            qw(one two);
        Sirius::Test::Dev::write_file( "$folder/$_", $files{$_} ) for sort keys %files;
        lead( $folder, current => 'one' );
        my $dev = Sirius::Test::Dev->start( undef, { folder => $folder, app => 'current/app.psgi' },
            '--workers', 1, @$scan );
        ok $dev->answers('one'), 'one release';
        lead( $folder, current => 'two' );
        ok $dev->answers('two'), 'another one takes its place' or diag $dev->log;
        like $dev->log, qr/: \S*current\b.* changed$/m, 'which is said';
        $dev->save( 'two/lib/Shop.pm', $files{'two/lib/Shop.pm'} =~ s/'two'/'three'/r );
        ok $dev->answers('three'), 'a module there';
        my $reloads = $dev->reloads;
        $dev->save( 'two/config.yml', 'new' );
        ok until_true( 20, sub { $dev->reloads > $reloads } ), 'a new file there' or diag $dev->log;
        $dev->stop;
    };
}

# What the options name, and what the application finds itself
for my $scan ( [], ['--watch-scan'] ) {
    subtest "links to folders of modules @$scan" => sub {
        my $folder = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
        for my $release (qw(one two)) {
            my %module = ( lib => 'Cart', include => 'Shop' );
            Sirius::Test::Dev::write_file( "$folder/$release/$_/$module{$_}.pm",
                "package $module{$_};\nsub name { '$release' }\n1;\n" )
                for sort keys %module;
            Sirius::Test::Dev::write_file( "$folder/$release/text", $release );
        }
        my @links = qw(included used watched);
        lead( $folder, $_ => 'one' ) for @links;
        my @args = ( '-I', "$folder/included/include", '--watch', "$folder/watched", @$scan );
        my $dev  = Sirius::Test::Dev->start( <<"APP", qw(--workers 1), @args );
use lib '$folder/used/lib';
use Cart;
use Shop;
open my \$in, '<', '$folder/watched/text' or die "text: \$!";
my \$text = join ' ', Shop::name(), Cart::name(), readline \$in;
sub { [ 200, [ 'Content-Type' => 'text/plain' ], [\$text] ] }
APP
        my @got = ('one') x @links;
        ok $dev->answers("@got"), 'before' or diag $dev->log;
        for my $i ( 0 .. $#links ) {
            lead( $folder, $links[$i] => 'two' );
            $got[$i] = 'two';
            ok $dev->answers("@got"), "$links[$i] leads elsewhere" or diag $dev->log;
        }
        unlink "$folder/used" or die $!;
        ok $dev->answers(qr/Can't locate Cart[.]pm/), 'one that is gone' or diag $dev->log;
        lead( $folder, used => 'one' );
        ok $dev->answers('two one two'), 'and there again' or diag $dev->log;
        $dev->stop;
    };
}

for my $how ( [ '-r' => '-r' ], [ '-R' => '-R', 'DIR' ], [ '-L Restarter' => '-L', 'Restarter' ] ) {
    my ( $name, @args ) = @$how;
    subtest "sirius $name" => sub {
        my $other = File::Temp->newdir;
        spew( "$other/data", 'one' );
        @args = map { $_ eq 'DIR' ? "$other" : $_ } @args;
        my $dev = Sirius::Test::Dev->start( reads("$other/data"), { words => [ '-E', 'deployment' ] },
            '--workers', 2, @args );
        is $dev->ask('GET /')->body, 'one', 'before';
        spew( "$other/data", 'two' );
        ok $dev->answers('two'), 'its folder' if $name eq '-R';
        $dev->save( 'app.psgi', "die 'broken now';\n" );
        ok $dev->answers(qr/broken now/), 'broken code is a page, and the server is there';
        $dev->save( 'app.psgi', reads("$other/data") );
        ok $dev->answers( $name eq '-R' ? 'two' : qr/one|two/ ), 'and good again';
        unlike $dev->log, qr{GET  /}, 'no log of requests';
        $dev->stop;
    };
}

subtest 'options' => sub {
    my $run = sub {
        my @args = @_;
        return in_child( sub {
            my $to = shift;
            open STDERR, '>&', $to or die $!;
            open STDOUT, '>&', $to or die $!;
            exec $^X, '-Mblib=' . $Sirius::Test::Server::ROOT, "$Sirius::Test::Server::ROOT/bin/sirius",
                @args
                or die $!;
        } );
    };
    my $app = spew( File::Temp->newdir( CLEANUP => 0 ) . '/app.psgi', "sub { }\n" );
    like $run->( 'dev', '--workers', 0, $app ),
        qr/^sirius: --workers 0: cannot be combined with sirius dev; use 1$/m, '--workers 0';
    like $run->( '-r', '--workers', 0, $app ),
        qr/^sirius: --workers 0: cannot be combined with --reload; use 1$/m, '-r --workers 0';
    like $run->( 'dev', '-D', $app ), qr/^sirius: --daemonize: cannot be combined with sirius dev$/m, '-D';
    like $run->( 'dev', '-L', 'Delayed', $app ),
        qr/^sirius: --loader Delayed: cannot be combined with sirius dev$/m, '-L';
    like $run->( 'dev', '-s', 'Standalone', $app ),
        qr/^sirius: --server Standalone: cannot be combined with sirius dev$/m, '-s';
    like $run->( 'dev', '--watch', '/no/such/folder', $app ),
        qr{^sirius: --watch /no/such/folder: No such file}m, '--watch of nothing';
    like $run->( '--watch', '/tmp', $app ),
        qr/^sirius: --watch: only valid with sirius dev, or with --reload$/m, '--watch alone';
    like $run->( '--live-reload', $app ),
        qr/^sirius: --live-reload: only valid with sirius dev, or with --reload$/m, '--live-reload alone';
    like $run->( 'dev', '--help' ), qr/^Usage: sirius dev .*--watch PATH.*--live-reload/s, '--help';
    unlink $app;
    rmdir $app =~ s{/app.psgi}{}r;
};

done_testing;
