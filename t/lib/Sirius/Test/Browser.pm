package Sirius::Test::Browser;

# A headless Chromium, controlled through the DevTools protocol over a pair of pipes.
#
#   my $browser = Sirius::Test::Browser->start or plan skip_all => 'no chromium';
#   $browser->open( 'http://127.0.0.1:80/', width => 390, height => 844, scheme => 'dark' );
#   is $browser->value('document.title'), 'Sirius';
#   is_deeply [ $browser->problems ], [];

use strict;
use warnings;
use File::Temp;
use JSON::PP     ();
use MIME::Base64 qw(decode_base64);
use POSIX        qw(WNOHANG);
use Scalar::Util qw(weaken);
use Time::HiRes  qw(sleep time);
use Sirius::Test::Server;

our $PATIENCE = 60;    # seconds to wait for an answer; on a loaded machine it starts slowly

my $JSON = JSON::PP->new->utf8;
my %running;

sub start {
    my $class     = shift;
    my ($program) = grep {defined}
        map { Sirius::Test::Server::program($_) } qw(chromium chromium-browser google-chrome);
    return if !$program;
    my $dir  = File::Temp->newdir( 'sirius-browser-XXXXXX', TMPDIR => 1 );
    my $self = bless { dir => $dir, in => '', last => 0, owner => $$, problems => [] }, $class;
    $self->_exec(
        $program, "--user-data-dir=$dir",
        qw(--headless=new --remote-debugging-pipe --no-sandbox --disable-gpu --disable-dev-shm-usage
            --disable-breakpad --disable-extensions --disable-background-networking --no-first-run
            --no-default-browser-check --hide-scrollbars about:blank)
    );
    $running{$self} = $self;
    weaken $running{$self};
    return $self;
}

# Asks and waits for the answer; dies if the answer is an error
sub call {
    my ( $self, $method, %params ) = @_;
    my $id      = ++$self->{last};
    my %message = ( id => $id, method => $method, params => \%params );
    $message{sessionId} = $self->{session} if $self->{session};
    my $bytes = $JSON->encode( \%message ) . "\0";
    local $SIG{PIPE} = 'IGNORE';
    syswrite( $self->{to}, $bytes ) == length $bytes or die "the browser is gone: $!\n";
    my $until = time + $PATIENCE;

    while ( my $answer = $self->_next($until) ) {
        $self->_note($answer);
        next                                       if !$answer->{id} || $answer->{id} != $id;
        die "$method: $answer->{error}{message}\n" if $answer->{error};
        return $answer->{result};
    }
    die "$method: no answer\n";
}

# True once the expression is true. The page may still be loading
sub comes {
    my ( $self, $expression ) = @_;
    my $is = sub {
        eval { $self->value($expression) }
    };
    return Sirius::Test::Server::until_true( 30, $is );
}

# Opens a page in a window of this size; options: width, height, scheme (dark or light), pixels (for each CSS
# pixel)
sub open {
    my ( $self, $url, %option ) = @_;
    delete $self->{session};
    my $target = $self->call( 'Target.createTarget', url => 'about:blank' )->{targetId};
    $self->{session}
        = $self->call( 'Target.attachToTarget', targetId => $target, flatten => JSON::PP::true )->{sessionId};
    $self->call("$_.enable") for qw(Log Page Runtime);
    $self->resize(%option);
    $self->{problems} = [];
    $self->call( 'Page.navigate', url => $url );
    return $self;
}

# What a user would see in red in the console: errors, exceptions, and violations of the policy
sub problems {
    my $self = shift;
    $self->call('Runtime.enable');    # earlier messages are read before the answer
    return @{ $self->{problems} };
}

sub resize {
    my ( $self, %option ) = @_;
    $self->call(
        'Emulation.setDeviceMetricsOverride',
        width             => 0 + ( $option{width}  || 1440 ),
        height            => 0 + ( $option{height} || 900 ),
        deviceScaleFactor => 0 + ( $option{pixels} || 1 ),
        mobile            => ( $option{width} || 1440 ) < 600 ? JSON::PP::true : JSON::PP::false,
    );
    $self->call( 'Emulation.setEmulatedMedia',
        features => [ { name => 'prefers-color-scheme', value => $option{scheme} || 'dark' } ] );
    return;
}

# The window, or with "all" the whole page, as a PNG
sub screenshot {
    my ( $self, $file, $all ) = @_;
    my $result = $self->call(
        'Page.captureScreenshot',
        format => 'png',
        $all ? ( captureBeyondViewport => JSON::PP::true ) : (),
    );
    Sirius::Test::Server::spew( $file, decode_base64( $result->{data} ) );
    return;
}

# The text of the first element that the selector finds
sub text {
    my ( $self, $selector ) = @_;
    return $self->value("document.querySelector('$selector').textContent");
}

# The value of an expression in the page; a promise is awaited
sub value {
    my ( $self, $expression ) = @_;
    my $result = $self->call(
        'Runtime.evaluate',
        allowUnsafeEvalBlockedByCSP => JSON::PP::false,
        expression                  => $expression,
        awaitPromise                => JSON::PP::true,
        returnByValue               => JSON::PP::true,
    );
    die "$expression: $result->{exceptionDetails}{exception}{description}\n" if $result->{exceptionDetails};
    return $result->{result}{value};
}

# The window that was opened last, or the one that all that follows is about
sub window {
    my ( $self, $session ) = @_;
    $self->{session} = $session if defined $session;
    return $self->{session};
}

# Chromium reads from descriptor 3 and writes to 4
sub _exec {
    my ( $self, @command ) = @_;
    pipe my $in,   $self->{to} or die "pipe: $!";
    pipe my $from, my $out     or die "pipe: $!";
    my $pid = fork;
    defined $pid or die "fork: $!";
    if ( !$pid ) {
        setpgrp 0, 0;
        $ENV{HOME} = "$self->{dir}";
        delete @ENV{qw(DISPLAY DBUS_SESSION_BUS_ADDRESS)};
        CORE::open STDIN,  '<', '/dev/null'           or POSIX::_exit(126);
        CORE::open STDOUT, '>', '/dev/null'           or POSIX::_exit(126);
        CORE::open STDERR, '>', "$self->{dir}/stderr" or POSIX::_exit(126);
        my @copy = map { POSIX::dup2( fileno $_->[0], $_->[1] ) } [ $in, 20 ], [ $out, 21 ];
        POSIX::dup2( 20, 3 );
        POSIX::dup2( 21, 4 );
        POSIX::close($_) for 20, 21;
        { exec { $command[0] } @command }
        POSIX::_exit(127);
    }
    setpgrp $pid, $pid;
    $self->{from} = $from;
    $self->{pid}  = $pid;
    return;
}

sub _kill {
    my $self = shift;
    return if !$self->{pid} || $self->{owner} != $$;
    local ( $?, $!, $@ );
    my $group = -delete $self->{pid};
    kill KILL => $group;
    waitpid -$group, 0;
    my $until = time + 5;    # its children may still write into its directory
    sleep 0.01 while kill( 0, $group ) && time < $until;
    return;
}

# The next message, or nothing when the time is over
sub _next {
    my ( $self, $until ) = @_;
    while (1) {
        return $JSON->decode($1) if $self->{in} =~ s/\A([^\0]*)\0//;
        my $left = $until - time;
        return if $left <= 0;
        vec( my $read = '', fileno $self->{from}, 1 ) = 1;
        next if !select $read, undef, undef, $left;
        sysread $self->{from}, $self->{in}, 1 << 20, length $self->{in} or die "the browser has ended\n";
    }
}

sub _note {
    my ( $self,   $message ) = @_;
    my ( $method, $params )  = @$message{qw(method params)};
    return if !$method;
    my $problem
        = $method eq 'Runtime.exceptionThrown'
        ? $params->{exceptionDetails}{exception}{description} || $params->{exceptionDetails}{text}
        : $method eq 'Runtime.consoleAPICalled' && $params->{type} =~ /\A(?:error|warning|assert)\z/
        ? join ' ', map { defined $_->{value} ? $_->{value} : $_->{description} } @{ $params->{args} }
        : $method eq 'Log.entryAdded' && $params->{entry}{level} eq 'error' ? $params->{entry}{text}
        : $method eq 'Page.javascriptDialogOpening'                         ? "dialog: $params->{message}"
        :                                                                     undef;
    push @{ $self->{problems} }, $problem if defined $problem;
    return;
}

sub DESTROY { return shift->_kill }

END {
    my $status = $?;
    $_->_kill for grep {defined} values %running;
    $? = $status;
}

1;
