use strict;
use warnings;
use Test::More;
use Sirius::Options;
use Sirius::Usage;

sub conf { return Sirius::Options->parse( {@_} ) }

sub refused {
    my %raw = @_;
    local $@;
    eval { Sirius::Options->parse( \%raw ); 1 } and return 'accepted';
    return $! + 0 == 2 ? $@ : "errno $!: $@";
}

subtest 'Defaults' => sub {
    my $conf = conf();
    is_deeply $conf->{listen}, [':5000'], 'right address';
    is $conf->{workers},           10,    'right number of workers';
    is $conf->{keepalive_timeout}, 75,    'right time';
    is $conf->{max_body},          2**30, 'right size';
    is $conf->{body_memory},       2**16, 'right size';
    is $conf->{keepalive},         1,     'keep-alive';
    is $conf->{write_timeout},     60,    'right time';
    is_deeply $conf->{notices}, [], 'nothing to say';
};

subtest 'Names' => sub {
    is conf( max_workers    => 3 )->{workers},                   3,  'alias, as plackup gives it';
    is conf( 'max-workers'  => 3 )->{workers},                   3,  'alias with dashes';
    is conf( 'max-requests' => 3 )->{max_reqs_per_child},        3,  'alias';
    is conf( read_timeout   => 3 )->{header_timeout},            3,  'alias';
    is conf( workers        => 2, max_workers => 3 )->{workers}, 2,  'the own name wins';
    is conf( workers        => undef )->{workers},               10, 'undef is not given';
};

subtest 'Values' => sub {
    is conf( max_body => $_->[0] )->{max_body}, $_->[1], "$_->[0] bytes"
        for [ 0, 0 ], [ '10', 10 ], [ '64k', 65_536 ], [ '10M', 10_485_760 ], [ '2g', 2**31 ];
    is conf( timeout => $_->[0] )->{write_timeout}, $_->[1], "$_->[0] seconds"
        for [ 5, 5 ], [ '0.25', 0.25 ], [ '.5', 0.5 ], [ '500ms', 0.5 ], [ '2m', 120 ], [ '1h', 3600 ];
    is conf( keepalive       => $_ )->{keepalive}, 1, "'$_' is true"  for 1,  100, 'yes', 'On',  'true';
    is conf( keepalive       => $_ )->{keepalive}, 0, "'$_' is false" for '', 0,   'no',  'off', 'false';
    is conf( child_exit      => 'sub { 42 }' )->{child_exit}->(), 42, 'code as text';
    is conf( child_exit      => sub {43} )->{child_exit}->(),     43, 'code';
    is conf( server_software => '' )->{server_software},          '', 'an empty header value';
};

subtest 'What one option says about another' => sub {
    my $conf = conf( timeout => 7, write_timeout => 8 );
    is $conf->{write_timeout},                      8, 'given, not changed';
    is $conf->{body_timeout},                       7, 'from --timeout';
    is conf( keepalive_timeout => 0 )->{keepalive}, 0, 'no time, no keep-alive';
    like refused( min_reqs_per_child => 5, max_reqs_per_child => 4 ),
        qr/\Asirius: --min-reqs-per-child: 5 is more/, 'right error';
    like refused( min_reqs_per_child => 5 ), qr/\Asirius: --min-reqs-per-child: 5 is more/, 'right error';
};

subtest 'Wrong values' => sub {
    my @wrong = (
        [ workers             => 'abc',       q('abc' is not a whole number) ],
        [ workers             => '1.5',       q('1.5' is not a whole number) ],
        [ workers             => '',          q('' is not a whole number) ],
        [ workers             => -1,          q(-1 is less than 0) ],
        [ workers             => 10_000,      q(10000 is more than 4096) ],
        [ workers             => '9' x 40,    q(is not a whole number) ],
        [ workers             => "1\n",       q(is not a whole number) ],
        [ backlog             => 0,           q(0 is less than 1) ],
        [ 'max-body'          => '10x',       q('10x' is not a number of bytes) ],
        [ 'max-body'          => -1,          q('-1' is not a number of bytes) ],
        [ 'max-header-fields' => 257,         q(257 is more than 256) ],
        [ 'write-timeout'     => 'soon',      q('soon' is not a time) ],
        [ 'write-timeout'     => 0,           q(0 is less than 0.01) ],
        [ keepalive           => 'maybe',     q('maybe' is neither 1 nor 0) ],
        [ 'child-exit'        => 'sub {',     q(does not compile) ],
        [ 'child-exit'        => '42',        q('42' is not a 'sub) ],
        [ tmpdir              => '/nowhere',  q('/nowhere' is no directory) ],
        [ 'server-software'   => "a\r\nb: c", q(has the character 0x0d) ],
        [ port                => 65_536,      q(65536 is more than 65535) ],
        [ listen              => 'a:65536',   q(port 65536 is not 0 to 65535) ],
    );
    for my $wrong (@wrong) {
        my ( $name, $value, $message ) = @$wrong;
        like refused( $name => $value ), qr/\Asirius: --$name: .*?\Q$message\E/s, "--$name: $message";
    }
};

subtest 'Unknown options' => sub {
    is refused( wrokers => 3 ), "sirius: unknown option --wrokers (did you mean --workers?)\n", 'right error';
    is refused( 'max_bodi' => 3 ), "sirius: unknown option --max-bodi (did you mean --max-body?)\n",
        'right error';
    is refused( xyzzy_frobnicate => 3 ), "sirius: unknown option --xyzzy-frobnicate\n", 'right error';
    like refused( w          => 3 ), qr/\Asirius: unknown option --w\b/, 'no letters for programs';
    like refused( access_log => 3 ), qr/command line/,                   'known to the command only';
};

subtest 'Addresses' => sub {
    my @case = (
        [ [ port => 80 ],                  ':80' ],
        [ [ port => 0 ],                   ':0' ],
        [ [ host => 'a', port => 80 ],     'a:80' ],
        [ [ host => '::1', port => 80 ],   '[::1]:80' ],
        [ [ host => '[::1]', port => 80 ], '[::1]:80' ],
        [ [ host          => 'a' ],              'a:5000' ],
        [ [ socket        => '/s' ],             '/s' ],
        [ [ socket        => '/s', port => 80 ], ':80 /s' ],
        [ [ 'socket-path' => '/s' ],             '/s' ],
        [ [ listen        => ':80' ],            ':80' ],
        [ [ listen        => [ ':80', '/s' ] ],  ':80 /s' ],

        # as Plack::Runner gives them
        [ [ host => undef, port => 5000,     listen => [':5000'],    socket => undef ], ':5000' ],
        [ [ host => '::1', port => 80,       listen => ['::1:80'],   socket => undef ], '::1:80' ],
        [ [ host => '[',   port => ':1]:80', listen => ['[::1]:80'], socket => undef ], '[::1]:80' ],
        [ [ host => undef, port => undef,    listen => ['/s'],       socket => '/s' ],  '/s' ],
        [ [ host => undef, port => 80,       listen => [':80'],      socket => '/s' ],  ':80 /s' ],
        [ [ host => undef, port => 5000, listen => [':5000'], socket => undef, socket_path => '/s' ], '/s' ],
    );
    is "@{ conf( @{ $_->[0] } )->{listen} }", $_->[1], $_->[1] for @case;
};

subtest 'Without effect, with one line' => sub {
    for my $name (
        qw(max-readahead-reqs min-readahead-reqs max-keepalive-connection preload-app proctitle daemonize),
        qw(min-servers max-servers min-spare-servers max-spare-servers) )
    {
        my $conf = conf( $name => 1 );
        is @{ $conf->{notices} }, 1, 'one line';
        like $conf->{notices}[0], qr/\Asirius: --$name has no effect: \w/, "--$name";
    }
};

subtest 'What programs pass' => sub {
    my $code = sub { };
    is conf( server_ready => $code )->{server_ready}, $code, 'callback';
    ok conf( argv => [], extra_argv => [], env => 'x', app => $code ), 'ignored';
};

subtest 'Every option is documented' => sub {
    open my $in, '<', 'bin/sirius' or die "bin/sirius: $!";
    my $manual = do { local $/; <$in> };
    ok index( $manual, Sirius::Usage->pod ) > 0,
        'bin/sirius has the list (else: perl -Ilib -MSirius::Usage -e "print Sirius::Usage->pod")';
    my $help = Sirius::Usage->help;
    for my $row ( grep { !$_->{hidden} } Sirius::Options->rows ) {
        like $help, qr/--?(?:\w+-)?\Q$row->{name}\E\b/, $row->{name};
        ok length $row->{text}, 'with a text';
        is( Sirius::Options->row($_), $row, "$_ is an alias" ) for @{ $row->{alias} || [] };
    }
    unlike $help, qr/.{101}/, 'not too wide';
};

done_testing;
