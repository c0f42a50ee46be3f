package Sirius;

use strict;
use warnings;

use Sirius::OS::Invocation ();    # first: it notes how this program was started
use PerlIO::scalar         ();    # psgi.input of small bodies: before the fork, not in each worker
use Sirius::PSGI::Cleanup  ();    # the engine calls these three
use Sirius::PSGI::Response ();
use Sirius::PSGI::Socket   ();
use XSLoader               ();

our $VERSION = '0.01';

XSLoader::load( 'Sirius', $VERSION );

1;

=encoding utf8

=head1 NAME

Sirius - HTTP server for PSGI applications: many processes, one C engine in each

=head1 SYNOPSIS

  sirius --workers 4 app.psgi
  plackup -s Sirius --workers 4 app.psgi

  use Plack::Loader;
  Plack::Loader->load('Sirius', port => 8080, workers => 4)->run($app);

=head1 DESCRIPTION

Sirius serves HTTP/1.1 and 1.0. A supervisor forks workers; in each an event loop written in C reads requests, parses them
and collects their bodies, and calls the application only when a request is complete. Slow clients and idle connections
cost no worker. Responses leave with one system call where they fit; files are sent by the kernel.

The application is loaded before the workers are forked, so they share its memory. With C<-L Delayed> each worker loads it
for itself.

How it is built is told in F<docs/DESIGN.md> of the distribution.

=head1 OPTIONS

All options, with their defaults, are listed in L<sirius/OPTIONS>. C<plackup -s Sirius> and C<Plack::Loader> take the same
ones, with underscores if you like. Those of Starlet, Starman, Monoceros and Gazelle are known; what has no meaning here is
accepted with a line on STDERR that says why.

With C<plackup> mind that it takes what follows an unknown flag as its value: write C<--preload-app=1>, not
C<--preload-app app.psgi>. The command L<sirius> has no such trap.

Differences to what the names meant elsewhere:

=over 4

=item C<--timeout>

Was the limit of each read and write. It sets C<--write-timeout>, which is that for writes, and C<--body-timeout>, the time
over which a body must come at C<--body-rate>. The head has its own, C<--header-timeout>.

=item C<--max-reqs-per-child>

Counts requests, not connections, and is off unless given.

=item C<--max-keepalive-reqs>

Is no limit unless given: a kept connection holds no worker.

=back

=head1 SIGNALS

To the supervisor, which is the process that was started:

=over 4

=item C<TERM>, C<QUIT>

Stop gracefully: what was accepted is finished, then exit with status 0. After C<--graceful-timeout> seconds the rest is
killed.

=item C<INT>, or a second C<TERM>

Stop fast: workers end as soon as no application call is running, and are killed after 1 second. Once more: at once.

=item C<HUP>

Reload: new code, always. The original command is run again; when it is ready, it gets all connections, and the old
workers finish what they have begun. When it does not load, nothing changes, and the log says why. L<sirius ctl|Sirius::Control::Client>
can wait for the result.

=item C<USR1>

Reopens the log of C<--error-log>, in all processes.

=item C<USR2>

Each worker writes to the log what it is running, as a stack trace of the application.

=item C<TTIN>, C<TTOU>

One worker more, one less.

=back

A worker that gets C<TERM> finishes the requests it has begun, gives all other connections to its colleagues, goes, and is
replaced. When the supervisor is killed, its workers
finish what they accepted and go.

=head1 PSGI ENVIRONMENT

PSGI 1.1 with C<psgi.streaming>. C<psgi.multiprocess> is true unless C<--workers 0>. C<psgi.input> is always seekable and
holds exactly the body. On a unix socket C<SERVER_NAME> is C<localhost> and C<SERVER_PORT> 80; on an address that means all
interfaces C<SERVER_NAME> is the name of the machine. Extensions:

=over 4

=item C<psgix.input.buffered>

True: the whole body is there before the application is called.

=item C<psgix.io>

The client's socket, an L<IO::Socket>. Looking at it, as whoever copies C<%env> does, changes nothing. Who reads or writes
it or asks for its descriptor has it for good: the server reads no further request from it. See L<Sirius::PSGI::Socket>.

=item C<psgix.request_start>

When the request was complete, in seconds since 1970 with a fraction: how long it has waited is the difference to now.

=item C<psgix.harakiri>, C<psgix.harakiri.commit>

Set the second to a true value to have this worker replaced after the response.

=item C<psgix.cleanup>, C<psgix.cleanup.handlers>

Push subs to the array. They are called with the environment after the client has its response.

=item C<psgix.informational>

  $env->{'psgix.informational'}->( 103, [ Link => '</style.css>; rel=preload' ] );

Sends an informational response at once, with a status from 102 to 199. 100 is ignored: the server sends it itself, to clients
that expect it. Any other status dies, 101 as well: whoever changes the protocol writes to C<psgix.io>. Does nothing for
HTTP/1.0.

=back

=head1 LIMITS

  past                                        the answer is
  --max-request-line                          414
  --max-header-bytes, --max-header-fields     431
  --header-timeout                            408
  --max-body                                  413, before the body is read if its length was told
  --body-rate over --body-timeout             408
  --max-queue, --queue-timeout                503 with Retry-After
  --max-connections                           the oldest idle connection is closed; when none is idle, 503
  --write-timeout                             the connection is closed
  --keepalive-timeout                         the connection is closed

A request body that cannot be written to C<--tmpdir> is answered with 507 when the disk is full, else with 500.

=head1 SEE ALSO

L<sirius>, L<Plack::Handler::Sirius>, L<PSGI>, L<plackup>.

=head1 LICENSE

The same terms as Perl 5.

=cut
