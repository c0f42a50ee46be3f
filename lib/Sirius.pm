package Sirius;

use strict;
use warnings;

use Sirius::OS::Invocation ();    # first, as it notes how this program was started
use PerlIO::scalar         ();    # for psgi.input of small bodies; loaded before the fork, not in each worker
use Sirius::PSGI::Cleanup  ();    # xs calls these three
use Sirius::PSGI::Response ();
use Sirius::PSGI::Socket   ();
use XSLoader               ();

our $VERSION = '0.01';

XSLoader::load( 'Sirius', $VERSION );

1;

=encoding utf8

=head1 NAME

Sirius - HTTP server for PSGI applications: a C process owns the connections, Perl workers run the application

=head1 SYNOPSIS

  sirius --workers 4 app.psgi
  plackup -s Sirius --workers 4 app.psgi

  use Plack::Loader;
  Plack::Loader->load('Sirius', port => 8080, workers => 4)->run($app);

=head1 DESCRIPTION

Sirius serves HTTP/1.1 and HTTP/1.0. A supervisor starts an edge process and a number of workers. The edge, which is written
in C, owns all client connections: it accepts them, reads and checks requests, collects their bodies, and sends responses. A
worker runs the application. It takes one complete request at a time, so slow clients and idle connections never occupy a
worker.

The application is loaded before the workers are forked, so they share its memory. With C<-L Delayed>, each worker loads the
application itself.

F<docs/DESIGN.md> of the distribution describes how the server works.

=head1 OPTIONS

L<sirius/OPTIONS> lists all options with their defaults. C<plackup -s Sirius> and C<Plack::Loader> accept the same options,
with dashes or underscores in their names. The options of Starlet, Starman, Monoceros and Gazelle are accepted as well; for one
that has no effect here, a line on STDERR says why.

C<plackup> takes the word after a flag that it does not know as the value of the flag. Write C<--preload-app=1>, not
C<--preload-app app.psgi>. The L<sirius> command knows all flags.

These options differ from options of the same name in other servers:

=over 4

=item C<--timeout>

In other servers this limits each read and write. Here it sets C<--write-timeout>, the limit for writes, and C<--body-timeout>,
the time over which the rate of a request body is compared with C<--body-rate>. C<--header-timeout> limits the request head.

=item C<--max-reqs-per-child>

Counts requests, not connections. By default there is no limit.

=item C<--max-keepalive-reqs>

By default there is no limit, because an open connection does not occupy a worker.

=back

=head1 SIGNALS

Send these signals to the supervisor, which is the process that was started:

=over 4

=item C<TERM>, C<QUIT>

Stop gracefully: answer all accepted requests, then exit with status 0. Workers that have not finished after
C<--graceful-timeout> are killed.

=item C<INT>, or a second C<TERM> or C<QUIT>

Stop fast: workers exit as soon as no application call is running. After one second they are killed. A third signal kills them
at once.

=item C<HUP>

Reload the application. The server runs its original command again. When the new workers are ready, they take all requests, and
the old workers exit after finishing theirs. If the new code does not load, the old code keeps serving, and the log says why.
L<sirius ctl|Sirius::CLI::Ctl> can wait for the result.

=item C<USR1>

Reopen the files of C<--error-log> and C<--access-log>, in all processes.

=item C<USR2>

Make each worker write a stack trace of the application to the log.

=item C<TTIN>, C<TTOU>

Add or remove one worker.

=back

A worker that receives C<TERM> finishes its request, exits, and is replaced. If the supervisor is killed, the other processes
finish the accepted requests and exit.

=head1 PSGI ENVIRONMENT

The server implements PSGI 1.1 with C<psgi.streaming>. C<psgi.multiprocess> is true unless C<--workers 0> is given.
C<psgi.input> is always seekable and holds exactly the request body. On a unix socket, C<SERVER_NAME> is C<localhost> and
C<SERVER_PORT> is 80. On an address that stands for all interfaces, C<SERVER_NAME> is the name of the host.

Extensions:

=over 4

=item C<psgix.input.buffered>

True: the whole body has been received before the application is called.

=item C<psgix.io>

The socket of the client, an L<IO::Socket>; absent over HTTP/2, but for extended CONNECT (WebSockets). Copying or inspecting it has no effect. An application that reads from it,
writes to it or asks for its descriptor takes it over: the server reads no further request from that connection. See
L<Sirius::PSGI::Socket>.

=item C<psgix.request_start>

The time when the request was complete, in seconds since 1970 with a fraction. C<psgix.queue_time> is
how long it has waited until the application was called.

=item C<psgix.queue_time>

How long the request has waited for a worker, in seconds with a fraction. This includes the time that a proxy in C<--trust-proxy> gives
in C<X-Request-Start> or C<X-Queue-Start>; it is C<%{queue}D> of the access log.

=item C<psgix.request_id>, C<HTTP_X_REQUEST_ID>

The id by which the access log (C<%{request-id}x>), the error log and the slow log know the request: C<X-Request-Id> of a proxy in
C<--trust-proxy>, if it has at most 200 letters, digits and C<-_.~+/=:@>, else one that the server makes. Nobody else can set it: what
other clients send as X-Request-Id does not arrive. An application that logs C<HTTP_X_REQUEST_ID>, or passes its fields on to another
service, so uses an id that can be found here. Both are made when they are read for the first time, and known until the cleanup handlers
have run.

C<HTTP_TRACEPARENT> and C<HTTP_TRACESTATE> are as any client has sent them, as OpenTelemetry expects. The server has no span of its
own.

=item C<psgix.harakiri>, C<psgix.harakiri.commit>

Set the second one to a true value to replace this worker after the response.

=item C<psgix.cleanup>, C<psgix.cleanup.handlers>

Push subs to the array. The server calls them with the environment after it has sent the response.

=item C<psgix.informational>

  $env->{'psgix.informational'}->( 103, [ Link => '</style.css>; rel=preload' ] );

Sends an informational response immediately, with a status from 102 to 199. Status 100 is ignored, because the server sends it
itself to clients that expect it. Any other status throws an exception, including 101: to change the protocol, write to
C<psgix.io>.

The call does nothing where the response could harm. To HTTP/1.0 and in response to HEAD no informational response is ever sent: there
are proxies that take it for the final response, and the one that follows for the answer to the next client. With the default
C<--informational direct> none is sent to anything that may be a proxy: a peer in C<--trust-proxy>, one on a unix socket or with
C<--proxy-protocol>, and in requests with Via, Forwarded, X-Forwarded-For, X-Forwarded-Proto or X-Real-IP. If all your proxies can read
them, use C<--informational on>. L<https://www.rfc-editor.org/rfc/rfc8297> has more to consider.

=back

=head1 LIMITS

  Option                                      When the limit is exceeded
  --max-request-line                          the answer is 414
  --max-header-bytes, --max-header-fields     the answer is 431
  --header-timeout                            the answer is 408
  --max-body                                  the answer is 413, before the body is read if its length is known
  --body-rate over --body-timeout             the answer is 408
  --max-queue, --queue-timeout                the answer is 503 with Retry-After
  --max-connections                           the connection idle for longest is closed; if none is idle, the answer is 503
  --request-timeout                           the answer is 504, and the worker is replaced
  --stream-timeout                            the response is cut off, and the worker is replaced
  --write-timeout                             the connection is closed
  --keepalive-timeout                         the connection is closed

If a request body cannot be written to C<--tmpdir>, the answer is 507 when the disk is full, 503 when no descriptor or memory is free,
and 500 otherwise.

=head1 SEE ALSO

L<Sirius::Manual>, L<sirius>, L<Plack::Handler::Sirius>, L<PSGI>, L<plackup>.

=head1 LICENSE

This is free software; you can redistribute it and/or modify it under the same terms as Perl 5 itself.

=cut
