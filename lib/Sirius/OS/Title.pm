package Sirius::OS::Title;

use strict;
use warnings;

use File::Basename qw(basename);
use Sirius;
use Sirius::OS::Invocation;

# What is served: as the command tells it, otherwise guessed from its words
my $served;

# What ps and top show of this process
my ( $name, $line );

sub again {
    Sirius::OS::Title->_show($line) if defined $line;
    Sirius::OS::Title->_name($name) if defined $name;
    return;
}

sub app {
    my ( $class, $conf ) = @_;
    return $conf->{app} if defined $conf->{app};
    $served = _guess()  if !defined $served;
    return $served;
}

sub become {
    my ( $class, $title ) = @_;
    ( $line, $name ) = @$title;
    $class->again;
    return;
}

# While it loads the application, Plack sets $0, and so what ps shows, to its path
sub load {
    my ( $class, $code ) = @_;
    if ( local $! = Sirius::OS::Title->_refused ) {
        die "sirius: the system refuses prctl(2): $!. Perl would wait for ever when something sets \$0."
            . " Allow it in the container's filter of system calls (seccomp), such as by deploy/container/seccomp.json\n";
    }
    Sirius::OS::Title->_keep;
    my $app;
    my $done  = eval { $app = $code->(); 1 };
    my $error = $@;
    $class->again;
    die $error if !$done;    ## no critic (RequireCarping)
    return $app;
}

sub serves {
    my ( $class, $app ) = @_;
    $served = basename($app);
    return;
}

sub set {
    my ( $class, $conf, $role ) = @_;
    return $class->become( $class->title( $conf, $role ) );
}

sub title {
    my ( $class, $conf, $role ) = @_;

 # A long command line is cut at the front. A name has at most 15 bytes, and the supervisor's must be found by
 # pgrep -x
    my $short
        = $role =~ /\A(?:server|supervisor)\z/ ? 'sirius'
        : $role =~ /\Ageneration (\d+)\z/      ? "sirius: gen $1"
        :                                        "sirius: $role";
    return [ $conf->{proctitle} ? $class->words( $conf, $role ) : undef, $short ];
}

sub words {
    my ( $class, $conf, $role ) = @_;
    return "sirius: $role" . ( $role eq 'admin' ? '' : q( ) . $class->app($conf) );
}

# For plackup, and programs that run Plack::Runner or this handler themselves
sub _guess {
    my ($psgi) = grep {/\.psgi\z/} Sirius::OS::Invocation->words;
    my $program = basename($0);
    return defined $psgi ? basename($psgi) : $program eq 'plackup' ? 'app.psgi' : $program;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Title - the names of the processes in ps and top

=head1 SYNOPSIS

  use Sirius::OS::Title;

  Sirius::OS::Title->set( $conf, 'supervisor' );
  Sirius::OS::Title->set( $conf, 'generation 2' );
  Sirius::OS::Title->set( $conf, 'worker' );

=head1 DESCRIPTION

C<ps -f> shows C<sirius: worker app.psgi>: what the process does, and for which application. C<$0> keeps its value,
because an application may look for its files beside it; what the application assigns to it replaces the title. With
C<--disable-proctitle> the command line stays unchanged.

The short name of a process, which C<top> and C<ps -o comm> show, always says what the process does: C<sirius>,
C<sirius: gen 2>, C<sirius: worker>.

=head1 METHODS

=head2 again

  Sirius::OS::Title->again;

Shows the title of this process again, after other code has assigned to C<$0>.

=head2 app

  my $name = Sirius::OS::Title->app($conf);

The name of the application, for another program of this server to put into its C<$conf>.

=head2 become

  Sirius::OS::Title->become($title);

Gives this process a L</title>.

=head2 load

  my $app = Sirius::OS::Title->load( sub {...} );

Calls the code, which loads the application, and returns what it returns. Plack assigns to C<$0> before and after; the
title stays, unless the application itself assigns to C<$0> meanwhile. Dies with the error of the code; and where prctl(2) is
refused, as perl would never return from there.

=head2 serves

  Sirius::OS::Title->serves('/srv/app.psgi');

Sets the name of the application.

=head2 set

  Sirius::OS::Title->set( $conf, $role );

Names this process. Children inherit the name.

=head2 title

  my $title = Sirius::OS::Title->title( $conf, $role );

Both names of a process in that role, for L</become>.

=head2 words

  my $words = Sirius::OS::Title->words( $conf, $role );

The title that C<ps> shows unless C<--disable-proctitle> is given.

=head1 SEE ALSO

L<Sirius>.

=cut
