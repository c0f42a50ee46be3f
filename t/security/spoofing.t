use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# What the environment says of the server and the client comes from the server, never from a header

my $server = start_server( <<'APP', qw(--workers 1) );
sub { my $env = shift; [ 200, [], [ map { ref $env->{$_} ? () : "$_=" . ( defined $env->{$_} ? $env->{$_} : 'undef' ) . "\n" } sort keys %$env ] ] }
APP

sub env_of {
    return { map { split /=/, $_, 2 } split /\n/, $server->ask(@_)->body };
}

subtest 'names with underscores never meet those with dashes' => sub {
    my $env = env_of( 'GET /', 'X-Forwarded-For: 1.1.1.1', 'X_Forwarded_For: 6.6.6.6',
        'X_Forwarded-For: 7.7.7.7' );
    is $env->{HTTP_X_FORWARDED_FOR}, '1.1.1.1', 'the one with dashes';
    $env = env_of( 'GET /', 'X_Real_IP: 6.6.6.6' );
    is $env->{HTTP_X_REAL_IP}, undef, 'alone it is dropped as well';
};

subtest 'Proxy is no HTTP_PROXY (httpoxy)' => sub {
    for my $name (qw(Proxy PROXY proxy)) {
        is env_of( 'GET /', "$name: http://evil/" )->{HTTP_PROXY}, undef, $name;
    }
};

subtest 'variables of CGI cannot be set' => sub {
    my @field = map {"$_: evil"}
        qw(Remote-User Remote-Addr Path-Info Script-Name Server-Name Request-Method Psgi.Url-Scheme Auth-Type
        Remote_User Gateway-Interface);
    my $env  = env_of( 'GET /real', @field );
    my @evil = grep { !/\AHTTP_/ && $env->{$_} =~ /evil/ } keys %$env;
    is "@evil",             '',          'outside of HTTP_*';
    is $env->{PATH_INFO},   '/real',     'PATH_INFO';
    is $env->{REMOTE_ADDR}, '127.0.0.1', 'REMOTE_ADDR';
};

subtest 'forwarding headers change nothing by themselves' => sub {
    my $env = env_of(
        'GET /',
        'X-Forwarded-For: 6.6.6.6',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Host: evil',
        'Forwarded: for=6.6.6.6'
    );
    is $env->{REMOTE_ADDR},       '127.0.0.1', 'REMOTE_ADDR';
    is $env->{'psgi.url_scheme'}, 'http',      'psgi.url_scheme';
    is $env->{HTTP_HOST},         'a',         'HTTP_HOST';
};

subtest 'headers of X-Sendfile have no effect' => sub {
    my $answer = $server->ask( 'GET /', 'X-Sendfile-Type: X-Accel-Redirect', 'X-Accel-Mapping: /=/x/' );
    is $answer->header($_), undef, $_ for qw(X-Sendfile X-Accel-Redirect X-Lighttpd-Send-File);
};

subtest 'nothing of one request is left for the next' => sub {
    my $client = $server->connect;
    $client->ask( 'POST /', 'X-Secret: s', 'Authorization: Basic abc',
        'Cookie: c=1', 'Content-Type: a/b', \'body' );
    my $body = $client->ask('GET /')->body;
    unlike $body, qr/X_SECRET|AUTHORIZATION|COOKIE|CONTENT_/, 'in the environment';
};

$server->stop;
done_testing;
