package Sirius::Service::Privileges;

use strict;
use warnings;

use POSIX ();
use Sirius::Config::Options;
use Sirius::Log ();

sub drop {
    my $self = shift;
    my ( $uid, $gid ) = @{$self}{qw(uid gid)};
    return if $self->{same} || !defined $gid;

    # Only root may do the first two, so the user comes last. POSIX's functions set real, effective and saved
    # IDs
    $) = join ' ', $gid, $gid, @{ $self->{groups} };
    $self->_die("setgid: $!") if !defined POSIX::setgid($gid);
    $self->_die("setuid: $!") if defined $uid && !defined POSIX::setuid($uid);
    $self->_verify;
    @ENV{qw(HOME LOGNAME USER)} = @{$self}{qw(home name name)} if defined $uid;
    return;
}

# For a program that drops privileges itself
sub ids {
    my $self = shift;
    my ( $uid, $gid ) = @{$self}{qw(uid gid)};
    return if $self->{same} || !defined $gid;
    return ( uid => $uid, gid => $gid, groups => join ',', $gid, @{ $self->{groups} } );
}

sub new {
    my ( $class, $conf ) = @_;
    my $self = bless { conf => $conf, groups => [] }, $class;
    my ( $user, $group ) = @{$conf}{qw(user group)};
    return $self                if !defined $user && !defined $group;
    $self->_find_user($user)    if defined $user;
    $self->_find_groups($group) if defined $group;
    Sirius::Config::Options->fail("--user $user: not in the user database, so --group is needed")
        if !defined $self->{gid};
    return $self if !$> && !$<;
    return $self if $self->{same} = $self->_is_now;
    my $what = defined $user ? "--user $user" : "--group $group";
    return Sirius::Config::Options->fail("$what: only root can change that, and this is user $>");
}

sub owner {
    my $self = shift;
    return if $self->{same} || !defined $self->{gid};
    return defined $self->{uid} ? $self->{uid} : -1, $self->{gid};
}

sub umask_and_chdir {
    my $self = shift;
    my ( $umask, $dir ) = @{ $self->{conf} }{qw(umask chdir)};
    umask $umask                                      if defined $umask;
    Sirius::Config::Options->fail("--chdir $dir: $!") if defined $dir && !chdir $dir;
    return;
}

sub _die {
    my ( $self, $error ) = @_;
    my ($option) = grep { defined $self->{conf}{$_} } qw(user group);
    return Sirius::Log->fail("--$option $self->{conf}{$option}: $error");
}

# The first is the group, the others (after commas) are supplementary
sub _find_groups {
    my ( $self, $list ) = @_;
    my @gids;
    for my $group ( split /,/, $list ) {
        my $gid = getgrnam $group;
        $gid = $group if !defined $gid && $group =~ /\A\d+\z/;
        Sirius::Config::Options->fail("--group $list: '$group' is not a known group") if !defined $gid;
        push @gids, $gid;
    }
    Sirius::Config::Options->fail("--group: '$list' contains no group") if !@gids;
    $self->{gid} = shift @gids;
    push @{ $self->{groups} }, @gids;
    return;
}

sub _find_user {
    my ( $self, $user ) = @_;
    my @entry = getpwnam $user;
    @entry = getpwuid $user if !@entry && $user =~ /\A\d+\z/;
    if (@entry) {
        @{$self}{qw(name uid gid home)} = @entry[ 0, 2, 3, 7 ];
        $self->{groups} = _memberships( $entry[0] );
    } elsif ( $user =~ /\A\d+\z/ ) {
        @{$self}{qw(name uid home)} = ( $user, $user, '/' );
    } else {
        Sirius::Config::Options->fail("--user: '$user' is not a known user");
    }
    return;
}

# Users other than root may ask for the user and group they already have, so that one configuration serves
# everywhere
sub _is_now {
    my $self = shift;
    my $uid  = $self->{uid};
    return ( !defined $uid || $uid == $> && $uid == $< ) && $self->{gid} == $) + 0 && $self->{gid} == $( + 0;
}

# As initgroups(3) finds them
sub _memberships {
    my $name = shift;
    my @gids;
    setgrent;
    while ( my ( undef, undef, $gid, $members ) = getgrent ) {
        push @gids, $gid if grep { $_ eq $name } split ' ', $members;
    }
    endgrent;
    return \@gids;
}

# A change that is half done is worse than none
sub _verify {
    my $self = shift;
    my ( $uid, $gid ) = @{$self}{qw(uid gid)};
    my %want = map { $_ => 1 } $gid, @{ $self->{groups} };
    my %have = map { $_ => 1 } split ' ', $);
    my $same = join( ' ', sort keys %want ) eq join ' ', sort keys %have;
    $self->_die("the groups are $) instead of @{[ sort keys %want ]}") if !$same;
    $self->_die('the group did not change')                            if $( + 0 != $gid || $) + 0 != $gid;
    return                                                             if !defined $uid;
    $self->_die('the user did not change')                             if $< != $uid || $> != $uid;
    return                                                             if !$uid;
    $self->_die('this process can become root again')
        if defined POSIX::setuid(0) || defined POSIX::setgid(0) && $gid;
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Service::Privileges - user, groups, umask and directory of the server

=head1 SYNOPSIS

  use Sirius::Service::Privileges;

  my $privileges = Sirius::Service::Privileges->new($conf);    # is it possible?
  ...                                                 # what only root can do
  $privileges->drop;
  $privileges->umask_and_chdir;

=head1 DESCRIPTION

Users and groups are names or numbers. C<--user> alone sets the user's own group; it always adds the groups that name
the user as a member. C<--group> may be a list with commas: the first is the group, the others are supplementary.
C<--group> alone leaves the user unchanged. A number without a user in the system needs C<--group>.

=head1 METHODS

=head2 drop

  $privileges->drop;

Changes to that user permanently: supplementary groups first, then the group, then the user. Dies unless all of it has
succeeded and cannot be undone. Sets C<HOME>, C<LOGNAME> and C<USER> in C<%ENV>. Does nothing if neither user nor group
was asked for, or both are right already.

=head2 ids

  my %ids = $privileges->ids;

C<uid>, C<gid> and C<groups>, with commas, for a program that drops its rights itself; nothing if there is nothing to
drop.

=head2 new

  my $privileges = Sirius::Service::Privileges->new($conf);

Takes C<user>, C<group>, C<umask> and C<chdir> of the configuration and looks the first two up. An unknown one, or one that
only root can change to, is a wrong option (see L<Sirius::Config::Options/fail>).

=head2 owner

  my ( $uid, $gid ) = $privileges->owner;

The user and group to which files should belong that the workers open; nothing if L</drop> changes nothing.

=head2 umask_and_chdir

  $privileges->umask_and_chdir;

Sets the umask and changes the directory, if asked for. A directory that cannot be entered is a wrong option.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Config::Options>.

=cut
