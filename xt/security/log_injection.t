use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# Whatever comes over the wire, it stays on its line in the logs

my $dir    = File::Temp->newdir;
my $server = start_server( <<'APP', '--workers', 1, '--access-log', "$dir/log" );
sub {
    my $env = shift;
    die "of this\n" if $env->{QUERY_STRING} =~ /\Adie/;
    warn "app sees $env->{PATH_INFO}\n" if $env->{PATH_INFO} !~ /[\x80-\xff]/;
    return [ 200, [], ['ok'] ];
}
APP

sub log_lines {
    my $text = Sirius::Test::Server::slurp("$dir/log");
    return split /\n/, $text;
}

is $server->ask( 'GET /%25n%25s?q=%0a', 'User-Agent: "quoted" \\ back' )->status, 200,
    'a request with everything';
ok until_true( 5, sub { log_lines() } ), 'is logged';
is scalar( my @line = log_lines() ), 1, 'in one line';
like $line[0], qr{"GET /%25n%25s\?q=%0a HTTP/(?:1\.1|2\.0)" 200}, 'as it came';

# A request that is malformed in HTTP/2 (RFC 9113 8.1.1) has its stream reset
my $REFUSED = $ENV{SIRIUS_TEST_H2} ? 'eof' : 400;

my @evil = ( "\e[31mred", "a\x07b", "a\x00b", "a\x7fb", "line\x0bbreak" );
for my $evil (@evil) {
    my $status = $server->ask( 'GET /', "User-Agent: $evil" )->status;
    is $status, $REFUSED, sprintf 'control byte %vd in a field', $evil;
}
for my $bytes (
    "GET /\e[31m HTTP/1.1\r\nHost: a\r\n\r\n",
    "\e]0;title\x07\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: \e[31m\r\n\r\n"
    )
{
    next if left_out( 'control bytes in the head', $bytes );
    my $client = $server->connect;
    $client->send($bytes);
    is $client->response->status, $REFUSED, 'control bytes in the head';
}
subtest 'bytes above 0x7f, of which some are control characters of terminals' => sub {
    my $path = "/\xc3\xa9\x9b31m\x90";
    is $server->ask("GET $path")->status,     200, 'in the path';
    is $server->ask("GET $path?die")->status, 500, 'of an application that dies';
    my $text = '/\xc3\xa9\x9b31m\x90';
    ok until_true(
        5,
        sub {
            2 == grep { index( $_, qq("GET $text) ) > 0 } log_lines();
        }
        ),
        'the access log'
        or diag log_lines();
    ok until_true( 5, sub { index( $server->log, "GET $text?die from 127.0.0.1 " ) > 0 } ), 'the error log'
        or diag $server->log;
    unlike $server->log . join( '', log_lines() ), qr/[\x80-\xff]/, 'none is in any log as it came';
};
is $server->ask("GET /$_")->status, 400, "an encoded line end, $_" for qw(%0a %0d x%0d%0ay);
unlike $server->log . join( '', log_lines() ), qr/[\x00-\x08\x0b-\x1f\x7f]/, 'no control byte is in any log';

$server->stop;
done_testing;
