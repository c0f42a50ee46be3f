use strict;
use warnings;
use Cwd;
use Errno      qw(ENOSPC);
use File::Path qw(make_path remove_tree);
use File::Temp;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Time::HiRes qw(time);
use Sirius::Dev::Files;
use Sirius::Dev::Watcher;
use Sirius::Test;

my ( $top, $holder );

sub spot {
    $holder = File::Temp->newdir;
    $top    = Cwd::realpath("$holder") . '/shop';
    make_path("$top/lib");
    spew( "$top/app.psgi", 'one' );
    return Sirius::Dev::Watcher->new( files => Sirius::Dev::Files->new( app => "$top/app.psgi" ), @_ );
}

# What it reports within some seconds, if that is what is wanted, without the folder at the top
sub reports {
    my ( $watcher, @want ) = @_;
    my %seen;
    until_true(
        10,
        sub {
            $seen{s{\A\Q$top\E/?}{}r} = 1 for $watcher->changed;
            return !grep { !$seen{$_} } @want;
        }
    );
    return join q( ), sort keys %seen;
}

for my $scan ( 0, 1 ) {
    subtest $scan ? 'by looking' : 'by inotify' => sub {
        my $watcher = spot( scan => $scan );
        is !!$watcher->scans,  !!$scan, 'how';
        is !!$watcher->handle, !$scan,  'a handle';
        is_deeply [ $watcher->changed ], [], 'nothing yet';
        spew( "$top/app.psgi", 'two!' );
        is reports( $watcher, 'app.psgi' ), 'app.psgi', 'written';
        spew( "$top/lib/A.pm", 'a' );
        is reports( $watcher, 'lib/A.pm' ), 'lib/A.pm', 'a new file';
        make_path("$top/lib/Deep/er");
        spew( "$top/lib/Deep/er/B.pm", 'b' );
        is reports( $watcher, 'lib/Deep/er/B.pm' ), 'lib/Deep/er/B.pm', 'in new folders';
        rename "$top/lib/A.pm", "$top/lib/C.pm" or die $!;
        is reports( $watcher, 'lib/A.pm', 'lib/C.pm' ), 'lib/A.pm lib/C.pm', 'renamed';
        unlink "$top/lib/C.pm" or die $!;
        is reports( $watcher, 'lib/C.pm' ), 'lib/C.pm', 'deleted';
        utime time, time + 10, "$top/app.psgi" or die $!;
        is reports( $watcher, 'app.psgi' ), 'app.psgi', 'touched';
        symlink "$top/app.psgi", "$top/link.pl" or die $!;
        is reports( $watcher, 'link.pl' ), 'link.pl', 'a symbolic link';
        link "$top/app.psgi", "$top/hard.pl" or die $!;
        like reports( $watcher, 'hard.pl' ), qr/\bhard\.pl\b/, 'a hard link';
        spew( "$top/$_", 'x' ) for '.x.swp', '4913', 'x~', 'data.db';
        spew( "$top/end.pm", 'x' );
        is reports( $watcher, 'end.pm' ), 'end.pm', 'what does not count is not told';
        remove_tree("$top/lib/Deep");
        like reports( $watcher, 'lib/Deep/er/B.pm' ), qr{lib/Deep/er/B\.pm}, 'a folder is deleted';
        $watcher->changed;
        rename $top, "$top.old" or die $!;
        make_path("$top/lib");
        spew( "$top/app.psgi", 'another' );
        spew( "$top/lib/D.pm", 'd' );
        like reports( $watcher, 'app.psgi', 'lib/D.pm' ), qr{app\.psgi.*lib/D\.pm},
            'the folder at the top is replaced';
        spew( "$top/lib/D.pm", 'changed' );
        is reports( $watcher, 'lib/D.pm' ), 'lib/D.pm', 'and watched';
    };
}

subtest 'files elsewhere' => sub {
    my $watcher = spot();
    my $other   = File::Temp->newdir;
    my $since   = time;
    my $path    = spew( Cwd::realpath("$other") . '/Module.pm', 'one' );
    $watcher->follow( $since - 100, $path );
    is_deeply [ $watcher->changed ], [$path],
        'newer than the code that serves, in a folder that was not watched';
    is_deeply [ $watcher->changed ], [], 'told once';
    $watcher->follow( $since - 100, $path );
    is_deeply [ $watcher->changed ], [], 'a folder that is watched: what changes is told anyway';
    spew( $path, 'two' );
    is reports( $watcher, $path ), $path, 'changed';
    spew( "$other/Another.pm", 'x' );
    spew( $path,               'three' );
    is reports( $watcher, $path ), $path, 'others there do not count';
    my $link = "$top/../Link.pm";
    symlink $path, $link or die $!;
    $watcher->follow( time, $link );
    spew( $path, 'four' );
    like reports( $watcher, $path ), qr/\Q$path\E\z/, 'a link: the file that it names';
    $watcher->follow( time, "$top/app.psgi" );
    spew( $path,           'five' );
    spew( "$top/app.psgi", 'x' );
    is reports( $watcher, 'app.psgi' ), 'app.psgi', 'not followed any more';
};

# inotify at its limit
{

    package Full;
    sub new { my ( $class, $room ) = @_; return bless { room => $room, number => 0 }, $class }
    sub add { my $self = shift; return ++$self->{number} if $self->{room}-- > 0; $! = Errno::ENOSPC; return }
    sub handle { return \*STDIN }
    sub read   {return}
    sub remove {return}
}

subtest 'no room for a watch' => sub {
    my @said;
    my $watcher = spot( inotify => Full->new(1), say => sub { push @said, @_ } );
    ok $watcher->scans, 'it looks itself';
    like "@said",
        qr{cannot be watched \(No space left on device\): raise /proc/sys/fs/inotify/max_user_watches},
        'and says why';
    is scalar @said, 1, 'once';
    spew( "$top/lib/A.pm", 'a' );
    is reports( $watcher, 'lib/A.pm' ), 'lib/A.pm', 'what changes is told';
    @said    = ();
    $watcher = spot( inotify => Full->new(2), say => sub { push @said, @_ } );
    ok !$watcher->scans, 'enough for its own folders';
    $watcher->follow( time, spew( File::Temp->newdir( CLEANUP => 0 ) . '/x.pm', 'x' ) );
    ok $watcher->scans, 'not for those of a loaded file';
    spew( "$top/lib/A.pm", 'a' );
    is reports( $watcher, 'lib/A.pm' ), 'lib/A.pm', 'what changes is told';
};

for my $scan ( 0, 1 ) {
    subtest 'a link to a folder, ' . ( $scan ? 'by looking' : 'by inotify' ) => sub {
        my $watcher = spot( scan => $scan );
        my $around  = Cwd::realpath("$holder");
        make_path( map {"$around/$_"} 1, 2 );
        symlink '1', "$around/current" or die $!;
        $watcher->follow( time + 1, "$top/app.psgi", "$around/current" );    # long after that
        spew( "$around/1/new.txt", 'x' );
        spew( "$top/lib/A.pm",     'a' );
        is reports( $watcher, 'lib/A.pm' ), 'lib/A.pm', 'what changes in there is not reported';
        symlink '2', "$around/next" or die $!;
        rename "$around/next", "$around/current" or die $!;
        is reports( $watcher, "$around/current" ), "$around/current", 'that it leads elsewhere is';
    };
    subtest 'directories of --static elsewhere, ' . ( $scan ? 'by looking' : 'by inotify' ) => sub {
        my $assets = File::Temp->newdir;
        my $path   = Cwd::realpath("$assets");
        make_path("$path/css");
        my @said;
        my $begin = sub {
            undef $holder;
            spot();
            my %files = ( app => "$top/app.psgi", live => 1, static => [$path] );
            return Sirius::Dev::Watcher->new(
                files => Sirius::Dev::Files->new(%files),
                scan  => $scan,
                say   => sub { push @said, @_ }
            );
        };
        my $watcher = $begin->();
        spew( "$path/css/a.css", 'a' );
        is reports( $watcher, "$path/css/a.css" ), "$path/css/a.css", 'a file';
        make_path("$path/new");
        spew( "$path/new/b.js", 'a' );
        is reports( $watcher, "$path/new/b.js" ), "$path/new/b.js", 'in a new folder';
        is "@said",                               '',               'without a word';
        make_path( map {"$path/many/$_"} 1 .. Sirius::Dev::Files->FOLDERS_MAX );
        $watcher = $begin->();
        like "@said", qr{\Athere are more than 4096 folders below \Q$path\E: pages are not told},
            'one that is too large';
        spew( "$path/css/a.css", 'more' );
        spew( "$top/lib/A.pm",   'a' );
        is reports( $watcher, 'lib/A.pm' ), 'lib/A.pm', 'is left out, and the application is watched';
    };
}

subtest 'events were lost' => sub {
    my $watcher = spot();
    no warnings qw(redefine once);
    local *Sirius::OS::Inotify::read = sub { return { overflow => 1, number => -1, name => '' } };
    spew( "$top/lib/Late.pm", 'x' );
    like join( q( ), $watcher->changed ), qr{app\.psgi.*lib/Late\.pm}, 'everything may have changed';
};

done_testing;
