use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
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

# 'X-Error' => $@ ends with a newline. It can't begin a field, so it goes; whatever stands within can
subtest 'a newline at the end of a value' => sub {
    my $trimming = start_server( <<'APP', qw(--workers 1) );
my %value = (
    n => "died at x line 1.\n", rn => "v\r\n", nn => "v\n\n\r\n\r", only => "\n", r => "v\r", space => "v \n",
    within => "v\nX-Evil: 1", both => "v\r\nX-Evil: 1\r\n", first => "\nX-Evil: 1", folded => "v\n w\n",
    nul => "v\0\n", nul2 => "v\n\0", esc => "\e[31m\n", behind => "v\n ",
);
sub {
    my $env = shift;
    my ( $kind, $which ) = $env->{PATH_INFO} =~ m{\A/(\w+)/(\w+)\z};
    my @head = ( 'X-Before' => 1, "X-$which" => $value{$which}, 'X-After' => 2 );
    @head = ( 'Content-Length' => "2\n", 'Content-Type' => "text/plain\n", Connection => "close\n" ) if $which eq 'framing';
    return [ 200, \@head, ['ok'] ] if $kind eq 'array';
    return sub { shift->( [ 200, \@head, ['ok'] ] ) } if $kind eq 'delayed';
    return sub { my $w = shift->( [ 200, \@head ] ); $w->write('ok'); $w->close } if $kind eq 'stream';
    my $lived = eval { $env->{'psgix.informational'}->( 103, \@head ); 1 };
    return [ 200, [], [ $lived ? 'ok' : $@ ] ];
}
APP
    my %trimmed = ( n => 'died at x line 1.', rn => 'v', nn => 'v', only => '', r => 'v', space => 'v' );
    for my $kind (qw(array delayed stream)) {
        for my $which ( sort keys %trimmed ) {
            my $answer = $trimming->ask("GET /$kind/$which");
            is join( ' ', $answer->status, map { $answer->header($_) } 'X-Before', "X-$which", 'X-After' ),
                "200 1 $trimmed{$which} 2", "$kind, $which: it is sent without";
            is $answer->body, 'ok', 'with its body';
        }
        for my $which (qw(within both first folded nul nul2 esc behind)) {
            my $client = $trimming->connect;
            my $answer = $client->ask("GET /$kind/$which");
            is $answer->status,           500,   "$kind, $which: an error";
            is $answer->header('X-Evil'), undef, 'nothing injected';
        }
        my $answer = $trimming->ask("GET /$kind/framing");
        is join( ' ', map { $answer->header($_) } 'Content-Length', 'Content-Type' ), '2 text/plain',
            "$kind: fields that the server reads";
        is $answer->header('Connection'), $ENV{SIRIUS_TEST_H2} ? undef : 'close', 'and that of a connection';
    }
    for my $which ( sort keys %trimmed ) {
        my $answer = $trimming->ask("GET /informational/$which");
        is $answer->body, 'ok', "informational, $which";
        my ($hint) = $answer->interim;
        is $hint && $hint->header("X-$which"), $trimmed{$which}, 'it is sent without';
    }
    like $trimming->ask("GET /informational/$_")->body, qr/control character/, "informational, $_: an error"
        for qw(within both first nul esc);
    is $trimming->ask('GET /array/n')->status, 200, 'again' for 1 .. 3;
    my @lines = grep {/response header X-n ended with a newline/} split /\n/, $trimming->log;
    is scalar @lines, 1, 'logged once for each name';
    like $lines[0], qr{\[sirius \d+\] warn: GET /array/n from \S+ .*: }, 'with its request';
    $trimming->stop;
};

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
        next if left_out( 'a refusal', $bytes );
        my $client = $server->connect;
        $client->send($bytes);
        my $answer = $client->response;
        like $answer->status, $ENV{SIRIUS_TEST_H2} ? qr/\Aeof\z/ : qr/\A(?:400|505)\z/, 'refused';
        unlike $answer->body . join( '', map { $answer->headers($_) } $answer->names ), qr/script/,
            'without an echo';
    }
};

$server->stop;
done_testing;
