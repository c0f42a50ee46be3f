package Sirius::CLI::Check::Limits;

use strict;
use warnings;

use List::Util qw(min);
use Sirius::OS::Proc;

# What an edge has open beside connections: descriptors that it keeps free (src/conn/capacity.c), listeners,
# logs, and for each worker a ring and two more
use constant { SPARE => 66, SPARE_PART => 8, OWN => 24, FOR_A_WORKER => 3 };

use constant FEW => 256;    # connections; a browser opens six

my $MEND = 'raise the limit with LimitNOFILE= of systemd, --ulimit nofile= of docker, or ulimit -Hn';

sub check {
    my ( $class, $report, %context ) = @_;
    $class->_descriptors( $report, $context{conf} );
    $class->_backlog( $report, $context{conf} );
    return;
}

# The most that a process may have open. The server raises the soft limit to it
sub descriptors {
    return Sirius::OS::Proc->text('/proc/self/limits') =~ /^Max open files +\S+ +(\d+) /m ? $1 : undef;
}

# Connections that one edge can have with this limit
sub room {
    my ( $class, $limit, $workers ) = @_;
    my $spare = min SPARE, int( $limit / SPARE_PART );
    return $limit - $spare - OWN - FOR_A_WORKER * $workers;
}

sub _backlog {
    my ( $class, $report, $conf ) = @_;
    my $most = Sirius::OS::Proc->text('/proc/sys/net/core/somaxconn') =~ s/\s+\z//r;
    return if $most !~ /\A\d+\z/ || $most >= $conf->{backlog};
    return $report->warning(
        "--backlog $conf->{backlog}: the kernel allows $most connections to wait: set net.core.somaxconn to $conf->{backlog} with sysctl, or lower --backlog"
    );
}

sub _descriptors {
    my ( $class, $report, $conf ) = @_;
    my $limit = $class->descriptors or return;
    my ( $workers, $edges, $wanted ) = @{$conf}{qw(workers_max edges max_connections)};
    my $room = $edges * $class->room( $limit, $workers );
    return $report->error(
        "the limit of open files is $limit, which is not enough for $workers workers: $MEND")
        if $room < 1;
    return $report->warning(
        "--max-connections $wanted: the limit of open files, $limit, leaves room for about $room connections: $MEND, or lower --max-connections"
    ) if $wanted > $room;
    return $report->warning(
        "the limit of open files, $limit, leaves room for about $room connections only: $MEND")
        if $room < FEW && !$wanted;
    return $report->ok("the limit of open files, $limit, leaves room for about $room connections");
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Limits - does the system allow as much as the options ask for?

=head1 SYNOPSIS

  use Sirius::CLI::Check::Limits;

  Sirius::CLI::Check::Limits->check( $report, conf => $conf );

=head1 DESCRIPTION

Compares the limit of open files with C<--max-connections> and the number of workers, and C<net.core.somaxconn> with C<--backlog>.

=head1 METHODS

=head2 check

See L<Sirius::CLI::Check>.

=head2 descriptors

The hard limit of open files of this process; nothing where F</proc> does not tell it.

=head2 room

  my $connections = Sirius::CLI::Check::Limits->room( $limit, $workers );

How many connections an edge can have with it, about.

=head1 SEE ALSO

L<Sirius::CLI::Check>.

=cut
