# sirius dev: an application that writes files which are watched is not loaded for ever without a word
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use POSIX ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;

my $ANSWERS = "sub { [ 200, [ 'Content-Type', 'text/plain' ], ['one'] ] }\n";

# Writes a file of its folder: while it is loaded, or in each request
my $LOADS = <<'APP' . $ANSWERS;
use FindBin;
use Time::HiRes;
mkdir "$FindBin::Bin/made";
open my $out, '>', "$FindBin::Bin/made/build.yml" or die $!;
print {$out} Time::HiRes::time(), "\n";
close $out;
APP
my $SERVES = <<'APP';
use FindBin;
use Time::HiRes;
sub {
    open my $out, '>', "$FindBin::Bin/visits.yml" or die $!;
    print {$out} Time::HiRes::time(), "\n";
    close $out;
    [ 200, [ 'Content-Type', 'text/plain' ], ['one'] ];
}
APP

sub started { return scalar( () = shift->log =~ /reload started as generation/g ) }

for my $case ( [ 'inotify' => () ], [ 'scan' => '--watch-scan' ] ) {
    my ( $name, @args ) = @$case;
    subtest "while it is loaded, $name" => sub {
        my $dev  = Sirius::Test::Dev->start( $LOADS, @args );
        my $path = $dev->folder . '/made/build.yml';
        ok $dev->wait_log(
            qr{warn: sirius dev: made/build\.yml changed \d+ times in a row .* add --watch-exclude \Q$path\E\. },
            30
            ),
            'is told'
            or diag $dev->log;
        ok $dev->answers('one'), 'it serves';
        $dev->save( 'app.psgi', $LOADS =~ s/'one'/'two'/r );
        ok $dev->answers('two'), 'what is saved is loaded';
        my $before = started($dev);
        ok until_true( 30, sub { started($dev) > $before } ), 'its own file is looked at again, later';
        is scalar( () = $dev->log =~ /times in a row/g ), 1, 'told once';
        $dev->stop;
    };
}

subtest 'in each request' => sub {
    my $dev = Sirius::Test::Dev->start( $SERVES, '--workers', 1 );
    ok until_true(
        60,
        sub {
            $dev->ask('GET /');    # as a page that is loaded again does
            $dev->log =~ /visits\.yml changed \d+ times in a row/;
        }
        ),
        'is told'
        or diag $dev->log;
    is $dev->ask('GET /')->body, 'one', 'it serves';
    $dev->stop;
};

subtest '--watch-exclude' => sub {
    for my $case ( [ $LOADS, 'made' ], [ $LOADS, 'made/build.yml' ], [ $SERVES, 'visits.yml' ] ) {
        my ( $app, $excluded ) = @$case;
        my $top = File::Temp->newdir;
        symlink "$top", "$top/link" or die $!;    # by another name of the same folder
        my $dev = Sirius::Test::Dev->start( undef, { files => { 'app.psgi' => $app }, folder => "$top" },
            '--workers', 1, '--watch-exclude', "$top/link/$excluded" );
        is $dev->ask('GET /')->body, 'one', "$excluded: it serves" for 1 .. 3;
        $dev->save( 'app.psgi', $app =~ s/'one'/'two'/r );
        ok $dev->answers('two'), 'what is saved is loaded';
        is started($dev), 1, 'and nothing else' or diag $dev->log;
        $dev->stop;
    }
};

subtest 'a person who saves often' => sub {
    my $dev = Sirius::Test::Dev->start($ANSWERS);
    for my $i ( 1 .. 8 ) {
        ok until_true( 20, sub { $dev->generations == 2 && started($dev) == $dev->reloads } ), 'settled';
        select undef, undef, undef,
            0.4;    # longer than the time in which a change is taken for the application's
        $dev->save( 'app.psgi', $ANSWERS =~ s/'one'/'text $i'/r );
        ok $dev->answers("text $i"), "save $i";
    }
    unlike $dev->log, qr/times in a row/, 'is not suspected';
    $dev->stop;
};

subtest 'saves as soon as the last one is served, under load' => sub {
    my $dev  = Sirius::Test::Dev->start( $ANSWERS, '--workers', 2 );
    my $load = fork // die $!;
    if ( !$load ) {
        my $until = time + 60;
        while ( time < $until ) {
            eval { $dev->ask('GET /') }
        }
        POSIX::_exit(0);
    }
    for my $i ( 1 .. 12 ) {
        $dev->save( 'app.psgi', $ANSWERS =~ s/'one'/'text $i'/r );
        ok $dev->answers("text $i"), "save $i";
    }
    kill KILL => $load;
    waitpid $load, 0;
    unlike $dev->log, qr/times in a row/, 'are not suspected';
    $dev->stop;
};

done_testing;
