package Sirius::PSGI::Cleanup;

use 5.016;
use strict;
use warnings;

use Scalar::Util qw(blessed reftype);
use overload     ();

# Whether the worker has to end after this request. Returns a plain number, as an object may be asked only
# once
sub commit {
    my $env = shift;
    return exists $env->{'psgix.harakiri.commit'} && $env->{'psgix.harakiri.commit'} ? 1 : 0;
}

# The handler of this number in an array, since it may be undefined; nothing after the last one
sub handler {
    my ( $list, $number ) = @_;
    return $number < @{$list} ? [ $list->[$number] ] : undef;
}

# The array of handlers, or nothing
sub handlers {
    my $env  = shift;
    my $list = exists $env->{'psgix.cleanup.handlers'} ? $env->{'psgix.cleanup.handlers'} : undef;
    return       if !ref $list;
    return $list if reftype $list eq 'ARRAY' || blessed $list && overload::Method( $list, '@{}' );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::PSGI::Cleanup - reads what an application wants to be done after its response

=head1 DESCRIPTION

The C code reads plain values of C<%env> itself. If C<psgix.cleanup.handlers> or C<psgix.harakiri.commit> is set, tied
or overloaded, this module reads it, in an C<eval>. Applications do not need it.

=head1 FUNCTIONS

=head2 commit

  my $number = commit($env);

1 when C<psgix.harakiri.commit> is true, else 0.

=head2 handler

  my $one = handler( $list, $number );

The handler of this number as C<[$code]>, or undef after the last.

=head2 handlers

  my $list = handlers($env);

C<psgix.cleanup.handlers>, or undef when that is no array.

=head1 SEE ALSO

L<Sirius>, L<PSGI>

=cut
