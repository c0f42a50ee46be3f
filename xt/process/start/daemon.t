use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Sirius::Test;

# --daemonize, and the options that go with it: --pid, --chdir, --umask, --user, --group

my $root = $Sirius::Test::Server::ROOT;
my $top  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
chmod 0755, "$top" or die $!;    # for the other user
my ( $dir, $cases ) = ( '', 0 );

# Says where and who it is; /make creates a file
my $APP = <<'APP';
use Cwd ();
sub {
    my $path = $_[0]{PATH_INFO};
    if ( $path eq '/make' ) { open my $out, '>', 'made' or die $!; close $out; mkdir 'made.d' }
    my ($groups) = do { open my $in, '<', '/proc/self/status' or die $!; map { /^Groups:\s*(.*?)\s*$/ } <$in> };
    return [ 200, [], [ join '|', Cwd::getcwd(), "$<:$>", $( + 0, $groups, $ENV{HOME} || '' ] ];
}
APP

# A daemon is not a child of this process, but no other process works in the folder of this case
sub all {
    return if $dir !~ m{/sirius-\w+/\d+\z};
    my $inside
        = sub { my $where = readlink "/proc/$_[0]/cwd"; defined $where && index( "$where/", "$dir/" ) == 0 };
    return grep { $inside->($_) }
        map { $_->{pid} } grep { $_->{state} ne 'Z' } Sirius::Test::Server::all_processes();
}

# What a failed test leaves behind
sub clean_up {
    kill KILL => $_ for all();
    return;
}

sub children {
    my @parents = @_;
    my %parent  = map { $_ => 1 } @parents;
    my @pids    = map { $_->{pid} }
        grep { $parent{ $_->{parent} } && $_->{state} ne 'Z' } Sirius::Test::Server::all_processes();
    @pids = grep { !Sirius::Test::Server->is_edge($_) } @pids;
    return @pids;    # but for the edge, which is the supervisor's too
}

END {
    my $status = $?;
    clean_up() if defined $dir;    # it is not when this file does not compile
    $? = $status;
}

# Runs the command as a shell does in $(...): its status, and the output of the command and of its children
sub command {
    my @args   = @_;
    my %option = ref $args[0] ? %{ shift @args } : ();
    pipe my $read, my $write or die $!;
    my $pid = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        delete @ENV{qw(PLACK_ENV PLACK_SERVER SERVER_STARTER_PORT LISTEN_FDS LISTEN_PID)};
        local $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
        POSIX::dup2( fileno $write, $_ ) for 1, 2;
        chdir $dir or POSIX::_exit(126);
        { exec $^X, $option{command} || "$root/bin/sirius", @args }
        POSIX::_exit(127);
    }
    close $write;
    my ( $text, $end, $status ) = ( '', 0 );
    $read->blocking(0);
    until_true(
        60,
        sub {
            my $n = sysread $read, $text, 65_536, length $text;
            $end    = 1  if defined $n       && !$n;
            $status = $? if !defined $status && waitpid( $pid, POSIX::WNOHANG() ) == $pid;
            return $end && defined $status;
        }
    );
    if ( !defined $status ) { kill KILL => $pid; waitpid $pid, 0; return ( 'no end', $text ) }
    return ( $status & 127 ? 'signal ' . ( $status & 127 ) : $status >> 8, $text );
}

sub ask {
    my ( $where, $path ) = @_;
    return Sirius::Test::Client->new($where)->ask( 'GET ' . ( $path || '/' ) )->body;
}

sub content { return Sirius::Test::Server::slurp(shift) }

sub file {
    my ( $name, $text ) = @_;
    rename spew( "$dir/$name.new", $text ), "$dir/$name" or die "$dir/$name: $!";
    return "$dir/$name";
}

# A folder for this case, with an application in it
sub fresh {
    my $app = shift;
    clean_up();
    $dir = "$top/" . ++$cases;
    mkdir $dir or die $!;
    return file( 'app.psgi', defined $app ? $app : $APP );
}

sub pid_of { return content("$dir/pid") =~ /\A(\d+)\n\z/ ? $1 : 0 }

# Only to a process of ours, whatever the file says
sub signal {
    my ( $signal, $pid ) = @_;
    return kill $signal => grep { $_ == $pid } all();
}

# Until another generation is there alone and the supervisor has become a new program
sub reload {
    my $pid     = shift;
    my ($old)   = children($pid);
    my $program = content("/proc/$pid/auxv");
    signal( HUP => $pid );
    my $done = until_true( 30,
        sub { my @now = children($pid); @now == 1 && $now[0] != $old && children(@now) == 2 } );
    until_true( 10, sub { content("/proc/$pid/auxv") ne $program } );
    return ok( $done, 'reloaded' ) || diag content("$dir/log");
}

# Starts it with a file for its PID; the PID, and where it listens
sub start {
    my @args = @_;
    my $app  = ( grep { $_ eq '--chdir' } @args ) ? '../app.psgi' : 'app.psgi';    # as seen from there
    my ( $status, $text ) = command( qw(-D --pid pid --workers 2 --listen 127.0.0.1:0), @args, $app );
    my ($address) = ( $text . content("$dir/log") ) =~ m{listening on http://(\S+)/};
    is $status, 0, 'it starts' or diag $text;
    return if $status ne '0';
    return ( pid_of(), $address );
}

sub stops {
    my $pid = shift;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    signal( TERM => $pid );
    my $gone = until_true( 30, sub { !all() } );
    clean_up();
    return ok $gone, 'it stops, no process is left';
}

my %way = (
    'sirius'             => [qw(--workers 2)],
    'sirius --workers 0' => [qw(--workers 0)],
    'plackup -s Sirius'  => [ { command => program('plackup') }, qw(-s Sirius -E deployment --workers 2) ],
);
for my $name ( sort keys %way ) {
    subtest "the command ends when the server listens: $name" => sub {
        fresh( "select undef, undef, undef, 0.5; warn qq(loading\n);\n" . $APP );
        my ( $status, $text )
            = command( @{ $way{$name} }, qw(-D --pid pid --listen 127.0.0.1:0 -a app.psgi) );
        is $status, 0, 'with 0';
        like $text,
            qr{\Aloading\n\[sirius \d+\] starting Sirius \S+: .*\nSirius/\S+ listening on http://127\.0\.0\.1:\d+/\n\z},
            'and has said where';
        my $pid = pid_of();
        ok kill( 0, $pid ), '--pid has its PID';
        is ask( $text =~ m{http://(\S+)/} ) =~ s/\|.*//r, $dir, 'it serves, where it was started';
        is_deeply [ map { readlink "/proc/$pid/fd/$_" } 0 .. 2 ], [ ('/dev/null') x 3 ], 'without a terminal';
        my ( $parent, undef, $session, $terminal ) = state_of($pid);
        isnt $parent,                       $$, 'no child of ours';
        isnt $session, ( state_of($$) )[2], 'in a session of its own';
        isnt $session,                      $pid, 'which it does not lead';
        is $terminal,                       0,    'and which has none';
        stops($pid);
        ok !-e "$dir/pid", 'the file is removed at the end';
    };
}

# Parent, group, session, terminal
sub state_of {
    my ($state) = content( '/proc/' . shift() . '/stat' ) =~ /.*\) \S (.*)/;
    return split ' ', $state;
}

subtest 'it does not start: not 0, and the reason' => sub {
    my $taken = IO::Socket::INET->new( Listen => 1, LocalAddr => '127.0.0.1' ) or die $@;
    my $port  = $taken->sockport;
    my %wrong = (
        'the address is taken' =>
            [ qr/\Asirius: cannot listen on 127\.0\.0\.1:$port: [^\n]+\n\z/, '--port', $port ],
        'a syntax error'                    => [ qr/syntax error/,  '-a', 'broken.psgi' ],
        'no application'                    => [ qr/nowhere\.psgi/, '-a', 'nowhere.psgi' ],
        'its file ends with something else' =>
            [ qr/\Asirius: the application is not a code/, '-a', 'two.psgi' ],
        'an unknown option'  => [ qr/\Asirius: unknown option --wrokers.*\n\z/,      '--wrokers', 2 ],
        '--pid in no folder' => [ qr{\Asirius: --pid [^\n]*nowhere/pid: [^\n]*\n\z}, '--pid', 'nowhere/pid' ],
        '--error-log in no folder' =>
            [ qr{\Asirius: --error-log [^\n]*nowhere/log: [^\n]*\n\z}, '--error-log', 'nowhere/log' ],
        'workers that die' => [
            qr{no luck[^\n]*\n(?:[^\n]*\n)*sirius: the server did not start: see \S*/dies\.log\n\z},
            qw(-L Delayed -a dies.psgi --error-log dies.log)
        ],
        '--chdir to nowhere' => [ qr{\Asirius: --chdir[: ][^\n]*nowhere[^\n]*\n\z}, '--chdir', 'nowhere' ],
    );
    for my $name ( sort keys %wrong ) {
        my ( $want, @args ) = @{ $wrong{$name} };
        fresh();
        file( 'broken.psgi', "sub { [ 200, [], [ ] }\n" );
        file( 'two.psgi',    "2;\n" );
        file( 'dies.psgi',   "die qq(no luck\\n);\n" );
        push @args, '-a', 'app.psgi' if !grep { $_ eq '-a' } @args;
        my ( $status, $text )
            = command( qw(-D --workers 2 --host 127.0.0.1), $name =~ /taken/ ? () : qw(-p 0), @args );
        like $status, qr/\A[1-9]\d*\z/, "$name: status $status";
        like $text,   $want,            'and why';
        is( () = $text =~ /$want/g, 1, 'said once' );
        ok until_true( 10, sub { !all() } ), 'nothing is left';
    }
};

subtest 'an application that its workers cannot load' => sub {
    fresh("die qq(no luck\\n);\n");
    my ( $status, $text )
        = command(qw(-D -L Delayed --workers 2 --host 127.0.0.1 --port 0 --pid pid app.psgi));
    is $status, 1, 'the command ends, and not with 0';
    like $text, qr/no luck\n.*^sirius: generation 1 .*: the server cannot start\n\z/ms, 'with the reason';
    is( () = $text =~ /no luck/g, 1, 'said once' );
    ok until_true( 10, sub { !all() } ), 'nothing is left';
    ok !-e "$dir/pid",                   'nor the file';
    clean_up();
};

subtest 'what is in --pid does not keep it from starting' => sub {
    my %old = (
        'the PID of a program that lives' => "$$\n",
        'nothing'                         => '',
        'an old PID'                      => "4194303\n",
        '1'                               => "1\n"
    );
    for my $name ( sort keys %old ) {
        fresh();
        file( 'pid', $old{$name} );
        my ( $pid, $address ) = start() or next;
        ok kill( 0, $pid ) && $pid > 1 && $pid != $$, "$name: the file has the PID of the server";
        stops($pid);
    }
    ok kill( 0, $$ ), 'we are still there';

    fresh();
    file( 'pid', "precious\n" );
    my ( $status, $text ) = command(qw(-D --pid pid --listen 127.0.0.1:0 app.psgi));
    is $status, 1, 'another file is none';
    like $text, qr{\Asirius: --pid \Q$dir\E/pid: [^\n]+\n\z}, 'which is said';
    is content("$dir/pid"), "precious\n", 'it stays as it is';

    fresh();
    my ($pid) = start() or return;
    signal( KILL => $pid );
    my $gone = until_true( 20, sub { !all() } );
    ok $gone, 'killed: all is gone' or clean_up();
    is pid_of(), $pid, 'but the file';
    my ($next) = start() or return;
    isnt $next, $pid, 'another server starts';
    stops($next);
};

subtest 'Two servers with one --pid' => sub {
    fresh();
    my ( $pid, $address ) = start() or return;
    my $second = sub {
        my $when = shift;
        my ( $status, $text ) = command(qw(-D --pid pid --workers 1 --listen 127.0.0.1:0 app.psgi));
        is $status, 1, "$when: the second does not start";
        is $text,   "sirius: --pid $dir/pid: a server with PID $pid is running\n", 'and says who runs';
        is pid_of(),                   $pid, 'the file is that of the first';
        is ask($address) =~ s/\|.*//r, $dir, 'which serves';
    };
    $second->('the first has just started');
    reload($pid);
    $second->('after a reload');
    stops($pid);
};

subtest '--chdir and --umask' => sub {
    fresh();
    mkdir "$dir/work" or die $!;
    my ( $pid, $address ) = start(qw(--chdir work --umask 027 --error-log log)) or return;
    for my $when ( 'at the start', 'after a reload' ) {
        is ask( $address, '/make' ) =~ s/\|.*//r, "$dir/work", "$when: there it works";
        is sprintf( '%o', oct(777) & ( stat "$dir/work/made" )[2] ),   '640', 'the mode of a file';
        is sprintf( '%o', oct(777) & ( stat "$dir/work/made.d" )[2] ), '750', 'of a folder';
        unlink "$dir/work/made";
        rmdir "$dir/work/made.d";
        next if $when =~ /reload/;
        reload($pid);
    }
    stops($pid);
    ok !-e "$dir/pid", 'the file is removed, which was named from elsewhere';
};

subtest 'HUP: the PID stays, relative paths are what they were' => sub {
    fresh("use My; sub { [ 200, [], [ \$My::VERSION ] ] }\n");
    mkdir "$dir/$_" or die $! for qw(lib logs work);
    file( 'lib/My.pm', "package My; our \$VERSION = 1; 1;\n" );
    my ( $pid, $address ) = start(qw(-I ../lib --error-log logs/error --chdir work)) or return;
    ($address) = content("$dir/logs/error") =~ m{listening on http://(\S+)/};
    is ask($address), 1, 'it serves';
    for my $number ( 2 .. 4 ) {
        file( 'lib/My.pm', "package My; our \$VERSION = $number; 1;\n" );
        reload($pid);
        is ask($address), $number, "version $number" or diag content("$dir/logs/error");
        is pid_of(),      $pid,    'the same PID';
    }
    rename "$dir/logs/error", "$dir/logs/old" or die $!;
    signal( USR1 => $pid );
    ok until_true( 10, sub { -e "$dir/logs/error" } ), 'a new log after USR1, in the same place';
    stops($pid);
};

subtest 'Another user' => sub {
    plan skip_all => 'needs root' if $> != 0;
    my @nobody = getpwnam 'nobody';
    plan skip_all => 'needs a user nobody' if !@nobody;
    my ( $uid, $gid ) = @nobody[ 2, 3 ];
    my %run = (
        '--user'             => [ [qw(--user nobody)], $gid, $gid ],
        '--user and --group' => [
            [ '--user', $uid, '--group', 'daemon,4242' ],
            scalar getgrnam('daemon'),
            scalar( getgrnam 'daemon' ) . ' 4242'
        ],
    );
    local $) = "0 0 4243 4244";    # what an operator may be in

    for my $name ( sort keys %run ) {
        my ( $args, $want_gid, $want_groups ) = @{ $run{$name} };
        fresh();
        mkdir "$dir/work" or die $!;
        my ($pid) = start( @$args, qw(--error-log log --chdir work), '--listen', "unix:$dir/sock?mode=0666" )
            or next;
        for my $when ( 'at the start', 'after a reload' ) {
            my ( undef, $user, $group, $groups, $home ) = split /\|/, ask("unix:$dir/sock");
            is $user,                                              "$uid:$uid",  "$name, $when: the user";
            is $group,                                             $want_gid,    'the group';
            is join( ' ', sort { $a <=> $b } split ' ', $groups ), $want_groups, 'no other groups';
            is $home,                                              $nobody[7],   'HOME';
            is( (   grep { content("/proc/$_/status") !~ /^Uid:\s+$uid\s+$uid\s+$uid\s+$uid$/m }
                        children($pid)
                ),
                0,
                'the generation as well'
            );
            next if $when =~ /reload/;
            reload($pid);
            is pid_of(), $pid, 'the same PID';
        }
        rename "$dir/log", "$dir/log.old" or die $!;
        signal( USR1 => $pid );
        ok until_true( 10, sub { -e "$dir/log" } ), 'USR1';
        stops($pid);
        ok !-e "$dir/$_", "$_ is removed" for qw(pid sock);
    }
};

done_testing;
