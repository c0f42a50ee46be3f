use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# What the log tells an author whose application has made a mistake: what is wrong, and with which value

my $server = start_server( <<'APP', qw(--workers 1) );
package Problem { use overload '""' => sub {"problem $_[0][0]"}, fallback => 1; sub new { bless [ $_[1] ] } }
package Fatal   { use overload '""' => sub { die "no text\n" },  fallback => 1; sub new { bless [] } }
package main;
my %answer = (
    object  => sub { die Problem->new(7) },
    fatal   => sub { die Fatal->new },
    status  => sub { [ 42, [], ['x'] ] },
    text    => sub { [ "o\e[31mk", [], ['x'] ] },
    missing => sub { [ undef, [], ['x'] ] },
    name    => sub { [ 200, [ 'X Y' => 1 ], ['x'] ] },
    long    => sub { [ 200, [ ':' x 500 => 1 ], ['x'] ] },
    value   => sub { [ 200, [ 'X-Foo' => "a\r\nb" ], ['x'] ] },
    length  => sub { [ 200, [ 'Content-Length' => 'many' ], ['x'] ] },
    huge    => sub { [ 200, [ 'Content-Length' => ~0 ], ['x'] ] },
    wide    => sub { [ 200, [ 'X-Foo' => "\x{263a}" ], ['x'] ] },
    headers => sub { [ 200, ['X-Foo'], ['x'] ] },
    body    => sub { [ 200, [], 'x' ] },
    none    => sub { [ 200, [] ] },
);
sub { $answer{ substr $_[0]{PATH_INFO}, 1 }->() }
APP

my %WANT = (
    object  => 'the application died: problem 7',
    fatal   => 'the application died: an exception that cannot be converted to text',
    status  => "the status is '42', not a number from 200 to 999",
    text    => "the status is 'o\\x1b[31mk', not a number from 200 to 999",
    missing => "the status is '', not a number from 200 to 999",
    name    => "the header name 'X Y' contains a character that is not allowed",
    long    => "the header name '" . ':' x 100 . "' contains a character that is not allowed",
    value   => "the value of the header 'X-Foo' contains a control character",
    length  => "Content-Length is 'many', which is not a number or differs from an earlier one",
    huge => "Content-Length is '18446744073709551615', which is not a number or differs from an earlier one",
    wide => 'a header contains characters above 0xff: encode it, for example as UTF-8',
    headers => 'the headers are not a reference to an array of names and values',
    body    => 'the response is invalid: the body is neither a reference to an array nor a handle',
    none    => 'the response has no body: only a responder of psgi.streaming may leave it out',
);

my $LINE = qr{127[.]0[.]0[.]1 at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, request id [0-9a-f]{32}};
for my $name ( sort keys %WANT ) {
    is $server->ask("GET /$name")->status, 500, "$name: 500";
    ok $server->wait_log(qr{ error: GET /$name from $LINE: \Q$WANT{$name}\E$}m), "$name: the log says why";
}

$server->stop;
done_testing;
