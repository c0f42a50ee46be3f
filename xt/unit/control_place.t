use strict;
use warnings;
use File::Temp ();
use IO::Socket::UNIX;
use POSIX  ();
use Socket qw(AF_UNIX SOCK_STREAM pack_sockaddr_un);
use Test::More;
use Sirius::Control::Place;

# Where servers without --control listen, and which are found

my $place = 'Sirius::Control::Place';
my $table = '';                         # /proc/net/unix
{
    no warnings 'redefine';
    *Sirius::OS::Proc::text = sub {
        my ( $class, $file ) = @_;
        return
              $file eq '/proc/net/unix'   ? $table
            : $file eq "/proc/$$/cmdline" ? "sirius: supervisor shop.psgi\0"
            :                               '';
    };
}
delete @ENV{qw(RUNTIME_DIRECTORY SIRIUS_CONTROL XDG_RUNTIME_DIR)};

sub folder {
    my $mode = shift;
    my $dir  = File::Temp->newdir;
    chmod $mode, "$dir" or die $!;
    return $dir;
}

# The PID of a process that listens there
my @listeners;
END { my $status = $?; kill KILL => @listeners; waitpid $_, 0 for @listeners; $? = $status }

sub listener {
    my ( $path, $uid ) = @_;
    pipe my $ready, my $says or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if ( !$pid ) {
        POSIX::setuid($uid) if defined $uid;
        my $listening = IO::Socket::UNIX->new( Local => $path, Listen => 9 );
        syswrite $says, defined $listening ? 'y' : 'n';
        sleep 300;
        POSIX::_exit(0);
    }
    push @listeners, $pid;
    close $says;
    sysread $ready, my $said, 1;
    die "$path: nobody listens\n" if $said ne 'y';
    return $pid;
}

# A row of /proc/net/unix
sub row { return "0000000000000000: 00000002 00000000 00010000 0001 01 4711 $_[0]\n" }

subtest 'a place of its own' => sub {
    my ( $unit, $session, $open, $tmp ) = map { folder($_) } oct 755, oct 700, oct 777, oct 777;
    local $ENV{TMPDIR} = "$tmp";
    my $own = sub {
        local @ENV{qw(RUNTIME_DIRECTORY XDG_RUNTIME_DIR)} = @_;
        return eval { $place->own };
    };
    is $own->( "$unit:/other", "$session" ), "$unit/sirius-$$.control",    'of the unit';
    is $own->( '',             "$session" ), "$session/sirius-$$.control", 'of the session';
    is $own->( "$open",        "$session" ), "$session/sirius-$$.control", 'not where others may write';
    is $own->( 'relative',     "$session" ), "$session/sirius-$$.control", 'nor at a relative path';
    my $long = "$unit/" . 'x' x 80;
    mkdir $long, oct 700 or die $!;
    is $own->( $long, "$session" ), "$session/sirius-$$.control", 'nor at a path that is too long';
    symlink "$open", "$open/link" or die $!;
    is $own->( "$open/link", "$session" ), "$session/sirius-$$.control", 'nor behind a link';
SKIP: {
        skip 'root has /run', 5 if !$>;
        my $made = "$tmp/sirius-$>";
        is $own->( '', '' ), "$made/sirius-$$.control", 'one that it makes';
        is( ( stat $made )[2] & 0777, oct 700, 'for itself' );
        chmod oct 755, $made or die $!;
        is $own->( '', '' ), undef, 'not if others may look into it';
        is $@,               "$made is not a directory that this user alone may enter\n", 'and says why';
        rmdir $made or die $!;
        symlink "$session", $made or die $!;
        is $own->( '', '' ), undef, 'nor behind a link';
    }
};

subtest 'what is found' => sub {
    my ( $session, $elsewhere ) = ( folder( oct 700 ), folder( oct 755 ) );
    local $ENV{XDG_RUNTIME_DIR} = "$session";
    my $server = IO::Socket::UNIX->new( Local => "$session/sirius-10.control", Listen => 9 ) or die $!;
    my $other  = listener("$elsewhere/sirius-9.control");
    close( IO::Socket::UNIX->new( Local => "$session/sirius-11.control", Listen => 1 ) );
    open my $file, '>', "$session/sirius-12.control" or die $!;
    my $found = sub {
        my @paths = map { $_->{path} } $place->all;
        return join q( ), sort { $a <=> $b } map {m{\A(?:\Q$session\E|\Q$elsewhere\E)/sirius-(\d+)}} @paths;
    };
    is $found->(), '10', 'one that listens in a usual place, none that was left behind';
    $table
        = row("$elsewhere/sirius-9.control.9")
        . row("$session/sirius-10.control")
        . row('/elsewhere/sirius-1.control')
        . row("$elsewhere/other.control")
        . "rubbish\n";
    is $found->(), '9 10', 'and those that listen elsewhere, each once';
    is join( q( ), map { $_->{pid} } grep { $_->{path} =~ m{\A\Q$session\E/} } $place->all ), $$,
        'whatever the name, the PID is that of who listens';
    socket my $full, AF_UNIX, SOCK_STREAM, 0 or die $!;
    bind $full, pack_sockaddr_un("$session/sirius-1.control") or die $!;
    listen $full, 0 or die $!;
    my $waits = IO::Socket::UNIX->new( Peer => "$session/sirius-1.control" ) or die $!;
    is $found->(), $> ? '9 10' : '1 9 10', 'if its queue is full, the process has to be of its user';
    unlink "$session/sirius-1.control";
    $place->own;
    ok !-e "$session/sirius-11.control", 'the next start takes away what was left behind';
    ok -e "$session/$_", "but not $_" for 'sirius-10.control', 'sirius-12.control';
    $table = '';
};

subtest 'each once, and only where nobody else could put it' => sub {
    plan skip_all => 'needs root' if $>;
    my ( $own, $evil ) = map { folder( oct 755 ) } 1 .. 2;
    chown 65_534, 65_534, "$evil" or die $!;
    my $found = sub {
        return map {"$_->{path} $_->{pid} $_->{uid}"}
            grep { $_->{path} =~ m{\A(?:\Q$own\E|\Q$evil\E)/} } $place->all;
    };
    my $pid = listener("$own/sirius-1.control");
    my @one = ("$own/sirius-1.control $pid 0");
    symlink "$own", "$evil/a" or die $!;
    link "$own/sirius-1.control", "$own/sirius-2.control" or die $!;
    $table = row("$evil/a/sirius-1.control") . row("$own/sirius-1.control");
    is_deeply [ $found->() ], \@one, 'also by a link to its directory';
    $table = row("$own/sirius-1.control") . row("$own/sirius-2.control");
    is_deeply [ $found->() ], \@one, 'also by another name';

    my $theirs = listener( "$evil/sirius-3.control", 65_534 );
    $table .= row("$evil/sirius-3.control");
    my @two = ( @one, "$evil/sirius-3.control $theirs 65534" );
    is_deeply [ sort $found->() ], [ sort @two ], 'that of another user';
    {
        my @all = grep { $_->{path} =~ m{\A(?:\Q$own\E|\Q$evil\E)/} } $place->all;
        no warnings 'redefine';
        local *Sirius::Control::Place::all = sub { return @all };
        is $place->find->{pid},                   $pid,    'before which an own one goes';
        is $place->find( pid => $theirs )->{pid}, $theirs, 'unless it is named';
    }
    chown 12, 12, "$evil" or die $!;
    is_deeply [ $found->() ], \@one, 'not where a third one may put it';
    chown 0, 0, "$evil" or die $!;
    is_deeply [ sort $found->() ], [ sort @two ], 'but in a directory of root';
    chown 12, 12, "$evil/sirius-3.control" or die $!;
    is_deeply [ $found->() ], \@one, 'nor where another user listens than the owner';
    chown 12, 12, "$own/sirius-1.control" or die $!;
    is_deeply [ $found->() ], \@one, 'but root may listen for the owner';
    $table = '';
};

subtest 'which is meant' => sub {
    my @all = map { { path => "/run/$_", pid => $_, uid => $> } } $$;
    no warnings 'redefine';
    local *Sirius::Control::Place::all = sub { return @all };
    my $choose = sub {
        my @given = @_;
        return eval { $place->choose(@given) } // $@;
    };
    is $choose->( path => '/x' ), '/x',      'what is given';
    is $choose->(),               "/run/$$", 'the only one';
    {
        local $ENV{SIRIUS_CONTROL} = '/y';
        is $choose->(),            '/y',      'what the variable says';
        is $choose->( pid => $$ ), "/run/$$", 'unless a PID is given';
        $ENV{SIRIUS_CONTROL} = 'none';
        is $choose->(), "/run/$$", 'none: as if it were not set';
    }
    is $choose->( pid => 1 ),
        "no server with the PID 1 was found (there is PID $$ shop.psgi); if it was started with --control PATH, use that\n",
        'another PID';
    push @all, { path => '/run/1', pid => 1, uid => $> };
    is $choose->(),
        "there are 2 servers (PID $$ shop.psgi, PID 1): choose one with --pid, or by --control PATH\n",
        'several';
    is $choose->( pid => 1 ), '/run/1', 'of which the PID chooses';
    @all = ();
    like $choose->(),           qr/\Ano server found: use --control PATH or set SIRIUS_CONTROL, /, 'none';
    like $choose->( pid => 1 ), qr/\Ano server with the PID 1 was found; if it was/, 'none, with a PID';
};

ok $place->is_none('none'), 'none';
ok !$place->is_none($_), 'a path' for undef, '', './none';

done_testing;
