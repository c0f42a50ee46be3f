package Sirius::CLI::Check::Report;

use strict;
use warnings;

use Sirius::Base::Text;

sub error  { my ( $self, $text ) = @_; return $self->_line( error => $text ) }
sub errors { return shift->{count}{error} }

sub new {
    my ( $class, %args ) = @_;
    return bless { %args, count => { error => 0, ok => 0, warning => 0 } }, $class;
}

sub ok { my ( $self, $text ) = @_; return $self->_line( ok => $text ) }

sub sum {
    my $self  = shift;
    my @parts = map { _number( $self->{count}{$_}, $_ ) } grep { $self->{count}{$_} } qw(error warning);
    print join( ', ', @parts ? @parts : 'no problem found' ), "\n" if @parts || !$self->{quiet};
    return;
}

sub warning  { my ( $self, $text ) = @_; return $self->_line( warning => $text ) }
sub warnings { return shift->{count}{warning} }

# A finding is one line, whatever is in it
sub _line {
    my ( $self, $level, $text ) = @_;
    $text =~ s/\Asirius: //;
    $text =~ s/\s+/ /g;
    $text =~ s/\A | \z//g;
    $self->{count}{$level}++;
    return if $self->{quiet} && $level eq 'ok';
    local $| = 1;
    print "$level: ", Sirius::Base::Text->harmless($text), "\n";
    return;
}

sub _number {
    my ( $count, $what ) = @_;
    return "$count $what" . ( $count == 1 ? '' : 's' );
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Report - the findings of sirius check

=head1 SYNOPSIS

  use Sirius::CLI::Check::Report;

  my $report = Sirius::CLI::Check::Report->new( quiet => 1 );
  $report->error('the sky is green');
  $report->sum;

=head1 DESCRIPTION

Prints each finding as one line, and counts.

=head1 METHODS

=head2 error, ok, warning

  $report->error($text);

=head2 errors, warnings

How many there have been.

=head2 new

With C<quiet>, what is well is not printed.

=head2 sum

Prints the last line.

=head1 SEE ALSO

L<Sirius::CLI::Check>.

=cut
