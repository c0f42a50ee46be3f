use strict;
use warnings;
use File::Temp ();
use Test::More;
use Sirius::Dev::Browser;

# The command that opens an address

my $bin = File::Temp->newdir;
for my $name (qw(xdg-open my-browser)) {
    open my $out, '>', "$bin/$name" or die $!;
    close $out;
    chmod 0755, "$bin/$name" or die $!;
}
my $url = 'http://localhost:5000/';

sub command {
    local %ENV = ( PATH => "$bin", @_ );
    return join '|', Sirius::Dev::Browser->command($url);
}

is command(), '', 'no display';
is command( DISPLAY         => ':0' ),               "$bin/xdg-open|$url",         'that of the desktop';
is command( WAYLAND_DISPLAY => 'wayland-0' ),        "$bin/xdg-open|$url",         'another display';
is command( BROWSER         => 'my-browser' ),       "$bin/my-browser|$url",       'BROWSER';
is command( BROWSER => 'none:my-browser --new' ),    "$bin/my-browser|--new|$url", 'the first that is there';
is command( BROWSER => "$bin/my-browser --app=%s" ), "$bin/my-browser|--app=$url", 'where the address goes';
is command( BROWSER => 'none' ),                     '',                           'none is there';
is command( DISPLAY => ':0', PATH => '/none' ),      '',                           'nothing to open it with';

done_testing;
