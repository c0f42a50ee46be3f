package Sirius::Handover;

use strict;
use warnings;

use Fcntl    qw(FD_CLOEXEC F_GETFD F_SETFD);
use JSON::PP ();

my $json = JSON::PP->new->canonical->ascii;

my %given;    # by the name of the variable

sub give {
    my ( $class, $state, @descriptors ) = @_;
    for my $fd ( map { ref || ref \$_ eq 'GLOB' ? fileno $_ : $_ } @descriptors ) {
        my $fh    = $class->handle($fd);
        my $flags = fcntl $fh, F_GETFD, 0;
        fcntl $fh, F_SETFD, $flags & ~FD_CLOEXEC or die "F_SETFD: $!\n";
        push @{ $class->_kept }, $fh;
    }
    return $json->encode($state);
}

sub handle {
    my ( $class, $fd ) = @_;
    open my $fh, '+<&=', $fd or die "descriptor $fd: $!\n";
    return $fh;
}

sub import {
    my ( $class, @names ) = @_;
    for my $name (@names) {
        $given{$name} = delete $ENV{$name};

        # Where this file was found is in front for that alone
        shift @INC if __FILE__ eq "$INC[0]/Sirius/Handover.pm";
    }
    return;
}

sub take {
    my ( $class, $name ) = @_;
    my $text = delete $given{$name};
    $text = delete $ENV{$name} if !defined $text;
    return if !defined $text;
    my $state = eval { $json->decode($text) };
    die "sirius: $name is for Sirius itself and must not be set\n" if ref $state ne 'HASH';
    return $state;
}

sub take_handle {
    my ( $class, $fd ) = @_;
    my $fh = $class->handle($fd);
    fcntl $fh, F_SETFD, FD_CLOEXEC or die "descriptor $fd: F_SETFD: $!\n";
    return $fh;
}

# A handle that goes out of scope would close its descriptor before the exec
my @kept;
sub _kept { return \@kept }

1;

=encoding utf8

=head1 NAME

Sirius::Handover - state and descriptors across an exec

=head1 SYNOPSIS

  # in a child that is about to exec
  $ENV{SIRIUS_GENERATION} = Sirius::Handover->give( { listener => fileno $fh }, $fh );

  # in the new program
  my $state = Sirius::Handover->take('SIRIUS_GENERATION');
  my $fh    = Sirius::Handover->take_handle( $state->{listener} );

=head1 DESCRIPTION

A new program gets what the old one has as text in an environment variable, and descriptors by their numbers.

=head1 METHODS

=head2 give

  my $text = Sirius::Handover->give( \%state, @descriptors );

Leaves the descriptors (numbers or handles) open on exec and returns the state as text (JSON). For a process that execs
next and does nothing else.

=head2 handle

  my $fh = Sirius::Handover->handle($number);

A handle on an open descriptor, not a copy of it.

=head2 import

  perl -MSirius::Handover=SIRIUS_X ...

Takes what is handed over out of the environment before the application may read it, pass it on or clear it. The folder this
module was found in is removed from C<@INC> if it is the first.

=head2 take

  my $state = Sirius::Handover->take($name);

The state in this environment variable, which is deleted; nothing when it is not set. Dies when it is something else.

=head2 take_handle

  my $fh = Sirius::Handover->take_handle($number);

A handle on a descriptor that was given, closed on exec from now on.

=head1 SEE ALSO

L<Sirius::Supervisor>, L<Sirius::Generation>.

=cut
