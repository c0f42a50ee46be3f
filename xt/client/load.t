use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# ab and wrk: many connections and many requests, not one of them lost

my $dir    = File::Temp->newdir;
my $server = start_server( <<'APP', qw(--workers 2) );
my $large = 'x' x 100_000;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return [ 200, [ 'Content-Type' => 'text/plain' ], [$large] ] if $path eq '/large';
    return sub { my $w = shift->( [ 200, [] ] ); $w->write($_) for 'one', 'two'; $w->close } if $path eq '/stream';
    if ( $path eq '/file' ) { open my $in, '<', __FILE__ or die "$!"; return [ 200, [], $in ] }
    if ( $env->{REQUEST_METHOD} eq 'POST' ) {
        my $body = do { local $/ = undef; readline $env->{'psgi.input'} };
        return [ $body eq 'a=' . 'b' x ( length($body) - 2 ) && length($body) == $env->{CONTENT_LENGTH} ? 200 : 500, [], ['done'] ];
    }
    return [ 200, [ 'Content-Type' => 'text/plain' ], ['Hello World'] ];
};
APP
my $url = 'http://' . $server->address;

# What the program printed; it is killed after half a minute
sub output {
    my @command = @_;
    my $pid     = open my $pipe, '-|';
    defined $pid or die "fork: $!";
    if ( !$pid ) {
        open STDERR, '>&', \*STDOUT or die "STDOUT: $!";
        exec @command or die "$command[0]: $!";
    }
    local $SIG{ALRM} = sub { kill KILL => $pid };
    alarm 30;
    my $out = do { local $/ = undef; readline $pipe };
    alarm 0;
    close $pipe or $out .= "\n$command[0]: exit $?\n";
    return $out;
}

sub skip_without_program {
    my $program = shift;
    plan skip_all => "$program is not installed" if !program($program);
    return;
}

# A test: every request of ab is answered with 2xx and its whole body
sub ab {
    my ( $name, $count, @args ) = @_;
    my $out  = output( 'ab', '-q', '-s', 10, '-n', $count, @args );
    my %seen = $out
        =~ /^(Complete requests|Failed requests|Write errors|Non-2xx responses|Keep-Alive requests): +(\d+)/mg;
    my $kept = delete $seen{'Keep-Alive requests'};
    my $want = { 'Complete requests' => $count, 'Failed requests' => 0 };
    is_deeply \%seen, $want, $name or diag $out;
    is $kept, $count, 'all on connections that were kept' if grep { $_ eq '-k' } @args;
    return;
}

# A test: no socket error and no status but 2xx from wrk
sub wrk {
    my ( $name, @args ) = @_;
    my $out     = output( qw(wrk -t 1 -d 1), @args );
    my ($count) = $out =~ /^ +(\d+) requests in /m;
    my @wrong   = grep {/Socket errors|Non-2xx|unable|exit/} split /\n/, $out;
    ok $count && $count > 100 && !@wrong, $name . ( $count ? ": $count requests" : '' ) or diag $out;
    return;
}

subtest 'ab' => sub {
    skip_without_program('ab');
    my $form = spew( "$dir/form", 'a=' . 'b' x 10_000 );
    my @post = ( '-p', $form, '-T', 'application/x-www-form-urlencoded' );
    ab( 'a connection for each request',   2000, '-c', 8,   "$url/" );
    ab( 'kept connections',                2000, '-c', 8,   '-k', "$url/" );
    ab( 'the same, going on after errors', 2000, '-c', 8,   '-r', "$url/" );
    ab( 'kept, going on after errors',     2000, '-c', 8,   '-r', '-k', "$url/" );
    ab( 'a hundred connections',           2000, '-c', 100, '-k', "$url/" );
    ab( 'a hundred at once, none kept',    2000, '-c', 100, "$url/" );
    ab( 'HEAD',                            1000, '-c', 8,   '-i', "$url/" );
    ab( 'large responses',                 500,  '-c', 8,   "$url/large" );
    ab( 'large responses, kept',           500,  '-c', 8,   '-k', "$url/large" );
    ab( 'files',                           1000, '-c', 8,   '-k', "$url/file" );
    ab( 'streams, ended by the close',     500,  '-c', 8,   "$url/stream" );
    ab( 'bodies of 10 kB',                 1000, '-c', 8,   @post, "$url/" );
    ab( 'bodies of 10 kB, kept',           1000, '-c', 8,   '-k',  @post, "$url/" );
};

subtest 'wrk' => sub {
    skip_without_program('wrk');
    my $post = spew( "$dir/post.lua", <<'LUA' );
wrk.method = "POST"
wrk.body = "a=" .. string.rep("b", 1000)
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
LUA
    my $mixed = spew( "$dir/mixed.lua", <<'LUA' );
local n = 0
local paths = { "/", "/large", "/stream", "/file" }
request = function()
    n = n + 1
    if n % 5 == 0 then return wrk.format("POST", "/", nil, "a=" .. string.rep("b", n % 3000)) end
    return wrk.format("GET", paths[n % 4 + 1])
end
LUA
    my $pipeline = spew( "$dir/pipeline.lua", <<'LUA' );
request = function()
    local r = {}
    for i = 1, 8 do r[i] = wrk.format("GET", "/") end
    return table.concat(r)
end
LUA
    wrk( 'GET',                      '-c', 16,  "$url/" );
    wrk( 'POST',                     '-c', 16,  '-s', $post,     "$url/" );
    wrk( 'one after the other',      '-c', 16,  '-s', $mixed,    "$url/" );
    wrk( 'eight requests at a time', '-c', 16,  '-s', $pipeline, "$url/" );
    wrk( 'two hundred connections',  '-c', 200, "$url/" );
};

is $server->ask('GET /')->body, 'Hello World', 'the server goes on';
my @line = grep { !/listening on|\] (?:starting Sirius|ready)/ } split /\n/, $server->log;
is "@line", '', 'and had nothing to say';
$server->stop;
done_testing;
