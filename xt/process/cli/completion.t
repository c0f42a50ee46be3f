use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Fcntl qw(O_NOCTTY O_RDWR);
use File::Temp;
use POSIX ();
use Sirius::Config::Options;
use Sirius::Test;

# sirius --completion: real shells complete the commands, the options and their values

my $dir  = File::Temp->newdir;
my $root = $Sirius::Test::Server::ROOT;
mkdir "$dir/$_" for qw(sub other.d);
spew( "$dir/$_", '' ) for qw(app.psgi api.psgi some.conf);
chdir $dir or die $!;

# What a program prints, with this on its STDIN
sub output {
    my ( $stdin, @command ) = @_;
    my $file = spew( "$dir/.stdin", $stdin );
    my $pid  = open my $out, '-|';
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
        open STDIN,  '<',  $file    or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
        delete $ENV{SIRIUS_CONTROL};
        $ENV{HOME} = "$dir";
        { exec @command }
        POSIX::_exit(127);
    }
    local $SIG{ALRM} = sub { kill KILL => $pid };
    alarm 60;
    my $text = join '', readline $out;
    close $out;
    alarm 0;
    return $text;
}

sub script { return output( '', $^X, "$root/bin/sirius", '--completion', shift ) }

# What each line of words, with the cursor at the end, completes to. Of files every shell has its own order
my $files = 'api.psgi app.psgi other.d sub';
my @CASES = (
    [ 'sirius --work',                     '--workers' ],
    [ 'sirius --workers a',                'auto' ],
    [ 'sirius --underscores-in-headers ',  'off on trusted' ],
    [ 'sirius --underscores-in-headers t', 'trusted' ],
    [ 'sirius --access-log-format l',      'ltsv' ],
    [ 'sirius --config s',                 'some.conf sub' ],
    [ 'sirius --tmpdir ',                  'other.d sub' ],
    [ 'sirius --user roo',                 'root' ],
    [ 'sirius --completion ',              'bash fish zsh' ],
    [ 'sirius --keepalive-timeout ',       '' ],
    [ 'sirius --disable-k',                '--disable-keepalive' ],
    [ 'sirius --preload',                  '' ],
    [ 'sirius --workers 3 --daem',         '--daemonize' ],
    [ 'sirius --daemonize a',              'api.psgi app.psgi' ],
    [ 'sirius d',                          'dev' ],
    [ 'sirius dev --live',                 '--live-reload' ],
    [ 'sirius dev a',                      'api.psgi app.psgi' ],
    [ 'sirius c',                          'check ctl' ],
    [ 'sirius check --str',                '--stream-timeout --strict' ],
    [ 'sirius check --work',               '--workers' ],
    [ 'sirius check --config s',           'some.conf sub' ],
    [ 'sirius check a',                    'api.psgi app.psgi' ],
    [ 'sirius ctl re',                     'ready reload' ],
    [ 'sirius ctl --ti',                   '--timeout' ],
    [ 'sirius ctl --control s',            'some.conf sub' ],
    [ 'sirius top --in',                   '--interval' ],
    [ 'sirius top --work',                 '' ],
    [ 'sirius profile --format f',         'folded' ],
    [ 'sirius profile du',                 'dump' ],
);

sub sorted {
    my %seen = map { s{/\z}{}r => 1 } grep {length} @_;
    return join ' ', sort keys %seen;
}

subtest 'bash' => sub {
    my $bash = program('bash') or plan skip_all => 'bash is not installed';
    my $file = spew( "$dir/.bash", script('bash') );
    is output( '', $bash, '-n', $file ), '', 'the script is bash';
    my @all   = ( @CASES, [ 'sirius --workers=a', 'auto' ], [ 'sirius --config=s', 'some.conf sub' ] );
    my $lines = "source $file\n" . <<'BASH';
complete -p sirius >/dev/null || echo 'not registered'
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _sirius
    echo "= ${COMPREPLY[*]}"
}
BASH
    for my $case (@all) {

        # As bash divides a line
        my @words = map {
            /\A(--[\w-]+)(=)(.*)/
                ? ( $1, $2, grep {length} $3 )
                : $_
        } split / /, $case->[0], -1;
        $lines .= join( ' ', 'try', map {"'$_'"} @words ) . "\n";
    }
    my @got = output( $lines, $bash, '--norc', '-s' ) =~ /^(.*)\n/mg;
    is scalar @got,                                   scalar @all, 'no message' or diag "@got";
    is sorted( split ' ', substr $got[$_] // '', 1 ), $all[$_][1], $all[$_][0] for 0 .. $#all;

    # All the options that --help shows
    my %shown = map { $_ => 1 } output( $lines . "try sirius -\n", $bash, '--norc', '-s' ) =~ /(--?[\w-]+)/g;
    for my $row ( grep { !$_->{hidden} && !$_->{noop} } Sirius::Config::Options->rows ) {
        my @names = $row->{typed} ? split /, /,
            $row->{typed} : length $row->{name} > 1 ? "--$row->{name}" : "-$row->{name}";
        ok $shown{$_}, $_ for @names;
    }
};

# Of Linux: linux/tty.h
use constant { TIOCGPTN => 0x8004_5430, TIOCSPTLCK => 0x4004_5431 };

subtest 'bash in a terminal' => sub {
    my $bash = program('bash') or plan skip_all => 'bash is not installed';
    sysopen my $master, '/dev/ptmx', O_RDWR | O_NOCTTY or plan skip_all => "/dev/ptmx: $!";
    my $number = pack 'i', 0;
    ioctl $master, TIOCSPTLCK, $number or die "TIOCSPTLCK: $!";
    ioctl $master, TIOCGPTN,   $number or die "TIOCGPTN: $!";
    my $path = '/dev/pts/' . unpack 'i', $number;
    my $file = spew( "$dir/.bashrc", script('bash') . "PS1='ready> '\nsirius() { echo \"<\$*>\"; }\n" );
    my $pid  = fork;
    die "fork: $!" if !defined $pid;

    if ( !$pid ) {
        POSIX::setsid();
        open STDIN,  '<',  $path    or POSIX::_exit(126);
        open STDOUT, '>',  $path    or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
        %ENV = ( %ENV, TERM => 'dumb', HOME => "$dir", INPUTRC => '/dev/null' );
        { exec $bash, '--rcfile', $file, '-i' }
        POSIX::_exit(127);
    }
    my $text  = '';
    my $shows = sub {
        my $pattern = shift;
        return until_true(
            30,
            sub {
                vec( my $bits = '', fileno $master, 1 ) = 1;
                sysread $master, $text, 4096, length $text if select( $bits, undef, undef, 0.05 ) > 0;
                return $text =~ $pattern;
            }
        );
    };
    ok $shows->(qr/ready> /), 'a prompt';
    syswrite $master, "sirius --work\t3 --underscores-in-headers=tr\t ap\tp\t\n";
    ok $shows->(qr/<--workers 3 --underscores-in-headers=trusted app\.psgi>/), 'TAB' or diag $text;
    kill KILL => $pid;
    waitpid $pid, 0;
};

subtest 'zsh' => sub {
    my $zsh  = program('zsh') or plan skip_all => 'zsh is not installed';
    my $file = spew( "$dir/.zsh", script('zsh') );
    is output( '', $zsh, '-n', $file ), '', 'the script is zsh';

    # An interactive zsh in a terminal that another one has. Its compadd writes down what it is given; ^X says
    # that a line is done
    my $found = "$dir/.found";
    my $lines = <<"ZSH" . <<'ZSH';
setup='PROMPT=""; autoload -Uz compinit; compinit -u -D; source $file'
FOUND='$found'
ZSH
done=0
try() {
    local i junk
    [[ -z $1 ]] || print -r -- "# $1" >>$FOUND
    zpty -w -n sh "$1$2"$'\C-x'
    ((done++))
    for ((i = 0; i < 1200; i++)); do
        while zpty -r -t sh junk; do :; done
        (($(grep -c '^=done' $FOUND) >= done)) && return
        sleep 0.02
    done
    print "no answer to '$1'"
    exit 1
}
zmodload zsh/zpty
: >$FOUND
export FOUND TERM=dumb
zpty -b sh 'zsh -f -i'
zpty -w sh "$setup"
zpty -w sh 'compadd() { if [[ " ${@[1,(i)(-|--)]} " != *\ -[OAD]* ]]; then local -a found; builtin compadd -A found "$@"; print -r -- "= $found" >>$FOUND; fi; builtin compadd "$@"; }'
zpty -w sh 'mark() { print -r -- "=done" >>$FOUND; BUFFER=; }; zle -N mark; bindkey "^X" mark'
zpty -w sh 'bindkey "^I" list-choices; LISTMAX=9999; unsetopt beep list_beep'
try '' ''
ZSH
    $lines .= "try '$_->[0]' \$'\\t'\n" for @CASES;
    $lines .= "zpty -d sh\n";
    is output( $lines, $zsh, '-f' ), '', 'no message';
    my %got;
    my $line = '';

    for ( split /\n/, Sirius::Test::Server::slurp($found) ) {
        if    (/\A# (.*)/) { $line = $1 }
        elsif (/\A= (.*)/) { push @{ $got{$line} }, split ' ', $1 }
    }
    is sorted( @{ $got{ $_->[0] } || [] } ), $_->[1], $_->[0] for @CASES;
};

subtest 'fish' => sub {
    my $fish  = program('fish') or plan skip_all => 'fish is not installed';
    my $file  = spew( "$dir/.fish", script('fish') );
    my $lines = "source $file\n" . join '', map {"echo '# $_->[0]'\ncomplete -C '$_->[0]'\n"} @CASES;
    my ( %got, $line );
    for ( split /\n/, output( $lines, $fish, '--no-config' ) ) {
        if (/\A# (.*)/) { $line = $1 }
        else            { push @{ $got{ $line // '' } }, ( split /\t/ )[0] }
    }
    is_deeply $got{''}, undef, 'no message';
    is sorted( @{ $got{ $_->[0] } || [] } ), $_->[1], $_->[0] for @CASES;
};

chdir '/' or die $!;
is output( '', $^X, "$root/bin/sirius", '--completion', 'ksh' ),
    "sirius: --completion: 'ksh' is not one of bash, fish, zsh\n", 'another shell';
done_testing;
