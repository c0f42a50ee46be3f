use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# An application may close all descriptors that it does not know, as programs do that become daemons, and then
# open files and sockets of its own: nothing of the server may be written to them

my $app = <<'APP';
use POSIX ();
use Socket;
my @kept;
my %opens = (
    file   => sub { open my $fh, '+>', "$ENV{OUT}/$_[0]" or die "open: $!"; $fh },
    append => sub { open my $fh, '>>', "$ENV{OUT}/$_[0]" or die "open: $!"; $fh },
    pipe   => sub { pipe my $read, my $write or die "pipe: $!"; ( $read, $write ) },
    stream => sub { socketpair my $one, my $two, AF_UNIX, SOCK_STREAM, 0 or die "socketpair: $!"; ( $one, $two ) },
    packet => sub { socketpair my $one, my $two, AF_UNIX, SOCK_SEQPACKET, 0 or die "socketpair: $!"; ( $one, $two ) },
);
sub {
    my $env = shift;
    my ( undef, $what, $last ) = split m{/}, $env->{PATH_INFO};
    if ( $opens{ $what || '' } ) {
        POSIX::close($_) for 3 .. $last;
        @kept = map { $opens{$what}->($_) } 1 .. 60;
    }
    if ( ( $what || '' ) eq 'read' ) {
        my $bits = '';
        vec( $bits, fileno $_, 1 ) = 1 for @kept;
        select $bits, undef, undef, 0.1;
        return [ 200, [], [ join q( ), grep { vec $bits, fileno $_, 1 } @kept ] ];
    }
    my $read = $env->{'psgi.input'}->read( my $body, 1 << 20 );
    select undef, undef, undef, 0.02;
    return [ 200, [], [ $read ] ];
};
APP

for my $what (qw(append file packet pipe stream)) {
    for my $last ( 1000, 3000 ) {
        my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
        local $ENV{OUT} = "$dir";
        my $server = start_server( $app, qw(--workers 1 --max-requests 40) );
        $server->{may_crash} = 1;    # the worker may say that it cannot go on
        is $server->ask("GET /$what/$last")->status, 200, "$what, all up to $last are closed";
        my $client = $server->connect;
        for my $bytes ( 10, 20_000, 200_000 ) {
            $client->send(
                join "\r\n", 'POST / HTTP/1.1',
                'Host: x',   "Content-Length: $bytes",
                '',          'y' x $bytes
            );
            is $client->response( patience => 20 )->body, $bytes, 'a request is answered, with its body';
        }
        if ( $what =~ /packet|pipe|stream/ ) {
            is $server->ask('GET /read')->body =~ s/GLOB\S+//r, '', 'nothing has come on one of its own';
        }
        is $server->ask('GET /')->status, 200, 'another' for 1 .. 40;
        $server->stop;
        is_deeply [ map { -s $_ ? slurp($_) : () } glob "$dir/*" ], [],
            'nothing of the server is in a file of the application';
    }
}

done_testing;

sub slurp {
    open my $in, '<', shift or die "open: $!";
    return do { local $/; <$in> };
}
