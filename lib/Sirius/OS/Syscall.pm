package Sirius::OS::Syscall;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has _name

sub name {
    my ( $class, $number ) = @_;
    return '' if !defined $number;
    return Sirius::OS::Syscall->_name($number) // "number $number";
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Syscall - names of system calls

=head1 SYNOPSIS

  use Sirius::OS::Syscall;

  my $name = Sirius::OS::Syscall->name(73);    # flock, on x86_64

=head1 METHODS

=head2 name

  my $name = Sirius::OS::Syscall->name($number);

The name of a system call in which a process may wait for long, by the numbers of the headers that the server was built with.
C<number 73> for any other, '' for undef.

=head1 SEE ALSO

L<Sirius::OS::Proc>.

=cut
