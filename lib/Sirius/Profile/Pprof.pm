package Sirius::Profile::Pprof;

use strict;
use warnings;

use IO::Compress::Gzip qw($GzipError gzip);
use Sirius::Profile::Label;

sub gzipped {
    my ( $class, $samples ) = @_;
    my $self   = bless { strings => [''], string => { '' => 0 }, tables => '' }, $class;
    my $hz     = $samples->hz;
    my $period = $hz ? int 1e9 / $hz : 1;
    my $unit   = $hz ? 'nanoseconds' : 'count';
    my $type   = sub { _number( 1, $self->_string(shift) ) . _number( 2, $self->_string(shift) ) };
    my $bytes  = join '', map { _bytes( 1, $type->(@$_) ) }[qw(samples count)], [ cpu => $unit ],
        [ waiting => $unit ];
    for my $stack ( $samples->stacks ) {
        my ( $labels, $cpu, $wait ) = @$stack;
        my @locations = map { $self->_location( $labels->[$_], $_ == 0 ) } reverse 0 .. $#$labels;
        $bytes .= _bytes( 2,
                  _bytes( 1, join '', map { _varint($_) } @locations )
                . _bytes( 2, join '', map { _varint($_) } $cpu + $wait, $cpu * $period, $wait * $period ) );
    }
    my $of = $type->( wall => $unit );
    $bytes .= $self->{tables};
    $bytes .= _bytes( 6, $_ ) for @{ $self->{strings} };
    $bytes
        .= _number( 10, int 1e9 * ( $samples->seconds // 0 ) )
        . _bytes( 11, $of )
        . _number( 12, $period )
        . _number( 14, $self->_string('samples') );
    gzip( \$bytes => \my $gzipped ) or die "sirius: gzip: $GzipError\n";
    return $gzipped;
}

sub _bytes {
    my ( $field, $bytes ) = @_;
    return chr( $field << 3 | 2 ) . _varint( length $bytes ) . $bytes;
}

sub _function {
    my ( $self, $name, $file ) = @_;
    return $self->{functions}{"$name\n$file"} ||= do {
        my $id = ++$self->{last_function};
        $self->{tables} .= _bytes( 5,
            _number( 1, $id ) . _number( 2, $self->_string($name) ) . _number( 4, $self->_string($file) ) );
        $id;
    };
}

sub _location {
    my ( $self, $label, $is_request ) = @_;
    return $self->{locations}{"$is_request $label"} ||= do {
        my ( $name, $file, $line )
            = ( $is_request ? $label : Sirius::Profile::Label->parts($label), '', 0 );
        $name = Sirius::Profile::Label->shown($name) if !$is_request;
        my $id = ++$self->{last_location};
        my $at = _number( 1, $self->_function( $name, $file ) ) . _number( 2, $line );
        $self->{tables} .= _bytes( 4, _number( 1, $id ) . _bytes( 4, $at ) );
        $id;
    };
}

# What is 0 is left out
sub _number {
    my ( $field, $number ) = @_;
    return $number ? chr( $field << 3 ) . _varint($number) : '';
}

sub _string {
    my ( $self, $text ) = @_;
    utf8::encode( $text = Sirius::Profile::Label->text($text) );
    return $self->{string}{$text} //= push( @{ $self->{strings} }, $text ) - 1;
}

sub _varint {
    my $number = shift;
    my $bytes  = '';
    for ( ; $number > 127; $number >>= 7 ) { $bytes .= chr( $number & 127 | 128 ) }
    return $bytes . chr $number;
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Pprof - a profile as a file for pprof

=head1 SYNOPSIS

  use Sirius::Profile::Pprof;

  print {$file} Sirius::Profile::Pprof->gzipped($samples);    # then: go tool pprof -http : FILE

=head1 METHODS

=head2 gzipped

  my $bytes = Sirius::Profile::Pprof->gzipped($samples);

The message of F<profile.proto> of pprof, compressed, with three values for each stack: samples, time on CPU and time waiting, which are
numbers of samples too if it is not known how often these were taken.

=head1 SEE ALSO

L<Sirius::Profile::Samples>, L<Sirius::Profile::Speedscope>.

=cut
