use strict;
use warnings;
use Test::More;
use Sirius::Dev::Editor;

# Which URL opens a file, and what is no editor

sub url {
    my ( $given, %env ) = @_;
    return Sirius::Dev::Editor->new( $given, \%env )->href( '/srv/shop/a b<".pm', 7 );
}

my $path = '/srv/shop/a%20b%3C%22.pm';
is url('vscode'),                 "vscode://file$path:7",                        'by its name';
is url('sublime'),                "subl://open?url=file://$path&line=7",         'another';
is url('x-my://open/%l/%f'),      "x-my://open/7/$path",                         'a URL';
is url(undef),                    undef,                                         'none';
is url( undef, EDITOR => 'vim' ), undef,                                         'one in the terminal';
is url( undef, EDITOR => '/usr/local/bin/code --wait' ), "vscode://file$path:7", 'by EDITOR';
is url( undef, EDITOR => 'vim', VISUAL => 'zed' ),       "zed://file$path:7",    'by VISUAL';
is url( undef, TERM_PROGRAM => 'vscode' ),               "vscode://file$path:7", 'by its terminal';
is url( 'none', EDITOR => 'code' ),                      undef,                  'none: none';
is url( '', EDITOR => 'code' ),                          "vscode://file$path:7", 'empty: not given';

for my $wrong (
    'javascript:alert(%f)', 'JavaScript:%f', 'data:text/html,%f', 'vim',
    'vscode://file',        'x y://%f',      "x:%f\n",            '%f'
    )
{
    ok !eval { url($wrong); 1 }, "no editor: $wrong";
    like $@, qr/is neither the name of an editor \(cursor, .*, none\) nor a URL with %f$/,
        'with what would be';
}

done_testing;
