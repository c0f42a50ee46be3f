package Sirius::OS::Limits;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::OS::Limits - the limits of this process

=head1 SYNOPSIS

  use Sirius::OS::Limits;

  my $number = Sirius::OS::Limits->descriptors;


=head1 METHODS

=head2 descriptors

  my $number = Sirius::OS::Limits->descriptors;

Raises the soft limit of descriptors to the hard one, and returns it.

=head2 file_size

  my $bytes = Sirius::OS::Limits->file_size;

The soft limit of the size of files (RLIMIT_FSIZE), which holds for shared memory too; -1: there is none.


=head1 SEE ALSO

getrlimit(2).

=cut
