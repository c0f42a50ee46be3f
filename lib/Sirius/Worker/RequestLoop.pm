package Sirius::Worker::RequestLoop;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::Worker::RequestLoop - takes requests from the edges and calls the application

=head1 SYNOPSIS

  use Sirius::Worker::RequestLoop;

  my $loop = Sirius::Worker::RequestLoop->new( \%conf );
  my $why    = $loop->serve($app);

=head1 DESCRIPTION

The part of a worker that is written in C (F<xs/requestloop.c>, F<xs/work.c>, F<xs/serve.c>). It connects to the edges,
takes one request after the other, calls the application, and writes the response into the worker's ring. A process has
one request loop that runs. In a new thread it is C<undef>.

=head1 METHODS

=head2 abandon

  $loop->abandon($why);

Answers the present request with an error, in the middle of its call. The process must exit after this. Does nothing in
a child of the process that made the loop.

=head2 drain

  $loop->drain;

Makes L</serve> return C<drained> when the present request is answered. For signal handlers.

=head2 new

  my $loop = Sirius::Worker::RequestLoop->new( \%conf );

C<listeners>, C<row>, C<scoreboard> and C<sleepers> say for which server it works and in which row; C<access_log> is
what L<Sirius::Log::Access/for_worker> returns, or undef; C<edge> the pidfd of an edge that this process has started
itself, or -1; C<max_requests>, C<soon_requests> and C<max_rss> are limits, 0 for none; C<multiprocess> is for C<%env>.
Dies if the edges cannot be reached.

=head2 serve

  my $why = $loop->serve($app);

Serves until there is a reason to stop, and returns it: see L<Sirius::Worker/run>. After C<soon> and C<retiring>, each
followed by why, and after C<edge> it has to be called again.

=head2 stop

  $loop->stop;

Like L</drain>, but L</serve> returns C<stopped>, and requests that wait in the edge are left to other workers.

=head2 watch_edge

  $loop->watch_edge($pidfd);

Watches another edge from now on: L</serve> returns C<edge> when that has ended.

=head1 SEE ALSO

L<Sirius::Worker>, L<Sirius::PSGI::Writer>, F<docs/HACKING.md>.

=cut
