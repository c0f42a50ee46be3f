package Sirius::Title;

use strict;
use warnings;

use File::Basename qw(basename);
use Sirius;
use Sirius::Command;

# What is served; $0 as it is at the start, before it is a title itself
my ($served) = ( grep( {/\.psgi\z/} Sirius::Command->words ), $0 );

sub app {
    my ( $class, $conf ) = @_;
    return defined $conf->{app} ? $conf->{app} : basename($served);
}

sub set {
    my ( $class, $conf, $role ) = @_;
    $0 = $class->words( $conf, $role ) if $conf->{proctitle};

   # After $0, which sets it as well. The supervisor's is the one to find with pgrep -x; 15 bytes are possible
    my $name = "sirius: $role";
    if    ( $role eq 'supervisor' )           { $name = 'sirius' }
    elsif ( $role =~ /\Ageneration (\d+)\z/ ) { $name = "sirius: gen $1" }
    Sirius::Engine->name($name);
    return;
}

sub words {
    my ( $class, $conf, $role ) = @_;
    return "sirius: $role (${\ $class->app($conf) })";
}

1;

=encoding utf8

=head1 NAME

Sirius::Title - what ps and top call the processes

=head1 SYNOPSIS

  use Sirius::Title;

  Sirius::Title->set( $conf, 'supervisor' );
  Sirius::Title->set( $conf, 'generation 2' );
  Sirius::Title->set( $conf, 'worker' );

=head1 DESCRIPTION

The kernel's short name of a process, which C<top> and C<ps -o comm> show, always tells what the process does: C<sirius>,
C<sirius: gen 2>, C<sirius: worker>. C<$0>, the command line that C<ps -f> shows, belongs to the application, which may look for
its files beside it. Only with C<--enable-proctitle> it becomes C<sirius: worker (app.psgi)>.

=head1 METHODS

=head2 app

  my $name = Sirius::Title->app($conf);

The name of what is served; for another program of this server to put into its C<$conf>.

=head2 set

  Sirius::Title->set( $conf, $role );

Names this process. Children inherit the name.

=head2 words

  my $words = Sirius::Title->words( $conf, $role );

What C<$0> becomes with C<--enable-proctitle>.

=head1 SEE ALSO

L<Sirius>.

=cut
