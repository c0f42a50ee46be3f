# sirius dev at a terminal: its first lines, keys, and the terminal as it was whatever happens
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;
use Sirius::Test::Terminal;

my $APP
    = qq(print "printed\\n"; sub { print "for a request\\n"; [ 200, [ 'Content-Type' => 'text/plain' ], ['hello'] ] }\n);

subtest 'not at a terminal' => sub {
    my $dev   = Sirius::Test::Dev->start( $APP, '--workers', 1 );
    my @lines = split /\n/, $dev->log;
    like $lines[0], qr/\ASirius [\d.]+: app\.psgi, perl v?5\.[\d.]+, 1 worker\z/, 'what is served';
    like $lines[1], qr{\Aready after [\d.]+ s, listening on http://localhost:\d+/\z},
        'where, and that it is ready';
    is $lines[2],    'Ctrl-C stops it', 'how to stop it';
    is @lines,       3,                 'three lines';
    is $dev->output, "printed\n",       'what the application prints is seen at once';
    $dev->ask('GET /');
    ok until_true( 1, sub { $dev->output =~ /for a request/ } ), 'in a request, too';
    $dev->stop;
};

my $bash   = program('bash')              or plan skip_all => 'bash is not installed';
my $shell  = Sirius::Test::Terminal->open or plan skip_all => "/dev/ptmx: $!";
my $folder = File::Temp->newdir;
spew( "$folder/app.psgi", $APP );
spew( "$folder/browser",
    qq(#!/bin/sh\necho "\$*" > $folder/opened.new; mv $folder/opened.new $folder/opened\n) );
chmod 0755, "$folder/browser" or die $!;
my $root = $Sirius::Test::Server::ROOT;
my $pid  = $shell->run(
    sub {
        chdir $folder or POSIX::_exit(126);
        @ENV{qw(BROWSER HISTFILE PERL5LIB PS1 TERM)} = (
            "$folder/browser", '', join( ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || () ),
            'ready$ ',         'xterm'
        );
        delete @ENV{qw(NO_COLOR PORT)};
        exec $bash, qw(--noediting --norc --noprofile -i);
    },
    all => 1
);
my $command = "$^X $root/bin/sirius dev --port 0 --workers 2";
ok $shell->shows(qr/ready\$ /), 'a shell';

# Starts it, and returns its PID
sub begin {
    my @more = @_;
    $shell->type( join( q( ), $command, @more ) . "\n" );
    ok $shell->shows(qr/r reload  o open  c clear  q quit/), 'sirius dev tells its keys'
        or diag $shell->shown;
    ok until_true( 10, sub { $shell->is_raw } ), 'which come at once';
    return;
}

# The shell has the terminal, as it was
sub ends {
    my $why = shift;
    ok $shell->shows(qr/ready\$ /),               "$why: the shell is back" or diag $shell->shown;
    ok until_true( 10, sub { !$shell->is_raw } ), 'and the terminal as it was';
    return;
}

subtest 'keys' => sub {
    begin();
    $shell->type('r');
    ok $shell->shows(qr/generation 2: r was pressed.*reload completed/s), 'r';
    $shell->type('o');
    ok until_true( 20, sub { -e "$folder/opened" } ), 'o opens a browser';
    like Sirius::Test::Server::slurp("$folder/opened"), qr{\Ahttp://localhost:\d+/\n\z}, 'at the address';
    $shell->type('c');
    ok $shell->shows(qr{\e\[H\e\[2J\e\[3Jlistening on \S*http://localhost:\d+/}),
        'c clears the screen, but for the address';
    $shell->type("x\e[A\t");
    $shell->type('h');
    ok $shell->shows(qr/r reload  o open/), 'h says it again, other keys do nothing';
    $shell->type('q');
    ok $shell->shows(qr/stopping at once: q was pressed/), 'q';
    ends('q');
};

subtest '--open' => sub {
    unlink "$folder/opened";
    begin('--open');
    ok until_true( 20, sub { -e "$folder/opened" } ), 'once it is ready';
    $shell->type("\cC");
    ends('Ctrl-C');
};

subtest 'job control' => sub {
    begin();
    $shell->type("\cZ");
    ends('Ctrl-Z');
    $shell->type("fg\n");
    ok until_true( 10, sub { $shell->is_raw } ), 'fg: keys again';
    $shell->type('h');
    ok $shell->shows(qr/r reload  o open/), 'which are read';
    $shell->type("\cZ");
    ends('Ctrl-Z again');
    $shell->type("bg\n");
    ok $shell->shows(qr{\[1\].*?&.*?ready\$ }s), 'bg' or diag $shell->shown;
    ok !$shell->is_raw,                          'leaves the terminal alone';
    $shell->type("echo still \$((1+1))\n");
    ok $shell->shows(qr/still 2.*?ready\$ /s), 'and what is typed';
    $shell->type("fg\n");
    ok until_true( 10, sub { $shell->is_raw } ), 'fg: keys again';
    $shell->type('q');
    ends('q');
    $shell->type("$command &\n");
    ok $shell->shows(qr/q quit/), 'started in the background';
    ok !$shell->is_raw,           'it leaves the terminal alone';
    $shell->type("fg\n");
    ok until_true( 10, sub { $shell->is_raw } ), 'until it has it';
    $shell->type('q');
    ends('q');
};

subtest 'processes are killed' => sub {
    begin();
    my ($supervisor) = `pgrep -f '^sirius: supervisor app.psgi' -s $pid` =~ /(\d+)/;
    my @children     = split q( ), `pgrep -P $supervisor`;
    cmp_ok @children, '>=', 2, 'it has children';
    kill KILL => @children;
    ok $shell->shows(qr/killed|KILL/), 'all of them are killed';
    $shell->type('h');
    ok $shell->shows(qr/r reload  o open/), 'keys are still read';
    kill TERM => $supervisor;
    ends('TERM');
    begin();
    ($supervisor) = `pgrep -f '^sirius: supervisor app.psgi' -s $pid` =~ /(\d+)/;
    kill KILL => $supervisor;
    ends('KILL, after which the shell does it');
};

$shell->type("exit\n");
ok until_true( 20, sub { waitpid( $pid, POSIX::WNOHANG() ) == $pid } ), 'the shell ends' or kill KILL => $pid;

done_testing;
