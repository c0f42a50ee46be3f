package Sirius::Worker::Engine;

use strict;
use warnings;

use Sirius ();    # xs/Sirius.xs has its methods

1;

=encoding utf8

=head1 NAME

Sirius::Worker::Engine - takes requests from the edges and calls the application

=head1 SYNOPSIS

  use Sirius::Worker::Engine;

  my $engine = Sirius::Worker::Engine->new( \%conf );
  my $why    = $engine->serve($app);

=head1 DESCRIPTION

The part of a worker that is written in C (F<xs/engine.c>, F<xs/work.c>, F<xs/serve.c>): it says hello to the edges, takes one
request after the other, calls the application, and writes what it returns into the worker's ring. A process has one that serves.
In a new thread it is C<undef>.

=head1 METHODS

=head2 abandon

  $engine->abandon($why);

Answers the request under way with an error, in the middle of its call. The process has to exit then. Does nothing in a child of
the process that made the engine.

=head2 drain

  $engine->drain;

L</serve> returns C<drained> when the request under way is answered. For handlers of signals.

=head2 new

  my $engine = Sirius::Worker::Engine->new( \%conf );

C<listeners>, C<scoreboard>, C<slot> and C<sleepers> say for whom it works and in which row; C<access_log> is what
L<Sirius::Log::Access/for_engine> returns, or undef; C<edge> the pidfd of an edge that this process has started itself, or -1;
C<max_requests>, C<soon_requests> and C<max_rss> are limits, 0 for none; C<multiprocess> is for C<%env>. Dies when the edges cannot
be reached.

=head2 serve

  my $why = $engine->serve($app);

Serves until there is a reason to stop, and returns it: see L<Sirius::Worker/run>. Some reasons are news after which it is to be
called again: C<soon> and C<retiring>, each with why, and C<edge>.

=head2 stop

  $engine->stop;

As L</drain>, but L</serve> returns C<stopped>, and what waits in the edge is left to others.

=head2 watch_edge

  $engine->watch_edge($pidfd);

The edge of this process is another one now: L</serve> returns C<edge> when that has ended.

=head1 SEE ALSO

L<Sirius::Worker>, L<Sirius::PSGI::Writer>, F<docs/HACKING.md>.

=cut
