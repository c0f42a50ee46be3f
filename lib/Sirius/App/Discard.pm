package Sirius::App::Discard;

use strict;
use warnings;

sub close {
    my $self = shift;
    $self->{closed} = 1;
    return;
}

sub is_closed { return shift->{closed} }

sub new {
    my $class = shift;
    return bless {}, $class;
}

sub put {
    my ( $self, $bytes ) = @_;
    $self->write($bytes);
    return 1;
}

sub write {
    my ( $self, $bytes ) = @_;
    die "the body has a character above 255\n"
        if defined $bytes && !utf8::downgrade( my $copy = "$bytes", 1 );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::App::Discard - a writer whose response goes nowhere

=head1 SYNOPSIS

  use Sirius::App::Discard;

  my $writer = Sirius::App::Discard->new;
  $writer->write('bytes');
  $writer->close;

=head1 DESCRIPTION

What the responder callback of a warm-up returns, in the place of a L<Sirius::PSGI::Writer>.

=head1 METHODS

=head2 close

Ends the response.

=head2 is_closed

True after L</close>.

=head2 new

  my $writer = Sirius::App::Discard->new;

=head2 put

L</write> for L<Sirius::PSGI::Response/send_body>; always true.

=head2 write

  $writer->write($bytes);

Throws the bytes away. Dies if there is a character above 255, as the writer of a worker does.

=head1 SEE ALSO

L<Sirius::App::WarmUp>.

=cut
