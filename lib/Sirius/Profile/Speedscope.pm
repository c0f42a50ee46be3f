package Sirius::Profile::Speedscope;

use strict;
use warnings;

use Sirius::Profile::Label;

use constant SCHEMA => 'https://www.speedscope.app/file-format-schema.json';

sub json {
    my ( $class, $samples, %option ) = @_;
    my ( %number, %index, @frames );
    my %part = map { $_ => { samples => [], weights => [] } } qw(cpu wait);
    my ( $weight, $unit ) = $samples->hz ? ( 1 / $samples->hz, 'seconds' ) : ( 1, 'none' );
    for my $stack ( $samples->stacks ) {
        my ( $labels, %times ) = ( $stack->[0], cpu => $stack->[1], wait => $stack->[2] );
        my @numbers;
        for my $i ( 0 .. $#$labels ) {
            my $label = $labels->[$i];
            push @numbers, $number{ $i ? $label : "request $label" } //= do {
                my $frame = _frame( $label, $i );
                $index{$frame} //= push( @frames, $frame ) - 1;
            };
        }
        my $numbers = '[' . join( ',', @numbers ) . ']';
        for my $kind ( grep { $times{$_} } keys %times ) {
            push @{ $part{$kind}{samples} }, $numbers;
            push @{ $part{$kind}{weights} }, $times{$kind} * $weight;
        }
    }
    my %all      = map { $_ => [ @{ $part{cpu}{$_} }, @{ $part{wait}{$_} } ] } qw(samples weights);
    my @profiles = map { _profile( @$_, $unit ) }[ All => \%all ], [ 'On CPU' => $part{cpu} ],
        [ Waiting => $part{wait} ];
    return
        sprintf qq({"\$schema":"%s","activeProfileIndex":0,"exporter":"sirius","name":%s,)
        . qq("profiles":[%s],"shared":{"frames":[%s]}}\n), SCHEMA,
        Sirius::Profile::Label->json( $option{title} // 'Profile' ), join( ',', @profiles ),
        join( ',', @frames );
}

sub _frame {
    my ( $label, $depth ) = @_;
    my ( $name,  $file )  = $depth ? Sirius::Profile::Label->parts($label) : ($label);
    $name = Sirius::Profile::Label->shown($name) if $depth;
    my $place = defined $file ? ',"file":' . Sirius::Profile::Label->json($file) : '';
    return '{"name":' . Sirius::Profile::Label->json($name) . "$place}";
}

sub _profile {
    my ( $name, $part, $unit ) = @_;
    my ( $samples, $weights ) = map { join ',', @$_ } @$part{qw(samples weights)};
    my $end = 0;
    $end += $_ for @{ $part->{weights} };
    return qq({"type":"sampled","name":"$name","unit":"$unit","startValue":0,"endValue":$end,)
        . qq("samples":[$samples],"weights":[$weights]});
}

1;

=encoding utf8

=head1 NAME

Sirius::Profile::Speedscope - a profile as a file for speedscope

=head1 SYNOPSIS

  use Sirius::Profile::Speedscope;

  print {$file} Sirius::Profile::Speedscope->json( $samples, title => 'shop.psgi on web1' );

=head1 METHODS

=head2 json

  my $bytes = Sirius::Profile::Speedscope->json( $samples, title => $title );

JSON in ASCII, in the file format of L<https://www.speedscope.app>, with three profiles: all samples, those on CPU and those that were
waiting. Weights are seconds if it is known how often samples were taken, else samples. The stacks are in the order of their names,
since the time of each is not known: "Left Heavy" and "Sandwich" are the views to look at. Lines are left out, else each line of a function
would be one of its own there.

=head1 SEE ALSO

L<Sirius::Profile::Samples>, L<Sirius::Profile::FlameGraph>.

=cut
