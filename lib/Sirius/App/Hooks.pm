package Sirius::App::Hooks;

use strict;
use warnings;

use POSIX ();
use Sirius::App::Forked;
use Sirius::Log ();

sub run {
    my ( $class, $conf, $name, @args ) = @_;
    my $hook  = $conf->{$name} or return 1;
    my $pid   = POSIX::getpid();
    my $lived = eval { $hook->(@args); 1 };
    my $error = $@;
    Sirius::App::Forked->exit_child( $pid, "in --$name" =~ tr/_/-/r );
    return 1 if $lived;
    Sirius::Log->error( "--$name died: " =~ tr/_/-/r . $error =~ s/\s+\z//r );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::App::Hooks - runs code of the operator at certain moments

=head1 SYNOPSIS

  use Sirius::App::Hooks;

  Sirius::App::Hooks->run( $conf, 'after_fork', $worker );

=head1 DESCRIPTION

Four options are Perl code. It is called in this order in the life of a worker and of a generation:

=over 4

=item C<before_fork>

In the process that forks, before each worker: close what children must not share.

=item C<after_fork>

In the new worker, before it serves: connect to the database. Its argument is the L<Sirius::Worker>.

=item C<child_exit>

In the worker, after its last request. Its arguments are the L<Sirius::Worker> and the application.

=item C<on_reload>

In the parent process of the old workers, when the new generation is ready.

=back

=head1 METHODS

=head2 run

  Sirius::App::Hooks->run( $conf, $name, @args );

Calls the hook of that name if there is one. True if it returned or there is none. An exception is logged and not
passed on; if C<after_fork> dies, the worker ends without being ready, and so does the reload. A hook that does not
return within C<--load-timeout> ends its process.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Process::Pool>, L<Sirius::Worker>.

=cut
