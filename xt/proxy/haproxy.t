use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;
use Sirius::Test::Behind;
use Sirius::Test::HAProxy;

# Behind HAProxy: with connections that are kept and shared, closed after each request, and over a unix
# socket; with health checks

plan skip_all => 'HAProxy is not installed' if !Sirius::Test::HAProxy->available;

my @ways   = qw(kept closed unix);
my $behind = Sirius::Test::Behind->new(
    ways    => \@ways,
    new     => 'closed',
    refused => sub {
        my $answer = shift->some( 12, 5 );
        return ( $answer =~ qr{\AHTTP/1\.1 (\d+) }, $answer =~ /^server: Sirius/m );
    },
);
my ( $address, $mortal, $socket ) = ( $behind->address, $behind->mortal, $behind->socket );
my $stats   = File::Temp->newdir;
my $haproxy = Sirius::Test::HAProxy->start(<<"CONF");
global
    maxconn 400
    stats socket $stats/socket mode 600 level admin
defaults
    mode http
    log stderr format raw daemon notice
    timeout connect 5s
    timeout client 10s
    timeout server 10s
    timeout check 5s
    option httpchk
    default-server inter 100ms fastinter 100ms
    http-reuse always
frontend all
    bind fd\@LISTENER
    use_backend %[path,field(2,/)]
backend kept
    server one $address check
backend closed
    option httpclose
    server one $address check
backend unix
    server one unix\@$socket check
backend mortal
    server one $mortal check
CONF
until_true(
    10,
    sub {
        -S "$stats/socket" && 4 == grep { $_->{status} eq 'UP' } servers();
    }
) or die "HAProxy did not start:\n", $haproxy->log;
$behind->through($haproxy)->test;

# What HAProxy counts for each server behind it
sub servers {
    my $client = eval { Sirius::Test::Client->new("unix:$stats/socket") } or return;
    $client->send("show stat -1 4 -1\n");
    my ( $head, @line ) = split /\n/, $client->rest(5);
    return if !defined $head || $head !~ s/\A# //;
    my @name = split /,/, $head;
    return map { my %row; @row{@name} = split /,/; \%row } @line;
}

subtest 'what HAProxy counted' => sub {
    my %server = map { $_->{pxname} => $_ } servers();
    for my $name ( @ways, 'mortal' ) {
        my %row = %{ $server{$name} };
        is "$row{status} $row{check_status}" =~ s/ \*//r, 'UP L7OK',
            "$name: the HTTP/1.0 health check passes";
        is $row{$_}, 0, "$name: $_" for qw(chkfail chkdown econ eresp wretr wredis srv_abrt);
    }
SKIP: {
        skip 'ab is not installed', 1 if !program('ab');
        cmp_ok $server{kept}{reuse}, '>', 1900, 'connections are used again';
    }
    is $server{closed}{reuse}, 0, 'or not';
};

$behind->no_errors;
$behind->stop;
done_testing;
