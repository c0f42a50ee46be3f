use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# No request can put a field of its own into the response, or a line of its own into the log

my $server = start_server( <<'APP', qw(--workers 1) );
sub {
    my $env = shift;
    my ($to) = $env->{QUERY_STRING} =~ /to=(.*)/;
    $to = '' if !defined $to;
    $to =~ s/%([0-9a-fA-F]{2})/chr hex $1/ge;
    return sub { my $w = shift->( [ 302, [ Location => $to ] ] ); $w->write('moved'); $w->close } if $env->{PATH_INFO} eq '/stream';
    return sub { shift->( [ 302, [ Location => $to ], ['moved'] ] ) } if $env->{PATH_INFO} eq '/delayed';
    die "to $to\n" if $env->{PATH_INFO} eq '/die';
    return [ 302, [ Location => $to ], ['moved'] ];
}
APP

my @EVIL = (
    '/x%0d%0aSet-Cookie:%20a=b', '/x%0aSet-Cookie:%20a=b',
    '/x%0dSet-Cookie:%20a=b',    '/x%00',
    '/x%0d%0a%0d%0aHTTP/1.1%20200%20OK'
);

for my $path (qw(/ /stream /delayed)) {
    subtest "a redirect made of the query, $path" => sub {
        is $server->ask("GET $path?to=/ok")->header('Location'), '/ok', 'works';
        for my $evil (@EVIL) {
            my $client = $server->connect;
            my $answer = $client->ask("GET $path?to=$evil");
            like $answer->status, qr/\A(?:500|cut|eof)\z/, $evil;
            is $answer->header('Set-Cookie'), undef, 'nothing injected';
            unlike $client->rest(0.05), qr/HTTP|Cookie/, 'and nothing behind it';
        }
    };
}

subtest 'the answer to an error does not tell the error' => sub {
    my $answer = $server->ask('GET /die?to=secret-of-the-application');
    is $answer->status, 500, 'status 500';
    unlike $answer->body, qr/secret|\.psgi|line \d/, 'no text of the exception';
    ok $server->wait_log(qr/secret-of-the-application/), 'the log has it';
};

subtest 'a refusal does not repeat what was sent' => sub {
    for my $bytes ( "GET /<script> HTTP/9.9\r\n\r\n",
        "<script>\r\n\r\n", "GET / HTTP/1.1\r\nHost: <script>\r\n\r\n" )
    {
        my $client = $server->connect;
        $client->send($bytes);
        my $answer = $client->response;
        like $answer->status, qr/\A(?:400|505)\z/, 'refused';
        unlike $answer->body . join( '', map { $answer->headers($_) } $answer->names ), qr/script/,
            'without an echo';
    }
};

$server->stop;
done_testing;
