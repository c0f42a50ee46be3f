use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Cwd        qw(getcwd);
use File::Temp qw(tempdir);
use POSIX      ();
use Test::More;
use Sirius::Test;

# What getgrent finds, when it is not to be the system's
my $groups;

BEGIN {
    *CORE::GLOBAL::getgrent = sub { return $groups ? @{ shift @$groups || [] } : CORE::getgrent() };
}
use Sirius::Service::Privileges;

my $dir = tempdir( CLEANUP => 1 );

sub error {
    my $conf = shift;
    return eval { Sirius::Service::Privileges->new($conf); 1 } ? '' : $@;
}

# "real effective saved" of users and groups, and the supplementary groups, as the kernel has them
sub ids {
    open my $fh, '<', '/proc/self/status' or die $!;
    my %line = map {/\A(\w+):\s*(.*?)\s*\z/} readline $fh;
    my @ids  = map { join ' ', ( split ' ', $line{$_} )[ 0 .. 2 ] } qw(Uid Gid);
    return join ' | ', @ids, join ' ', sort { $a <=> $b } split ' ', $line{Groups};
}

sub dropped {
    my %conf = @_;
    return in_child( sub { Sirius::Service::Privileges->new( \%conf )->drop; ids() } );
}

# Root of a container may have no other users
my $root = !$> && in_child( sub { POSIX::setgid(65533) && POSIX::setuid(65532) ? 'yes' : '' } );

subtest 'Nothing asked for' => sub {
    my $privileges = Sirius::Service::Privileges->new( {} );
    my $before     = ids();
    $privileges->drop;
    is ids(), $before, 'nothing changes';
    is_deeply [ $privileges->owner ], [], 'no owner';
    my ( $umask, $cwd ) = ( umask, getcwd );
    $privileges->umask_and_chdir;
    is umask,  $umask, 'nor does the umask';
    is getcwd, $cwd,   'nor the directory';
};

subtest 'Unknown' => sub {
    is error( { user => 'no-such-user' } ), "sirius: --user: 'no-such-user' is not a known user\n", 'user';
    is 0 + $!,                              2, 'right exit status';
    is error( { group => 'no-such-group' } ),
        "sirius: --group no-such-group: 'no-such-group' is not a known group\n", 'group';
    is error( { group => '0,no-such-group' } ),
        "sirius: --group 0,no-such-group: 'no-such-group' is not a known group\n", 'in a list';
    is error( { group => ',' } ), "sirius: --group: ',' contains no group\n", 'no group';
    is error( { user => 4_000_000_000 } ),
        "sirius: --user 4000000000: not in the user database, so --group is needed\n",
        'a number without a group';
};

subtest 'What is so already' => sub {
    my $code = sub {
        if ($root) {
            $) = '65533 65533';
            POSIX::setgid(65533) && POSIX::setuid(65532) or die $!;
        }
        my $before     = ids();
        my $privileges = Sirius::Service::Privileges->new( { user => "$>", group => $) + 0 } );
        $privileges->drop;
        my @owner = $privileges->owner;
        return ids() eq $before && !@owner ? 'same' : 'changed';
    };
    is in_child($code), 'same', 'needs no root';
};

subtest 'Not root' => sub {
    plan skip_all => 'there are no other users' if !$root && !$>;
    my $as_nobody = sub {
        my $conf = shift;
        return in_child(
            sub { POSIX::setuid(65532) if $root; Sirius::Service::Privileges->new($conf); 'no error' } );
    };
    my $uid = $> || 65532;
    is $as_nobody->( { user => 'root' } ),
        "died: sirius: --user root: only root can change that, and this is user $uid\n", 'user';
    is $as_nobody->( { group => 65531 } ),
        "died: sirius: --group 65531: only root can change that, and this is user $uid\n", 'group';
};

subtest 'Dropped' => sub {
    plan skip_all => 'for root' if !$root;
    is dropped( user => 65532, group => 65533 ), '65532 65532 65532 | 65533 65533 65533 | 65533', 'numbers';
    is dropped( user => 65532, group => '65533,65530,65531' ),
        '65532 65532 65532 | 65533 65533 65533 | 65530 65531 65533', 'supplementary groups';
    is dropped( group => '65533,65530' ), '0 0 0 | 65533 65533 65533 | 65530 65533', 'group alone';

    my ( $name, $uid, $gid, $home ) = ( getpwnam 'nobody' )[ 0, 2, 3, 7 ];
    return diag 'there is no nobody' if !defined $name;
    is dropped( user => 'nobody' ), "$uid $uid $uid | $gid $gid $gid | $gid", 'the own group of a user';
    is dropped( user => $uid ),     "$uid $uid $uid | $gid $gid $gid | $gid", 'by number';
    my $env = sub {
        local @ENV{qw(HOME USER LOGNAME)} = ('x') x 3;
        Sirius::Service::Privileges->new( { user => 'nobody' } )->drop;
        return join ' ', @ENV{qw(HOME USER LOGNAME)};
    };
    is in_child($env), "$home nobody nobody", 'environment';
    my $back = sub {
        Sirius::Service::Privileges->new( { user => 'nobody' } )->drop;
        return join ' ', map { defined() ? 'root' : 'no' } POSIX::setuid(0), POSIX::setgid(0);
    };
    is in_child($back), 'no no', 'no way back';
    is join( ':', Sirius::Service::Privileges->new( { user => 'nobody' } )->owner ), "$uid:$gid",
        'owner of files';
};

subtest 'Groups that name the user' => sub {
    my ( $name, $uid, $gid ) = ( getpwuid $> )[ 0, 2, 3 ];
    plan skip_all => 'this user has no name' if !defined $name;
    my $conf = { user => $name, group => '70000,70004' };
    $groups = [
        [ 'a', 'x', 70_001, "one $name" ],
        [ 'b', 'x', 70_002, "${name}1" ],
        [ 'c', 'x', 70_003, $name ],
        [ 'd', 'x', 70_005, '' ],
    ];
    my $privileges = eval { Sirius::Service::Privileges->new($conf) };
    my $error      = $@;
    undef $groups;
    plan skip_all => 'for root' if $error =~ /only root/;
    is $privileges->{gid}, 70_000, 'the group';
    is_deeply $privileges->{groups}, [ 70_001, 70_003, 70_004 ], 'with those that were asked for';
};

subtest 'A drop that fails' => sub {
    plan skip_all => 'for root' if !$root;
    no warnings 'redefine';
    my $conf = { user => 65532, group => 65533 };
    my $try  = sub {
        my ( $name, $code ) = @_;
        no strict 'refs';
        local *{"POSIX::$name"} = $code;
        return dropped(%$conf);
    };
    is $try->( setuid => sub { $! = POSIX::EAGAIN(); return } ),
        "died: sirius: --user 65532: setuid: Resource temporarily unavailable\n", 'setuid';
    is $try->( setgid => sub { $! = POSIX::EPERM(); return } ),
        "died: sirius: --user 65532: setgid: Operation not permitted\n", 'setgid';
    is $try->( setuid => sub { return 1 } ), "died: sirius: --user 65532: the user did not change\n",
        'in silence';
    is $try->( setuid => sub { $> = shift; return 1 } ),
        "died: sirius: --user 65532: the user did not change\n",
        'by half';
    like $try->( setuid => sub { ( $<, $> ) = ( 65532, 65532 ); return 1 } ), qr/can become root again/,
        'with a way back';
};

subtest 'umask and chdir' => sub {
    my $both = sub {
        Sirius::Service::Privileges->new( { umask => oct 27, chdir => $dir } )->umask_and_chdir;
        return sprintf '%o %s', umask, getcwd;
    };
    is in_child($both), '27 ' . Cwd::realpath($dir), 'set';
    is in_child( sub { Sirius::Service::Privileges->new( { umask => 0 } )->umask_and_chdir; umask } ), '0',
        'umask 0';
    eval { Sirius::Service::Privileges->new( { chdir => "$dir/no" } )->umask_and_chdir };
    is $@,     "sirius: --chdir $dir/no: No such file or directory\n", 'right error';
    is 0 + $!, 2,                                                      'right exit status';
};

done_testing;
