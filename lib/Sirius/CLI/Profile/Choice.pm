package Sirius::CLI::Profile::Choice;

use strict;
use warnings;

use Sirius::Control::Place;
use Sirius::Profile::Server;

my $NONE = qr/\Ano server/;    # of Sirius::Control::Place

sub find {
    my ( $class, $path ) = @_;
    my $server = eval { Sirius::Control::Place->find( path => $path ) };
    my $why    = $@;
    return $server if $server;
    my @all = $why =~ $NONE ? Sirius::Profile::Server->all : ();
    die $why if !@all;
    return Sirius::Control::Place->only( ' with --pid', @all );
}

sub of {
    my ( $class, $pid ) = @_;
    my ($server) = grep { $_->{pid} == $pid } Sirius::Control::Place->all;
    return $server // ( Sirius::Profile::Server->is_supervisor($pid) ? { pid => $pid } : undef );
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Profile::Choice - the server that sirius profile looks at

=head1 SYNOPSIS

  use Sirius::CLI::Profile::Choice;

  my $server = Sirius::CLI::Profile::Choice->find;
  print "the one with PID $server->{pid}\n";

=head1 DESCRIPTION

Servers have control sockets (L<Sirius::Control::Place>). Those without one are found where there is no other (L<Sirius::Profile::Server>).

=head1 METHODS

=head2 find

  my $server = Sirius::CLI::Profile::Choice->find($path);

As L<Sirius::Control::Place/find>. If that finds none, the only server that L<Sirius::Profile::Server/all> finds, or the only one of this
user; it has no C<path>. Dies with a text if there is none, or if there are several.

=head2 of

  my $server = Sirius::CLI::Profile::Choice->of($pid);

The server with this supervisor; undef if that process is none.

=head1 SEE ALSO

L<Sirius::CLI::Profile>.

=cut
