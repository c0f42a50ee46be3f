use strict;
use warnings;
use Test::More;
use Sirius::CLI::Runner;

# What is read is looked at, not whether an address is free: others may listen on the port of the default
{
    no warnings 'redefine';
    *Sirius::Listen::Listener::probe = sub { };
}

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };

# What becomes of a command line: options as the handler gets them, the rest, and Plack's own
sub parse {
    my $runner = Sirius::CLI::Runner->new( server => 'Sirius' );
    eval { $runner->parse_options(@_); 1 } or return $@;
    my %option = @{ $runner->{options} };
    delete @option{ grep { !defined $option{$_} } keys %option };
    return {
        %option,
        listen => "@{ $option{listen} || [] }",
        argv   => "@{ $runner->{argv} }",
        runner => $runner
    };
}

subtest 'Flags take nothing' => sub {
    for my $flag (qw(--preload-app -preload-app --preload_app --keepalive --enable-keepalive)) {
        is parse( $flag, 'app.psgi' )->{argv}, 'app.psgi', $flag;
    }
    is parse( '--disable-keepalive',     'app.psgi' )->{keepalive}, 0,                  'off';
    is parse( '--disable_keepalive',     'app.psgi' )->{keepalive}, 0,                  'off';
    is parse( '--keepalive=0',           'app.psgi' )->{keepalive}, '0',                'off';
    is parse( '--disable-proctitle',     'app.psgi' )->{argv},      'app.psgi',         'no argument taken';
    is parse( '--no-default-middleware', 'app.psgi' )->{runner}{default_middleware}, 0, 'known to Plack';
    is parse( '-D',                      'app.psgi' )->{daemonize},                  1, 'known to Plack';
    is parse(qw(-D app.psgi))->{argv},                                        'app.psgi', 'no argument taken';
    is parse(qw(-D --no-daemonize))->{daemonize},                             0,          'off again';
    is parse(qw(--no-log-prefix))->{log_prefix},                              0,          'off';
    is parse(qw(--disable-log-prefix=0))->{log_prefix},                       1,          'not off';
    is parse(qw(--disable-default-middleware))->{runner}{default_middleware}, 0,          'known to Plack';
    is parse(qw(--enable-default-middleware))->{runner}{default_middleware},  1,          'known to Plack';
    is parse(qw(--enable-reload app.psgi))->{runner}{loader}, 'Restarter',                'known to Plack';
    is parse(qw(-r --no-reload app.psgi))->{runner}{loader},  'Plack::Loader',            'off again';
};

subtest 'Values' => sub {
    is parse(qw(--workers 3 app.psgi))->{workers},           3,                     'behind';
    is parse(qw(--workers=3 app.psgi))->{workers},           3,                     'with it';
    is parse(qw(-workers 3 app.psgi))->{workers},            3,                     'one dash';
    is parse(qw(app.psgi --max_workers 3))->{workers},       3,                     'last';
    is parse( '--child-exit', "sub {\n-1 }" )->{child_exit}, "sub {\n-1 }",         'two lines';
    is parse( '-e', 'sub { "--workers" }' )->{runner}{eval}, 'sub { "--workers" }', 'code';
    is parse('-esub {}')->{runner}{eval},                    'sub {}',              'code, cuddled';
    is parse(qw(-error-log x app.psgi))->{error_log},        'x',                   'not code for -e';
    is parse(qw(--eval 42))->{runner}{eval},                 42,                    'the long name of -e';
    is_deeply parse(qw(--include lib -It --module Foo))->{runner}{includes}, [qw(lib t)],
        'the long name of -I';
    is_deeply parse(qw(-Ilib -I t -MFoo))->{runner}{includes}, [qw(lib t)], 'directories';
    is parse(qw(-E test))->{runner}{env},          'test',                 'environment';
    is parse(qw(-- app.psgi --workers 3))->{argv}, 'app.psgi --workers 3', 'no option any more';
};

subtest 'Addresses' => sub {
    is parse(qw(-p 0))->{port},                                    0,                  'port 0 stays 0';
    is parse(qw(-l [::1]:0 --listen /a:1 --listen=:80))->{listen}, '[::1]:0 /a:1 :80', 'all, in order';
    is parse(qw(-o ::1 -p 80))->{host},                            '::1',              'as it is';
};

subtest 'Wrong' => sub {
    my @case = (
        [ 'unknown option --wrokers (did you mean --workers?)',      qw(--wrokers 3) ],
        [ 'unknown option --work (did you mean --workers?)',         qw(--work 3) ],
        [ 'unknown option --max-req (did you mean --max-requests?)', qw(--max-req 3) ],
        [   q(unexpected argument 'b.psgi': the application is already given by a.psgi),
            qw(a.psgi b.psgi --workers 3)
        ],
        [   q(unexpected argument 'b.psgi': the application is already given by --app a.psgi),
            qw(-a a.psgi b.psgi)
        ],
        [   q(unexpected argument 'b.psgi': the application is already given by -e), '-e', 'sub { }',
            'b.psgi'
        ],
        [ q(unexpected argument '3': the application is already given by a.psgi), qw(--reload a.psgi 3) ],
        [ 'unknown option --acess-log (did you mean --access-log?)',              qw(--acess-log x) ],
        [ 'unknown option --disable-workers',                                     qw(--disable-workers) ],
        [ 'unknown option --listen-sock',                                         qw(--listen-sock 3) ],
        [ 'unknown option --argv',                                                qw(--argv 3) ],
        [ q(--workers: 'abc' is not a number of workers),                         qw(--workers abc) ],
        [ 'unknown option --sources',                                             qw(--sources 3) ],
        [ 'unknown option --no-help',                                             qw(--no-help) ],
        [ '--reload takes no value',                                              qw(--reload=1) ],
        [ q(--keepalive: 'x' is not a boolean: use 1 or 0),                       qw(--keepalive=x) ],
        [ '--daemonize: cannot be combined with --reload',                        qw(-D -r) ],
        [ '--config /nowhere: No such file',                                      qw(--config /nowhere) ],
        [ '--workers requires a value',                                           qw(--workers) ],
        [ '--workers requires a value',                                           qw(--workers --port 3) ],
        [ '--workers: -1 is too small: the minimum is 0',                         qw(--workers -1) ],
        [ q(--port: 'x' is not a whole number),                                   qw(-p x) ],
        [ '--listen: port 99999 is out of range: use 0 to 65535',                 qw(-l :99999) ],
        [ '--help takes no value',                                                qw(--help=1) ],
    );
    for my $case (@case) {
        my ( $message, @args ) = @$case;
        like parse(@args), qr/\Asirius: \Q$message\E/, "@args";
    }
};

subtest 'Another server gets what is given' => sub {
    my $parsed = parse(qw(-s Starman --workers 3 --port 80 -D app.psgi));
    is $parsed->{workers},   3,     'an option';
    is $parsed->{port},      80,    'an address';
    is $parsed->{listen},    ':80', 'as Plack gives it';
    is $parsed->{daemonize}, 1,     'a flag';
    ok !exists $parsed->{sources}, 'nothing of ours';
};

subtest 'Exit status' => sub {
    for my $args ( [qw(--wrokers 3)], [qw(--workers abc)], [qw(--port)] ) {
        my $pid = open my $err, '-|' or do {
            open STDERR, '>&', \*STDOUT;
            exec $^X, '-Ilib', 'bin/sirius', @$args;
        };
        my @lines = <$err>;
        close $err;
        is $? >> 8, 2, "@$args: 2";
        is @lines,  1, 'one line';
    }
};

done_testing;
