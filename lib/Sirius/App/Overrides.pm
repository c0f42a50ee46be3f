package Sirius::App::Overrides;

use strict;
use warnings;

my %theirs;

sub import {
    for my $name ( keys %CORE::GLOBAL:: ) {
        $theirs{$name} ||= $CORE::GLOBAL::{$name};
        delete $CORE::GLOBAL::{$name};
    }
    return;
}

sub unimport {
    for my $name ( keys %theirs ) {
        no strict 'refs';      ## no critic (ProhibitNoStrict)
        no warnings 'once';    ## no critic (ProhibitNoWarnings)
        *{"CORE::GLOBAL::$name"} = delete $theirs{$name};
    }
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::App::Overrides - compiles the server against the functions of perl itself

=head1 SYNOPSIS

  use Sirius::App::Overrides;
  use Sirius::Process::Supervisor;
  no Sirius::App::Overrides;

=head1 DESCRIPTION

What an application puts into C<CORE::GLOBAL> replaces a function in all code that is compiled later: an C<exit> that
dies, a C<fork> that counts, a C<sleep> that returns at once. F<plackup> loads the application before the server, whose
processes would then run that code. Between the two lines above there are no overrides, so code that is compiled there
keeps perl's own functions. Code that is compiled afterwards has the application's.

=head1 SEE ALSO

L<Sirius>, L<Sirius::App::Isolation>.

=cut
