package Sirius::OS::Cpus;

use strict;
use warnings;

use List::Util qw(max min);
use POSIX      qw(ceil);
use Sirius::OS::Proc;

use constant {
    WORKER_MEMORY => 64 * 2**20,    # bytes a worker of a small application needs
    WORKERS_MAX   => 4096,
    WORKERS_MIN   => 2,             # so that one that waits for a database is not the only one
};

sub count {
    my ( $class, $root ) = @_;
    $root = '' if !defined $root;
    return max 1, min _allowed($root), map { ceil $_ } _quotas($root);
}

sub memory {
    my ( $class, $root ) = @_;
    $root = '' if !defined $root;
    my @limits;
    for my $dir ( _groups( $root, 'memory' ) ) {
        push @limits, grep {/\A\d+\n?\z/}
            map { Sirius::OS::Proc->text("$dir/$_") } qw(memory.max memory.limit_in_bytes);
    }
    my $least = min @limits;

    # cgroup v1 without a limit reports 2**63 less a page
    return defined $least && $least < 2**60 ? $least + 0 : undef;
}

# The limit of processes and threads that is reached, of a control group or else of the user, and its name
sub tasks {
    my ( $class, $root ) = @_;
    $root = '' if !defined $root;
    for my $dir ( _groups( $root, 'pids' ) ) {
        my ( $most, $now ) = map { Sirius::OS::Proc->text("$dir/pids.$_") =~ /\A(\d+)$/m } qw(max current);
        return $most, 'TasksMax= of systemd, or pids.max of the control group'
            if defined $now && $now >= $most;
    }
    my ($most) = Sirius::OS::Proc->text("$root/proc/self/limits") =~ /^Max processes\s+(\d+)/m;
    return defined $most ? ( $most, 'ulimit -u, or LimitNPROC= of systemd' ) : ();
}

sub workers {
    my ( $class, $root ) = @_;
    my $workers = min WORKERS_MAX, max WORKERS_MIN, $class->count($root);
    my $memory  = $class->memory($root);
    return $workers if !defined $memory;
    return max 1, min $workers, int $memory / WORKER_MEMORY;
}

# The number of CPUs in the affinity mask, as in "0-3,8"
sub _allowed {
    my $root = shift;
    my ($list) = Sirius::OS::Proc->text("$root/proc/self/status") =~ /^Cpus_allowed_list:\s*([\d,-]+)$/m
        or return 1;
    my $count = 0;
    for my $range ( split /,/, $list ) {
        my ( $first, $last ) = split /-/, $range;
        $count += 1 + ( defined $last ? $last - $first : 0 );
    }
    return $count;
}

# The directories of this process's control groups, from its own up to the top of the mount: each may have a
# limit. In a container the top is the container's
sub _groups {
    my ( $root, $controller ) = @_;
    my @dirs;
    for my $line ( split /\n/, Sirius::OS::Proc->text("$root/proc/self/cgroup") ) {
        my ( $id, $controllers, $path ) = split /:/, $line, 3;
        next if !defined $path;
        my $unified = $id eq '0' && $controllers eq '';
        next if !$unified && !grep { $_ eq $controller } split /,/, $controllers;
        for my $mount ( grep { $unified ? $_->{type} eq 'cgroup2' : $_->{option}{$controller} }
            _mounts($root) )
        {
            my $top = $mount->{root} eq '/' ? '' : $mount->{root};

            # If the path is outside the mount, uses the top of the mount
            my $below = $path =~ m{/\.\.(?:/|\z)} || index( "$path/", "$top/" ) ? '' : substr $path,
                length $top;
            $below =~ s{/+\z}{};
            for ( ;; $below =~ s{/[^/]*\z}{} ) {
                push @dirs, "$root$mount->{at}$below";
                last if $below eq '';
            }
        }
    }
    return @dirs;
}

sub _mounts {
    my $root = shift;
    my @mounts;
    for my $line ( split /\n/, Sirius::OS::Proc->text("$root/proc/self/mountinfo") ) {
        my ( $left, $right ) = split / - /, $line, 2;
        next if !defined $right || $right !~ /\A(cgroup2?) \S+ (\S+)/;
        my ( $type, %option ) = ( $1, map { $_ => 1 } split /,/, $2 );
        my ( $top,  $at )     = map {s/\\([0-7]{3})/chr oct $1/ger} ( split / /, $left )[ 3, 4 ];
        push @mounts, { at => $at, option => $type eq 'cgroup' ? \%option : {}, root => $top, type => $type };
    }
    return @mounts;
}

# The CPU limits of the groups, in CPUs
sub _quotas {
    my $root = shift;
    my @quotas;
    for my $dir ( _groups( $root, 'cpu' ) ) {
        my ( $quota, $period ) = Sirius::OS::Proc->text("$dir/cpu.max") =~ /\A(\d+) (\d+)/;
        ( $quota, $period )
            = map { Sirius::OS::Proc->text("$dir/cpu.cfs_${_}_us") =~ /\A(\d+)/ } qw(quota period)
            if !defined $period;
        push @quotas, $quota / $period if $quota && $period;
    }
    return @quotas;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Cpus - the CPUs and the memory that this process may use

=head1 SYNOPSIS

  use Sirius::OS::Cpus;

  my $workers = Sirius::OS::Cpus->workers;    # for --workers auto

=head1 DESCRIPTION

In a container or under C<taskset>, the number of CPUs of the machine says little. This module reads the affinity mask
(C</proc/self/status>) and the limits of CPU time and memory of the control groups of this process and of those above
them, version 1 and 2.

=head1 METHODS

All methods take the directory to use as C</>, for tests.

=head2 count

  my $cpus = Sirius::OS::Cpus->count;

CPUs that this process may use: the fewest of the affinity mask (as C<nproc> says) and the quotas (C<cpu.max>, or
C<cpu.cfs_quota_us> by C<cpu.cfs_period_us>), rounded up. At least 1.

=head2 memory

  my $bytes = Sirius::OS::Cpus->memory;

The lowest memory limit (C<memory.max> or C<memory.limit_in_bytes>), undefined if there is none.

=head2 tasks

  my ( $number, $what ) = Sirius::OS::Cpus->tasks;

Why no process can be made: the number of processes and threads that a control group of this process may have and has, or else
the number that its user may have, and what sets it. An empty list if nothing limits them.

=head2 workers

  my $workers = Sirius::OS::Cpus->workers;

The number of workers for C<--workers auto>: as many as L</count>, but at least 2, because one may wait for a database;
with a memory limit at most one for each 64 MiB; never less than 1.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Config::Options>, L<Sirius::Config::Type>.

=cut
