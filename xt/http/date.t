use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use HTTP::Date qw(str2time time2str);
use Sirius::Test;

# The Date field: there, right, renewed every second, and the application's own when it has one

my $server = start_server( <<'APP', qw(--workers 1) );
sub {
    my $path = $_[0]{PATH_INFO};
    return [ 200, [ Date   => 'Thu, 01 Jan 1970 00:00:00 GMT' ], [] ] if $path eq '/own';
    return [ 200, [ Server => 'mine' ], [] ] if $path eq '/server';
    return [ 200, [], [] ];
}
APP

subtest 'it is the time of now' => sub {
    for my $request ( ['GET /'], ['HEAD /'], [ 'GET /', 'Expect: x' ], ['GET /%zz'] ) {
        my $answer = $server->ask(@$request);
        my $date   = $answer->header('Date');
        cmp_ok abs( str2time($date) - time ), '<=', 1, "$request->[0], " . $answer->status;
        is time2str( str2time $date ), $date, "the right day: $date";
    }
};

subtest 'it goes on after an idle second' => sub {
    my $client = $server->connect;
    my $first  = $client->ask('GET /')->header('Date');
    select undef, undef, undef, 2.1;
    my $second = $client->ask('GET /')->header('Date');
    cmp_ok str2time($second) - str2time($first), '>=', 2, "$first, $second";
    cmp_ok abs( str2time($second) - time ),      '<=', 1, 'and is right';
};

subtest 'the application may set its own' => sub {
    is $server->ask('GET /own')->header('Date'),      'Thu, 01 Jan 1970 00:00:00 GMT', 'Date';
    is $server->ask('GET /server')->header('Server'), 'mine',                          'Server';
    ok defined $server->ask('GET /')->header('Server'), 'there is one without';
};

$server->stop;
done_testing;
