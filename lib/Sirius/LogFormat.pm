package Sirius::LogFormat;

use 5.016;
use strict;
use warnings;

use Sirius ();

sub new {
    my ( $class, $format, %option ) = @_;
    $format = 'combined' if !$format;
    for my $kind (qw(char_handlers block_handlers)) {
        my $handlers = $option{$kind} ||= {};
        ref $handlers->{$_} or die "access log format: $kind: $_ is not a sub\n" for keys %{$handlers};
    }
    my ( $self, $why, $offset )
        = $class->_compile( $format, @option{qw(char_handlers block_handlers)} );
    die _message( $format, $why, $offset ) if !$self;
    return $self;
}

# A caret below the wrong character, if both lines fit a terminal
sub _message {
    my ( $format, $why, $offset ) = @_;
    utf8::encode($format) if utf8::is_utf8($format) && !utf8::downgrade( my $copy = $format, 1 );
    my $before = substr $format, 0, $offset;
    utf8::decode($_) for $before, my $text = $format;
    my $place   = length $before;
    my $message = sprintf "access log format: %s at character %d\n", $why, $place + 1;
    return $message if length $text > 160 || $text =~ /[^[:print:]]/;
    utf8::encode($text);
    return sprintf "%s  %s\n  %s^\n", $message, $text, ' ' x $place;
}

# The program is C memory, which a new thread must not free a second time
sub CLONE_SKIP { return 1 }

1;

=encoding utf8

=head1 NAME

Sirius::LogFormat - access log lines in the format language of Apache's LogFormat

=head1 SYNOPSIS

  use Sirius::LogFormat;

  my $log = Sirius::LogFormat->new('combined');
  print $log->log_line( $env, $res, $length, $microseconds, $epoch );

  my $own = Sirius::LogFormat->new(
      '%h %{ms}Tms %z %{HTTP_X_FORWARDED_FOR|REMOTE_ADDR}Z',
      char_handlers  => { z => sub { my ( $env, $res ) = @_; return $env->{'myapp.user'} } },
      block_handlers => { Z => sub { my ( $block, $env ) = @_; return ( grep {defined} @$env{ split /\|/, $block } )[0] } },
  );

=head1 DESCRIPTION

Compiles a format once into a program that runs in C, so that a line is made without running Perl code. The server uses it for
its access log, and L<Plack::Middleware::AccessLog::Compiled> uses it under any PSGI server.

It replaces L<Apache::LogFormat::Compiler> 0.36, with the same language, arguments and lines. The differences are listed below.

=head1 FORMAT

Text is copied as it is; two backslashes become one. The following items are replaced; C<E<lt>> or C<E<gt>> before the letter
has no effect.

  %%            a percent sign
  %h %a         address of the client (REMOTE_ADDR)
  %l            -
  %u            REMOTE_USER
  %t            [time when the request arrived, as 22/Nov/2026:10:15:00 +0100]
  %{FORMAT}t    [that time in a format of strftime, in English]
  %r            the request line
  %m %U %q %H   its method, PATH_INFO, query with its question mark, protocol
  %{uri}r       its target, as the client sent it
  %v            SERVER_NAME
  %V            the Host field of the request, or SERVER_NAME if there is none
  %p            SERVER_PORT
  %P            PID of the process
  %{NAME}i      a field of the request
  %{NAME}o      a field of the response, the first of that name
  %{NAME}e      a value of %env
  %{NAME}x      of an encrypted connection: SSL_PROTOCOL, SSL_CIPHER, SSL_TLS_SNI, SSL_CLIENT_VERIFY, SSL_CLIENT_S_DN,
                SSL_CLIENT_I_DN, SSL_CLIENT_M_SERIAL, SSL_CLIENT_CERT
  %s            status
  %b            bytes of the body, - if unknown
  %B            bytes of the body, 0 if unknown
  %D %T         duration in microseconds, in seconds
  %{UNIT}T      duration in s, ms or us

The following items have a value only in the access log of the server itself; elsewhere they are C<->:

  %O            all bytes sent, including the head
  %{queue}D     microseconds that the request waited for a worker, and before that in a trusted proxy (X-Request-Start)
  %{app}D       microseconds in the application
  %{held}D      microseconds that the connection was held for the application (--hold)
  %X            state of the connection after the response: X cut off, + kept open, - closed
  %k            number of earlier requests on the connection
  %{cut-by}x       of a response that is not whole: client, if it has gone or was too slow; server, if the application, its
                   worker or its file gave less than announced
  %{stream}x       number of the stream, with HTTP/2
  %{messages}x     messages that a held connection was sent
  %{request-id}x   X-Request-Id of a trusted proxy, else an id that the server makes
  %{traceparent}x  traceparent (W3C Trace Context), if it is valid
  %{refused}x      why the server refused the request: the rule of the protocol that it has broken, else as the next one
  %{refused-by}x   the same as one word, that of the metric: malformed, max-body, queue-timeout, worker-lost ...

A value that does not exist is C<->. Bytes of a value that are not printable ASCII are written as C<\xNN>. An entry is therefore
always one line, but a value may contain quotes.

Times support the conversions C<a A b B c C d D e F g G h H I j k l m M n N p P r R s S t T u U V w W x X y Y z Z %>, also
with C<E> or C<O> in front; C<%3N> and C<%6N>, the first digits of the fraction; and C<%:z>, the offset as C<+01:00>.

A C<%> that does not begin an item is text. An incomplete or unknown item is an error.

=head2 Presets

=over 4

=item common

C<%h %l %u %t "%r" %E<gt>s %b>

=item combined

The same, followed by C<"%{Referer}i" "%{User-agent}i">. This is the default.

=item ltsv

Labelled tab-separated values: time, host, user, method, uri, protocol, status, size, referer, ua, vhost, reqtime_microsec,
queuetime_microsec, apptime_microsec, connection, nth, pid.

=item json

A JSON object with the same names. An unknown value is null; the time has the format of RFC 3339 with microseconds. Values are
valid UTF-8: an invalid byte is written as the four characters C<\xNN>.

=back

=head2 Differences from Apache::LogFormat::Compiler

=over 4

=item *

C<%h %u %v %V %p %H>, and the protocol in C<%r>, are escaped like all other values. User names and host names come from the
client, and middleware may set the address, so unescaped values could forge a line.

=item *

An address or a name that is C<0> is C<0>, not C<->.

=item *

A method, path, protocol, port or status that is undefined is C<->, not an empty string, which would shift the other columns.
The same holds for a request line of which no part is defined.

=item *

A status, length or duration that is not a number, or is negative, is C<->. Fractions of microseconds are cut off.

=item *

A line consists of bytes. A string of characters is written as its bytes, or as UTF-8 if it has characters above 0xff; either
way the bytes are escaped.

=item *

Noon is 12 PM and midnight 12 AM (C<%I %l %p %P %r>).

=item *

The offset of the time zone is correct even if it changes for another reason than daylight saving time.

=item *

Names and formats with C<'> or C<!>, and a backslash before an item, compile. The backslash is text.

=item *

The following are errors here, but are printed literally or differently there: an unknown conversion of a time; C<%{>, C<%E<lt>>
or C<%E<gt>> without an item, and C<}> inside a name of C<i> and C<o>; conditions such as C<%400,501{Referer}i>.

=item *

C<ltsv> and C<json> are presets, and the items C<%a %B %O %X %k>, C<%{}e>, C<%{}r>, C<%{}T>, C<%{}D> and C<%{}x> are defined. A handler
for one of these letters takes precedence.

=back

=head1 METHODS

=head2 log_line

  my $line = $log->log_line( $env, $res, $length, $microseconds, $epoch );

Returns one line with its newline. C<$res> is the response as an array; its status and headers are used. C<$length> is the length
of its body, C<$microseconds> the duration, and C<$epoch> the time when the request arrived (default: now). These three are
optional.

=head2 new

  my $log = Sirius::LogFormat->new($format);
  my $log = Sirius::LogFormat->new( $format, char_handlers => \%char, block_handlers => \%block );

Compiles a format. Handlers define custom items: C<%z>, and with a text C<%{text}z>. They are called with C<$env>, C<$res>,
C<$length> and C<$microseconds>, block handlers with the text before these, and return the value, which is escaped like any
other.

Dies if the format is wrong, with a message that shows the position:

  access log format: unknown item %Z at character 4
    %h %Z
       ^

=head1 SEE ALSO

L<Sirius>, L<Plack::Middleware::AccessLog::Compiled>, L<Apache::LogFormat::Compiler>,
L<https://httpd.apache.org/docs/2.4/mod/mod_log_config.html>

=cut
