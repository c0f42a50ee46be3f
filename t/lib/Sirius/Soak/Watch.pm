package Sirius::Soak::Watch;

# What the processes of a server hold: memory, descriptors, threads

use strict;
use warnings;
use Sirius::Test::Server;

# For a Sirius::Test::Server
sub new {
    my ( $class, $server ) = @_;
    return bless { server => $server }, $class;
}

# A hash by PID of hashes: role (supervisor, generation, worker, admin), rss and private (KiB), threads,
# descriptors (a hash: how many of each kind), deleted (open files without a name)
sub look {
    my $self = shift;
    my %role = $self->roles;
    my %seen;
    for my $pid ( keys %role ) {
        my $memory    = Sirius::Test::Server::slurp("/proc/$pid/smaps_rollup") or next;
        my %kib       = $memory =~ /^(\w+):\s+(\d+) kB$/mg;
        my ($threads) = Sirius::Test::Server::slurp("/proc/$pid/status") =~ /^Threads:\s+(\d+)/m;
        my @target    = map { readlink "/proc/$pid/fd/$_" || () } Sirius::Test::Server->descriptors($pid);
        $seen{$pid} = {
            deleted     => [ grep { / \(deleted\)\z/ && !m{\A/memfd:} } @target ],
            descriptors => _kinds(@target),
            private     => $kib{Private_Clean} + $kib{Private_Dirty},
            role        => $role{$pid},
            rss         => $kib{Rss},
            threads     => $threads || 0,
        };
    }
    return \%seen;
}

# PID => role, from the title of the process
sub roles {
    my $self  = shift;
    my $group = $self->{server}->pid;
    my %role;
    for my $process ( Sirius::Test::Server::all_processes() ) {
        next if $process->{group} != $group || $process->{state} eq 'Z';
        my $title = Sirius::Test::Server::slurp("/proc/$process->{pid}/cmdline");
        $role{ $process->{pid} } = $title =~ /\Asirius: (\w+)/ ? $1 : 'other';
    }
    return %role;
}

# PIDs of zombies
sub zombies {
    my $self  = shift;
    my $group = $self->{server}->pid;
    return map { $_->{pid} }
        grep { $_->{group} == $group && $_->{state} eq 'Z' } Sirius::Test::Server::all_processes();
}

# Makes "3 socket, 1 pipe" of such a hash
sub words {
    my ( $class, $descriptors ) = @_;
    return join ', ', map {"$descriptors->{$_} $_"} sort keys %$descriptors;
}

sub _kinds {
    my %count;
    $count{s/:\[\d+\]\z//r}++ for @_;
    return \%count;
}

1;
