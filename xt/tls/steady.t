# No connection over TLS ends because a certificate is swapped, or because a worker ends or is killed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", "$FindBin::Bin/../fair";
use Test::More;
use Fair;
use Sirius::Test;
use Sirius::Test::Certificates;

$Sirius::Test::Client::TLS = 1;
my $made = Sirius::Test::Certificates->new;
my ( $cert, $key ) = map { $made->dir . "/now.$_" } qw(pem key);
my @pairs = map { [ $made->pem( $_, names => ['one.example'] ) ] } qw(first second);

sub install {
    my $number = shift;
    spew( "$cert.new", $pairs[ $number % 2 ][0] );
    spew( "$key.new",  $pairs[ $number % 2 ][1] );
    rename "$_.new", $_ or die "$_: $!" for $cert, $key;
    return;
}

sub server {
    my @args = @_;
    return start_server(
        $APP, '--listen', '127.0.0.1:0,tls',
        '--tls-cert' => $cert,
        '--tls-key'  => $key,
        @args
    );
}

install(0);

subtest 'a certificate is swapped under load' => sub {
    my $server = server(qw(--workers 2));
    my ( $swaps, $read ) = ( 0, 0 );
    my $got = hammer(
        $server,
        clients => [ map { $server->connect } 1 .. 8 ],
        seconds => 60,
        every   => 0.5,
        tick    => sub {
            $read = () = $server->log =~ /certificates reloaded/g;
            install( ++$swaps );
            $server->signal('HUP');
        },
        stop => sub { $read >= 3 },
    );
    cmp_ok $read,           '>=', 3, 'it is read again and again';
    cmp_ok $got->{answers}, '>',  0, 'meanwhile there are answers';
    is_deeply $got->{failures}, [], 'no request fails, and no connection ends';
    is $got->{closes}, 0, 'none is told to';
    $server->stop;
};

subtest 'workers end after some requests' => sub {
    my $server = server(qw(--workers 2 --max-reqs-per-child 20));
    my $got
        = hammer( $server, clients => [ map { $server->connect } 1 .. 8 ], requests => 40, seconds => 60 );
    is $got->{answers}, 320, 'all are answered';
    is_deeply $got->{failures}, [], 'no request fails, and no connection ends';
    is $got->{closes}, 0, 'none is told to';
    cmp_ok scalar keys %{ $got->{by_worker} }, '>=', 10, 'by one worker after the other';
    $server->stop;
};

subtest 'workers are killed' => sub {
    my $server = server(qw(--workers 2 --err-respawn-interval 0.1));
    my %killed;
    my $got = hammer(
        $server,
        clients => [ map { $server->connect } 1 .. 8 ],
        path    => '/sleep/0.02',
        seconds => 60,
        every   => 0.3,
        tick    => sub {
            my ($next) = grep { !$killed{$_} } worker_pids($server);
            $killed{$next} = kill KILL => $next if $next;
        },
        stop => sub { keys %killed >= 5 },
    );
    my @lost  = grep { $_ eq '502' } @{ $got->{failures} };
    my @other = grep { $_ ne '502' } @{ $got->{failures} };
    cmp_ok scalar @lost, '<=', scalar keys %killed, 'each costs one request at most';
    cmp_ok scalar @lost, '>',  0,                   'and some did';
    is_deeply \@other, [], 'no connection ends';
    cmp_ok $got->{answers}, '>', 20, 'the others are answered';
    $server->{may_crash} = 1;
    $server->stop;
};

done_testing;
