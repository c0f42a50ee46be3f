use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use JSON::PP   ();
use POSIX      ();
use Test::More;
use Sirius::Test;

# --user and --group: who the processes are, that there is no way back, and what one of them can't do to the
# others

use constant { USER => 65532, GROUP => 65533, MORE => 65531 };    # no names needed

my $top = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
chmod 0755, "$top" or die $!;                                     # for the other user
my ( $dir, $cases ) = ( '', 0 );
my $json = JSON::PP->new->canonical;

sub slurp { return Sirius::Test::Server::slurp(shift) }

# All that the kernel knows: real, effective, saved and file system ids, and supplementary groups
sub ids {
    my $text = slurp( '/proc/' . shift . '/status' );
    return q() if $text !~ /^Groups:/m;    # it has gone
    my ( $uid, $gid, $groups ) = map { $text =~ /^$_:[ \t]*(.*?)\s*$/m } qw(Uid Gid Groups);
    return join ' | ', join( ' ', split ' ', $uid ), join( ' ', split ' ', $gid ),
        join ' ', sort { $a <=> $b } split ' ', $groups;
}

my $ROOT    = ids('self');
my $DROPPED = join ' | ', join( ' ', (USER) x 4 ), join( ' ', (GROUP) x 4 ), join ' ', MORE, GROUP;
my @DROP    = ( '--user', USER, '--group', join ',', GROUP, MORE );

# Says who it was when it was loaded, who it is, and what comes of trying to be root again
my $APP = <<'APP';
use JSON::PP ();
use POSIX    ();
sub ids { open my $in, '<', '/proc/self/status' or die $!; join '', grep {/^(?:Uid|Gid|Groups):/} <$in> }
my $load = ids();
my %try = (
    setuid    => sub { POSIX::setuid(0) },
    setgid    => sub { POSIX::setgid(0) },
    seteuid   => sub { $> = 0; !$> },
    setruid   => sub { $< = 0; !$< },
    setegid   => sub { $) = '0 0'; $) =~ /^0/ },
    setgroups => sub { my $old = $); $) = "$) 0 4 27"; $old ne $) },
    shadow    => sub { open my $in, '<', '/etc/shadow' },
    signal    => sub { kill 0 => $_[0]{HTTP_X_SUPERVISOR} },
);
sub {
    my $env = shift;
    my %way = map { $_ => $try{$_}->($env) ? 'possible' : 'no' } keys %try;
    my $child = `grep -E '^(Uid|Gid|Groups):' /proc/self/status`;
    my %said = ( load => $load, now => ids(), child => $child, try => \%way, groups => "$)", env => [ @ENV{qw(HOME USER)} ] );
    return [ 200, [], [ JSON::PP::encode_json( \%said ) ] ];
}
APP

sub in_fork {
    my $code = shift;
    my $pid  = fork;
    die $!                                     if !defined $pid;
    POSIX::_exit( eval { $code->() } ? 0 : 1 ) if !$pid;
    waitpid $pid, 0;
    return !$?;
}

# A folder where both may write, with the application
sub start {
    my ( $app, @args ) = @_;
    mkdir $dir = "$top/" . ++$cases or die $!;
    chmod 0777, $dir or die $!;
    my ($log) = map {s{\ADIR}{$dir}r} map { $args[ $_ + 1 ] } grep { $args[$_] eq '--error-log' } 0 .. $#args;
    return Sirius::Test::Server->start(
        app  => spew( "$dir/app.psgi", $app ),
        args => [ map {s/\bDIR\b/$dir/r} @args ],
        $log ? ( error_log => $log ) : ()
    );
}

# The lines of /proc/self/status that the application has sent, as ids() has them
sub told {
    my %line = map { /\A(\w+):\s*(.*?)\s*\z/ ? ( $1 => $2 ) : () } split /\n/, shift;
    return join ' | ', ( map { join ' ', split ' ', $line{$_} } qw(Uid Gid) ), join ' ',
        sort { $a <=> $b } split ' ', $line{Groups};
}

sub asked {
    my ( $server, @to ) = @_;
    my $pid = $server->pid;
    return $json->decode( $server->connect(@to)->ask( 'GET /', "X-Supervisor: $pid" )->body );
}

# Of all but the supervisor; a child of it that tries the new code may be there for a moment
sub all_ids {
    my $server = shift;
    return map { ids($_) } $server->generations, $server->workers, $server->edges, $server->admin_edge || ();
}

sub reload {
    my ( $server, $number ) = @_;
    $server->signal('HUP');
    return until_true( 30, sub { $server->log =~ /generation $number is serving/ } );
}

my $root = !$> && in_fork( sub { POSIX::setgid(GROUP) && POSIX::setuid(USER) } );

subtest 'Who the processes are' => sub {
    plan skip_all => 'for root, where there are other users' if !$root;
    my %load = ( '-L Delayed' => $DROPPED, 'before the fork' => $ROOT );
    for my $how ( sort keys %load ) {
        my $server = start( $APP, qw(--workers 1), @DROP, $how =~ /\A-/ ? split ' ', $how : () );
        for my $generation ( 1, 2 ) {
            my $got = asked($server);
            is told( $got->{load} ),  $load{$how}, "generation $generation, loaded $how";
            is told( $got->{now} ),   $DROPPED,    'in a request';
            is told( $got->{child} ), $DROPPED,    'a program that the application starts';
            is_deeply [ grep { $got->{try}{$_} ne 'no' } sort keys %{ $got->{try} } ], [], 'no way back'
                or diag explain $got->{try};
            ok until_true(
                20,
                sub {
                    my @ids = all_ids($server);
                    @ids == 3 && !grep { $_ ne $DROPPED } @ids;
                }
                ),
                'the generation, its worker and the edge, as the kernel has it'
                or diag explain [ all_ids($server) ];
            is ids( $server->pid ), $ROOT, 'the supervisor is who has started it';
            ok $generation == 2 || reload( $server, 2 ), 'reloaded' or diag $server->log;
        }
        $server->stop;
    }
};

subtest 'One process' => sub {
    plan skip_all => 'for root, where there are other users' if !$root;
    my $server = start( $APP, qw(--workers 0), @DROP );
    my $got    = asked($server);
    is told( $got->{now} ), $DROPPED, 'in a request';
    is ids( $server->pid ), $DROPPED, 'as the kernel has it';
    is_deeply [ grep { $got->{try}{$_} ne 'no' && $_ ne 'signal' } sort keys %{ $got->{try} } ], [],
        'no way back';
    $server->stop;
};

# "owner:group mode"
sub owner {
    my ( $mode, $uid, $gid ) = ( lstat "$dir/" . shift )[ 2, 4, 5 ];
    return defined $mode ? sprintf '%d:%d %04o', $uid, $gid, $mode & oct 7777 : 'not there';
}

subtest 'Whose the files are' => sub {
    plan skip_all => 'for root, where there are other users' if !$root;
    my $before = umask oct 22;
    my $server = start(
        $APP,
        qw(--workers 1),
        @DROP,
        qw(--listen 127.0.0.1:0 --listen DIR/socket --listen),
        "unix:DIR/given?owner=${\ MORE}&mode=0660",
        qw(--admin unix:DIR/admin --control DIR/control --pid DIR/pid --access-log DIR/access.log --error-log DIR/error.log)
    );
    umask $before;
    my ( $ours, $theirs ) = ( '0:' . ( $) + 0 ), USER . ':' . GROUP );
    my %want = (
        'access.log' => "$theirs 0640",
        'admin'      => "$theirs 0600",
        'control'    => "$ours 0600",
        'error.log'  => "$theirs 0640",
        'given'      => MORE . ':' . ( $) + 0 ) . ' 0660',
        'pid'        => "$ours 0644",
        'socket'     => "$ours 0755",
    );
    is_deeply {
        map { $_ => owner($_) } keys %want
    }, \%want, 'at the start';
    ok until_true(
        20,
        sub {
            my @ids = all_ids($server);
            @ids == 5 && !grep { $_ ne $DROPPED } @ids;
        }
        ),
        'the process of the admin port has the rights of the workers';

    my $address = $server->address;    # it is in the log, which goes
    for my $what (qw(USR1 HUP)) {
        rename "$dir/$_.log", "$dir/$_.log.$what" or die "$_: $!" for qw(access error);
        $server->signal($what);
        ok until_true( 30, sub { -e "$dir/access.log" && -e "$dir/error.log" } ), "$what: there are new logs";
        ok until_true( 30, sub { asked( $server, to => $address ) && -s "$dir/access.log" } ),
            'the workers write to them';
        is_deeply {
            map { $_ => owner($_) } keys %want
        }, \%want, 'whose are as before';
    }
    $server->stop;
};

# It writes the scoreboard, and who has taken it over writes what he likes
subtest 'Rows of the scoreboard that lie' => sub {
    my $victim = fork;
    die $! if !defined $victim;
    if ( !$victim ) { sleep 600; POSIX::_exit(0) }
    my ( $row, $head )
        = map { [ split /-/ ]->[0] & 0xffff, [ split /-/ ]->[1] }
        `$^X -Mblib=$Sirius::Test::Server::ROOT -MSirius -e 'print Sirius::Scoreboard->layout' 2>/dev/null`;
    my $server = start(
        <<'LIAR' =~ s/ROW/$row/r =~ s/HEAD/$head/r =~ s/VICTIM/$victim/r, qw(--workers 1), $root ? @DROP : () );
sub {
    my ($fd) = grep { ( readlink "/proc/self/fd/$_" || '' ) =~ /memfd:sirius/ } 3 .. 255;
    open my $board, '+<&', $fd or die $!;
    for my $at ( map { HEAD + $_ * ROW } 8 .. 31 ) {
        sysseek $board, $at + 4, 0;
        sysread $board, my $pid, 4;
        next if unpack 'l', $pid;
        sysseek $board, $at, 0;
        syswrite $board, pack 'LlL', 2, VICTIM, 77;
    }
    return [ 200, [], ['done'] ];
}
LIAR
    is $server->ask('GET /')->body, 'done', 'a worker writes the PID of a stranger into rows';
    ok reload( $server, 2 ), 'a reload, which ends workers that were left over';
    $server->stop;
    ok kill( 0, $victim ) && waitpid( $victim, POSIX::WNOHANG() ) == 0, 'the stranger lives';
    kill KILL => $victim;
    waitpid $victim, 0;
};

subtest 'Not root' => sub {
    my $lib = join ':', map( {"$Sirius::Test::Server::ROOT/blib/$_"} qw(lib arch) ), $ENV{PERL5LIB} || ();
    my $as  = sub {
        my @args = (
            $^X,
            "$Sirius::Test::Server::ROOT/bin/sirius",
            qw(-E deployment --port 0),
            @_, '-e', 'sub {}'
        );
        pipe my $read, my $write or die $!;
        my $pid = fork;
        die $! if !defined $pid;
        if ( !$pid ) {
            POSIX::dup2( fileno $write, $_ ) for 1, 2;
            $ENV{PERL5LIB} = $lib;
            !$root || POSIX::setgid(GROUP) && POSIX::setuid(USER) or POSIX::_exit(99);
            exec @args                                            or POSIX::_exit(98);
        }
        close $write;
        my $text = join '', readline $read;
        waitpid $pid, 0;
        return $? >> 8, $text;
    };
    plan skip_all => 'this root can become nobody else' if !$> && !$root;
    my $uid = $> || USER;
    for my $option ( [ '--user', 'root' ], [ '--group', GROUP + 1 ] ) {
        my ( $status, $text ) = $as->( '--workers', 1, @$option );
        is $status, 2, "@$option: a wrong option";
        like $text, qr/\Asirius: @$option: only root can change that, and this is user $uid$/m,
            'that says why';
    }
};

done_testing;
