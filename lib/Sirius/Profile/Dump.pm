package Sirius::Profile::Dump;

use strict;
use warnings;

use Sirius::Base::Text;
use Sirius::Profile::Label;

sub text {
    my ( $class, @workers ) = @_;
    return join "\n", map { _worker($_) } @workers;
}

# A paragraph, the innermost frame first
sub _worker {
    my $worker = shift;
    my $pid    = $worker->{pid};
    my $head
        = !defined $worker->{state} ? "process $pid"
        : defined $worker->{line}
        ? "worker $pid: $worker->{line}, for " . Sirius::Base::Text->age( $worker->{seconds} )
        : "worker $pid: $worker->{state}";
    $head .= $worker->{kind} eq 'cpu' ? ', on CPU' : ', waiting' if $worker->{kind};
    my @frames = $worker->{frames} ? reverse @{ $worker->{frames} } : ();
    @frames = '(server)' if $worker->{frames} && !@frames;
    return join '', map {"$_\n"} $head, map { q(    ) . Sirius::Profile::Label->shown($_) } @frames;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Dump - what each worker does now, as text

=head1 SYNOPSIS

  use Sirius::Profile::Dump;

  print Sirius::Profile::Dump->text( @{ $collector->dump } );

=head1 METHODS

=head2 text

  my $text = Sirius::Profile::Dump->text(@workers);

A paragraph for each worker of L<Sirius::Profile::Collector/dump>: its request, for how long, whether it is on CPU or waits, and its
stack, innermost first.

=head1 SEE ALSO

L<Sirius::CLI::Profile>.

=cut
