package Sirius::OS::Memory;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::OS::Memory - whether perl exits because it gets no more memory

=head1 SYNOPSIS

  use Sirius::OS::Memory;

  my $watch = Sirius::OS::Memory->watch;
  ...
  END { warn 'no memory' if Sirius::OS::Memory->over }


=head1 METHODS

=head2 over

True while perl exits from a scope that owns the object of L</watch>, because it gets no more memory. Perl prints C<Out of memory!>
then, and exits with status 1 as if a program had called C<exit>.

=head2 watch

  my $watch = Sirius::OS::Memory->watch;

Returns an object; the scope that owns it is watched.


=head1 SEE ALSO

L<Sirius::OS::ExitStatus>.

=cut
