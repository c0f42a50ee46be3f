use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# The environment: what PSGI asks for, and all of it the application's own until the next request

my $server = start_server( <<'APP', qw(--workers 1) );
use JSON::PP ();
my $kept;
sub {
    my $env  = shift;
    my $json = JSON::PP->new->canonical->allow_nonref;
    if ( $env->{PATH_INFO} =~ m{\A/damage} ) {
        for my $key ( grep { $_ ne 'psgix.io' || $env->{PATH_INFO} eq '/damage-all' } keys %$env ) {
            my $value = $env->{$key};
            if    ( ref $value eq 'ARRAY' ) { @$value = ('damaged'); push @$value, 1 }
            elsif ( ref $value eq 'HASH' )  { %$value = ( damaged => 1 ) }
            elsif ( !ref $value )           { $env->{$key} .= 'damaged'; $env->{$key} = undef }
        }
        delete $env->{$_} for grep { $_ ne 'psgix.io' } keys %$env;
        $env->{"HTTP_DAMAGED_$_"} = $_ for 1 .. 100;
        bless $env, 'Damaged';
        return [ 200, [], ['damaged'] ];
    }
    if ( $env->{PATH_INFO} eq '/keep' ) {
        $kept = $env;
        return [ 200, [], ['kept'] ];
    }
    $env = $kept if $env->{PATH_INFO} eq '/kept';
    my %plain = map {
        my $value = $env->{$_};
        ( $_ => ref $value eq 'ARRAY' ? $value : ref $value ? 'is ' . ref $value : $value )
    } grep { $_ ne 'psgix.io' } keys %$env;
    $plain{'psgix.io'} = exists $env->{'psgix.io'} ? 'there' : 'none';
    return [ 200, [ 'Content-Type' => 'application/json' ], [ $json->encode( \%plain ) ] ];
}
APP

require JSON::PP;
sub env_of { return JSON::PP->new->decode( shift->body ) }

subtest 'the keys of a plain GET' => sub {
    my $client = $server->connect;
    my $env    = env_of( $client->ask(
        'GET /a%20b/c?q=%31&r',
        'X-One: 1', 'X-Two: a', 'X-Two: b', 'Cookie: a=1', 'Cookie: b=2'
    ) );
    my %want = (
        HTTP_COOKIE       => 'a=1; b=2',
        HTTP_HOST         => 'a',
        HTTP_X_ONE        => '1',
        HTTP_X_TWO        => 'a, b',
        PATH_INFO         => '/a b/c',
        QUERY_STRING      => 'q=%31&r',
        REMOTE_ADDR       => '127.0.0.1',
        REMOTE_HOST       => '127.0.0.1',
        REMOTE_PORT       => $client->port,
        REQUEST_METHOD    => 'GET',
        REQUEST_URI       => '/a%20b/c?q=%31&r',
        SCRIPT_NAME       => '',
        SERVER_NAME       => '127.0.0.1',
        SERVER_PORT       => $server->port,
        SERVER_PROTOCOL   => $ENV{SIRIUS_TEST_H2}  ? 'HTTP/2.0' : 'HTTP/1.1',
        'psgi.url_scheme' => $ENV{SIRIUS_TEST_TLS} ? 'https'    : 'http',
        'psgi.version'    => [ 1, 1 ],
    );
    is_deeply $env->{$_}, $want{$_}, $_ for sort keys %want;
    cmp_ok abs( $env->{'psgix.request_start'} - time ), '<', 5, 'psgix.request_start';
    ok $env->{$_}, $_
        for qw(psgi.run_once psgi.streaming psgix.input.buffered psgix.harakiri psgix.cleanup) [ 1 .. 4 ];
    ok $env->{'psgi.multiprocess'},       'psgi.multiprocess';
    ok defined $env->{$_} && !$env->{$_}, "no $_" for qw(psgi.run_once psgi.nonblocking psgi.multithread);
    is $env->{'psgix.cleanup.handlers'}[0], undef, 'no psgix.cleanup.handlers yet';
    like $env->{'psgix.informational'}, qr/CODE/, 'psgix.informational';
    is $env->{'psgix.io'}, $ENV{SIRIUS_TEST_H2} ? 'none' : 'there', 'psgix.io';
    ok $env->{"psgi.$_"}, "psgi.$_" for qw(input errors);
    is $env->{$_}, undef, "no $_" for qw(CONTENT_LENGTH CONTENT_TYPE HTTP_CONTENT_LENGTH HTTP_CONTENT_TYPE);
};

subtest 'the keys of a POST' => sub {
    my $env = env_of( $server->ask( 'POST /p', 'Content-Type: text/plain', \'hello' ) );
    is $env->{CONTENT_LENGTH}, 5,            'CONTENT_LENGTH';
    is $env->{CONTENT_TYPE},   'text/plain', 'CONTENT_TYPE';
    is $env->{REQUEST_METHOD}, 'POST',       'REQUEST_METHOD';
    ok !exists $env->{HTTP_CONTENT_LENGTH}, 'no HTTP_CONTENT_LENGTH';
    ok !exists $env->{HTTP_CONTENT_TYPE},   'no HTTP_CONTENT_TYPE';
    is env_of( $server->ask('GET / HTTP/1.0') )->{SERVER_PROTOCOL}, 'HTTP/1.0', 'HTTP/1.0'
        if http1( 'SERVER_PROTOCOL', 'HTTP/1.0' );
    is env_of( $server->ask('GET /?') )->{QUERY_STRING},        '',   'an empty query';
    is env_of( $server->ask('GET http://a/x?y') )->{PATH_INFO}, '/x', 'absolute-form';
    is env_of( $server->ask('GET http://a') )->{PATH_INFO},     '/',  'absolute-form without a path';
};

subtest 'what one request does to it the next does not see' => sub {
    my $client = $server->connect;
    my @ask    = ( 'GET /same', 'X-One: 1' );
    my $before = env_of( $client->ask(@ask) );
    for my $path (qw(/damage /damage /damage-all)) {
        is $client->ask( "POST $path", 'X-Secret: s', 'Content-Type: a/b', \'body' )->body, 'damaged',
            'damage';
        $client = $server->connect if $path eq '/damage-all'; # who reads psgix.io has the connection for good
        my $after = env_of( $client->ask(@ask) );
        $after->{$_} = $before->{$_}
            for qw(HTTP_X_REQUEST_ID REMOTE_PORT psgix.queue_time psgix.request_id psgix.request_start);
        is_deeply $after, $before, 'the next is as before';
    }
};

subtest 'an environment that is kept stays as it was' => sub {
    my $client = $server->connect;
    $client->ask( 'GET /keep?first', 'X-Kept: yes' );
    $client->ask( "GET /other$_",    'X-Kept: no' ) for 1 .. 5;
    my $env = env_of( $client->ask('GET /kept') );
    is $env->{QUERY_STRING}, 'first', 'the query';
    is $env->{HTTP_X_KEPT},  'yes',   'the field';
};

subtest 'workers 0 is no multiprocess server' => sub {
    my $single = start_server( 'sub { [ 200, [], [ $_[0]{"psgi.multiprocess"} ? 1 : 0 ] ] }' . "\n",
        qw(--workers 0) );
    is $single->ask('GET /')->body, 0, 'psgi.multiprocess';
    $single->stop;
};

$server->stop;

subtest 'the reference itself, as $_[0]' => sub {
    my $own = start_server( <<'APP', qw(--workers 1) );
use Scalar::Util 'weaken';
my ( @kept, @seen );
my %do = (
    '/assign' => sub { $_[0] = undef },
    '/number' => sub { $_[0] = 5 },
    '/weaken' => sub { weaken $_[0] },
    '/keep'   => sub { push @kept, \$_[0] },
    '/bless'  => sub { bless \$_[0], 'Kept' },
    '/other'  => sub { $_[0] = { PATH_INFO => 'other' } },
);
sub {
    push @seen, "$_[0]{PATH_INFO}$_[0]{HTTP_X_ONE}";
    my $path = $_[0]{PATH_INFO};
    $do{$path}->( $_[0] ) if $do{$path};
    return [ 200, [], [ $path eq '/seen' ? join ' ', @seen : 'ok' ] ];
}
APP
    my $client = $own->connect;
    for my $path (qw(/assign /number /weaken /keep /bless /other)) {
        is $client->ask("GET $path")->body, 'ok', "$path of an environment that serves again";
        is $client->ask( "GET $path", 'X-One: 1', 'X-One: 2' )->body, 'ok', 'and of one that does not';
        is $client->ask('GET /')->body,                               'ok', 'the next request';
    }
    is $client->ask('GET /seen')->body,
        join( ' ', map { ( $_, "${_}1, 2", '/' ) } qw(/assign /number /weaken /keep /bless /other) )
        . ' /seen',
        'each had its own';
    is $own->crashes, 0, 'no worker fell';
};

done_testing;
