package Sirius::App::ForkCheck;

use strict;
use warnings;

use Scalar::Util qw(refaddr);
use Sirius::Log  ();
use Socket qw(AF_INET AF_INET6 AF_UNIX NI_NUMERICHOST NI_NUMERICSERV SOCK_DGRAM SOL_SOCKET SO_TYPE getnameinfo
    sockaddr_family unpack_sockaddr_un);

my $LOADED = 'was opened before the fork, so all workers share it: open it in --after-fork instead';
my $WARMED = 'was opened by the warm-up, before the fork, so all workers share it: close it in --before-fork';

# Whether all has been said, and of what
my ( $warned, %said );

sub found {
    my ( $class, @own ) = @_;
    return map { $_->[1] } _sockets(@own), _databases();
}

# What the warm-up opens afterwards is another case
sub warn_before_warm_up {
    my ( $class, @own ) = @_;
    _warn( $LOADED, @own );
    $LOADED = $WARMED;
    return;
}

sub warn_once {
    my ( $class, @own ) = @_;
    return if $warned++;
    return _warn( $LOADED, @own );
}

sub _address {
    my $address = shift;
    return if !defined $address || !length $address;
    my $family = sockaddr_family($address);
    if ( $family == AF_UNIX ) {
        my $path = unpack_sockaddr_un($address);
        return length $path ? $path =~ s/\A\0/@/r : undef;
    }
    my ( $error, $host, $port ) = getnameinfo( $address, NI_NUMERICHOST | NI_NUMERICSERV );
    return if $error;
    return $host =~ /:/ ? "[$host]:$port" : "$host:$port";
}

sub _copy {
    my $fd = shift;
    open my $fh, '+<&', $fd or return;
    return $fh;
}

sub _databases {
    return if !$INC{'DBI.pm'} || !DBI->can('visit_handles');
    my @found;
    my $visit = sub {
        my $handle = shift;
        if ( $handle->{Type} eq 'db' && $handle->{Active} ) {
            my $name = "dbi:$handle->{Driver}{Name}:" . ( defined $handle->{Name} ? $handle->{Name} : '' );
            push @found, [ refaddr $handle, 'a DBI handle (' . $name =~ s/(pass\w*=)[^;]*/$1***/gir . ')' ];
        }
        return $handle->{Type} eq 'dr';    # and its connections
    };
    eval { DBI->visit_handles($visit); 1 } or return;
    return @found;
}

# Describes a socket in words. Returns nothing if it is none, or may be shared
sub _describe {
    my $fh    = shift;
    my $local = getsockname $fh;
    return if !defined $local;
    my $family = length $local ? sockaddr_family($local) : 0;
    return "a socket of family $family" if $family != AF_INET && $family != AF_INET6 && $family != AF_UNIX;

    # Datagram sockets, such as that of syslog, are made for many senders
    return if $family == AF_UNIX && unpack( 'i', getsockopt $fh, SOL_SOCKET, SO_TYPE ) == SOCK_DGRAM;
    my $peer = _address( scalar getpeername $fh );
    return "a socket to $peer" if defined $peer;
    my $own = _address($local);
    return defined $own ? "a socket on $own" : 'a unix socket without a name';
}

# Compares sockets, not descriptor numbers: copies of our own are our own, and copies of another are counted
# once
sub _sockets {
    my @own  = @_;
    my %seen = map { ( readlink("/proc/self/fd/$_") || '' ) => 1 } 0 .. 2, @own;
    opendir my $dir, '/proc/self/fd' or return;
    my @fds = sort { $a <=> $b } grep {/\A\d+\z/} readdir $dir;
    closedir $dir;
    my @found;
    for my $fd (@fds) {
        my $link = readlink "/proc/self/fd/$fd";
        next if !defined $link || $link !~ /\Asocket:/ || $seen{$link}++;
        my $copy = _copy($fd) or next;
        push @found, map { [ $link, $_ ] } _describe($copy);
    }
    return @found;
}

sub _warn {
    my ( $advice, @own ) = @_;
    for my $found ( _sockets(@own), _databases() ) {
        my ( $key, $text ) = @$found;
        Sirius::Log->warn("$text $advice") if !$said{$key}++;
    }
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::App::ForkCheck - warns of connections that the workers would share

=head1 SYNOPSIS

  use Sirius::App::ForkCheck;

  Sirius::App::ForkCheck->warn_once( map { $_->fd } @listeners );

=head1 DESCRIPTION

All workers inherit what an application opens while it is loaded. Two workers that use the same database connection get
each other's answers. A warning says so before the first fork:

  [sirius 4711] a socket to 127.0.0.1:5432 was opened before the fork, so all workers share it: open it in --after-fork

What the requests of C<--warm-up> have opened is named as such: close it in C<--before-fork>, and let each worker open its own.

=head1 METHODS

=head2 warn_before_warm_up

  Sirius::App::ForkCheck->warn_before_warm_up(@own_descriptors);

As L</warn_once>, which afterwards only tells of what is new, and that the warm-up has opened it.

=head2 found

  my @found = Sirius::App::ForkCheck->found(@own_descriptors);    # 'a socket to 127.0.0.1:5432'

What L</warn_once> would log, in words.

=head2 warn_once

  Sirius::App::ForkCheck->warn_once(@own_descriptors);

Logs one line for each socket that is open, except STDIN, STDOUT, STDERR, those whose descriptors are given, and datagram
sockets of the unix family, such as that of syslog; and one for each active database handle when L<DBI> is loaded. Once in a
process.

=head1 SEE ALSO

L<Sirius>, L<Sirius::App::Hooks>.

=cut
