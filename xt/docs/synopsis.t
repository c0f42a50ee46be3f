use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use HTTP::Tiny;
use Test::More;
use Sandbox;
use Sirius::Test;
use Sirius::Test::Terminal;
use Sirius::Test::WebSocket;

# The SYNOPSIS of each public manual runs as it stands, and so do the commands of the tour in Sirius::Manual:
# a line that begins with a command is a command, the rest is a program or an application. What is at hand for
# it is in %GIVEN; what it has to do, in %DOES.

my $sandbox = Sandbox->new;
my $ROOT    = $Sirius::Test::Server::ROOT;
my $HELLO   = q{my $app = sub { [ 200, [ 'Content-Type' => 'text/plain' ], ["Hello\n"] ] };};
my $RUNNING
    = 'sirius --listen 127.0.0.1:5000 --workers 2 --hold --control /run/shop/control'
    . ' --admin 127.0.0.1:9090 --admin /run/shop/admin app.psgi';

# What the code may use, before it
my %GIVEN = (
    'Plack::Handler::Sirius'                 => $HELLO,
    'Plack::Middleware::AccessLog::Compiled' => $HELLO,
    'Sirius'                                 => $HELLO,
    'Sirius::LogFormat'                      => <<'PERL',
my $env = { REMOTE_ADDR => '::1', REQUEST_METHOD => 'GET', REQUEST_URI => '/', SERVER_PROTOCOL => 'HTTP/1.1', 'myapp.user' => 'me' };
my ( $res, $length, $microseconds, $epoch ) = ( [ 200, [], [] ], 2, 1500, time );
PERL
    'Sirius::Scoreboard' => 'my ( $id, $page ) = ( 7, 1 ); my $app = sub {',
    'Sirius::WebSocket'  => $HELLO,
);

# And after it
my %THEN = (
    'Sirius::Config::EnvFile' => 'print "$ENV{SYNOPSIS} of $place{SYNOPSIS}\n";',
    'Sirius::LogFormat'       => 'print $own->log_line( $env, $res, $length, $microseconds, $epoch );',
    'Sirius::Scoreboard'      =>
        'return [ 200, [], [map {"It is $_->{mark}\n"} grep { length $_->{mark} } @{ $now->{workers} }] ] };',
);

# As what it is run: an application, a program, or one that serves
my %DOES = (
    'Plack::Handler::Sirius'                 => \&program_serves,
    'Plack::Middleware::AccessLog::Compiled' => sub { app( shift, 'Hello' ) },
    'Sirius'                                 => \&program_serves,
    'Sirius::CLI::Ctl'              => sub { prints( shift, qr/^Sirius \S+, PID/m, 'status' ) },
    'Sirius::CLI::Profile'          => sub { prints( shift, qr/samples/,           qw(--seconds 0.2) ) },
    'Sirius::CLI::Top'              => sub { prints( shift, qr/^Workers /m,        '--once' ) },
    'Sirius::Channel'               => sub { prints( shift, qr/\A\z/ ) },
    'Sirius::Channel::Item'         => sub { prints( shift, qr/\A\z/ ) },
    'Sirius::Channel::Remote'       => \&publishes,
    'Sirius::Config::EnvFile'       => sub { prints( shift, qr{\Ait runs of \S*/etc/shop/env, line 1\n\z} ) },
    'Sirius::LogFormat'             => sub { prints( shift, qr/\A::1 - .*\n::1 1ms me ::1\n\z/ ) },
    'Sirius::PSGI::Socket'          => sub { app( shift, 'By hand.' ) },
    'Sirius::Scoreboard'            => sub { app( shift, 'It is report 7, page 1' ) },
    'Sirius::WebSocket'             => sub { echoes( shift, '/echo' ) },
    'Sirius::WebSocket::Connection' => sub { echoes( shift, '/' ) },
);

$sandbox->file( 'etc/shop/env', "SYNOPSIS='it runs'\n" );
$sandbox->file( 'etc/shop/sirius.conf',
    $sandbox->text("app = app.psgi\nlisten = 127.0.0.1:8080\nworkers = 1\n") );
$sandbox->file( 'srv/shop/event',          "data: hello\n\n" );
$sandbox->file( 'srv/shop/bin/app.psgi',   "sub { [ 200, [], ['Hello'] ] }\n" );
$sandbox->file( 'srv/shop/templates/a.tt', "Hello\n" );
$sandbox->file( 'bin/xdg-open',            "#!/bin/sh\n" );
chmod 0755, $sandbox->dir . '/bin/xdg-open';

sub text { return Sirius::Test::Server::slurp(shift) }

# The indented lines of a section, without the indent
sub verbatim {
    my ( $pod, $heading ) = @_;
    my ($section) = $pod =~ /^=head1 \Q$heading\E\n(.*?)(?=^=head1 )/ms;
    return map {s/\A  //r} grep {/\A(?: |\z)/} split /\n/, $section // '';
}

# The commands of these lines, each with the variables that an "export" before it has set, and the code
sub parts {
    my ( @commands, @code );
    my $exported = '';
    for my $line (@_) {
        if    ( $line =~ /\Aexport (\S+)\z/ )                   { $exported .= "$1 " }
        elsif ( $line =~ /\A(?:\w+=\S+ )*(?:sirius|plackup) / ) { push @commands, "$exported$line" }
        else                                                    { push @code, $line }
    }
    my $code = join "\n", @code;
    return ( \@commands, $code =~ /\S/ ? "$code\n" : undef );
}

# --- commands ---

my $running;

sub running {
    $running = undef if $running && $sandbox->answers($running);
    return $running ||= $sandbox->serve( $sandbox->text($RUNNING) );
}

sub stop_running {
    $sandbox->stop($running) if $running;
    undef $running;
    return;
}

# What is wrong with a command; nothing when it works
sub command {
    my $command = shift;
    if ( $command !~ /\bsirius (?:check|ctl|profile|top)\b/ ) {
        stop_running();
        return $sandbox->serves( $sandbox->text($command) );
    }
    if ( $command =~ /\bsirius check\b/ ) {
        stop_running();
        return $sandbox->succeeds( $sandbox->text($command) );
    }
    my @wrong = $sandbox->answers( running() );
    return @wrong if @wrong;
    $command =~ s/--seconds \d+/--seconds 0.3/ or $command =~ s/(?<=sirius profile)(?! dump)/ --seconds 0.3/;
    $command =~ s/--pid \K4711/$running->{pid}/;
    $command = $sandbox->text($command);
    return watches($command) if $command =~ /\bsirius top\b(?!.*--once)/;
    return $sandbox->succeeds( "export SIRIUS_CONTROL=" . $sandbox->dir . "/run/shop/control\n$command" );
}

# On a screen, until a key ends it
sub watches {
    my $command  = shift;
    my $terminal = Sirius::Test::Terminal->open or return "no terminal: $!";
    my %env      = %{ $sandbox->{env} };
    my $pid      = $terminal->run(
        sub {
            local @ENV{ keys %env, 'TERM' } = ( values %env, 'xterm' );
            exec 'sh', '-c', "exec env $command";
        },
        all => 1
    );
    my $seen = $terminal->shows(qr/Workers +2 wanted/);
    $terminal->type('q');
    until_true( 10, sub { waitpid( $pid, 1 ) == $pid } ) or kill KILL => $pid;
    return $seen ? () : 'it shows nothing: ' . $terminal->shown;
}

# --- code ---

# An application that answers with this text
sub app {
    my ( $code, $says ) = @_;
    return with_app(
        $code,
        sub {
            my $got = HTTP::Tiny->new( timeout => 10 )->get( 'http://' . shift )->{content};
            return $got eq "$says\n" ? () : "it says: $got";
        }
    );
}

sub with_app {
    my ( $code, $try ) = @_;
    stop_running();
    $sandbox->file( 'srv/shop/synopsis.psgi', $code );
    my $job   = $sandbox->serve('sirius --hold synopsis.psgi');
    my @wrong = @{ $job->{listens} } ? eval { $try->( $job->{listens}[0] ) } : 'it does not listen';
    push @wrong, $@ if $@;
    $sandbox->stop($job);
    return @wrong ? ( @wrong, $sandbox->output($job) ) : ();
}

sub echoes {
    my ( $code, $path ) = @_;
    return with_app(
        $code,
        sub {
            my $ws = Sirius::Test::WebSocket->new( shift, path => $path );
            $ws->text('hello');
            my $said = $ws->next;
            return $said eq 'text echo hello' ? () : "it says: $said";
        }
    );
}

# A program that prints this, beside a server
sub prints {
    my ( $code, $pattern, @words ) = @_;
    my @wrong = $sandbox->answers( running() );
    return @wrong if @wrong;
    my $file = $sandbox->file( 'srv/shop/synopsis.pl', "use strict; use warnings;\n$code" );
    my ( $how, $output )
        = $sandbox->run("SIRIUS_CONTROL=\$DOCS_SANDBOX/run/shop/control exec $^X $file @words");
    return $how eq 'exit 0' && $output =~ $pattern ? () : "$how\n$output";
}

# A program that serves
sub program_serves {
    my $code = shift;
    stop_running();
    return $sandbox->serves( "$^X " . $sandbox->file( 'srv/shop/synopsis.pl', $code ) . ' # --port' );
}

# A server of GRIP takes what is published
sub publishes {
    my $code   = shift;
    my $server = Sirius::Test::Server->start(
        app => 'sub { my $env = shift; $env->{"psgi.input"}->read( my $body, 1000 );
            print STDERR "$env->{PATH_INFO} $body\n"; [ 200, [], ["Published\n"] ] }'
    );
    my $port  = $server->port;
    my @wrong = prints( $code =~ s/5561/$port/r, qr/\A\z/ );
    push @wrong, 'nothing was published' if !@wrong && $server->log !~ m{/publish/ .*"channel":"news"};
    $server->stop;
    return @wrong;
}

my $manual = text("$ROOT/lib/Sirius/Manual.pod");
my @pages  = $manual =~ /^=item L<([\w:]+)>$/mg;

is_deeply [ parts( 'sirius a', 'export A=1', 'sirius ctl b', 'use C;', 'A=1 sirius d' ) ],
    [ [ 'sirius a', 'A=1 sirius ctl b', 'A=1 A=1 sirius d' ], "use C;\n" ],
    'commands and code are told apart';
ok command('sirius ctl nonsense'),                    'a command that fails is found';
ok prints( 'die', qr/\A\z/ ),                         'and a program';
ok app( 'sub { [ 200, [], ["other\n"] ] }', 'this' ), 'and an application';

my @only = @ARGV;
for my $page ( 'Sirius::Manual', @pages ) {
    next if @only && !grep { $_ eq $page } @only;
    my $file
        = $page eq 'sirius'
        ? 'bin/sirius'
        : 'lib/' . $page =~ s{::}{/}gr . ( $page =~ /Manual\z/ ? '.pod' : '.pm' );
    my $pod = text("$ROOT/$file");
    subtest $page => sub {
        my @lines = verbatim( $pod, 'SYNOPSIS' );
        push @lines, grep {/\bsirius /} verbatim( $pod, 'A TOUR' ) if $page eq 'Sirius::Manual';
        my ( $commands, $code ) = parts(@lines);
        ok @$commands || defined $code, 'there is one';
        for my $command (@$commands) {
            my @wrong = command($command);
            ok !@wrong, $command or diag @wrong;
        }
        return if !defined $code;
        my $does  = $DOES{$page} or return fail('the test knows what its code does');
        my @wrong = $does->( $sandbox->text( join "\n", $GIVEN{$page} // '', $code, $THEN{$page} // '' ) );
        ok !@wrong, 'the code' or diag @wrong;
    };
}
stop_running();
is_deeply [ $sandbox->clear ], [], 'nothing is left behind';
done_testing;
