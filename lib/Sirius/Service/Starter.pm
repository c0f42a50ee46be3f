package Sirius::Service::Starter;

use strict;
use warnings;

use Sirius::Log ();
use Sirius::OS::Proc;

# Older children of the same start_server
sub before {
    return if !is_used();
    my $born = Sirius::OS::Proc->born($$) // return;
    return
        grep { $_ != $$ && ( Sirius::OS::Proc->born($_) // $born + 1 ) <= $born }
        Sirius::OS::Proc->children( getppid() );
}

# "host:port=fd;port=fd;/path=fd"
sub descriptors {
    return if !is_used();
    my @descriptors;
    for my $pair ( split /;/, $ENV{SERVER_STARTER_PORT} ) {
        my ( $address, $fd ) = $pair =~ /\A(.*)=(\d+)\z/s
            or Sirius::Log->fail("SERVER_STARTER_PORT: '$pair' is not ADDRESS=DESCRIPTOR");
        my ($host) = $address =~ m{\A([^/]*):\d+\z};
        $host =~ tr/[]//d if defined $host;
        push @descriptors, { fd => $fd, host => $host, name => $address };
    }
    return @descriptors if @descriptors;
    return Sirius::Log->fail('SERVER_STARTER_PORT is empty: start_server was given no --port and no --path');
}

sub is_ours {
    my ( $class, $pid ) = @_;
    return is_used() && $pid && $pid == getppid() ? 1 : 0;
}

sub is_used { return defined $ENV{SERVER_STARTER_PORT} }

# A process that may not be seen is believed to be the one before, unless there was none
sub precedes {
    my ( $class, $pid ) = @_;
    return 0 if !is_used();
    return ( $ENV{SERVER_STARTER_GENERATION} // 0 ) > 1 ? 1 : 0 if !$pid;
    return $pid != $$ && Sirius::OS::Proc->parent($pid) == getppid() ? 1 : 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::Service::Starter - the listening sockets of Server::Starter

=head1 SYNOPSIS

  use Sirius::Service::Starter;

  for my $given ( Sirius::Service::Starter->descriptors ) {
      print "$given->{fd} is $given->{name}\n";
  }

=head1 DESCRIPTION

The protocol of L<Server::Starter>: the environment variable C<SERVER_STARTER_PORT> names the sockets that
C<start_server> has opened. It is not removed, because an application may look for it.

=head1 METHODS

=head2 before

  my @pids = Sirius::Service::Starter->before;

The servers before this one that the same C<start_server> has started, and that have not ended.

=head2 descriptors

A hash for each: C<fd>, C<name> as C<start_server> was given it, and C<host> where the name has one. Nothing when the variable
is not set; dies when it is empty or makes no sense.

=head2 is_ours

  if ( Sirius::Service::Starter->is_ours($pid) ) { ... }

Whether that process is the C<start_server> of this server.

=head2 is_used

Whether a C<start_server> has started this server.

=head2 precedes

  if ( Sirius::Service::Starter->precedes($pid) ) { ... }

Whether the C<start_server> of this server has started that process as well: it is the server before this one. With undef for a
process that is not known: whether there was one.

=head1 SEE ALSO

L<Server::Starter>, L<Sirius::Listen::Listener>, L<Sirius::Service::Activation>.

=cut
