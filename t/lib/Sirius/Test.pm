package Sirius::Test;

# The harness of the tests: one server on port 0, raw bytes in and out.
#
#   my $server = start_server(<<'APP', '--workers', 1);
#   sub { [200, [], ['hello']] }
#   APP
#   is $server->ask('GET /')->status, 200, 'a status';
#   $server->stop;

use strict;
use warnings;
use File::Spec  ();
use Exporter    qw(import);
use POSIX       ();
use Socket      qw(MSG_DONTWAIT MSG_PEEK);
use Test::More  ();
use Time::HiRes ();
use Sirius::Test::Client;
use Sirius::Test::Response;
use Sirius::Test::Server;
use Sirius::Test::Swarm;

our @EXPORT
    = qw(corpus_file elapsed every_delivery free_port http1 http1_only in_child left_out linux linux_only outcome program request runs_with skip_without spew start_server
    until_true wait_full);

# What somebody has set for a server of his own
delete @ENV{ 'GRIP_URL', grep {/\ASIRIUS_(?!TEST|C_)/} keys %ENV };

# A path of a socket has at most 107 bytes
$ENV{TMPDIR} = '/tmp'
    if length File::Spec->tmpdir > 60 && -w '/tmp';    ## no critic (RequireLocalizedPunctuationVars)

# Of which some tests open fifty connections
if ( ( my $limit = POSIX::sysconf( POSIX::_SC_OPEN_MAX() ) // 1024 ) < 128 ) {
    Test::More::plan( skip_all => "ulimit -n is $limit: tests need 128 descriptors" );
}

$SIG{$_} ||= sub { exit 1 }
    for qw(HUP INT PIPE TERM);                         # so that END runs and stops the servers

sub corpus_file { return "$Sirius::Test::Server::ROOT/xt/corpus/" . shift }

# Seconds that the code has taken
sub elapsed(&) {
    my $code  = shift;
    my $start = Time::HiRes::time();
    $code->();
    return Time::HiRes::time() - $start;
}

# A test: the bytes have the same result when sent whole, byte by byte, and split at every offset. $want is a
# string or a pattern; Sirius::Test::Swarm documents results. Returns the jobs.
sub every_delivery {
    my ( $server, $name, $bytes, $want, %job ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return if left_out( $name, $bytes );
    $want = outcome($want);
    my %option = map { exists $job{$_} ? ( $_ => delete $job{$_} ) : () } qw(at_once pause patience);
    $job{head} = 1 if !exists $job{head} && $bytes =~ /\AHEAD /;
    my @job
        = map { { %job, delivery => $_->[0], pieces => $_->[1] } } Sirius::Test::Swarm->deliveries($bytes);
    Sirius::Test::Swarm->run( $server->address, \@job, %option );
    my @wrong = grep { ref $want ? $_->{result} !~ $want : $_->{result} ne $want } @job;
    Test::More::ok( !@wrong, $name )
        or Test::More::diag( "want: $want\n",
        map {"$_->{delivery}: $_->{result}\n"} @wrong > 5 ? @wrong[ 0 .. 4 ] : @wrong );
    return @job;
}

# A port of 127.0.0.1 that nobody listens on
sub free_port { return Sirius::Test::Server::free_port() }

# With dev/test --h2: leaves out the test file, or the subtest, as what it is about is not there in HTTP/2
sub http1_only {
    my $reason = shift;
    return if !$Sirius::Test::Client::H2;
    my $name = Test::More->builder->name;
    _note_left_out( $name && $name ne $0 ? $name : 'all', $reason );
    Test::More::plan( skip_all => "HTTP/1.1 only: $reason" );
    return;
}

# The same of single tests: true with HTTP/1.1
sub http1 {
    my ( $name, $reason ) = @_;
    _note_left_out( $name, $reason ) if $Sirius::Test::Client::H2;
    return !$Sirius::Test::Client::H2;
}

# With dev/test --portable: leaves out the subtest, as other systems have nothing of what it is about
sub linux_only {
    my $reason = shift;
    return if !$ENV{SIRIUS_TEST_PORTABLE};
    _note_left_out( Test::More->builder->name, $reason );
    Test::More::plan( skip_all => "on Linux only: $reason" );
    return;
}

# The same of single tests: true but with dev/test --portable
sub linux {
    my ( $name, $reason ) = @_;
    _note_left_out( $name, $reason ) if $ENV{SIRIUS_TEST_PORTABLE};
    return !$ENV{SIRIUS_TEST_PORTABLE};
}

# With dev/test --h2: whether a test with these bytes is left out, as HTTP/2 cannot express them
sub left_out {
    my ( $name, $bytes ) = @_;
    return if !$Sirius::Test::Client::H2;
    require Sirius::Test::Translator;
    my $reason = Sirius::Test::Translator->reason($bytes) // return;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    _note_left_out( $name, $reason );
    Test::More->builder->skip( "$name: HTTP/1.1 only: $reason", $name );
    return 1;
}

# Runs these tests, files below xt/, as they are with this variable in the environment
sub runs_with {
    my ( $variable, @tests ) = @_;
    local $ENV{$variable} = 1;
    for my $test (@tests) {
        open my $out, '-|', $^X, '-I', "$Sirius::Test::Server::ROOT/t/lib",
            "$Sirius::Test::Server::ROOT/xt/$test"
            or die "$test: $!";
        my @line = readline $out;
        close $out;
        Test::More::is( $?, 0, $test ) or Test::More::diag(@line);
        Test::More::cmp_ok( scalar( grep {/\Aok /} @line ), '>', 0, 'has tests' );
    }
    return;
}

# For the list of dev/test --h2
sub _note_left_out {
    my ( $name, $reason ) = @_;
    return if !defined $ENV{SIRIUS_TEST_LEFT_OUT};
    open my $out, '>>', $ENV{SIRIUS_TEST_LEFT_OUT} or die "$ENV{SIRIUS_TEST_LEFT_OUT}: $!";
    my $file = $0 =~ s{.*?\b(?=x?t/)}{}r;
    syswrite $out, "$file: $name: $reason\n";
    return;
}

# Runs the code in a child, which may change to another user. Returns what the code has returned or written to
# its handle
sub in_child {
    my $code = shift;
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        close $read;
        my $text = eval { $code->($write) };
        syswrite $write, defined $text ? $text : "died: $@";
        POSIX::_exit(0);
    }
    close $write;
    my $text = join '', readline $read;
    waitpid $pid, 0;
    return $text;
}

# Skips the test file or the subtest unless the module is installed
sub skip_without {
    my $module = shift;
    return if eval "require $module; 1";    ## no critic (StringyEval)
    Test::More::plan( skip_all => "$module is not installed" );
    return;
}

# The path of a program, undef if it is not installed
sub program { return Sirius::Test::Server::program(@_) }

# The bytes of a request; see Sirius::Test::Client
sub request { return Sirius::Test::Client::request(@_) }

# Writes a file and returns its path
sub spew { return Sirius::Test::Server::spew(@_) }

# $app is a file or source text
sub start_server {
    my ( $app, @args ) = @_;
    return Sirius::Test::Server->start( app => $app, args => \@args );
}

# The result of a conversation, a string or a pattern, as it is over HTTP/2 with dev/test --h2: the connection
# may go on behind what is refused, and a malformed request may have its stream reset instead (RFC 9113
# 8.1.1). xt/http2/refusals.t says which does
sub outcome {
    my $want = shift;
    return $want if !$Sirius::Test::Client::H2;
    my ( $before, $last ) = ref $want ? '' : $want =~ /\A((?:\d+ )*)(\d+) closed\z/;
    my @status = ref $want ? grep { "$_ closed" =~ $want } 400 .. 599 : grep {defined} $last;
    return $want if !@status;
    my @either = map { ( "$_ closed", "$_ after", $_ == 400 ? 'closed' : () ) } @status;
    my $either = qr/\A\Q$before\E(?:@{[ join '|', @either ]})\z/;
    return ref $want ? qr/$want|$either/ : $either;
}

# Calls the code until it returns true, for so many seconds at most
sub until_true { return Sirius::Test::Server::until_true(@_) }

# True once bytes wait in this socket that nobody reads, and no more of them come: it is full, or has all of
# them
sub wait_full {
    my $socket = shift;
    my $had    = 0;
    my $stands = sub {
        recv $socket, my $bytes = '', 1 << 20, MSG_PEEK | MSG_DONTWAIT;
        my $has = length( $bytes // '' );
        ( $has, $had ) = ( $had, $has );
        return $had && $has == $had;
    };
    return until_true( 10, $stands );
}

1;
