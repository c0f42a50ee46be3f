use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Fcntl      qw(O_NONBLOCK O_RDONLY);
use File::Temp ();
use POSIX      qw(mkfifo);
use Test::More;
use Sirius::Test;

# The logs are FIFOs, and nobody reads them: nothing waits for a reader, neither the start nor USR1 nor a
# reload

my $APP = "sub { warn qq(said\\n); [ 200, [], [getppid] ] }\n";

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my ( $errors, $access ) = map {"$dir/$_"} qw(errors access);
for my $fifo ( $errors, $access ) { mkfifo( $fifo, oct 600 ) or die "mkfifo: $!" }

# What comes out of it until it matches
sub comes {
    my ( $fifo, $pattern ) = @_;
    sysopen my $reader, $fifo, O_RDONLY | O_NONBLOCK or die "$fifo: $!";
    my $text = '';
    return until_true(
        10,
        sub {
            1 while sysread $reader, $text, 65_536, length $text;
            return $text =~ $pattern;
        }
    ) || !diag $text;
}

for my $workers ( 0, 2 ) {
    subtest "--workers $workers" => sub {
        my $server = Sirius::Test::Server->spawn(
            app  => $APP,
            args => [
                '--listen',    "unix:$dir/socket", '--workers',    $workers,
                '--error-log', $errors,            '--access-log', $access
            ],
        );
        my $ask = sub {
            my $answer = eval {
                my $client = $server->connect( to => "unix:$dir/socket" );
                $client->send( request('GET /') );
                $client->response( patience => 5 );
            };
            return $answer && $answer->status eq '200' ? $answer->body : '';
        };
        my $generation;
        ok until_true( 20, sub { $generation = $ask->() } ), 'it starts';
        ok comes( $errors, qr/ starting Sirius .*said\n/s ), 'a later reader gets what was logged before';
        ok comes( $access, qr/GET/ ),                        'of the access log too';
        $server->signal('USR1');
        ok $ask->() for 1 .. 3;
        ok comes( $errors, qr/said\n/ ), 'after USR1 without a reader as well';

        if ($workers) {
            $server->signal('HUP');
            ok until_true( 20, sub { my $now = $ask->(); $now && $now ne $generation } ), 'it reloads';
        }
        $server->signal('USR1');
        $server->signal('TERM');
        is $server->wait_exit(15), 'exit 0', 'TERM ends it';
        $server->kill_hard;
    };
}

subtest 'sirius check' => sub {
    my $app = spew( "$dir/app.psgi", $APP );
    my $pid = open my $out, '-|', $^X, "$Sirius::Test::Server::ROOT/bin/sirius", 'check', '--listen',
        "unix:$dir/other", '--error-log', $errors, '--access-log', $access, $app
        or die "sirius: $!";
    local $SIG{ALRM} = sub { kill KILL => $pid };
    alarm 30;
    my $text = join '', readline $out;
    close $out;
    alarm 0;
    is $?, 0, 'ends' or diag $text;
};

done_testing;
