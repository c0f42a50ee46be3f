use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use POSIX      qw(O_NONBLOCK O_RDWR);
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# STDERR is a pipe that nobody reads, and full. Nobody waits for its reader: neither a worker that logs nor
# the supervisor

my $APP = <<'APP';
sub {
    my $path = $_[0]{PATH_INFO};
    warn 'w' x 1000, "\n" for 1 .. ( $path eq '/warn' ? 200 : 0 );
    print STDERR 'p' x 70_000, "\n" if $path eq '/print';
    $_[0]{'psgi.errors'}->print( 'e' x 5000, "\n" ) if $path eq '/errors';
    die 'y' x 200_000, "\n" if $path eq '/die';
    push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { die 'c' x 200_000, "\n" } if $path eq '/cleanup';
    return sub { my $w = shift->( [ 200, [] ] ); $w->write('begun'); die 's' x 200_000, "\n" } if $path eq '/stream';
    [ 200, [], ["$$"] ];
}
APP

my %status = ( '/die' => 500, '/stream' => 'cut' );

# What has been written so far
sub drain {
    my ( $reader, $text ) = @_;
    1 while sysread $reader, $$text, 65_536, length $$text;
    return $$text;
}

for my $mode ( [], ['--log-prefix'], ['--error-log'] ) {
    subtest "@$mode" => sub {
        my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
        my $fifo = "$dir/stderr";
        POSIX::mkfifo( $fifo, oct 600 ) or die "mkfifo: $!";
        sysopen my $reader, $fifo, O_RDWR | O_NONBLOCK or die "$fifo: $!";
        local $ENV{STDERR_FIFO} = $fifo;
        my $server = Sirius::Test::Server->spawn(
            app  => $APP,
            args => [
                '--listen',      "unix:$dir/socket",
                qw(--workers 2), @$mode ? ( @$mode, "@$mode" =~ /error/ ? $fifo : () ) : ()
            ],
            command => [
                'sh', '-c', 'exec "$@" 2>"$STDERR_FIFO"',
                'sh', $^X,  "$Sirius::Test::Server::ROOT/bin/sirius"
            ],
        );
        my $ask = sub {
            my $path   = shift;
            my $client = eval { $server->connect( to => "unix:$dir/socket" ) } or return 'none';
            $client->send( request("GET $path") );
            return $client->response( patience => 10 );
        };
        my $pid
            = sub { my $answer = $ask->('/'); ref $answer && $answer->status eq '200' ? $answer->body : q() };
        my $read = q();
        ok until_true( 10, sub { drain( $reader, \$read ) =~ /2 workers are serving/ } ), 'it serves'
            or diag $read;
        my $line = "filled\n" x 64;
        1 while syswrite $reader, $line;
        1 while syswrite $reader, 'x';

        for my $path (qw(/warn /print /errors /die /cleanup /stream)) {
            for ( 1 .. 4 ) {
                my $answer = $ask->($path);
                is ref $answer && $answer->status, $status{$path} || 200, "$path: answered";
            }
        }
        ok $pid->(), 'other requests are answered';

        my ($worker) = $server->workers;
        kill KILL => $worker;
        ok until_true(
            10,
            sub {
                my @now = $server->workers;
                @now == 2 && !grep { $_ == $worker } @now;
            }
            ),
            'a worker that was killed is replaced';
        my ($edge) = $server->edges;
        kill KILL => $edge;
        ok until_true( 10, sub { my ($now) = $server->edges; $now && $now != $edge } ), 'so is the edge';
        ok until_true( 10, sub { $pid->() } ),                                          'which serves';
        my ($generation) = $server->generations;
        $server->signal('HUP');
        ok until_true( 20, sub { my @now = $server->generations; @now == 1 && $now[0] != $generation } ),
            'HUP loads the application again';

        $read = q();
        drain( $reader, \$read );
        $server->signal('TTIN');    # the supervisor says something
        $ask->('/errors') for 1 .. 8;
        ok until_true( 10,
            sub { drain( $reader, \$read ) =~ /^.*error:? .*\d+ lines? of this log (?:was|were) lost/m } ),
            'it is said how many lines were lost';
        like $read, qr/^(?:\S+ \d+ error )?e{5000}$/m, 'and lines that come now are whole';

        1 while syswrite $reader, $line;
        1 while syswrite $reader, 'x';
        $ask->('/warn') for 1 .. 4;
        $server->signal('TERM');
        is $server->wait_exit(15), 'exit 0', 'TERM ends the server';
        $server->kill_hard;
    };
}

done_testing;
