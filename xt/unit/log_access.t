use strict;
use warnings;
use lib 't/lib';
use Fcntl      qw(F_GETFD F_GETFL FD_CLOEXEC O_APPEND O_NONBLOCK);
use File::Temp qw(tempdir);
use POSIX      qw(mkfifo);
use Socket     qw(AF_UNIX SOCK_DGRAM SOCK_STREAM PF_UNSPEC pack_sockaddr_un);
use Test::More;
use Sirius::Log::Access;
use Sirius::Test;

my $dir = tempdir( CLEANUP => 1 );

# What dying says, and with which exit status
sub error {
    my ( $spec, %conf ) = @_;
    return
        eval { Sirius::Log::Access->new( { access_log => $spec, %conf } ); 1 } ? 'none' : ( 0 + $! ) . " $@";
}

sub flags {
    my ( $fd, $what ) = @_;
    open my $fh, '>&=', $fd or die $!;
    return fcntl $fh, $what, 0;
}

sub new {
    my ( $spec, @ids ) = @_;
    return Sirius::Log::Access->new( { access_log => $spec, err_respawn_interval => 1 }, @ids );
}

sub put {
    my ( $log, $text ) = @_;
    return POSIX::write( $log->fd, $text, length $text );
}

subtest 'None' => sub {
    is new(undef),                                 undef, 'not given';
    is new(''),                                    undef, 'empty';
    is scalar Sirius::Log::Access->adopt( {}, 7 ), undef, 'nor in another program';
};

subtest 'A file' => sub {
    my $file = "$dir/file";
    my $log  = new($file);
    is $log->kind,     'file', 'kind';
    is $log->pipe,     undef,  'no pipe';
    is $log->priority, undef,  'no syslog';
    cmp_ok $log->fd, '>', 2, 'descriptor';
    ok flags( $log->fd, F_GETFD ) & FD_CLOEXEC, 'is closed on exec';
    ok flags( $log->fd, F_GETFL ) & O_APPEND,   'appends';
    is sprintf( '%o', ( stat $file )[2] & oct 7777 ), sprintf( '%o', oct(640) & ~umask ), 'not for everybody';
    put( $log,       "one\n" );
    put( new($file), "two\n" );
    put( $log,       "three\n" );
    is Sirius::Test::Server::slurp($file), "one\ntwo\nthree\n", 'what is there stays';
    chdir $dir or die $!;
    $log = new('relative');
    chdir '/' or die $!;
    ok -e "$dir/relative" && $log->reopen && !-e '/relative', 'a relative path is that of the start';
    is error("$dir/no/log"), "1 sirius: --access-log $dir/no/log: No such file or directory\n",
        'no directory';
    is error($dir), "1 sirius: --access-log $dir: Is a directory\n", 'a directory';
};

subtest 'Reopened' => sub {
    my $file = "$dir/moving";
    my $log  = new($file);
    my $old  = $log->fd;
    put( $log, "old\n" );
    rename $file, "$file.1" or die $!;
    is $log->reopen, 1, 'there is a new one';
    put( $log, "new\n" );
    is Sirius::Test::Server::slurp("$file.1"), "old\n", 'old file';
    is Sirius::Test::Server::slurp($file),     "new\n", 'new file';
    cmp_ok $log->fd, '>', 2, 'descriptor';
    ok flags( $log->fd, F_GETFD ) & FD_CLOEXEC, 'is closed on exec';

    my $noted = in_child( sub {
        mkdir "$dir/gone" or die $!;
        my $gone = new("$dir/gone/log");
        rename "$dir/gone", "$dir/there" or die $!;
        no warnings 'redefine';
        local *Sirius::Log::_put = sub { $noted::text = $_[1] };
        my $fd      = $gone->fd;
        my $changed = $gone->reopen;
        put( $gone, "on\n" );
        return join ' ', $changed, $fd == $gone->fd, $noted::text;
    } );
    like $noted,
        qr{\A0 1 \[sirius \d+\] error: --access-log \Q$dir\E/gone/log: No such file or directory; logging continues},
        'it can not be: says so';
    is Sirius::Test::Server::slurp("$dir/there/log"), "on\n", 'and goes on';
    my $forked = in_child( sub { rename $file, "$file.2" or die $!; $log->reopen; put( $log, "child\n" ) } );
    put( $log, "parent\n" );
    is Sirius::Test::Server::slurp("$file.2"), "new\nparent\n", 'each process for itself';
    is Sirius::Test::Server::slurp($file),     "child\n",       'the child alone';
};

subtest 'The owner' => sub {
    plan skip_all => 'for root' if $>;
    my $file = "$dir/owned";
    my $log  = new( $file, 65534, 65533 );
    is join( ':', ( stat $file )[ 4, 5 ] ), '65534:65533', 'a new file is given away';
    unlink $file;
    $log->reopen;
    is join( ':', ( stat $file )[ 4, 5 ] ), '65534:65533', 'one that is made later, too';
    new( "$dir/file", 65534, 65533 );
    is join( ':', ( stat "$dir/file" )[ 4, 5 ] ), '0:' . ( $( + 0 ), 'another is not';
    chmod oct(755), $dir;
    my $worker = in_child( sub {
        POSIX::setgid(65533);
        POSIX::setuid(65534);
        return 'not another user' if $> != 65534;
        put( $log, "mine\n" );
        return $log->reopen && put( $log, "again\n" );
    } );
    is $worker,                            6,               'a worker can open it again';
    is Sirius::Test::Server::slurp($file), "mine\nagain\n", 'and write';
};

subtest 'A FIFO, a device' => sub {
    mkfifo( "$dir/fifo", oct 600 ) or die $!;
    my $log = new("$dir/fifo");
    is $log->kind, 'file', 'no reader: does not wait';
    ok flags( $log->fd, F_GETFL ) & O_NONBLOCK, 'nor when it is full';
    put( $log, "early\n" );
    sysopen my $reader, "$dir/fifo", O_NONBLOCK or die $!;
    is readline $reader, "early\n", 'a later reader gets it';
    ok $log->reopen, 'reopened';
    is new('/dev/full')->kind, 'file', 'a device';
};

subtest 'STDOUT' => sub {
    pipe my $read, my $write or die $!;
    my $with = sub {
        my ( $stdout, %conf ) = @_;
        return in_child( sub {
            POSIX::dup2( fileno $stdout, 1 ) or die $! if $stdout;
            POSIX::close(1)                            if !$stdout;
            my $log = Sirius::Log::Access->new( { access_log => '-', %conf } );
            put( $log, "line\n" );
            return join ' ', $log->kind, $log->reopen, $log->fd > 2 ? 'high' : 'low',
                flags( $log->fd, F_GETFD ), flags( $log->fd, F_GETFL ) & O_NONBLOCK ? 'own' : 'shared',
                flags( 1, F_GETFL ) & O_NONBLOCK ? 'own' : 'shared';
        } );
    };
    is $with->($write), 'file 0 high 1 own shared', 'a pipe: only ours does not wait';
    is readline $read,  "line\n",                   'gets the lines';
    open my $file, '>', "$dir/stdout" or die $!;
    syswrite $file, "before\n";
    is $with->($file),                             'file 0 high 1 shared shared', 'a file';
    is Sirius::Test::Server::slurp("$dir/stdout"), "before\nline\n",              'goes on where others are';
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die $!;
    is $with->($theirs), 'file 0 high 1 shared shared', 'a socket';
    is readline $ours,   "line\n",                      'gets the lines';
    like $with->(undef), qr/\Adied: sirius: --access-log -: Bad file descriptor\n/, 'closed';
    is $with->( $file, daemonize => 1 ), 'file 0 high 1 shared shared', 'a file in the background';
    like $with->( $write, daemonize => 1 ),
        qr/\Adied: sirius: --access-log -: --daemonize closes STDOUT unless it is a file; log to a file\n/,
        'a pipe in the background';
};

subtest 'Descriptors 0 to 2 that are closed' => sub {
    for my $spec ( "$dir/low", '|cat', 'syslog:' ) {
        local $Sirius::Log::Access::SYSLOG = "$dir/syslog.low";
        socket my $receiver, AF_UNIX, SOCK_DGRAM, 0 or die $!;
        unlink "$dir/syslog.low";
        bind $receiver, pack_sockaddr_un("$dir/syslog.low") or die $!;
        my $code = sub {
            POSIX::close($_) for 0 .. 2;
            my $log = new($spec);
            $log->reopen;
            return join ' ', $log->fd > 2 ? 'high' : 'low', flags( $log->fd, F_GETFD ),
                grep { -e "/proc/self/fd/$_" } 0 .. 2;
        };
        is in_child($code), 'high 1', $spec;
    }
};

subtest 'A command' => sub {
    my $log = new('| cat');
    is $log->kind,          'pipe',                'kind';
    is $log->pipe->command, 'cat',                 'command';
    is $log->fd,            fileno $log->pipe->fh, 'the write end';
    is $log->reopen,        0,                     'is not reopened';
    my $fd      = $log->fd;
    my $adopted = in_child( sub {
        my $other = Sirius::Log::Access->adopt( { access_log => '|other' }, $fd );
        return join ' ', $other->kind, $other->fd == $fd, $other->pipe ? 'pipe' : 'none',
            flags( $fd, F_GETFD );
    } );
    is $adopted, 'pipe 1 none 1', 'taken over by another program';
    $log->release;
    ok !defined $log->pipe && flags( $log->fd, F_GETFD ), 'released: still open';
    like eval { Sirius::Log::Access->adopt( { access_log => '|cat' }, undef ); 1 } || $@,
        qr/\Asirius: --access-log \|cat: a reload cannot change the access log to a command/,
        'nothing to take over';
    $log = new("|cat > $dir/out");
    $log->pipe->act;
    put( $log, "line\n" );
    $log->pipe->stop(60);
    is Sirius::Test::Server::slurp("$dir/out"), "line\n", 'gets the lines, and their end';
    is error("|$_"), "2 sirius: --access-log |$_: no command follows the |\n", "no command '$_'" for '', ' ';
    is scalar Sirius::Log::Access->adopt( { access_log => "$dir/file" }, undef )->kind, 'file',
        'a file is opened';
};

subtest 'Syslog' => sub {
    local $Sirius::Log::Access::SYSLOG = "$dir/syslog";
    is error('syslog:'), "1 sirius: --access-log syslog:: $dir/syslog: No such file or directory\n",
        'none there';
    socket my $receiver, AF_UNIX, SOCK_DGRAM, 0 or die $!;
    bind $receiver, pack_sockaddr_un("$dir/syslog") or die $!;
    my %want = (
        'syslog:'               => 190,
        'syslog:local0'         => 134,
        'syslog:local7.info'    => 190,
        'syslog:kern.emerg'     => 0,
        'syslog:daemon.warning' => 28,
        'syslog:.debug'         => 191,
    );
    for my $spec ( sort keys %want ) {
        my $log = new($spec);
        is join( ' ', $log->kind, $log->priority, $log->reopen ), "syslog $want{$spec} 0", $spec;
    }
    my $log = new('syslog:user');
    put( $log, 'hello' );
    recv $receiver, my $got, 99, 0;
    is $got, 'hello', 'is connected';
    is error('syslog:local8'), "2 sirius: --access-log syslog:local8: 'local8' is not a syslog facility\n",
        'no facility';
    is error('syslog:user.loud'),
        "2 sirius: --access-log syslog:user.loud: 'loud' is not a syslog severity\n",
        'no severity';
    is error('syslog:user.'), "2 sirius: --access-log syslog:user.: '' is not a syslog severity\n",
        'an empty one';
};

done_testing;
