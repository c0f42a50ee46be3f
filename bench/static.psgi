# Files of build/bench/files below /files, for servers that serve none themselves
use strict;
use warnings;
use Plack::App::File;
use Plack::App::URLMap;

my $map = Plack::App::URLMap->new;
$map->map(
    '/files' => Plack::App::File->new( root => __FILE__ =~ s{[^/]*\z}{../build/bench/files}r )->to_app );
$map->map( '/' => sub { [ 200, [ 'Content-Type' => 'text/plain' ], ['OK'] ] } );
$map->to_app;
