package Sirius::CLI::Check::Addresses;

use strict;
use warnings;

use Errno qw(EACCES EADDRINUSE EADDRNOTAVAIL);
use Sirius::CLI::Check::Files;
use Sirius::Config::Address;
use Sirius::Edge::Keeper;
use Sirius::Listen::Listener;
use Sirius::Listen::Unix;
use Sirius::OS::SocketOwner;
use Sirius::Service::Starter;
use Sirius::Service::Activation;

sub check {
    my ( $class, $report, %context ) = @_;
    my $conf = $context{conf};
    my $self = bless { %context, report => $report }, $class;
    my @all  = map { [ '--admin', $_ ] } @{ $conf->{admin} || [] };
    if ( my $giver = $self->_giver ) { $report->ok("the sockets to listen on are those of $giver") }
    else {
        unshift @all, map { [ '--listen', $_ ] } @{ $conf->{listen} };
    }
    push @all, [ '--control', "unix:$conf->{control}" ]
        if defined $conf->{control} && $conf->{control} ne 'none';
    if ( Sirius::Edge::Keeper->wanted($conf) ) {
        my @warnings;
        if ( eval { @warnings = Sirius::Edge::Keeper->check($conf); 1 } ) {
            $report->warning($_) for @warnings;
            $report->ok('certificates and keys are in order') if !@warnings;
        } else {
            $report->error( $@ =~ s/\Asirius: |\s+\z//gr );
        }
    }
    my @before;

    for my $one (@all) {
        my ( $option, $spec ) = @$one;
        my $address = Sirius::Config::Address->parse($spec);
        my ($twin) = grep { _same( $_->[2], $address ) } @before;
        push @before, [ @$one, $address ];
        if ( $twin && ( !$address->{port} || $twin->[1] eq $spec ) ) {
            $report->error("$option $spec: $twin->[0] $twin->[1] is the same address; remove one of them");
        } elsif ( defined $address->{path} ) {
            $self->_unix( $option, $spec, $address );
        } elsif ( defined $address->{port} ) {
            $self->_tcp( $option, $spec, $address, $twin );
        } else {
            $report->ok("$option $spec is given by another process at the start; it is not checked");
        }
    }
    return;
}

# Who has opened the sockets before the server starts
sub _giver {
    my $self = shift;
    return 'Server::Starter' if Sirius::Service::Starter->is_used;
    return                   if grep {/\A(?:fd|systemd):/} @{ $self->{conf}{listen} };
    return Sirius::Service::Activation->offered ? 'systemd' : undef;
}

# True for two that cannot both be bound, as far as their text tells
sub _same {
    my ( $one, $other ) = @_;
    return 1 if defined $one->{path} && defined $other->{path} && $one->{path} eq $other->{path};
    return 0 if !$one->{port} || !$other->{port} || $one->{port} != $other->{port};
    my %any = map { $_ => 1 } '', '*', '0.0.0.0', '::';
    my ( $host, $twin ) = map { $_->{host} } $one, $other;
    return 1 if $host eq $twin || $any{$host} && $any{$twin};
    return 0 if grep {/:/} $host, $twin;    # of IPv6 one can be bound beside the other
    return $any{$host} || $any{$twin} ? 1 : 0;
}

sub _taken {
    my ( $self, $option, $spec, $owner ) = @_;
    my $report = $self->{report};
    return $report->error(
        "$option $spec is in use by a process of another user: run the check as root to see its name, stop it, or choose another address"
    ) if !$owner || !$owner->{pid};
    my $pid = Sirius::CLI::Check::Files->pid_in( $self->{conf}{pid} );
    return $report->ok("$option $spec is in use by the server with PID $owner->{pid}, which --pid names")
        if defined $pid && $pid == $owner->{pid};
    return $report->warning(
        "$option $spec is in use by a server of Sirius with PID $owner->{pid}: well if that is the one to be reloaded, else choose another address"
    ) if $owner->{sirius};
    return $report->error(
        "$option $spec is in use by $owner->{text}: stop it, or choose another address with $option");
}

sub _tcp {
    my ( $self, $option, $spec, $address, $twin ) = @_;
    my ( $report, $port ) = ( $self->{report}, $address->{port} );
    return $report->error("$option $spec: $twin->[0] $twin->[1] uses the same port; give each its own")
        if $twin;
    return $report->ok("$option $spec: the system chooses a free port") if !$port;
    return $report->ok("$option $spec can be bound")
        if eval { Sirius::Listen::Listener->probe( 1, $spec ); 1 };
    my $why = $@ =~ s/\Asirius: cannot listen on \Q$spec\E: //r =~ s/(?: by .*)?\s+\z//r;
    my %is  = map { local $! = $_; ( "$!" => $_ ) } EACCES, EADDRINUSE, EADDRNOTAVAIL;
    my $is  = $is{$why} || 0;
    return $self->_taken( $option, $spec, Sirius::OS::SocketOwner->tcp($port) ) if $is == EADDRINUSE;
    return $report->error(
        "$option $spec: this user may not listen on port $port: use a port above 1023, start the server as root with --user,"
            . ' or give it the capability CAP_NET_BIND_SERVICE' )
        if $is == EACCES;
    return $report->error(
        "$option $spec: no network interface of this machine has the address $address->{host}: use one of its own, or :$port for all"
    ) if $is == EADDRNOTAVAIL;
    return $report->error("$option $spec: $why");
}

sub _unix {
    my ( $self, $option, $spec, $address ) = @_;
    my ( $report, $path ) = ( $self->{report}, $address->{path} );
    my $shown = $option eq '--control' ? $path : $spec;
    my $most  = Sirius::Listen::Unix->PATH_MAX;
    return $report->error(
        "$option $shown: the path has ${\ length $path } bytes, and the system allows $most: choose a shorter one"
    ) if length $path > $most + ( $path =~ /\A\0/ ? 1 : 0 );
    my $owner = Sirius::OS::SocketOwner->path($path);
    return $self->_taken( $option, $shown, $owner )   if $owner;
    return $report->ok("$option $shown can be bound") if $path =~ /\A\0/;
    return $report->error(
        "$option $shown: there is a file that is not a socket: remove it, or choose another path")
        if ( -e $path || -l $path ) && !-S $path;
    my $why = Sirius::CLI::Check::Files->no_new_file($path);
    return $report->error("$option $shown: $why") if defined $why;
    my ( $user, undef )
        = Sirius::Config::Address->ids(
        owner => defined $address->{owner} ? $address->{owner} : $self->{conf}{socket_owner} );
    return $report->error(
        "$option $shown: only root can give a socket to another user: start the server as root")
        if $> && $user >= 0 && $user != $>;
    return $report->ok("$option $shown can be bound");
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Addresses - can the server listen where it shall?

=head1 SYNOPSIS

  use Sirius::CLI::Check::Addresses;

  Sirius::CLI::Check::Addresses->check( $report, conf => $conf );

=head1 DESCRIPTION

Binds TCP addresses for a moment, without listening; of unix sockets it looks at F</proc/net/unix> and at the folder. Who uses
an address is found in F</proc>. No connection is made to anything.

=head1 METHODS

=head2 check

See L<Sirius::CLI::Check>.

=head1 SEE ALSO

L<Sirius::CLI::Check>, L<Sirius::Listen::Listener>.

=cut
