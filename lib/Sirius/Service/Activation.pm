package Sirius::Service::Activation;

use strict;
use warnings;

use Sirius::Log ();

use constant FIRST_FD => 3;    # SD_LISTEN_FDS_START

my @VARIABLES = qw(LISTEN_FDS LISTEN_PID LISTEN_FDNAMES LISTEN_PIDFDID);

sub descriptors {
    my $class = shift;
    my @all   = $class->offered;
    delete @ENV{@VARIABLES};
    return @all;
}

sub forget {
    delete @ENV{@VARIABLES};
    return;
}

sub offered {
    my ( $count, $pid, $names ) = @ENV{@VARIABLES};
    return if !defined $count || !defined $pid || $pid ne $$;
    Sirius::Log->fail("LISTEN_FDS: '$count' is not a number of descriptors") if $count !~ /\A\d{1,4}\z/;
    my @names = split /:/, defined $names ? $names : '', -1;
    return
        map { {
        fd => FIRST_FD + $_, name => defined $names[$_] && length $names[$_] ? $names[$_] : 'unknown' } }
        0 .. $count - 1;
}

1;

=encoding utf8

=head1 NAME

Sirius::Service::Activation - listening sockets from systemd

=head1 SYNOPSIS

  use Sirius::Service::Activation;

  my @descriptors = Sirius::Service::Activation->descriptors;

=head1 DESCRIPTION

The protocol of sd_listen_fds(3), by which systemd passes the sockets of a F<.socket> unit. Without systemd there are none. The
variables are removed from the environment when they are read, because children must not listen in the name of the server.

=head1 METHODS

=head2 descriptors

  for my $given ( Sirius::Service::Activation->descriptors ) {
      print "$given->{fd} is $given->{name}\n";
  }

The descriptors of C<LISTEN_FDS> with their names of C<LISTEN_FDNAMES> ("unknown" without one); none when C<LISTEN_PID> is not
this process. At the second call there are none.

=head2 forget

  Sirius::Service::Activation->forget;

Removes these variables from the environment, for a process that has inherited them.

=head2 offered

Like L</descriptors>, but leaves the environment unchanged.

=head1 SEE ALSO

L<Sirius::Service::Notify>, L<Sirius::Service::Starter>, L<Sirius::Listen::Listener>.

=cut
