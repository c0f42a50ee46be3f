use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp  ();
use Time::HiRes qw(sleep);
use Test::More;
use Sirius::Test;

# Names that are not ASCII, as the bytes that they are: also in the programs that follow the first one, which
# get them as JSON

my $root = $Sirius::Test::Server::ROOT;
my $base = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $here = "gr\xc3\xb6\xc3\x9fe-\xff\xe6\x97\xa5";               # UTF-8, and a byte that is none
my $dir  = "$base/$here";
mkdir $_ or die "$_: $!" for $dir, "$dir/lib";
spew( "$dir/lib/Words.pm", "package Words;\nsub number { 0 }\n1;\n" );
spew( "$dir/app.psgi",     <<'APP' );
use Words;
sub {
    my $env   = shift;
    my $bytes = 0;
    while ( my $read = $env->{'psgi.input'}->read( my $text, 65_536 ) ) { $bytes += $read }
    [ 200, [], [ join ' ', Words::number(), $bytes, $ENV{GREETING} ] ];
}
APP

sub names {
    opendir my $in, shift or die $!;
    return join ' ', sort grep { !/\A[.]/ } readdir $in;
}

sub config { return spew( "$dir/config", "workers = 2\nmax-keepalive-reqs = $_[0]\n" ) }

config(0);
my $server = Sirius::Test::Server->start(
    plain => 1,
    env   => { GREETING => "gr\xc3\xbc\xc3\x9f" },
    ready => 2,
    app   => "$dir/app.psgi",
    args  => [
        '--host',       '127.0.0.1',    '--port',       0,
        '--socket',     "$dir/socket",  '--pid',        "$dir/pid",
        '--control',    "$dir/control", '--tmpdir',     $dir,
        '--access-log', "$dir/access",  '--config',     "$dir/config",
        '-I',           "$dir/lib",     '--log-prefix', '--access-log-format',
        "%r \xc3\xa4",
    ],
    error_log => "$dir/error",
);
my $address = $server->address;
my $body    = 'x' x 200_000;      # goes into a file in --tmpdir

sub served {
    my ( $number, $name ) = @_;
    return is $server->connect( to => $address )->ask( 'POST /', \$body )->body,
        "$number 200000 gr\xc3\xbc\xc3\x9f", $name;
}

served( 0, 'the first program' );
my $files = names($dir);
for my $number ( 1 .. 3 ) {
    spew( "$dir/lib/Words.pm", "package Words;\nsub number { $number }\n1;\n" );
    config( 100 + $number );    # so there is another edge, too
    my $before = () = $server->log =~ /replaces edge/g;
    my $new    = () = $server->log =~ /runs the installed code/g;
    $server->signal('HUP');
    my $done = until_true(
        30,
        sub {
            my $log = $server->log;
            $before <     ( () = $log =~ /replaces edge/g )
                && $new < ( () = $log =~ /runs the installed code/g );
        }
    );
    ok $done, "reload $number: another edge, and the supervisor is a new program" or diag $server->log;
    served( $number, "reload $number: the new code, and a body in the directory for temporary files" );
    is $server->ask( 'GET /', "X: $number" )->status, 200, 'and a small request';
}
is names($dir),  $files, 'no other files than before';
is names($base), $here,  'and no other directory';

rename "$dir/$_", "$dir/$_.1" or die "$_: $!" for qw(access error);
$server->signal('USR1');
ok until_true( 10, sub { -e "$dir/access" && -e "$dir/error" } ), 'USR1 opens both logs by their names'
    or diag names($dir), names($base);
sleep 0.2;
served( 3, 'served' );
ok until_true( 10, sub { Sirius::Test::Server::slurp("$dir/access") =~ m{\APOST / HTTP/1.1 \xc3\xa4$}m } ),
    'and its line is there, in the format of the start';
$server->{error_log} = "$dir/error.1";
$server->stop;
is names($dir), 'access access.1 app.psgi config error error.1 lib',
    'its sockets and its PID file are removed';

done_testing;
