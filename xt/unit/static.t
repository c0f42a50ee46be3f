use strict;
use warnings;
use Test::More;
use File::Temp;
use Cwd qw(realpath);
use Plack::MIME;
use Sirius::Config::Values;
use Sirius::Config::Static;
use Sirius::Edge::Types;

# --static: what its values mean, and what is wrong with others

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };
my $dir = File::Temp->newdir;
mkdir "$dir/a" or die $!;

sub one { return Sirius::Config::Static->parse(shift)->[0] }

sub wrong {
    my $value = shift;
    return eval { Sirius::Config::Static->parse($value); 1 } ? 'accepted' : $@;
}

subtest 'values' => sub {
    is_deeply one('/a=b'),             { prefix => '/a', dir => 'b' },     'a prefix and a directory';
    is_deeply one('/a/=b'),            { prefix => '/a', dir => 'b' },     'a slash at its end';
    is_deeply one('/a=b=c d'),         { prefix => '/a', dir => 'b=c d' }, 'a directory with an equals sign';
    is_deeply one('/.well-known/x=b'), { prefix => '/.well-known/x', dir => 'b' }, 'a prefix with a dot';
    is_deeply one('/=b'),              { prefix => '/', dir => 'b', 'pass-through' => 1 }, 'all';
    is_deeply one('/a=b,immutable,index,pass-through,follow-links,charset=latin1'),
        {
        prefix         => '/a',
        dir            => 'b',
        immutable      => 1,
        index          => 'index.html',
        'pass-through' => 1,
        links          => 'beneath',
        charset        => 'latin1'
        },
        'options';
    is one('/a=b,follow-links=all')->{links}, 'all',      'all links';
    is one('/a=b,charset=none')->{charset},   '',         'no charset';
    is one('/a=b,index=home.htm')->{index},   'home.htm', 'another index';
    is one("/a=b,max-age=$_->[0]")->{'max-age'}, $_->[1], "max-age=$_->[0]"
        for [ 0, 0 ], [ 60, 60 ], [ '5m', 300 ], [ '1h', 3600 ], [ '30d', 2_592_000 ];
    is scalar @{ Sirius::Config::Static->parse( [ '/a=b', '/b=b' ] ) }, 2, 'two';
};

subtest 'what is wrong' => sub {
    my @wrong = (
        [ 'a=b'       => qr/the prefix 'a' does not begin with a slash: did you mean \/a\?/ ],
        [ '/a'        => qr/'\/a' is not a prefix and a directory/ ],
        [ ''          => qr/'' is not a prefix and a directory/ ],
        [ '/a='       => qr/names no directory/ ],
        [ '=b'        => qr/does not begin with a slash/ ],
        [ '//=b'      => qr/contains an empty name/ ],
        [ '/a//b=c'   => qr/contains an empty name/ ],
        [ '/a/../b=c' => qr/contains an empty name, \. or \.\./ ],
        [ '/.=c'      => qr/contains an empty name, \. or \.\./ ],
        [ '/a%20b=c'  => qr/contains a character/ ],
        [ '/a?b=c'    => qr/contains a character/ ],
        [ "/a\x01=c"  => qr/contains a character/ ],
        [ "/a=b\nc"   => qr/contains a line break/ ],
        [   '/a=b,c' =>
                qr/'c' is not an option of a directory: use charset, follow-links, immutable, index, max-age, pass-through/
        ],
        [ '/a=b,'                    => qr/'' is not an option/ ],
        [ '/a=b,immutable=1'         => qr/immutable takes no value/ ],
        [ '/a=b,pass-through=0'      => qr/pass-through takes no value/ ],
        [ '/a=b,index='              => qr/'' is not a name for an index/ ],
        [ '/a=b,index=../x'          => qr/is not a name for an index/ ],
        [ '/a=b,index=.x'            => qr/is not a name for an index/ ],
        [ '/a=b,index=a/b'           => qr/is not a name for an index/ ],
        [ '/a=b,max-age'             => qr/max-age needs a time/ ],
        [ '/a=b,max-age=-1'          => qr/max-age needs a time/ ],
        [ '/a=b,max-age=1w'          => qr/max-age needs a time/ ],
        [ '/a=b,charset'             => qr/charset needs a value/ ],
        [ '/a=b,charset=a b'         => qr/'a b' is not the name of a charset/ ],
        [ '/a=b,follow-links=no'     => qr/'no' is not a kind of links/ ],
        [ '/a=b,immutable,max-age=1' => qr/cannot be combined/ ],
        [ [ '/a=b', '/a/=c' ]        => qr/the prefix '\/a' is given twice/ ],
        [ [ map {"/$_=b"} 1 .. 65 ]  => qr/65 folders are too many: the maximum is 64/ ],
    );
    like wrong( $_->[0] ), $_->[1], ref $_->[0] ? "@{ $_->[0] }[0, 1]" : "'$_->[0]'" =~ s/[\x01\n]/?/r
        for @wrong;
    unlike wrong( $_->[0] ), qr/ at \S+ line /, 'without a place' for @wrong;
};

subtest 'in the settings' => sub {
    my $conf = Sirius::Config::Values->parse( { static => "/x=$dir/a" } );
    is $conf->{static}[0]{dir}, "$dir/a", 'one, as plackup gives it';
    $conf = Sirius::Config::Values->parse( { static => [ '/x=a', '/y=a,immutable' ], chdir => "$dir" } );
    is $conf->{static}[1]{dir}, "$dir/a", 'as seen from --chdir';
    eval { Sirius::Config::Values->parse( { static => "/x=$dir/b" } ) };
    my $errno = 0 + $!;
    is $@, "sirius: --static /x: cannot open '$dir/b': No such file or directory\n",
        'a directory that is not there';
    is $errno, 2, 'is status 2';
    local $ENV{SIRIUS_STATIC} = "/x=$dir/a,immutable,index /y=$dir/a";
    $conf = Sirius::Config::Values->parse( {} );
    is join( ' ', map { $_->{prefix} } @{ $conf->{static} } ), '/x /y', 'in the environment';
};

subtest 'for an edge' => sub {
    my $conf = Sirius::Config::Values->parse(
        { static => [ "/x=$dir/a,immutable,index,charset=none", "/=$dir,follow-links=all,max-age=1m" ] } );
    my @words = Sirius::Config::Static->words( $conf->{static} );
    my $real  = realpath("$dir");
    like $words[0], qr{\Aid:\d+-\d+,charset:,index:index\.html,immutable=/x=\Q$real\E/a\z}, 'a word';
    like $words[1], qr{\Aid:\d+-\d+,max-age:60,links:all,pass=/=\Q$real\E\z},               'another one';
    rename "$dir/a", "$dir/b" or die $!;
    mkdir "$dir/a" or die $!;
    isnt( ( Sirius::Config::Static->words( $conf->{static} ) )[0],
        $words[0], 'a directory in its place is another one' );
    is_deeply [ Sirius::Config::Static->words(undef) ], [], 'none';
};

subtest 'types' => sub {
    my %type = map { split /:/, $_, 2 } split / /, Sirius::Edge::Types->text;
    is $type{css},   'text/css',   'of Plack::MIME';
    is $type{woff2}, 'font/woff2', 'and more';
    Plack::MIME->add_type( '.mine' => 'application/x-mine', '.css' => 'text/x-css' );
    local $Plack::MIME::MIME_TYPES->{'.bad'}  = "a\nb";
    local $Plack::MIME::MIME_TYPES->{'.ref'}  = [];
    local $Plack::MIME::MIME_TYPES->{'.none'} = undef;
    local $Plack::MIME::MIME_TYPES->{'. x'}   = 'a/b';
    local $Plack::MIME::MIME_TYPES->{'.long'} = 'a/' . 'b' x 200;
    my $text = Sirius::Edge::Types->text;
    like $text,   qr{ mine:application/x-mine },     'what an application adds';
    like $text,   qr{ css:text/x-css },              'or changes';
    unlike $text, qr/[^ -~]|ARRAY|none:|bad:|long:/, 'but no junk';
    local $Plack::MIME::MIME_TYPES = 'junk';
    like( Sirius::Edge::Types->text, qr/woff2/, 'whatever it does' );
};

done_testing;
