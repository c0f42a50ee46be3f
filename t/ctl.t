use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# sirius ctl, and the admin port

my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $server = start_server( 'sub { [ 200, [], ["hello"] ] }',
    qw(--workers 2 --admin 127.0.0.1:0 --control), "$dir/ctl" );
my $root = $Sirius::Test::Server::ROOT;

sub ctl {
    my @command = ( $^X, "-Mblib=$root/blib", "$root/bin/sirius", 'ctl', '--control', "$dir/ctl", @_ );
    open my $out, '-|', @command or die "ctl: $!";
    my $text = join '', readline $out;
    close $out;
    return ( $? >> 8, $text );
}
$server->ask('GET /') for 1 .. 3;
my ( $status, $text ) = ctl('status');
is $status, 0, 'ctl status';
like $text, qr/worker/i, 'knows the workers';
my ($admin) = $server->log =~ m{admin on http://([^/\s]+)/};
ok $admin, 'an admin port' or diag $server->log;
my $client = sub { Sirius::Test::Client->new($admin)->ask( "GET $_[0]", "Host: $admin" ) };
is $client->('/readyz')->status, 200, '/readyz';
like $client->('/metrics')->body, qr/^sirius_requests_total\S* 3$/m, '/metrics';
is $client->('/')->status, 200, 'the status page';
( $status, $text ) = ctl(qw(reload --wait));
is $status, 0, 'ctl reload --wait';
( $status, $text ) = ctl(qw(workers 3));
is $status, 0, 'ctl workers 3';
ok $server->wait_board(
    sub {
        3 == grep { $_->{state} eq 'idle' } @{ $_[0]{workers} };
    },
    30
    ),
    'there are three';
( $status, $text ) = ctl(qw(stop --wait));
is $status,            0,        'ctl stop --wait';
is $server->wait_exit, 'exit 0', 'it has stopped';
$server->stop;
done_testing;
