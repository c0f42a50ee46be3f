use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp ();
use Test::More;
use Sirius::Dev::Project;

# The application of a folder, as generators leave it

my $LITE = "#!/usr/bin/env perl\nuse Mojolicious::Lite -signatures;\napp->start;\n";
my $FULL
    = "#!/usr/bin/env perl\nuse strict;\nuse Mojolicious::Commands;\nMojolicious::Commands->start_app('Shop');\n";

for my $case (
    [ 'nothing'     => {}, () ],
    [ 'app.psgi'    => { 'app.psgi'     => '', 'lib/A.pm' => '', 'b.psgi'     => '' }, 'app.psgi' ],
    [ 'dancer2 gen' => { 'bin/app.psgi' => '', 'lib/A.pm' => '', 'config.yml' => '' }, 'bin/app.psgi' ],
    [   'catalyst.pl' => {
            'shop.psgi'             => '',
            'lib/Shop.pm'           => '',
            'script/shop_server.pl' => "use Catalyst::ScriptRunner;\n"
        },
        'shop.psgi',
        'lib'
    ],
    [ 'a file without modules' => { 'shop.psgi' => '' }, 'shop.psgi' ],
    [   'mojo generate app' => { 'script/shop' => $FULL, 'lib/Shop.pm' => '', 'script/other' => "print 1\n" },
        'script/shop'
    ],
    [ 'mojo generate lite-app' => { 'myapp.pl' => $LITE, 'tool.pl' => "print 1\n" }, 'myapp.pl' ],
    [ 'two' => { 'a.psgi' => '', 'b.psgi' => '' }, undef, 'a.psgi', 'b.psgi' ],
    [ 'an editor has it open' => { 'a.psgi' => '', '.#b.psgi' => '', 'c.psgi~' => '' }, 'a.psgi' ],
    )
{
    my ( $name, $files, @want ) = @$case;
    my $folder = File::Temp->newdir;
    for my $file ( keys %$files ) {
        make_path( "$folder/$file" =~ s{/[^/]*\z}{}r );
        open my $out, '>', "$folder/$file" or die $!;
        print $out $files->{$file};
        close $out or die $!;
    }
    is_deeply [ Sirius::Dev::Project->find("$folder") ], \@want, $name;
}
like( Sirius::Dev::Project->names, qr{\Aapp\.psgi, bin/app\.psgi, }, 'what is looked for' );

done_testing;
