package Sirius::Dev::Frames;

use strict;
use warnings;

# The class that Plack has chosen, with a filter of frames
sub install {
    my $class = shift;
    for my $chosen ( grep {defined} $Plack::Middleware::StackTrace::StackTraceClass ) {
        return if $chosen->isa(__PACKAGE__);
        our @ISA = ($chosen);
        $chosen = $class;
        return 1;
    }
    return;
}

sub new {
    my ( $class, %args ) = @_;
    return $class->SUPER::new( %args, frame_filter => \&_wanted );
}

# What has called the application: by the server's own code, or by the program that has loaded it
sub _wanted {
    my ( $package, $file, undef, $sub ) = @{ shift->{caller} };
    return 0 if grep {/\A(?:Sirius|Plack::(?:Handler::Sirius|Runner))(?:::|\z)/} $package, $sub;
    return $package ne 'main' || $file !~ m{(?:\A|/)(?:sirius|plackup)\z} ? 1 : 0;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Frames - a stack trace of the application, without the server's own frames

=head1 SYNOPSIS

  Sirius::Dev::Frames->install;

=head1 DESCRIPTION

L<Plack::Middleware::StackTrace> shows all frames, most of which are those in which the server has called the application. The trace
that it makes after L</install> has the frames of the application, of its modules and of its middleware alone.

=head1 METHODS

=head2 install

Has Plack::Middleware::StackTrace, which must be loaded, use this class. It is a sub-class of the one that it has used before,
L<Devel::StackTrace> or Devel::StackTrace::WithLexicals.

=head2 new

As that of the class before.

=head1 SEE ALSO

L<Sirius::CLI::Runner>.

=cut
