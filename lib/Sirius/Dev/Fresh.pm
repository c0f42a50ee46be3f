package Sirius::Dev::Fresh;

use strict;
use warnings;
use parent 'Plack::Middleware';

use Plack::Util ();

sub call {
    my ( $self, $env ) = @_;
    return Plack::Util::response_cb( $self->app->($env), \&_check );
}

sub _check {
    my $headers = shift->[1];
    return if !defined Plack::Util::header_get( $headers, 'Last-Modified' );
    return if grep { defined Plack::Util::header_get( $headers, $_ ) } qw(Cache-Control Expires);
    push @$headers, 'Cache-Control' => 'no-cache';
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Fresh - lets browsers ask whether a file has changed

=head1 SYNOPSIS

  $app = Sirius::Dev::Fresh->wrap($app);

=head1 DESCRIPTION

Plack::Middleware::Static and others send a file with Last-Modified and without Cache-Control. A browser then uses it for a tenth of
the time since it has changed without asking (RFC 9111 4.2.2), even when its page is loaded again. With C<sirius dev> such a
response gets C<Cache-Control: no-cache>, with which the browser asks each time. Files of C<--static> have it from the edge.

=head1 METHODS

=head2 call

As that of L<Plack::Middleware>.

=head1 SEE ALSO

L<Sirius::Dev::Loader>.

=cut
