use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use IO::Socket::UNIX;
use Test::More;
use Sirius::Control::Client;
use Sirius::Test;
use Sirius::Test::Server;

# An update of Sirius while it runs: the supervisor becomes a new program, an edge of another build takes
# over, and each request has its line, once, in the file that has the name of the log

my $root = $Sirius::Test::Server::ROOT;
my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $APP  = <<'APP';
use Time::HiRes qw(sleep);
sub {
    my $env = shift;
    sleep 0.2 if $env->{PATH_INFO} eq '/slow';
    $env->{'x.user'} = "user of $env->{PATH_INFO}";
    [ 200, [ 'X-Number' => $env->{QUERY_STRING} ], ['ok'] ];
}
APP

sub slurp { return Sirius::Test::Server::slurp(shift) }

# A server whose files are its own, so that they can be replaced
sub server {
    my ($log) = @_;
    my $home = "$dir/installed";
    system 'rm', '-rf', $home;
    system( 'cp', '-a', "$root/blib", $home ) == 0 or die "cp: $?";
    my $server = Sirius::Test::Server->start(
        app     => $APP,
        command => [ $^X, "-I$home/lib", "-I$home/arch", "$root/bin/sirius", '-E', 'deployment' ],
        args    => [
            qw(--workers 2 --err-respawn-interval 0.1 --access-log), $log,
            '--access-log-format',                                   '%U%q %s %{x.user}e %{X-Number}o'
        ],
        may_crash => 1,
    );
    $server->wait_log( qr/ready after /, 20 );
    return $server;
}

# Reloads until the supervisor is a new program
sub renew {
    my ($server) = @_;
    my $before = () = $server->log =~ /now runs the installed code/g;
    $server->signal('HUP');
    return ok until_true( 30, sub { $before < ( () = $server->log =~ /now runs the installed code/g ) } ),
        'the supervisor is a new program';
}

# Another build of the program that owns the connections
sub replace {
    my ($server) = @_;
    my $file = "$dir/installed/arch/auto/Sirius/sirius-edge";
    system( 'cp', $file, "$file.new" ) == 0 or die "cp: $?";
    utime time + 10, time + 10, "$file.new";
    rename "$file.new", $file or die "$file: $!";
    return;
}

sub line { my ( $path, $number ) = @_; return "$path?$number 200 user of $path $number" }

# Each of these lines once, and no other, in these files
sub has_lines {
    my ( $name, $want, @file ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got = sub {
        return sort map { split /\n/, slurp($_) } @file;
    };
    until_true( 10, sub { my @now = $got->(); @$want <= @now } );
    return is_deeply [ $got->() ], [ sort @$want ], $name;
}

my $number = 0;

# Lines that are to be there
sub ask {
    my ( $client, $path ) = @_;
    my @asked = map { [ $path, ++$number ] } 1 .. 5;
    is join( ' ', map { $client->ask("GET $$_[0]?$$_[1]")->status } @asked ), '200 200 200 200 200', 'served';
    return map { line(@$_) } @asked;
}

for my $kind (qw(file command)) {
    subtest "a $kind" => sub {
        my $file   = "$dir/$kind.log";
        my $server = server( $kind eq 'file' ? $file : "|cat >>$file" );
        my @edges  = $server->edges;
        my $kept   = $server->connect;
        my @want   = ask( $kept, '/before' );
        my $long   = $server->connect;
        $long->send( request( 'GET /slow?' . ++$number ) );
        push @want, line( '/slow', $number );
        renew($server);
        is $long->response->status, 200, 'a request that was under way';
        push @want, ask( $kept, '/renewed' ), ask( $server->connect, '/new' );
        is_deeply [ $server->edges ], \@edges, 'the same edge';
        has_lines( 'all lines', \@want, $file );

        replace($server);
        renew($server);
        ok until_true( 20, sub { my @now = $server->edges; @now == 1 && $now[0] != $edges[0] } ),
            'an edge of another build';
        push @want, ask( $kept, '/taken-over' ), ask( $server->connect, '/other-build' );
        has_lines( 'all lines', \@want, $file );

        my ($now) = $server->edges;
        kill KILL => $now;
        ok until_true( 20, sub { my @next = $server->edges; @next == 1 && $next[0] != $now } ),
            'one that replaces an edge that was killed';
        $kept = $server->connect;
        push @want, ask( $kept, '/replaced' );
        has_lines( 'all lines', \@want, $file );
        if ( $kind eq 'file' ) {
            rename $file, "$file.1" or die $!;
            $server->signal('USR1');
            ok until_true( 10, sub { -e $file } ), 'USR1: there is a new file';
            my @owner = $server->owners;
            until_true(
                10,
                sub {
                    !grep { ( readlink || '' ) eq "$file.1" } map { glob "/proc/$_/fd/*" } @owner;
                }
            );
            my @new = ask( $kept, '/rotated' );
            has_lines( 'its lines are there', \@new,  $file );
            has_lines( 'the others are not',  \@want, "$file.1" );
        }
        $server->stop;
    };
}

# A perl that tries the installed code makes the first file, and waits for the second
my ( $BEGUN, $GO ) = ( "$dir/begun", "$dir/go" );
spew( "$dir/SlowTrial.pm", <<"MODULE" );
package SlowTrial;
if ( \$0 eq '-e' && !\$ENV{SIRIUS_RENEWAL} ) {
    open my \$begun, '>', '$BEGUN';
    select undef, undef, undef, 0.1 while !-e '$GO';
}
1;
MODULE

subtest 'something is under way when the installed code has been tried' => sub {
    my $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [ qw(--workers 1 --control), "$dir/control" ],
        env  => { PERL5OPT => "-I$dir -MSlowTrial" },
    );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload completed/, 20 ), 'reloaded';
    ok until_true( 20, sub { -e $BEGUN } ),           'the installed code is being tried';
    my $profile = IO::Socket::UNIX->new( Peer => "$dir/control" ) or die "control: $!";
    syswrite $profile, qq({"command":"profile","seconds":3,"hz":10}\n");
    my ($status) = Sirius::Control::Client->new( "$dir/control", 20 )->ask( { command => 'status' } );
    is $status->{status}{state}, 'running', 'the profile has begun';
    spew( $GO, '' );
    like scalar <$profile>, qr/"ok":1/, 'and ends';
    ok $server->wait_log( qr/now runs the installed code/, 20 ), 'the supervisor is a new program after it';
    unlink $BEGUN, $GO;
    $server->stop;
};

# It has its log already
subtest 'the directory of the error log is gone when the supervisor becomes a new program' => sub {
    my $logs = "$dir/logs";
    mkdir $logs or die "$logs: $!";
    my $server = Sirius::Test::Server->start(
        app       => $APP,
        args      => [qw(--workers 1)],
        env       => { PERL5OPT => "-I$dir -MSlowTrial" },
        error_log => "$logs/error",
    );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload completed/, 20 ), 'reloaded';
    rename $logs, "$dir/moved" or die "$logs: $!";
    $server->{error_log} = "$dir/moved/error";
    spew( $GO, '' );
    ok $server->wait_log( qr/now runs the installed code/, 20 ), 'the supervisor is a new program';
    is $server->ask('GET /')->status, 200, 'served';
    $server->signal('USR1');
    ok $server->wait_log( qr/--error-log \S+: No such file or directory; /, 10 ),
        'USR1 says that the log goes on in the old file';
    mkdir $logs or die "$logs: $!";
    $server->signal('USR1');
    ok until_true( 10, sub { -e "$logs/error" } ), 'and opens the new one when there is a directory';
    $server->stop;
};

done_testing;
