use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use JSON::PP   qw(decode_json);
use List::Util qw(uniq);
use Sirius::Test;
use Sirius::Test::Confine;

# The filters of deploy/: a server lives a whole life with them, and what they leave out would have killed it.

my $ROOT = $Sirius::Test::Server::ROOT;
my $dir  = File::Temp->newdir;
my $APP  = <<'APP';
use Socket;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    if ( $path eq '/file' ) { open my $in, '<', __FILE__ or die $!; return [ 200, [], $in ] }
    return [ 200, [], [ `echo shell` ] ] if $path eq '/shell';
    return [ 200, [], [ defined gethostbyname('localhost') ? 'name' : 'none' ] ] if $path eq '/name';
    if ( $path eq '/slow' ) { select undef, undef, undef, 0.3 }
    return sub { my $w = shift->( [ 200, [] ] ); $w->write("part $_\n") for 1 .. 3; $w->close } if $path eq '/stream';
    return [ 200, [], ['x' x 1_000_000] ] if $path eq '/large';
    my $length = 0;
    while ( my $n = $env->{'psgi.input'}->read( my $piece, 65_536 ) ) { $length += $n }
    return [ 200, [], [$length] ];
}
APP

# A whole life: all kinds of requests and signals. The command is what the server runs under.
sub live {
    my ( $name, @under ) = @_;
    my $socket = "$dir/$name.sock";
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => [ @under, $^X, "$ROOT/bin/sirius", qw(-E deployment) ],
        args    => [
            qw(--workers 2:3 --admin 127.0.0.1:0 --listen 127.0.0.1:0 --listen), $socket,
            '--control',                                                         "$dir/$name.ctl",
            '--pid',                                                             "$dir/$name.pid",
            '--access-log',                                                      "$dir/$name.log",
            qw(--drain-delay 0.5 --max-rss 500m --max-reqs-per-child 80),
        ],
        ready => 2,
    );
    my $kept = $server->connect;
    is $kept->ask('GET /')->body,                        '0',      "$name: GET";
    is $kept->ask( 'POST /', \( 'x' x 300_000 ) )->body, '300000', "$name: a body in a file";
    $kept->send( request( 'POST /', 'Transfer-Encoding: chunked' ) . "3\r\nabc\r\n0\r\n\r\n" );
    is $kept->response->body, '3', "$name: chunks";
    like $kept->ask('GET /file')->body, qr/PATH_INFO/, "$name: a file";
    is $kept->ask('GET /shell')->body,  "shell\n",                          "$name: a command";
    is $kept->ask('GET /name')->body,   'name',                             "$name: a name";
    is $kept->ask('GET /stream')->body, "part 1\npart 2\npart 3\n",         "$name: a stream";
    is $server->connect( to => "unix:$socket" )->ask('GET /')->status, 200, "$name: a unix socket";
    is $kept->ask( 'POST /', 'Expect: 100-continue', \'abc' )->body,   '3', "$name: Expect";
    my @slow = map { $server->connect } 1 .. 6;
    $_->send( request('GET /slow') ) for @slow;
    is_deeply [ map { $_->response->status } @slow ], [ (200) x 6 ], "$name: requests that wait";
    my $reader = $server->connect( rcvbuf => 65_536 );
    $reader->send( request('GET /large') );
    $server->ask('GET /') for 1 .. 150;
    is length $reader->response( patience => 60 )->body, 1_000_000, "$name: a slow reader";
    my ($admin) = $server->log =~ m{admin on http://([^/\s]+)/};
    is $server->connect( to => $admin )->ask( "GET $_", 'Host: localhost' )->status, 200, "$name: $_"
        for qw(/metrics /readyz /status.json /);
    $server->signal('HUP');
    ok $server->wait_log( qr/generation 2 is serving$/m, 30 ), "$name: a reload";

    for my $signal (qw(USR1 TTIN TTOU USR2)) {
        $server->signal($signal);
        is $server->ask('GET /')->status, 200, "$name: $signal";
    }
    is system("$^X -Mblib=$ROOT/blib $ROOT/bin/sirius ctl --control $dir/$name.ctl status >/dev/null 2>&1"),
        0,
        "$name: ctl";
    unlike $server->log, qr/signal 31|not permitted|no process|can't|cannot/i, "$name: nothing is missed";
    $server->stop;
    return;
}

sub profile {
    my $json = decode_json( Sirius::Test::Server::slurp("$ROOT/deploy/container/seccomp.json") );
    is $json->{defaultAction}, 'SCMP_ACT_ERRNO', 'what is not named is an error';
    is_deeply [ grep { $_->{action} ne 'SCMP_ACT_ALLOW' } @{ $json->{syscalls} } ], [],
        'and what is, is allowed';
    return map { @{ $_->{names} } } @{ $json->{syscalls} };
}

# As systemd has its groups: those of the unit's lines, one after the other
sub unit {
    my @lines
        = Sirius::Test::Server::slurp("$ROOT/deploy/systemd/sirius\@.service") =~ /^SystemCallFilter=(.+)$/mg;
    my %allowed;
    for my $line (@lines) {
        my $not = $line =~ s/\A~//;
        for my $call ( map { group($_) } split q{ }, $line ) {
            if   ($not) { delete $allowed{$call} }
            else        { $allowed{$call} = 1 }
        }
    }
    $allowed{$_} = 1 for group('@default');
    return sort keys %allowed;
}

sub group {
    my $name = shift;
    return $name if $name !~ /\A\@/;
    return map { group($_) } grep { !/\A#/ } map {s/\A\s+//r} grep {/\A\s/}
        split /\n/, `systemd-analyze syscall-filter $name 2>/dev/null`;
}

my %calls = ( container => [ profile() ] );
$calls{systemd} = [ unit() ] if program('systemd-analyze');

for my $name ( sort keys %calls ) {
    subtest "the filter of $name" => sub {
        my @calls = @{ $calls{$name} };
        cmp_ok @calls, '>', 100, 'it names ' . @calls . ' calls';
        my $confine = Sirius::Test::Confine->new(@calls)
            or plan skip_all => 'there is no seccomp here, or no compiler';
        isnt system( $confine->path, qw(chroot / true) ), 0, 'others are not had';
        live( $name, $confine->path );
    };
}

done_testing;
