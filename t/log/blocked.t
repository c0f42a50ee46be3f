use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp ();
use POSIX      qw(O_NONBLOCK O_RDWR);
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# STDERR is a pipe that nobody reads. Who writes to it stands still; the other connections of that worker go to another.

my $APP = <<'APP';
sub {
    my $path = $_[0]{PATH_INFO};
    warn 'w' x 1000, "\n" for 1 .. ( $path eq '/warn' ? 200 : 0 );
    die 'y' x 200_000, "\n" if $path eq '/die';
    push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { die 'c' x 200_000, "\n" } if $path eq '/cleanup';
    return sub { my $w = shift->( [ 200, [] ] ); $w->write('begun'); die 's' x 200_000, "\n" } if $path eq '/stream';
    [ 200, [], ["$$"] ];
}
APP

for my $path (qw(/warn /die /cleanup /stream)) {
    subtest $path => sub {
        my $dir  = File::Temp->newdir;
        my $fifo = "$dir/stderr";
        POSIX::mkfifo( $fifo, 0600 ) or die "mkfifo: $!";
        sysopen my $reader, $fifo, O_RDWR | O_NONBLOCK or die "$fifo: $!";
        local $ENV{STDERR_FIFO} = $fifo;
        my $server = Sirius::Test::Server->spawn(
            app     => $APP,
            args    => [ '--listen', "unix:$dir/socket", qw(--workers 2) ],
            command => [
                'sh', '-c', 'exec "$@" 2>"$STDERR_FIFO"',
                'sh', $^X,  "$Sirius::Test::Server::ROOT/bin/sirius"
            ],
        );
        my $connect = sub { $server->connect( to => "unix:$dir/socket" ) };
        ok until_true(
            10,
            sub {
                eval { $connect->()->ask('GET /')->status eq '200' }
            }
            ),
            'it serves';
        my %of;
        until_true( 5,
            sub { my $c = $connect->(); push @{ $of{ $c->ask('GET /')->body } }, $c; keys %of == 2 } );
        for ( 1 .. 30 ) { my $c = $connect->(); push @{ $of{ $c->ask('GET /')->body } }, $c }
        my ($pid) = sort { @{ $of{$b} } <=> @{ $of{$a} } } keys %of;
        my ( $stuck, @kept ) = @{ $of{$pid} };
        $stuck->send( request("GET $path") );
        sleep 0.5;
        my %by;

        for my $client (@kept) {
            $client->send( request('GET /') );
            my $answer = $client->response( patience => 4 );
            $by{  $answer->status eq '200'
                ? $answer->body eq $pid
                        ? 'the same'
                        : 'the other'
                : $answer->status
            }++;
            last if $by{timeout};
        }
        is_deeply \%by, { 'the other' => scalar @kept }, 'the other connections are served'
            or diag explain \%by;
        my $read = '';
        until_true(
            10,
            sub {
                1 while sysread $reader, $read, 65_536, length $read;
                $stuck->response( patience => 0.05 )->status ne 'timeout';
            }
        );
        ok until_true(
            5, sub { 1 while sysread $reader, $read, 65_536, length $read; $read =~ /([wycs])\1{999}/ }
            ),
            'the line is whole in the end';
        is $connect->()->ask('GET /')->status, 200, 'all is well afterwards';
        $server->signal('TERM');
        until_true( 15, sub { 1 while sysread $reader, my $more, 65_536; $server->wait_exit(0.05) } );
        is $server->exited, 'exit 0', 'the server stops';
        $server->kill_hard;
    };
}

done_testing;
