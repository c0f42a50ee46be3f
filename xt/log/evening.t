use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;
use Sirius::Test::Load;

# The log of one evening: what a night shift reads of a start, load, overload, a crash, a request that takes
# too long, a reload that fails, one that does not, an update of the server itself, and the stop. Each line
# once, in order, at its level, and none besides. EVENING_LOG is a file that the log is kept in

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
my $log  = "$dir/error.log";
my $user = getpwuid $>;

# The server installed twice, the second time as another version, and a link to the one that is in use
for my $release (qw(first second)) {
    mkdir "$dir/$release"                                                           or die $!;
    system( 'cp', '-r', "$root/blib/lib", "$root/blib/arch", "$dir/$release" ) == 0 or die 'cp';
}
{
    my $file = "$dir/second/lib/Sirius.pm";
    my $text = Sirius::Test::Server::slurp($file);
    $text =~ s/(XSLoader::load\( 'Sirius', )\$VERSION/$1'0.01'/ or die 'where is XSLoader?';
    $text =~ s/(VERSION\s*=\s*')0\.01'/${1}0.02'/               or die 'where is the version?';
    chmod 0644, $file;
    spew( $file, $text );
}

sub switch {
    my $release = shift;
    symlink $release, "$dir/next" or die $!;
    return rename "$dir/next", "$dir/current";
}

sub app {
    my $load = shift;
    return spew( "$dir/app.psgi", <<"APP" );
$load
sub pause { select undef, undef, undef, shift }
sub {
    my \$path = \$_[0]{PATH_INFO};
    kill SEGV => \$\$ if \$path eq '/crash';
    pause(0.05) while \$path eq '/wait' && !-e '$dir/open';
    if ( \$path eq '/report' ) { pause(1) for 1 .. 60 }
    [ 200, [ 'Content-Type' => 'text/plain' ], ['ok'] ];
}
APP
}

sub wait_log {
    my ( $server, $line, $what ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok( $server->wait_log( qr/$line/, 60 ), $what ) || diag $server->log;
}

sub ctl {
    my @command = ( $^X, "-I$dir/current/lib", "-I$dir/current/arch", "$root/bin/sirius", 'ctl', @_ );
    return system "@command --control $dir/control >/dev/null 2>&1";
}

switch ('first');
app(q{});
my $server = Sirius::Test::Server->start(
    args => [
        qw(--host 127.0.0.1 --port 0 --workers 3 --request-timeout 15 --graceful-timeout 10),
        '--error-log', $log, '--control', "$dir/control", "$dir/app.psgi"
    ],
    plain     => 1,
    error_log => $log,
    may_crash => 1,
    command   => [ $^X, "-I$dir/current/lib", "-I$dir/current/arch", "$root/bin/sirius", qw(-E deployment) ],
);
wait_log( $server, 'ready after ', 'it starts' );

my $load = Sirius::Test::Load->start( $server, clients => 2 );
select undef, undef, undef, 1;
is_deeply [ keys %{ $load->stop } ], [200], 'load';

my @busy = map { $server->connect } 1 .. 8;
$_->send( request('GET /wait') ) for @busy;
wait_log( $server, 'overload: ', 'overload begins' );
spew( "$dir/open", '' );
is_deeply [ map { $_->response->status } @busy ], [ (200) x 8 ], 'all are answered';
wait_log( $server, 'overload ended', 'and ends' );

isnt eval { $server->ask('GET /crash')->status } || '', 200, 'a crash';
wait_log( $server, 'signal 11', 'is told' );

my $report = $server->connect;
$report->send( request('GET /report?year=2026') );
is $report->response( patience => 60 )->status, 504, 'a request that takes too long';
wait_log( $server, 'its request ran for too long', 'is told' );

app('use strict; my $x = ;');
$server->signal('HUP');
wait_log( $server, 'reload failed', 'a broken reload' );

app(q{});
is ctl(qw(reload --wait)), 0, 'a good reload';
wait_log( $server, 'runs the installed code', 'the supervisor follows' );

switch ('second');
$server->signal('HUP');
wait_log( $server, 'was updated', 'an update' );
is $server->ask('GET /')->status, 200, 'it serves';

ctl(qw(stop --wait));
ok until_true( 30, sub { $server->wait_exit(1) } ), 'the stop';

my $seconds = qr/\d+(?:\.\d)? s/;
my $id      = qr/; request id [0-9a-f]{32}/;
my @story   = (
    [ notice => qr/starting Sirius 0\.01: PID \d+, perl [\d.]+, application app\.psgi, 3 workers, http:\S+/ ],
    [ notice => qr/Sirius\/0\.01 listening on http:\S+/ ],
    [ notice => qr/ready after $seconds: 3 workers are serving/ ],
    [   warn =>
            qr/overload: all 3 workers have been busy for \d+ s, 5 requests are waiting: raise --workers, or find the slow requests .*/
    ],
    [   notice =>
            qr/overload ended after \d+ s: 5 requests were delayed, the longest wait was $seconds; 0 requests were answered with 503/
    ],
    [   error =>
            qr{worker \d+ exited while serving GET /crash for 127\.0\.0\.1:\d+, after $seconds: (?:the client got no whole answer|the client got 502)$id}
    ],
    [ error  => qr/worker \d+ was killed by signal 11 \(SEGV\).*; starting another/ ],
    [ error  => qr{worker \d+: GET /report\?year=2026 ran for 1[56]\.\d s, the client got 504$id} ],
    [ notice => qr/this worker is at .*app\.psgi line \d+/ ],
    [ warn   => qr/worker \d+ was killed: its request ran for too long; starting another/ ],
    [ notice => qr/reload started as generation 2: HUP from PID $$ \(\S+\), user $user/ ],
    [ error  => qr/reload failed: generation 2 exited with status \d+; generation 1 keeps serving/ ],
    [ notice => qr/reload started as generation 3: sirius ctl reload from PID \d+ \(\S+\), user $user/ ],
    [ notice => qr/reload completed in $seconds: generation 3 is serving/ ],
    [ info   => qr/the supervisor now runs the installed code, Sirius 0\.01/ ],
    [ notice => qr/reload started as generation 4: HUP from PID $$ \(\S+\), user $user/ ],
    [ notice => qr/reload completed in $seconds: generation 4 is serving/ ],
    [ notice => qr/the supervisor was updated from Sirius 0\.01 to 0\.02/ ],
    [   notice =>
            qr/stopping: sirius ctl stop from PID \d+ \(\S+\), user $user; requests have 10 s to finish \(--graceful-timeout\)/
    ],
    [ notice => qr/stopped after $seconds/ ],
);
my $text = Sirius::Test::Server::slurp($log);
spew( $ENV{EVENING_LOG}, $text ) if $ENV{EVENING_LOG};
my @lines = $text =~ /^\S+Z \d+ (\w+ sirius: .*)$/mg;

# An edge of the new build takes over when it is ready, at any moment of the reload
my @edges = grep {/\Anotice sirius: edge \d+ replaces edge \d+\z/} @lines;
is scalar @edges, 1, 'another edge after the update';
@lines = grep { !/: edge \d+ replaces edge/ } @lines;

# The edge sees the end of a worker at the same time as its generation does
for my $i ( 1 .. $#lines ) {
    @lines[ $i - 1, $i ] = @lines[ $i, $i - 1 ]
        if $lines[$i] =~ /worker \d+ exited while/ && $lines[ $i - 1 ] =~ /worker \d+ was killed by signal/;
}

for my $part (@story) {
    my ( $level, $words ) = @$part;
    like shift(@lines), qr/\A$level sirius: $words\z/, $level;
}
is_deeply \@lines, [], 'and no line more';
like $text, qr/^\S+Z \d+ \w+ .*syntax error at .*app\.psgi line 1/m,
    'beside what perl says of the broken application';

done_testing;
