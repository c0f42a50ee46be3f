package Sirius::Loading;

use strict;
use warnings;

use Sirius::Log ();

# The process that loads, undef otherwise: not a local, which is over before an END is called
my $loads;

sub watch_exit {
    my ( $class, $load ) = @_;
    my $value;
    $loads = $$;
    my $clean = eval { $value = $load->(); 1 };
    my $error = $@;
    undef $loads;
    die $error if !$clean;    ## no critic (RequireCarping)
    return $value;
}

END {
    if ( defined $loads && $loads == $$ ) {
        my $status = $?;
        Sirius::Log->error("the application called exit (status $status) while it was loaded");
        $? = $status || 1;
    }
}

1;

=encoding utf8

=head1 NAME

Sirius::Loading - the first loading of the application, before anything listens

=head1 SYNOPSIS

  use Sirius::Loading;

  my $app = Sirius::Loading->watch_exit( sub { Plack::Util::load_psgi('app.psgi') } );

=head1 DESCRIPTION

A reload is watched by the supervisor; at the start there is nobody yet. An application that calls C<exit> while it is loaded ends
the start with a line in the log, and with its own status, or 1 in place of 0: a start that has failed shall not look like one
that went well.

This is for the command C<sirius>. L<plackup> and L<Plack::Loader> load the application before they load the server, which
cannot tell that then.

=head1 METHODS

=head2 watch_exit

  my $value = Sirius::Loading->watch_exit($code);

Calls the code and returns its value, or dies as it does.

=head1 SEE ALSO

L<Sirius::Runner>.

=cut
