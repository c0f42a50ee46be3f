package Sirius::App::Loading;

use strict;
use warnings;

use Config qw(%Config);
use POSIX  ();
use Sirius ();
use Sirius::App::Forked;
use Sirius::Log ();
use Sirius::OS::ExitStatus;
use Sirius::OS::Signals;

use constant SOON => 10;    # after this many seconds a line says that the application is still being loaded

my @NAME = split ' ', $Config{sig_name};

# The process that loads, otherwise undef. Not a local, which would be restored before END runs
my $loads;

sub watch {
    my ( $class, $conf, $load, %how ) = @_;
    my $value;
    my $pid = $loads = POSIX::getpid();

    # The exit status is 1 for a daemon: it was stopped before the command could start it
    Sirius::App::Loading->_begin( $conf->{load_timeout}, SOON, $conf->{daemonize} ? 1 : 0 );
    my $clean = eval { $value = $load->(); 1 };
    my $error = $@;
    Sirius::App::Forked->exit_child( $pid, 'while it was loaded' );
    Sirius::OS::Signals->hold if !$how{more};    # signals that come from here on
    for my $signal ( @{ Sirius::App::Loading->_end } ) {
        my ( $number, @sender ) = @$signal;
        Sirius::OS::Signals->late( $NAME[$number], @sender );
    }
    undef $loads;
    die $error if !$clean;                       ## no critic (RequireCarping)
    return $value;
}

END {
    if ( defined $loads && $loads == $$ ) {
        my $status = $?;
        Sirius::Log->error( Sirius::OS::ExitStatus->exiting($status) . ' while it was loaded' );
        $? = $status || 1;
    }
}

1;

=encoding utf8

=head1 NAME

Sirius::App::Loading - the first loading of the application, before anything listens

=head1 SYNOPSIS

  use Sirius::App::Loading;

  my $app = Sirius::App::Loading->watch( $conf, sub { Plack::Util::load_psgi('app.psgi') } );

=head1 DESCRIPTION

The supervisor watches a reload. At the start there is no supervisor yet, so this process watches itself:

=over 4

=item *

When the application is not loaded within C<--load-timeout>, the process ends with status 1. A line in the log names the file and
the line that it has reached. That is done by a thread without Perl (F<xs/loading.c>), since code that blocks in C, or with all
signals blocked, cannot be ended in any other way. After 10 seconds a line says that the application is still being loaded.

=item *

C<TERM>, C<QUIT> and C<INT> end the process with a line in the log and status 0, or 1 with C<--daemonize>: nothing has been
started then. C<HUP>, C<TTIN>, C<TTOU>, C<USR1> and C<USR2> are kept and heeded when the server has started. Where the application
sets a handler of its own, that is called.

=item *

An application that calls C<exit> ends the start with a line in the log, and with its own status, or 1 in place of 0: a start that
has failed shall not look like one that went well.

=back

This holds for the command C<sirius>. L<plackup> and L<Plack::Loader> load the application before the server, which
cannot watch it then.

=head1 METHODS

=head2 watch

  my $value = Sirius::App::Loading->watch( $conf, $code );
  my $value = Sirius::App::Loading->watch( $conf, $code, more => 1 );

Calls the code and returns its value, or dies with its error. Afterwards signals for the supervisor are blocked
(L<Sirius::OS::Signals/hold>), unless there is more to load.

=head1 SEE ALSO

L<Sirius::CLI::Runner>.

=cut
