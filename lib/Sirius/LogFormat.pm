package Sirius::LogFormat;

use 5.016;
use strict;
use warnings;

use Sirius ();

# The program is memory of C, which a new thread must not free a second time
sub CLONE_SKIP { return 1 }

sub new {
    my ( $class, $format, %option ) = @_;
    $format = 'combined' if !$format;
    for my $kind (qw(char_handlers block_handlers)) {
        my $handlers = $option{$kind} ||= {};
        ref $handlers->{$_} or die "access log format: $kind: $_ is no code\n" for keys %{$handlers};
    }
    my ( $self, $why, $offset )
        = $class->_compile( $format, @option{qw(char_handlers block_handlers)} );
    die _message( $format, $why, $offset ) if !$self;
    return $self;
}

# A caret below the character that is wrong, where both lines would fit a terminal
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

1;

=encoding utf8

=head1 NAME

Sirius::LogFormat - lines of an access log in a format of Apache's LogFormat language

=head1 SYNOPSIS

  use Sirius::LogFormat;

  my $log = Sirius::LogFormat->new('combined');
  print $log->log_line( $env, $res, $length, $microseconds, $epoch );

  my $own = Sirius::LogFormat->new(
      '%h %{ms}Tms %z %{HTTP_X_FORWARDED_FOR|REMOTE_ADDR}Z',
      char_handlers  => { z => sub { my ( $env, $res ) = @_; return $env->{'myapp.user'} } },
      block_handlers => { Z => sub { my ( $block, $env ) = @_; ... } },
  );

=head1 DESCRIPTION

A format is compiled once, into a program that C runs: a line is made without code of Perl. The server writes its own log
with it, and L<Plack::Middleware::AccessLog::Compiled> that of any PSGI server.

It takes the place of L<Apache::LogFormat::Compiler> 0.36: same language, same arguments, same lines. Where lines differ is
told below.

=head1 FORMAT

Text stands for itself; two backslashes are one. An item is one of these; C<E<lt>> or C<E<gt>> before its letter changes
nothing.

  %%            a percent sign
  %h %a         address of the client (REMOTE_ADDR)
  %l            -
  %u            REMOTE_USER
  %t            [time when the request came, as 22/Nov/2026:10:15:00 +0100]
  %{FORMAT}t    [that time in a format of strftime, in English]
  %r            the request line
  %m %U %q %H   its method, PATH_INFO, query with its question mark, protocol
  %{uri}r       its target, as it was sent
  %v            SERVER_NAME
  %V            the Host that the client asked for, else SERVER_NAME
  %p            SERVER_PORT
  %P            PID of the process
  %{NAME}i      a field of the request
  %{NAME}o      a field of the response, the first of that name
  %{NAME}e      a value of %env
  %s            status
  %b            bytes of the body, - when nobody knows
  %B            the same, but 0
  %D %T         duration in microseconds, in seconds
  %{UNIT}T      duration in s, ms or us

and these, of which the server knows the value for its own log; elsewhere they are C<->:

  %O            all bytes sent, with the head
  %{queue}D     microseconds that the request waited for a worker
  %{app}D       microseconds in the application
  %X            the connection afterwards: X was cut, + is kept, - is closed
  %k            requests before this one on its connection

What is not there is C<->. Bytes of a value that are not printable ASCII are written as C<\xNN>. So a line is always one
line, but a value may have quotes.

Times know the conversions C<a A b B c C d D e F g G h H I j k l m M n N p P r R s S t T u U V w W x X y Y z Z %>, also
with C<E> or C<O> in front; C<%3N> and C<%6N>, the first digits of the fraction; and C<%:z>, the offset as C<+01:00>.

A C<%> that begins no item is text, but not where an item was meant: that, and an unknown one, is an error.

=head2 Presets

=over 4

=item common

C<%h %l %u %t "%r" %E<gt>s %b>

=item combined

The same, then C<"%{Referer}i" "%{User-agent}i">. It is the default.

=item ltsv

Labelled tab-separated values: time, host, user, method, uri, protocol, status, size, referer, ua, vhost, reqtime_microsec,
queuetime_microsec, apptime_microsec, connection, nth, pid.

=item json

An object with the same names. What is unknown is null; the time is that of RFC 3339 with microseconds. Values are valid
UTF-8: a byte that is none is written as the four characters C<\xNN>.

=back

=head2 Differences from Apache::LogFormat::Compiler

=over 4

=item *

C<%h %u %v %V %p %H>, and the protocol in C<%r>, are escaped like the others. User names and host names come from the
client, and a proxy's module may set the address: a line could be forged.

=item *

An address or a name that is C<0> is C<0>, not C<->.

=item *

A method, path, protocol, port or status that is not defined is C<->, not nothing, which would move the other columns.
So is a request line of which no part is defined.

=item *

A status, a length or a duration that is no number, or is negative, is C<->. Fractions of microseconds are cut.

=item *

A value in which perl keeps characters is written as its bytes, those above 0xff as UTF-8; all of them escaped. A line is
bytes.

=item *

Noon is 12 PM and midnight 12 AM (C<%I %l %p %P %r>).

=item *

The offset of the time zone is right also when it has changed without summer time beginning or ending.

=item *

Names and formats with C<'> or C<!>, and a backslash before an item, compile. The latter is text.

=item *

Errors are: an unknown conversion of a time; C<%{> or C<%E<lt>> or C<%E<gt>> that begin no item, and C<}> inside a name
of C<i> and C<o>; conditions such as C<%400,501{Referer}i>. There they are printed as they stand, or as something else.

=item *

C<ltsv> and C<json> are presets; the items C<%a %B %O %X %k>, C<%{}e>, C<%{}r>, C<%{}T> and C<%{}D> are known. A
handler for one of these letters comes first.

=back

=head1 METHODS

=head2 log_line

  my $line = $log->log_line( $env, $res, $length, $microseconds, $epoch );

One line with its newline. C<$res> is the response as an array, of which status and headers count; C<$length> the length of
its body, C<$microseconds> how long it took, C<$epoch> when the request came, all three of them optional. Without the last
it is now.

=head2 new

  my $log = Sirius::LogFormat->new($format);
  my $log = Sirius::LogFormat->new( $format, char_handlers => \%char, block_handlers => \%block );

Handlers give a meaning to letters: C<%z> and C<%{text}z>. They are called with C<$env>, C<$res>, C<$length>,
C<$microseconds>, that of a block with the text before them, and return the value, to be escaped like any other.

Dies when the format is wrong, with a message that shows the place:

  access log format: unknown item %Z at character 4
    %h %Z
       ^

=head1 SEE ALSO

L<Sirius>, L<Plack::Middleware::AccessLog::Compiled>, L<Apache::LogFormat::Compiler>,
L<https://httpd.apache.org/docs/2.4/mod/mod_log_config.html>

=cut
