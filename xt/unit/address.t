use strict;
use warnings;
use Test::More;
use Sirius::Config::Address;

subtest 'Specs' => sub {
    my @case = (
        [ '127.0.0.1:80',     'host 127.0.0.1 port 80' ],
        [ 'localhost:5000',   'host localhost port 5000' ],
        [ ':5000',            'host  port 5000' ],
        [ '5000',             'host  port 5000' ],
        [ '0',                'host  port 0' ],
        [ '*:5000',           'host * port 5000' ],
        [ '[::1]:5000',       'host ::1 port 5000' ],
        [ '[::]:0',           'host :: port 0' ],
        [ '[fe80::1%lo]:0',   'host fe80::1%lo port 0' ],
        [ '::1:5000',         'host ::1 port 5000' ],
        [ '/run/a.sock',      'path /run/a.sock' ],
        [ '/run/a:80',        'path /run/a:80' ],
        [ './a:80',           'path ./a:80' ],
        [ 'unix:/run/a.sock', 'path /run/a.sock' ],
        [ 'unix:a:80',        'path a:80' ],
        [ './a.sock',         'path ./a.sock' ],
        [ 'unix:127.0.0.1',   'path 127.0.0.1' ],
        [ './127.0.0.1:50x',  'path ./127.0.0.1:50x' ],
        [ '/a.sock?mode=600', 'mode 384 path /a.sock' ],
        [ 'unix:a?group=0',   'group 0 path a' ],
        [ './a.sock?owner=0', 'owner 0 path ./a.sock' ],
        [ 'unix:@a',          "path \0a" ],
        [ '@a/b:80',          "path \0a/b:80" ],
        [ 'fd:3',             'fd 3' ],
        [ 'systemd:web',      'name web' ],
    );
    for my $case (@case) {
        my $got = Sirius::Config::Address->parse( $case->[0] );
        is join( ' ', map {"$_ $got->{$_}"} sort keys %$got ), $case->[1], "spec $case->[0]";
    }
};

subtest 'No specs' => sub {
    for my $case (
        [ 'a:65536',              'port 65536 is out of range' ],
        [ '99999999999999999999', 'is out of range: use 0 to 65535' ],
        [ '',                     'empty' ],
        [ '[::1]',                'has no port' ],
        [ 'a:',                   'has no port' ],
        [ 'a:b:80',               'is not an address' ],
        [   '127.0.0.1',
            q('127.0.0.1' has no port: write 127.0.0.1:5000, or unix:127.0.0.1 or ./127.0.0.1 for)
        ],
        [ 'localhost', q('localhost' has no port: write localhost:5000, or unix:localhost) ],
        [ 'app.sock',  q('app.sock' has no port: write app.sock:5000, or unix:app.sock or ./app.sock for) ],
        [ 'app.sock?mode=0600', 'or unix:app.sock?mode=0600 or' ],
        [ '127.0.0.1:5000x',    q('127.0.0.1:5000x': 5000x is not a port number: write HOST:PORT, or unix:) ],
        [ '127.0.0.1:-1',       '-1 is not a port number' ],
        [ '127.0.0.1:http',     'http is not a port number' ],
        [ ':5000x',             '5000x is not a port number' ],
        [ '5000x',              q('5000x' is not a port number) ],
        [ '[::1]:x',            'x is not a port number' ],
        [ '[::1]5000',          q('[::1]5000') ],
        [ '[::1',               q('[::1') ],
        [ '[a:b]:80',           'a:b is not an IPv6 address' ],
        [ '*',                  q('*' has no port: write *:5000) ],
        [ ' 127.0.0.1:80',      'white space' ],
        [ '127.0.0.1: 80',      'white space' ],
        [ 'http://127.0.0.1:80', 'is a URL: write HOST:PORT' ],
        [ 'tcp://10.0.0.1:80',   'is a URL' ],
        [ '127.0.0.1:80/',       'ends with a slash' ],
        [ 'unix:/run/',          'ends with a slash' ],
        [ 'unix:',               'has no path' ],
        [ 'unix:@',              'has no name' ],
        [ 'unix:/a?mod=0660',    q('unix:/a?mod=0660': 'mod=0660' is not mode=) ],
        )
    {
        eval { Sirius::Config::Address->parse( $case->[0] ) };
        like $@, qr/\Q$case->[1]\E/, "'$case->[0]'";
    }
};

subtest 'Paths and rights' => sub {
    my @case = (
        [ '/run/a.sock',                         'path /run/a.sock' ],
        [ '/run/a.sock?mode=0660',               'mode 432 path /run/a.sock' ],
        [ '/run/a.sock?mode=660',                'mode 432 path /run/a.sock' ],
        [ '/a?b.sock?mode=0600&owner=0&group=0', 'group 0 mode 384 owner 0 path /a?b.sock' ],
        [ '/run/a.sock?',                        'path /run/a.sock?' ],
        [ '/run/a?b',                            'path /run/a?b' ],
        [ '@name',                               "path \0name" ],
        [ './@name',                             'path ./@name' ],
        [ '/run/a.sock?mod=0660',                q('SPEC': 'mod=0660' is not mode=, owner= or group=) ],
        [ '/run/a.sock?mode=',                   q('SPEC': 'mode=' is not mode=) ],
        [ '/run/a.sock?mode=0660&',              'mode 432 path /run/a.sock' ],
        [ '/run/a.sock?mode=0689',               q('SPEC': mode 0689 is not octal) ],
        [ '/run/a.sock?mode=01777',              q('SPEC': mode 01777 is not octal) ],
        [ '/run/a.sock?mode=rw',                 q('SPEC': mode rw is not octal) ],
        [ '/run/a.sock?owner=no-such-user',      q('SPEC': there is no user no-such-user) ],
        [ '/run/a.sock?group=no-such-group',     q('SPEC': there is no group no-such-group) ],
        [ '?mode=0660',                          q('SPEC' has no path) ],
        [ '@',                                   q('SPEC' has no name) ],
        [ '@name?mode=0660',                     q('SPEC': an abstract socket has no file) ],
    );
    for my $case (@case) {
        my $got  = eval { Sirius::Config::Address->parse("unix:$case->[0]") };
        my $text = $got ? join ' ', map {"$_ $got->{$_}"} sort keys %$got : $@;
        my $want = $case->[1] =~ s/SPEC/unix:$case->[0]/r;
        is substr( $text, 0, length $want ), $want, $case->[0];
    }
};

subtest 'Hosts that other machines can reach' => sub {
    my %public = (
        ''                => 1,
        '*'               => 1,
        '0.0.0.0'         => 1,
        '10.0.0.1'        => 1,
        '127.0.0.1'       => 0,
        '127.255.255.254' => 0,
        '128.0.0.1'       => 1,
        '::'              => 1,
        '::1'             => 0,
        '[::1]'           => 0,
        '[::]'            => 1,
        '::ffff:10.0.0.1' => 1,
        'fe80::1%eth0'    => 1,
        'localhost'       => 0,    # what it means is known when it is bound
    );
    is( Sirius::Config::Address->is_public($_) ? 1 : 0, $public{$_}, "'$_'" ) for sort keys %public;
};

done_testing;
