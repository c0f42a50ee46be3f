package Plack::Middleware::AccessLog::Compiled;

use strict;
use warnings;

use parent qw(Plack::Middleware);

use Plack::Middleware::AccessLog::Compiled::Watch ();
use Plack::Util                                   ();
use Plack::Util::Accessor qw(block_handlers char_handlers compiled_format format logger);
use Scalar::Util          qw(blessed);
use Sirius::LogFormat     ();
use Time::HiRes           qw(CLOCK_MONOTONIC clock_gettime);

sub call {
    my ( $self, $env ) = @_;
    my @at  = ( time, clock_gettime(CLOCK_MONOTONIC) );
    my $res = $self->{app}->($env);
    return $self->_watched( $res, $env, @at ) if ref $res eq 'ARRAY';
    return $res                               if ref $res ne 'CODE';

    return sub {
        my $respond = shift;
        return $res->( sub {
            my $response = shift;
            return $respond->( $self->_watched( $response, $env, @at ) ) if defined $response->[2];
            my $writer = $respond->($response);
            return $writer && $self->_watch( $writer, $response, $env, @at );
        } );
    };
}

sub log_line {
    my ( $self, $status, $headers, $env, $opts ) = @_;
    return $self->{compiled_format}
        ->log_line( $env, [ $status, $headers ], @{$opts}{qw(content_length time epoch)} );
}

sub prepare_app {
    my $self   = shift;
    my %custom = map { $_ => $self->$_ || {} } qw(block_handlers char_handlers);
    $self->{plain} = $self->can('log_line') == \&log_line;    # no subclass has overridden it
    return $self->compiled_format( Sirius::LogFormat->new( $self->format, %custom ) );
}

# The length of a body that a server can send without calling us for it
sub _length {
    my $body = shift;
    if ( ref $body eq 'ARRAY' ) {
        my $length = 0;
        defined and $length += length for @$body;
        return $length;
    }
    my $length = Plack::Util::content_length($body);
    return $length if defined $length || !blessed $body || !$body->can('path');
    my $path = $body->path;
    return defined $path && -f $path ? 0 + -s _ : undef;
}

sub _log {
    my ( $self, $res, $env, $epoch, $began, $length ) = @_;
    my $time = int( ( clock_gettime(CLOCK_MONOTONIC) - $began ) * 1e6 );
    my $line
        = $self->{plain}
        ? $self->{compiled_format}->log_line( $env, $res, $length, $time, $epoch )
        : $self->log_line( $res->[0], $res->[1], $env,
        { content_length => $length, time => $time, epoch => $epoch } );
    if ( my $logger = $self->{logger} ) {
        $logger->($line);
    } else {
        $env->{'psgi.errors'}->print($line);
    }
    return;
}

sub _watch {
    my ( $self, $inner, $res, $env, @at ) = @_;
    my @head = @{$res}[ 0, 1 ];
    return Plack::Middleware::AccessLog::Compiled::Watch->new( $inner,
        sub { $self->_log( \@head, $env, @at, shift ) } );
}

# A body of known length is left as it is, since the server may have a fast way to send it
sub _watched {
    my ( $self, $res, $env, @at ) = @_;
    my $length = _length( $res->[2] );
    if ( defined $length || !ref $res->[2] ) {
        $self->_log( $res, $env, @at, $length );
        return $res;
    }
    return [ @{$res}[ 0, 1 ], $self->_watch( $res->[2], $res, $env, @at ) ];
}

1;

=encoding utf8

=head1 NAME

Plack::Middleware::AccessLog::Compiled - an access log for any PSGI server, in a format that C runs

=head1 SYNOPSIS

  use Plack::Builder;

  builder {
      enable 'AccessLog::Compiled', format => 'combined';    # to psgi.errors
      enable 'AccessLog::Compiled',
          format => '%h "%r" %>s %b %D',
          logger => sub { my $line = shift; warn "short: $line" };
      $app;
  };

=head1 DESCRIPTION

Replaces L<Plack::Middleware::AccessLog>: it takes the same options and writes the same lines, with these differences:

=over 4

=item *

C<%b>, C<%D> and C<%T> are known for every response. A body that is read with C<getline> or streamed is counted, and its line
is written when the response ends, even if the client or the application fails in the middle of it. The line of an array or a
file is written at once, because its length is known; the body is passed on unchanged, so that the server can send it in the
fastest way.

=item *

C<%t> is the time when the request arrived.

=item *

A wrong format is reported when the application is built.

=back

Under Sirius, prefer the option C<--access-log>: it costs less, counts the bytes that were actually sent, and also logs requests
that never reach the application. This middleware is for other servers, and for logs of a part of the application.

=head1 CONFIGURATION

=head2 block_handlers

A hash of letters and subs for custom items with a text, C<%{text}z>. See L<Sirius::LogFormat/new>.

=head2 char_handlers

A hash of letters and subs for custom items without a text, C<%z>.

=head2 format

See L<Sirius::LogFormat/FORMAT>. The default is C<combined>.

=head2 logger

A sub that is called with each line. Without it, lines are written to C<psgi.errors>.

=head1 METHODS

=head2 call

See L<Plack::Middleware>.

=head2 compiled_format

Returns the L<Sirius::LogFormat> object in use.

=head2 log_line

  my $line = $self->log_line( $status, $headers, $env, { content_length => $n, time => $us, epoch => $seconds } );

Returns the line. Subclasses may override it.

=head2 prepare_app

See L<Plack::Middleware>.

=head1 SEE ALSO

L<Sirius::LogFormat>, L<Plack::Middleware::AccessLog>, L<Plack::Middleware::AccessLog::Timed>

=cut
