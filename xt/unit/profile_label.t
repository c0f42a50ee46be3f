use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use JSON::PP ();
use Test::More;
use Sirius::Profile::Label;

# What the label of a frame says

my $LABEL = 'Sirius::Profile::Label';

is_deeply [ $LABEL->parts( $_->[0] ) ], [ @$_[ 1 .. $#$_ ] ], $_->[0]
    for [ 'Shop::list lib/Shop.pm:12', 'Shop::list', 'lib/Shop.pm', 12 ],
    [ 'Shop::list /srv/my shop/lib:2/Shop.pm:12',     'Shop::list', '/srv/my shop/lib:2/Shop.pm',     12 ],
    [ 'main::__ANON__[app.psgi:12] /srv/app.psgi:15', 'main::__ANON__[app.psgi:12]', '/srv/app.psgi', 15 ],
    [ 'main::__ANON__[my app:12] /srv/my app:15',     'main::__ANON__[my app:12]',   '/srv/my app',   15 ],
    [ '(eval) (eval 3):1',                            '(eval)',                      '(eval 3)',      1 ],
    [ '(sort block) a.pl:7',                          '(sort block)',                'a.pl',          7 ],
    [ 'Shop::list',                                   'Shop::list' ],
    [ 'JSON::XS::encode (XS)',                        'JSON::XS::encode (XS)' ],
    [ '(moved)',                                      '(moved)' ],
    [ 'Shop::list a.pm:9999999999',                   'Shop::list a.pm:9999999999' ],
    [ '',                                             '' ];

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
