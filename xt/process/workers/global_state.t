use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Cwd        ();
use File::Temp ();
use JSON::PP   ();
use Test::More;
use Sirius::Test;

# What applications do that a server must bear: with $0, @ARGV, %ENV, their directory, their signals, STDIN
# and STDOUT

my $dir     = Cwd::abs_path( File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1, CLEANUP => 0 ) );
my $root    = $Sirius::Test::Server::ROOT;
my $json    = JSON::PP->new->canonical;
my $plackup = program('plackup');

my %WAY = ( 'sirius' => [ $^X, "$root/bin/sirius", qw(-E deployment) ] );
$WAY{'plackup -s Sirius'} = [ $^X, $plackup, qw(-s Sirius -E deployment) ] if $plackup;

END { my $status = $?; system 'rm', '-rf', $dir if $dir; $? = $status }

subtest '$0, @ARGV, FindBin, %ENV, @INC, directory and mask are those of plackup' => sub {
    plan skip_all => 'plackup is not in PATH' if !$plackup;
    my $app = spew( "$dir/report.psgi", <<'APP' );
use Cwd ();
use FindBin;
use JSON::PP ();
my %seen;
my $text = JSON::PP->new->canonical->encode( {
    0       => $0,
    argv    => \@ARGV,
    bin     => $FindBin::Bin,
    cwd     => Cwd::getcwd(),
    env     => { map { $_ => $ENV{$_} } grep { !/\A(?:REQUEST_METHOD|SCRIPT_NAME|PERL5LIB|_)\z/ } keys %ENV },
    file    => __FILE__,
    inc     => [ grep { !ref && !$seen{$_}++ } @INC ],
    package => __PACKAGE__,
    signals => [ grep { defined $SIG{$_} && length $SIG{$_} } qw(ALRM CHLD HUP INT PIPE QUIT TERM USR1 USR2) ],
    umask   => umask,
} );
sub { [ 200, [ 'Content-Type' => 'text/plain' ], [$text] ] };
APP
    my @clean = ( 'env', ( map { ( '-u', $_ ) } qw(PLACK_ENV PLACK_SERVER SERVER_STARTER_PORT) ) );
    local $ENV{PERL5LIB} = join ':', map( {"$root/blib/$_"} qw(lib arch) ),
        $ENV{PERL5LIB} || ();    # as the harness has it
    my $want
        = `REQUEST_METHOD=GET SCRIPT_NAME= @clean $^X $plackup -s CGI -E deployment $app one --two </dev/null`;
    $want = $json->decode( $want =~ s/\A.*?\r?\n\r?\n//sr );
    is $want->{file}, $app, 'that of plackup';
    for my $name ( sort keys %WAY ) {
        my $server = Sirius::Test::Server->start(
            command => $WAY{$name},
            args    => [ qw(--workers 2), $app, ( $name eq 'sirius' ? '--' : () ), 'one' ],
        );
        for my $generation ( 1, 2 ) {
            my $got = $json->decode( $server->ask('GET /')->body );
            delete @{ $got->{env} }{qw(XDG_RUNTIME_DIR XDG_STATE_HOME)};    # of the harness
            is_deeply $got, $want, "$name, generation $generation: the same" or diag explain $got, $want;
            next if $generation == 2;
            $server->signal('HUP');
            ok until_true(
                30, sub { $server->log =~ /generation 2 is serving/ && $server->generations == 1 }
                ),
                'reloaded';
        }
        $server->stop;
    }
};

# It leaves nothing as it was, and its version is in a file beside it
my $WILD = <<'APP';
use FindBin;
use lib "$FindBin::Bin/lib";
use My;
BEGIN { chdir '/' or die $! }
$0    = 'wild';
@ARGV = qw(--workers 7);
%ENV  = ( PATH => $ENV{PATH} );
umask 077;
$SIG{$_} = 'IGNORE' for qw(CHLD HUP PIPE QUIT TERM USR1 USR2 TTIN);
$SIG{__DIE__}  = sub { warn "died: $_[0]" };
$SIG{__WARN__} = sub { print {*STDERR} "warned: $_[0]" };
( $/, $\, $,, $", $; ) = ( undef, '!', '-', '+', '?' );
$| = 1;
select STDERR;
srand 1;
close STDIN;
sub { [ 200, [ 'X-Worker' => $$ ], [ "version $My::VERSION, @{[ 1, 2 ]}", "\n" ] ] };
APP

sub version {
    my $number = shift;
    mkdir "$dir/lib";
    return spew( "$dir/lib/My.pm", "package My; our \$VERSION = $number; 1;\n" );
}

for my $way ( sort keys %WAY ) {
    subtest "an application that changes all it can reach while it loads: $way" => sub {
        version(1);
        my $server = Sirius::Test::Server->start(
            app     => spew( "$dir/wild.psgi", $WILD ),
            command => $WAY{$way},
            args    => [qw(--workers 2)]
        );
        is $server->ask('GET /')->body, "version 1, 1+2\n", 'is served';
        version(2);
        $server->signal('HUP');
        ok until_true( 30, sub { $server->ask('GET /')->body eq "version 2, 1+2\n" } ),
            'HUP brings the new code'
            or diag $server->log;
        ok until_true( 30, sub { $server->generations == 1 && $server->workers == 2 } ),
            'and nothing is left of the old';
        my @old = $server->workers;
        kill TERM => $old[0] if @old;
        ok @old && until_true(
            30,
            sub {
                my @now = $server->workers;
                @now == 2 && !grep { $_ == $old[0] } @now;
            }
            ),
            'a worker heeds TERM';
        $server->signal('TTIN');
        ok until_true( 30, sub { $server->workers == 3 } ), 'the server heeds TTIN';
        $server->signal('USR2');
        ok $server->wait_log(qr/\[sirius \d+\] this worker is not running any application code/), 'and USR2'
            or diag $server->log;
        $server->stop;
    };
}

subtest 'TERM while a program is loaded that ignores it: no generation of it begins' => sub {
    my $loading = "$dir/loading";
    my $app     = sub {
        my $load = shift;
        return spew( "$dir/slow.psgi",
            "\$SIG{TERM} = \$SIG{INT} = 'IGNORE'; $load sub { [ 200, [], ['fine'] ] };\n" );
    };
    my $server = Sirius::Test::Server->start( app => $app->(''), args => [qw(--workers 2)] );
    $app->("open my \$out, '>', '$loading'; select undef, undef, undef, 1.5;");
    $server->signal('HUP');
    ok until_true( 10, sub { -e $loading } ), 'it is loaded';
    $server->stop;
    unlike $server->log, qr/generation 2 is serving|killed/, 'and ends by itself';
};

# Each of them in a request, by one worker, which has to serve the next
my %TRAP = (
    'prints to STDOUT'           => q{print "stray\n"; STDOUT->flush},
    'runs a program that prints' => q{system 'echo stray'},
    'runs one with STDIN'        => q{system 'cat'},
    'another handle is selected' => q{select STDERR},
    'separators'                 => q{( $/, $\\, $, ) = ( undef, 'stray', 'stray' )},
    'goes elsewhere'             => q{chdir '/'; umask 077},
    'empties %ENV'               => q{%ENV = ()},
    '@ARGV and $0'               => q{@ARGV = ('--help'); $0 = 'stray'},
    'dies with a handler' => q{local $SIG{__DIE__} = sub { print STDOUT 'stray' }; eval { die "in eval\n" }},
    'alarm'               =>
        q{local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select undef, undef, undef, 5 while 1; }; alarm 0; $@ eq "alarm\n" or die},
    'a child'         => q{my $pid = fork; POSIX::_exit(3) if !$pid; waitpid $pid, 0; $? >> 8 == 3 or die},
    'CHLD is ignored' => q{local $SIG{CHLD} = 'IGNORE'; system 'true'},
    'rand'            => q{srand 1; rand},
);

# A server with one worker and these traps; a path is the name of one
sub trapped {
    my %trap  = @_;
    my $cases = join ",\n", map {"'$_' => sub { $trap{$_} }"} sort keys %trap;
    return start_server( <<"APP", qw(--workers 1) );
use POSIX ();
my %trap = ( $cases );
sub {
    my \$name = \$_[0]{PATH_INFO} =~ s{\\A/}{}r;
    \$trap{\$name}->() if length \$name;
    return [ 200, [ 'X-Worker' => \$\$ ], [ 'fine' ] ];
};
APP
}

# A test: the request is answered, and so is the next, by the same worker
sub survives {
    my ( $server, $name, @client ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $worker = $server->ask('GET /')->header('X-Worker');
    my $path   = $name =~ s/([^A-Za-z])/sprintf '%%%02x', ord $1/ger;
    my @got;
    for my $client (@client) {
        for my $answer ( map { $client->ask("GET /$_") } $path, '' ) {
            push @got, join ' ', $answer->status, $answer->body, $answer->header('X-Worker') || '';
        }
    }
    return is_deeply \@got, [ ("200 fine $worker") x @got ], $name || diag $server->log;
}

subtest 'what applications do in a request: it is answered, and so is the next by the same worker' => sub {
    my $server = trapped(%TRAP);
    my $kept   = $server->connect;
    survives( $server, $_, $kept, $server->connect ) for sort keys %TRAP;
    like $server->output, qr/\A(?:stray\n?)+\z/,
        'what they print is in STDOUT of the server, and nothing else is';
    $server->stop;
};

subtest 'an application that closes STDIN and STDOUT: nothing it prints later gets to a client' => sub {
    my $server = trapped( %TRAP, 'closes both' => q{close STDIN; close STDOUT}, );
    my $kept   = $server->connect;
    survives( $server, $_, $kept, $server->connect, $server->connect )
        for 'closes both', 'prints to STDOUT', 'runs a program that prints', 'runs one with STDIN';
    $server->stop;
};

subtest 'an application that calls exit' => sub {
    my $server = start_server( "sub { exit 0 if \$_[0]{PATH_INFO} eq '/exit'; [ 200, [], [\$\$] ] }\n",
        qw(--workers 2) );
    my $client = $server->connect;
    my $got    = $client->ask('GET /exit');
    is $got->status,                  500, 'its client gets a 500';
    is $client->ask('GET /')->status, 200, 'its connection goes on with another worker';
    ok $server->wait_log(qr{/exit.*called exit|called exit.*/exit}), 'the log names the request'
        or diag $server->log;
    ok until_true( 20, sub { $server->workers == 2 } ), 'the worker is replaced';
    is $server->ask('GET /')->status, 200, 'and all goes on';
    $server->stop;
};

# CGI.pm takes the words of a command line for parameters of a request whose method it does not know
subtest '@ARGV while requests are served' => sub {
    my $app = spew( "$dir/argv.psgi", <<'APP' );
sub { [ 200, [], [ join q( ), 'request', @ARGV, 'hook', @{ $main::hook || [] } ] ] }
APP
    my @options = ( qw(--workers 1 --warm-up / --after-fork), 'sub { $main::hook = [@ARGV]; }' );
    for my $name ( sort keys %WAY ) {
        for my $given ( \@options, [qw(--workers 0)] ) {
            my $server = Sirius::Test::Server->start( command => $WAY{$name}, args => [ @$given, $app ] );
            is $server->ask('GET /')->body,     'request hook', "$name @{$given}[ 0, 1 ]: empty";
            is $server->ask('OPTIONS /')->body, 'request hook', 'in each';
            $server->stop;
        }
    }
};

done_testing;
