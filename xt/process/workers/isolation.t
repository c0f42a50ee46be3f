use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Server;

# What an application does to the perl that it is loaded into must not reach the code of the generation, nor
# that of the supervisor, which have loaded it as well: a worker that ends is replaced, a reload works, a stop
# ends with status 0

my $dir     = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root    = $Sirius::Test::Server::ROOT;
my $plackup = program('plackup');

# While it is loaded. What a sub of it says with "reached" must never be in the log, where it says so
my %CASE = (
    '__WARN__ dies'               => q{$SIG{__WARN__} = sub { die $_[0] }},
    '__WARN__ exits'              => q{$SIG{__WARN__} = sub { exit 9 }},
    '__WARN__ is a name'          => q{sub warned { die "reached" } $SIG{__WARN__} = 'main::warned'},
    '__DIE__ exits'               => q{$SIG{__DIE__} = sub { exit 9 if !$^S || 1 }},
    '__DIE__ dies otherwise'      => q{$SIG{__DIE__} = sub { die { code => 9 } }},
    'ALRM, and one is on its way' => q{$SIG{ALRM} = sub { die "reached" }; alarm 1},
    'ALRM by default, on its way' => q{$SIG{ALRM} = 'DEFAULT'; alarm 2},
    'CHLD dies'                   => q{$SIG{CHLD} = sub { die "reached" }},
    'CHLD waits for all'          => q{$SIG{CHLD} = sub { 1 while waitpid( -1, 1 ) > 0 }},
    'CHLD is ignored'             => q{$SIG{CHLD} = 'IGNORE'},
    'PIPE dies'                   => q{$SIG{PIPE} = sub { die "reached" }},
    'PIPE by default'             => q{$SIG{PIPE} = 'DEFAULT'},
    'those of a stop die'         => q{$SIG{$_} = sub { die "reached" } for qw(INT QUIT TERM)},
    'those of a stop are ignored' => q{$SIG{$_} = 'IGNORE' for qw(INT QUIT TERM)},
    'HUP, USR1, USR2, TTIN die'   => q{$SIG{$_} = sub { die "reached" } for qw(HUP USR1 USR2 TTIN TTOU IO)},
    'they are ignored'            => q{$SIG{$_} = 'IGNORE' for qw(HUP USR1 USR2 TTIN TTOU IO)},
    'WINCH, URG, CONT die'        => q{$SIG{$_} = sub { die "reached" } for qw(WINCH URG CONT PROF VTALRM)},
    'all are blocked'             =>
        q{use POSIX (); my $all = POSIX::SigSet->new; $all->fillset; POSIX::sigprocmask( POSIX::SIG_BLOCK(), $all )},
    'POSIX::sigaction, unsafe' =>
        q{use POSIX (); POSIX::sigaction( $_, POSIX::SigAction->new( sub { die "reached" } ) ) for POSIX::SIGCHLD(), POSIX::SIGALRM(), POSIX::SIGTERM(), POSIX::SIGHUP()},
    'exit is overridden'  => q{BEGIN { *CORE::GLOBAL::exit = sub(;$) { die "reached" } }},
    'die is overridden'   => q{BEGIN { *CORE::GLOBAL::die = sub { CORE::exit(9) } }},
    'warn is overridden'  => q{BEGIN { *CORE::GLOBAL::warn = sub { CORE::exit(9) } }},
    'fork is overridden'  => q{BEGIN { *CORE::GLOBAL::fork = sub { CORE::die "reached" } }},
    'kill, waitpid, wait' =>
        q{BEGIN { no strict 'refs'; *{"CORE::GLOBAL::$_"} = sub { CORE::die "reached" } for qw(kill waitpid wait) }},
    'open, close, sysread' =>
        q{BEGIN { no strict 'refs'; *{"CORE::GLOBAL::$_"} = sub { CORE::die "reached" } for qw(open close sysopen sysread syswrite fcntl fileno pipe) }},
    'sleep, time, select' =>
        q{BEGIN { no strict 'refs'; *{"CORE::GLOBAL::$_"} = sub { 0 } for qw(sleep time alarm) }},
    'umask and chdir'          => q{umask 0777; chdir '/'},
    'chdir to what is removed' => q{mkdir "DIR/gone"; chdir "DIR/gone"; rmdir "DIR/gone"},
    'STDERR is closed'         => q{close STDERR},
    'all are closed'           => q{close STDIN; close STDOUT; close STDERR},
    'STDERR is tied'           =>
        q{package Tied { sub TIEHANDLE { bless [] } sub PRINT { die "reached" } sub WRITE { die "reached" } sub UNTIE { die "reached" } } tie *STDERR, 'Tied'},
    'STDERR and STDOUT are tied' =>
        q{package Tied { sub TIEHANDLE { bless [] } sub PRINT { exit 9 } sub FILENO { undef } } tie *STDERR, 'Tied'; tie *STDOUT, 'Tied'},
    'STDERR has a layer' =>
        q{package Layer { sub PUSHED { bless [], shift } sub WRITE { my ( $self, $text, $fh ) = @_; print {$fh} $text; length $text } sub FLUSH { 0 } } $INC{'Layer.pm'} = 1; binmode STDERR, ':via(Layer)'},
    'separators'             => q{( $/, $\\, $,, $", $; ) = ( undef, 'stray', '-', '+', '?' ); $| = 1},
    'input by the byte'      => q{$/ = \1; $" = "\n"; $\\ = "\n"; $, = "\n"},
    'another handle, closed' => q{open our $fh, '>', '/dev/null'; select $fh; close $fh},
    'no environment'         => q{%ENV = ()},
    'a bad environment' => q{$ENV{PERL5OPT} = '-MNot::There'; $ENV{PERL5LIB} = '/nowhere'; $ENV{PATH} = ''},
    'no @INC'           => q{@INC = sub { die "reached" }},
    'a locale'          =>
        q{use POSIX (); POSIX::setlocale( POSIX::LC_ALL(), $_ ) for qw(de_DE.UTF-8 tr_TR.UTF-8 C.UTF-8)},
    '-w, and all is fatal'    => q{$^W = 1; use warnings FATAL => 'all'},
    'its own group, and nice' => q{setpgrp; eval { setpriority 0, 0, 5 }},
    '$0, @ARGV'               => q{$0 = ''; @ARGV = ( '--help', "\0" )},
    'END dies'                => q{END { die "at the end\n" }},
    'END sets the status'     => q{END { $? = 9 }},
    'END exits'               => q{END { exit 9 }},
    '$? is tied'              => q{$? = 9; $! = 9; $@ = bless {}, 'Err'},
    'a timer'                 =>
        q{use Time::HiRes (); $SIG{ALRM} = sub { die "reached" }; Time::HiRes::setitimer( Time::HiRes::ITIMER_REAL(), 0.3, 0.1 )},
);

# Not the generation's and the supervisor's alone: a worker dies of it, which is what it asked for
my %WORKERS_TOO = map { $_ => 1 } 'ALRM by default, on its way', 'ALRM, and one is on its way', 'a timer';

# There the application is loaded before the server is compiled, and its END is the last
my $PLACKUP = qr/overridden|,|__WARN__ dies/;

sub app {
    my $code = shift =~ s/DIR/$dir/gr;
    return
        "$code;\nsub { \$_[0]{'psgix.harakiri.commit'} = 1 if \$_[0]{PATH_INFO} eq '/end'; [ 200, [], [\$\$] ] };\n";
}

sub holds {
    my ( $server, $name ) = @_;
    my $two = sub {    # without this one
        my $gone = shift || 0;
        until_true(
            20,
            sub {
                my @workers = $server->workers;
                $server->generations == 1 && @workers == 2 && !grep { $_ == $gone } @workers;
            }
        );
    };
    my @wrong;
    my $ask = sub {
        my $answer = eval { $server->ask(shift) };
        return $answer && $answer->status eq '200' && $answer->body;
    };
    $two->() or push @wrong, 'no two workers';
    my ($generation) = $server->generations;
    my $ended = $ask->('GET /end');
    $ended && $two->($ended) or push @wrong, 'a worker that ends is not replaced';
    my $killed = $ask->('GET /');
    kill KILL => $killed if $killed;
    $killed && $two->($killed) or push @wrong, 'a worker that is killed is not replaced';
    ( $server->generations )[0] == ( $generation || 0 ) or push @wrong, 'the generation is another';
    $server->signal('USR1');
    $server->signal('TTIN');
    until_true( 20, sub { $server->workers == 3 } ) or push @wrong, 'TTIN is not heeded';
    $server->signal('TTOU');
    $two->()        or push @wrong, 'TTOU is not heeded';
    $ask->('GET /') or push @wrong, 'no answer';

    {
        my ($before) = $server->generations;
        $server->signal('HUP');
        until_true( 30, sub { my @now = $server->generations; @now == 1 && $now[0] != $before } )
            && $two->()
            && $ask->('GET /')
            or push @wrong, 'a reload does not work';
    }
    kill 0 => $server->pid or push @wrong, 'the supervisor is gone';
    $server->signal('TERM');
    my $end = $server->wait_exit || 'none';
    push @wrong, "the end: $end" if $end ne 'exit 0';
    until_true( 5, sub { !$server->processes } ) or push @wrong, 'processes are left';
    push @wrong, 'code of the application was reached'
        if $server->log =~ /^(?!.*worker).*reached/m && !$WORKERS_TOO{$name};
    return @wrong;
}

# What workers find is what the application has left, or what a hook has made of it since. Code, what is asked
# of it, the answer
my %LEFT = (
    'nothing' => [
        q{},
        q{join ' ', $ENV{KEPT}, exists $ENV{NONE} || 0, ord $/, length $;, select},
        'kept 0 10 1 main::STDOUT'
    ],
    'a variable'    => [ q{$ENV{NEW} = 'set'}, q{"$ENV{NEW} $ENV{KEPT}"}, 'set kept' ],
    'changed, gone' => [
        q{$ENV{CHANGED} .= '+'; delete $ENV{GONE}},
        q{$ENV{CHANGED} . ( $ENV{GONE} // ' gone' )},
        'is+ gone'
    ],
    'empty'          => [ q{$ENV{CHANGED} = ''}, q{"<$ENV{CHANGED}>"},                            '<>' ],
    'no environment' => [ q{%ENV = ()},          q{join ' ', 'has', grep { !/PLACK/ } keys %ENV}, 'has' ],
    'its children'   => [
        q{$ENV{NEW} = 'set'; delete $ENV{GONE}},
        q{`printf %s "\$NEW \${GONE-gone} \$KEPT"`},
        'set gone kept'
    ],
    'a hook' => [
        q{$ENV{NEW} = 'set'},
        q{"$ENV{NEW} $ENV{OF_HOOK} $,"},
        'set hook .',
        q{sub { $ENV{OF_HOOK} = 'hook'; $, = '.' }}
    ],
    'one separator'  => [ q{$, = '-'},                                    q{"$,$;" eq "-\034"}, 1 ],
    'all of them'    => [ q{( $\, $,, $", $; ) = ( '!', '-', '+', '?' )}, q{"$\$,$\"$;"},       '!-+?' ],
    'input by bytes' => [ q{$/ = \\1},                                    q{${$/}},             1 ],
    'a handle'       => [ q{select STDERR; $| = 1}, q{select() . $|},       'main::STDERR1' ],
    'STDOUT at once' => [ q{$| = 1},                q{select() . $|},       'main::STDOUT1' ],
    'a mask'         => [ q{umask 0123},            q{sprintf '%o', umask}, 123 ],
);

for my $name ( sort keys %LEFT ) {
    my ( $code, $probe, $expected, $hook ) = @{ $LEFT{$name} };
    my $server = Sirius::Test::Server->start(
        app  => "$code;\nsub { my \$is = $probe; [ 200, [], [ \$is, \"\\0\$\$\" ] ] };\n",
        env  => { KEPT => 'kept', CHANGED => 'is', GONE => 'there' },
        args => [ qw(--workers 1), defined $hook ? ( '--before-fork', $hook ) : () ],
    );
    for my $worker (qw(first second)) {
        my ( $is, $pid ) = split /\0/, $server->ask('GET /')->body;
        is $is, $expected, "left by the application, for the $worker worker: $name";
        kill TERM => $pid if $pid;
        until_true( 20, sub { my @now = $server->workers; @now == 1 && $now[0] != $pid } )
            or die $server->log;
    }
    $server->stop;
}

my %WAY = ( 'sirius' => [ $^X, "$root/bin/sirius", qw(-E deployment) ] );
$WAY{'plackup -s Sirius'} = [ $^X, $plackup, qw(-s Sirius -E deployment) ] if $plackup;
my @only = @ARGV
    ? grep {
    my $name = $_;
    grep { $name =~ /$_/ } @ARGV
    } keys %CASE
    : keys %CASE;

for my $way ( sort keys %WAY ) {
    subtest $way => sub {
        for my $name ( sort @only ) {
            next if $way ne 'sirius' && !@ARGV && $name !~ $PLACKUP;
            my $server = eval {
                Sirius::Test::Server->start(
                    app       => app( $CASE{$name} ),
                    command   => $WAY{$way},
                    args      => [qw(--workers 2 --err-respawn-interval 0.05)],
                    error_log => "$dir/log-" . ( $name =~ s/\W+/-/gr ) . ( $way =~ s/\W+/-/gr ),
                    may_crash => 1,
                );
            };
            my @wrong = $server ? holds( $server, $name ) : "it does not start: $@";
            is_deeply \@wrong, [], $name or diag $server ? $server->log : '';
            $server->kill_hard if $server;
        }
    };
}

done_testing;
