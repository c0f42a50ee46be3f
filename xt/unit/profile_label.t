use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use IO::Uncompress::Gunzip ();
use JSON::PP               ();
use Test::More;
use Sirius::Profile::Dump;
use Sirius::Profile::FlameGraph;
use Sirius::Profile::Label;
use Sirius::Profile::Pprof;
use Sirius::Profile::Samples;
use Sirius::Profile::Table;

# What the label of a frame says

my $LABEL = 'Sirius::Profile::Label';

is_deeply [ $LABEL->parts( $_->[0] ) ], [ @$_[ 1 .. $#$_ ] ], $_->[0]
    for [ 'Shop::list lib/Shop.pm:12', 'Shop::list', 'lib/Shop.pm', 12 ],
    [ 'Shop::list /srv/my shop/lib:2/Shop.pm:12',     'Shop::list', '/srv/my shop/lib:2/Shop.pm',      12 ],
    [ 'main::__ANON__[app.psgi:12] /srv/app.psgi:15', 'main::__ANON__[app.psgi:12]', '/srv/app.psgi',  15 ],
    [ 'main::__ANON__[my app:12] /srv/my app:15',     'main::__ANON__[my app:12]',   '/srv/my app',    15 ],
    [ '(eval) (eval 3):1',                            '(eval)',                      '(eval 3)',       1 ],
    [ 'Shop::try\x20{...}\x20 lib/Shop.pm:3',         'Shop::try\x20{...}\x20',      'lib/Shop.pm',    3 ],
    [ 'Shop::f[1] lib/my shop.pm:3',                  'Shop::f[1]',                  'lib/my shop.pm', 3 ],
    [ 'Shop::(+ a b.pl:3',                            'Shop::(+',                    'a b.pl',         3 ],
    [ 'Shop::f (a b):3',                              'Shop::f',                     '(a b)',          3 ],
    [ 'Shop::__ANON__[a b].pl:3] a b].pl:3',          'Shop::__ANON__[a b].pl:3]',   'a b].pl',        3 ],
    [ 'Shop::__ANON__[a:3] b.pl:4] a:3] b.pl:5',      'Shop::__ANON__[a:3] b.pl:4]', 'a:3] b.pl',      5 ],
    [ 'Shop::__ANON__[a b].pl:3] c d].pl:3',          'Shop::__ANON__[a b].pl:3]',   'c d].pl',        3 ],
    [ 'Shop::__ANON__[(eval 5):3] (eval 5):4',        'Shop::__ANON__[(eval 5):3]',  '(eval 5)',       4 ],
    [
    'Shop::__ANON__[(eval 5)[a b.pl:3]:7] (eval 5)[a b.pl:3]:8',
    'Shop::__ANON__[(eval 5)[a b.pl:3]:7]',
    '(eval 5)[a b.pl:3]', 8
    ],
    [ '->try\x20it (method)',       '->try\x20it (method)' ],
    [ '(sort block) a.pl:7',        '(sort block)', 'a.pl', 7 ],
    [ 'Shop::list',                 'Shop::list' ],
    [ 'JSON::XS::encode (XS)',      'JSON::XS::encode (XS)' ],
    [ '(moved)',                    '(moved)' ],
    [ 'Shop::list a.pm:9999999999', 'Shop::list a.pm:9999999999' ],
    [ '',                           '' ];

is $LABEL->kind( $_->[0] ), $_->[1], "$_->[1]: $_->[0]"
    for [ 'Shop::list lib/Shop.pm:12', 'app' ], [ 'Shop::list', 'app' ], [ '(sort block) a.pl:7', 'app' ],
    [ 'Shop::list /srv/perl/Shop.pm:1',                             'app' ],
    [ 'Plack::Util::headers /usr/share/perl5/Plack/Util.pm:1',      'module' ],
    [ 'DBI::connect /usr/lib/x86_64-linux-gnu/perl5/5.36/DBI.pm:1', 'module' ],
    [ 'Carp::croak /usr/share/perl/5.36/Carp.pm:1',                 'module' ],
    [ 'A::b /home/ada/perl5/lib/perl5/A.pm:1',                      'module' ],
    [ 'A::b local/lib/perl5/A.pm:1',                                'module' ],
    [ 'A::b /opt/perl/lib/site_perl/5.40.0/A.pm:1',                 'module' ],
    [ 'JSON::XS::encode (XS)',                                      'c' ],
    [ '->selectall_arrayref (method)',                              'c' ],
    [ 'CORE::match (C)',                                            'c' ],
    [ '(eval) (eval 3):1',                                          'eval' ],
    [ '(require) a.pm:1',                                           'eval' ],
    [ 'Shop::BEGIN a.pm:1',                                         'eval' ],
    [ '(moved)',                                                    'other' ];

is $LABEL->shown( $_->[0] ), $_->[1], "shown: $_->[1]"
    for [ 'Shop::try\x20{...}\x20 lib/Shop.pm:3', 'Shop::try {...}  lib/Shop.pm:3' ],
    [ 'Shop::try\x20it',      'Shop::try it' ],
    [ 'Shop::f\x09 a.pl:3',   'Shop::f\x09 a.pl:3' ],
    [ 'Shop::f a\x20b.pl:3',  'Shop::f a\x20b.pl:3' ],
    [ '->try\x20it (method)', '->try it (method)' ];

{
    my $samples = Sirius::Profile::Samples->new;
    $samples->add( [ 'GET /a\x20b', 'Shop::try\x20it lib/my Shop.pm:3', 'DBI::do\x20it (XS)' ], 'cpu', 3 );
    my $table = Sirius::Profile::Table->text($samples);
    like $table, qr{   GET /a\\x20b\n},                  'a table: not of a request';
    like $table, qr{   DBI::do it \(XS\)\n},             'a function';
    like $table, qr{   Shop::try it lib/my Shop.pm:3\n}, 'a line';
    like +Sirius::Profile::Dump->text( { pid => 7, frames => ['Shop::try\x20it lib/my Shop.pm:3'] } ),
        qr{^    Shop::try it lib/my Shop.pm:3\n}m, 'a dump';
    my $page = Sirius::Profile::FlameGraph->html($samples);
    like $page, qr/\["GET \/a\\\\x20b","path"\]/, 'a page: not of a request';
    like $page, qr/\["$_","\w+"\]/, "but of $_" for 'Shop::try it', 'DBI::do it \(XS\)';
    IO::Uncompress::Gunzip::gunzip( \Sirius::Profile::Pprof->gzipped($samples), \my $pprof );
    like $pprof, qr/\Q$_\E/, "pprof: $_" for 'GET /a\x20b', 'Shop::try it', 'DBI::do it (XS)';
    like $samples->folded, qr/\QShop::try\x20it lib\E/, 'folded stacks are read again';
}

my $JSON = JSON::PP->new->allow_nonref;
for my $case (
    [ 'Shop::list (XS) [a]_`{|}~!#',  'Shop::list (XS) [a]_`{|}~!#' ],
    [ q(</script><!--"'\\&),          q(</script><!--"'\\&) ],
    [ "\0\x01\t\n\x7f",               "\0\x01\t\n\x7f" ],
    [ "caf\xc3\xa9 \xf0\x9f\x8d\xb0", "caf\xe9 \x{1f370}" ],
    [ "caf\xe9",                      "caf\xe9" ],
    [ "caf\xe9\x{20ac}\x{2028}",      "caf\xe9\x{20ac}\x{2028}" ],
    )
{
    my ( $label, $want ) = @$case;
    my $json = $LABEL->json($label);
    my $name = JSON::PP->new->allow_nonref->ascii->encode($want);
    like $json, qr/\A"[^<>&\0-\x1f\x80-\x{10ffff}]*"\z/, "safe in HTML: $name" or diag $json;
    is $JSON->decode($json), $want, 'the same text';
}

done_testing;
