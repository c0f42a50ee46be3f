package Sirius::App::Forked;

use strict;
use warnings;

use POSIX       ();
use Sirius::Log ();

# perl's own $$ is the same, unless the application has assigned to it
sub exit_child {
    my ( $class, $owner, $when ) = @_;
    my $pid = POSIX::getpid();
    return if $pid == $owner;
    Sirius::Log->warn(
              "the application has forked $when, and the child (PID $pid) returned into the server's code: "
            . 'it was ended; a child has to end by exec or exit' );
    exit 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::App::Forked - a child that the application has forked, and that has come back to the server

=head1 SYNOPSIS

  use Sirius::App::Forked;

  my $pid = POSIX::getpid();
  $code->();    # of the application
  Sirius::App::Forked->exit_child( $pid, 'in --before-fork' );

=head1 DESCRIPTION

Code of the application may fork, and its child may fail to end: C<if ( !fork ) { exec '/missing' }>. Such a child returns from
the code like its parent, and would go on as a second supervisor, generation or worker, which nobody knows and which serves old
code after the next reload. So a process that calls code of the application and goes on afterwards calls L</exit_child> then.
Requests are called from C, which does the same (F<xs/call.c>).

=head1 METHODS

=head2 exit_child

  Sirius::App::Forked->exit_child( $owner, 'while it was loaded' );

Returns if this is the process C<$owner>. Otherwise logs a warning and exits with status 0.

=head1 SEE ALSO

L<Sirius::App::Hooks>, L<Sirius::App::Loading>, L<Sirius::App::WarmUp>, L<Sirius::Process::Launch>.

=cut
