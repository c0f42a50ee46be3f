package Sirius::Process::Succession;

use strict;
use warnings;

use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Config::Address;
use Sirius::Log ();
use Sirius::OS::SocketOwner;
use Sirius::Service::PidFile;
use Sirius::Service::Starter;

use constant EACH => 0.5;    # seconds between two looks

sub act {
    my $self       = shift;
    my $supervisor = $self->{supervisor} or return;
    return if !defined $self->{at} || now() < $self->{at};
    my @waiting = $supervisor->is_stopping ? () : @{ $self->{waiting} };
    $self->{waiting} = [ grep { !$self->_take( $_, $supervisor ) } @waiting ];
    $self->{at}      = @{ $self->{waiting} } ? now() + EACH : undef;
    return;
}

sub begin {
    my ( $self, $supervisor ) = @_;
    weaken( $self->{supervisor} = $supervisor );
    return;
}

sub due {
    return grep {defined} shift->{at};
}

# A name for the server before this one, if it has what the option names
sub keeps {
    my ( $self, $name ) = @_;
    return if !Sirius::Service::Starter->is_used;    # a start need not look for anybody
    for my $holder ( $self->_holders($name) ) {
        next if !Sirius::Service::Starter->precedes( $holder->{pid} );
        return $holder->{text} // 'the server before this one';
    }
    return;
}

sub new {
    my ( $class, $conf ) = @_;
    return bless { conf => $conf, waiting => [] }, $class;
}

sub open {
    my ( $self, $name, $open ) = @_;
    my $text = $self->keeps($name);
    return $open->() if !defined $text;
    push @{ $self->{waiting} }, { name => $name, open => $open, text => $text };
    $self->{at} = now();
    return;
}

sub waits { return @{ shift->{waiting} } ? 1 : 0 }

sub _address_holder {
    my $address = Sirius::Config::Address->parse(shift);
    return Sirius::OS::SocketOwner->tcp( $address->{port} )  if $address->{port};
    return Sirius::OS::SocketOwner->path( $address->{path} ) if defined $address->{path};
    return;
}

# Who has each address, or the file, of an option
sub _holders {
    my ( $self, $name ) = @_;
    my $given = $self->{conf}{$name};
    my %find  = (
        admin   => \&_address_holder,
        control => sub { return Sirius::OS::SocketOwner->path(shift) },
        pid     => \&_pid_holder,
    );
    return grep {defined}
        map { scalar $find{$name}->($_) } ref $given eq 'ARRAY' ? @$given : grep { defined && length } $given;
}

sub _pid_holder {
    my $pid = Sirius::Service::PidFile->holder(shift) // return;
    return { pid => $pid, text => "the server with PID $pid" };
}

# The text is given up to one line, and said again only when it changes
sub _say {
    my ( $wait, $text ) = @_;
    return if ( $wait->{said} // q() ) eq $text;
    $wait->{said} = $text;
    return Sirius::Log->warn("--$wait->{name}: $text");
}

# True if nothing is left to do
sub _take {
    my ( $self, $wait, $supervisor ) = @_;
    my $text = $self->keeps( $wait->{name} );
    if ( defined $text ) {
        _say( $wait, "in use by $text, which start_server is about to end; this server has it from then on" );
        return 0;
    }
    my $object = eval { $wait->{open}->() };
    if ( !$object ) {
        _say( $wait, $@ =~ s/\Asirius: (?:--\Q$wait->{name}\E )?//r =~ s/\s+\z//r . '; tried again' );
        return 0;
    }
    Sirius::Log->note("--$wait->{name}: taken over, $wait->{text} has ended");
    $supervisor->take_over( $wait->{name}, $object );
    return 1;
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Succession - what a server takes over from the one before it under Server::Starter

=head1 SYNOPSIS

  use Sirius::Process::Succession;

  my $succession = Sirius::Process::Succession->new($conf);
  my $pid_file   = $succession->open( pid => sub { Sirius::Service::PidFile->new( $conf->{pid} ) } );
  $succession->begin($supervisor);
  $loop->add($succession);

=head1 DESCRIPTION

C<start_server> of L<Server::Starter> starts a new server beside the old one, and ends the old one when the new one has
run for a while. Both have the listening sockets. But an admin port, a control socket and a PID file can belong to
one server only, and the old one needs them until its end. So the new one starts without them, says so, looks twice a second,
and takes over what is free. If it fails before, the old one has lost nothing.

Only a server that the same C<start_server> has started is waited for. What another process has is an error of the start, as
anywhere.

=head1 METHODS

=head2 act, due

  my @when = $succession->due;
  $succession->act;

Takes over what is free by now, and gives it to L<Sirius::Process::Supervisor/take_over>. Nothing any more once the supervisor stops.

=head2 begin

  $succession->begin($supervisor);

From now on C<act> has somebody to give things to.

=head2 keeps

  my $text = $succession->keeps($name);

A name for the server before this one, if that has what this option names.

=head2 new

  my $succession = Sirius::Process::Succession->new($conf);

=head2 open

  my $object = $succession->open( $name, sub { ... } );

Calls the sub and returns its object, which belongs to the option C<admin>, C<control> or C<pid>; undef if the server before has
what the option names: then the sub is called later.

=head2 waits

Whether there is something to take over.

=head1 SEE ALSO

L<Sirius::OS::SocketOwner>, L<Sirius::Service::Starter>.

=cut
