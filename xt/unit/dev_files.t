use strict;
use warnings;
use Cwd;
use File::Path qw(make_path);
use File::Temp;
use Test::More;
use Sirius::Dev::Files;

my $top = Cwd::realpath( File::Temp->newdir( CLEANUP => 0 ) );
END { File::Path::remove_tree($top) if defined $top }

sub put {
    my $path = "$top/" . shift;
    make_path( $path =~ s{/[^/]*\z}{}r );
    open my $fh, '>', $path or die "$path: $!";
    close $fh;
    return $path;
}

put($_)
    for
    qw(app.psgi lib/Shop.pm lib/Shop/Till.pm views/a.tt .git/config node_modules/x/y.js local/lib/perl5/Moo.pm
    log/a.log public/css/a.css);

subtest 'folders' => sub {
    my $files = Sirius::Dev::Files->new( app => "$top/app.psgi" );
    is_deeply [ sort map {s{\A\Q$top\E/?}{}r} @{ $files->folders } ],
        [ '', qw(lib lib/Shop public public/css views) ], 'that of the application, without what tools write';
    is_deeply [ sort map {s{\A\Q$top\E/?}{}r} @{ $files->folders("$top/lib") } ], [qw(lib lib/Shop)],
        'those below one';
    my $of = sub { return Sirius::Dev::Files->new( app => shift )->folders };
    is $of->( put('bin/app.psgi') )->[0], $top, 'bin beside lib: the one above';
    is_deeply $of->( put('bare/bin/app.psgi') ), ["$top/bare/bin"], 'bin alone: itself';
    unlink "$top/bin/app.psgi", "$top/bare/bin/app.psgi";
    rmdir "$top/$_" for qw(bin bare/bin bare);
    local $ENV{HOME} = $top;
    is_deeply [ sort map {s{\A\Q$top\E/?}{}r} @{ $of->("$top/app.psgi") } ],
        [ '', qw(lib lib/Shop views) ], 'the home directory: not all that is in it';
};

subtest 'folders to which applications write: by their place' => sub {
    my $own  = File::Temp->newdir;
    my $root = Cwd::realpath("$own");
    for my $path (
        qw(app.psgi lib/My/log/Form.pm templates/sessions/new.html.ep templates/a/cache/b.html views/tmp/x.tt root/log/in.tt web/session/y.txt
        cache/page.html tmp/a.txt logs/b.txt session/s.json log/show.tt var/cache/c.css data/sessions/d.json public/cache/e.css
        templates/node_modules/f.js sessions/in/deep.ep logs/x.pm~ cache/a.tt share/tmp/g.yml uploads/tmp/h.txt)
        )
    {
        make_path( "$root/$path" =~ s{/[^/]*\z}{}r );
        open my $fh, '>', "$root/$path" or die "$path: $!";
        close $fh;
    }
    my $files = Sirius::Dev::Files->new( app => "$root/app.psgi" );
    my %in    = map { $_ => 1 } @{ $files->folders };
    ok $in{"$root/$_"}, "watched: $_"
        for qw(lib/My/log templates/sessions templates/a/cache views/tmp root/log web/session log share/tmp);
    ok !$in{"$root/$_"}, "not: $_"
        for
        qw(cache tmp logs session var/cache data/sessions public/cache templates/node_modules sessions uploads/tmp);
    my $with = Sirius::Dev::Files->new(
        app     => "$root/app.psgi",
        watch   => ["$root/var"],
        exclude => ["$root/templates/sessions"]
    );
    %in = map { $_ => 1 } @{ $with->folders };
    ok $in{"$root/var/cache"},           'unless it is named with --watch';
    ok !$in{"$root/templates/sessions"}, 'or with --watch-exclude';
};

subtest 'what the edge alone serves' => sub {
    my $files = Sirius::Dev::Files->new(
        app    => "$top/app.psgi",
        static => [ "$top/public", '/srv/shared', $top ],
        watch  => ["$top/public/watched"]
    );
    ok $files->is_asset($_), $_
        for "$top/public/css/a.css", "$top/public/b.JS", '/srv/shared/index.html', "$top/public/c.svg",
        "$top/public/manifest.json", "$top/public/x.pm", "$top/public/x.tt";
    ok !$files->is_asset($_), "not $_"
        for "$top/views/a.css", "$top/public/watched/a.css", "$top/public/watched/manifest.json",
        "$top/a.css";
    my $without = Sirius::Dev::Files->new( app => "$top/app.psgi", watch => ["$top/public/watched"] );
    ok $without->is_asset("$top/$_"), "without --static: $_"
        for qw(public/css/a.css root/static/a.css htdocs/a.css);
    ok !$without->is_asset("$top/$_"), "not $_"
        for qw(a.css views/a.css public/a.js public/index.html public/watched/a.css);
};

subtest 'with --live-reload: directories of --static elsewhere' => sub {
    put("assets/$_") for qw(a.css LICENSE);
    my %args = (
        app    => put('in/app.psgi'),
        static => [ "$top/assets", "$top/in/public", "$top/watched/here", $top ],
        watch  => ["$top/watched"]
    );
    my $files = Sirius::Dev::Files->new( %args, live => 1 );
    is_deeply [ $files->beside ], ["$top/assets"], 'those of which nothing is watched otherwise';
    ok $files->counts($_) && $files->is_asset($_), "$_: pages are told of it"
        for "$top/assets/a.css", "$top/assets/LICENSE", "$top/assets/sub/b.js", "$top/assets/sub",
        "$top/assets";
    ok !$files->counts("$top/assets/$_"),            "not of $_" for qw(.a.css.swp a.css~);
    ok !$files->is_asset("$top/watched/here/a.css"), 'what --watch names is of the application';
    my $without = Sirius::Dev::Files->new(%args);
    is_deeply [ $without->beside ], [], 'none without --live-reload';
    ok !$without->counts("$top/assets/a.css"), 'where nothing of them counts';
};

subtest 'what counts' => sub {
    my $files = Sirius::Dev::Files->new( app => "$top/app.psgi", watch => [ "$top/log", put('one/file') ] );
    ok $files->counts("$top/$_"), $_
        for
        qw(app.psgi lib/New.pm views/x.html.ep a/b/c.YML .env public/x.css log/anything one/file README.md);
    ok !$files->counts("$top/$_"), "not $_"
        for qw(4913 app.psgi~ .app.psgi.swp data.db dump.sqlite-journal x.pm.tmp a.psgi.bak
        lib/Shop.pm___jb_tmp___ one/other Makefile log/x.log~);
    ok !$files->counts("/elsewhere/$_"), "not elsewhere: $_" for qw(app.psgi x.pm);
};

subtest 'links' => sub {
    put('releases/1/app.psgi');
    symlink 'releases/1',                   "$top/stable"    or die $!;
    symlink 'stable',                       "$top/current"   or die $!;
    symlink "$top/./current/../1/app.psgi", "$top/link.psgi" or die $!;
    symlink 'round',                        "$top/round"     or die $!;
    my $links = sub {
        join q( ), map {s{\A\Q$top\E/}{}r} Sirius::Dev::Files->links( "$top/" . shift );
    };
    is $links->('app.psgi'),         '',                           'none';
    is $links->('current/app.psgi'), 'current stable',             'folders above, which lead to one another';
    is $links->('link.psgi'),        'link.psgi current stable',   'the file itself';
    is $links->('current/none'),     'current stable',             'what is not there';
    is scalar( () = Sirius::Dev::Files->links("$top/round") ), 40, 'one that leads to itself';
};

subtest 'inside and outside' => sub {
    my $files = Sirius::Dev::Files->new(
        app       => "$top/app.psgi",
        include   => ['/opt/shared/lib'],
        libraries => [ '/usr/share/perl5', '/opt/shared/lib', "$top/lib" ],
        watch     => ['/usr/share/perl5/Mine'],
    );
    ok $files->is_inside($_), $_
        for "$top/lib/Shop.pm", '/opt/shared/lib/A.pm', '/somewhere/else/B.pm', '/usr/share/perl5/Mine/C.pm';
    ok !$files->is_inside($_), "not $_"
        for '/usr/share/perl5/Moo.pm', "$top/local/lib/perl5/Moo.pm", '/home/me/perl5/lib/perl5/Moo.pm';
    put('real/5.36.0/Encode.pm');
    symlink "$top/real/5.36.0", "$top/real/5.36" or die $!;
    my $linked = Sirius::Dev::Files->new( app => "$top/lib/app.psgi", libraries => ["$top/real/5.36"] );
    ok !$linked->is_inside("$top/real/$_/Encode.pm"), "not $_, of a folder with a link" for '5.36', '5.36.0';
    my $copy = Sirius::Dev::Files->new( %{ $files->state } );
    ok !$copy->is_inside('/usr/share/perl5/Moo.pm') && $copy->is_inside("$top/lib/Shop.pm"),
        'the same from its state';
};

subtest 'too many' => sub {
    make_path( map {"$top/many/$_"} 1 .. Sirius::Dev::Files->FOLDERS_MAX );
    is( Sirius::Dev::Files->new( app => put('many/app.psgi') )->folders,
        undef, 'more than any application has' );
};

done_testing;
