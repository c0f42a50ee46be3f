package Sirius::Admin::Change;

use strict;
use warnings;

use List::Util   qw(first max min);
use Scalar::Util qw(looks_like_number);
use Sirius::Base::Text;

my @PARTS = ( 0.5, 0.9, 0.99, 0.999 );
my @NAMES = qw(p50 p90 p99 p999);

# Of workers that were there before; CPU time comes in hundredths of a second
sub computing {
    my $self = shift;
    my ( $now, $before ) = @{$self}{qw(now before)};
    return if !$before || !_calls($now) || !_calls($before);
    my $busy = $self->_spent($now) - $self->_spent($before);
    return ( max( 0, $busy ) / $self->{seconds} ) if $busy < 0.05;
    my %cpu = map { $self->number( $_->{pid} ) => $_->{cpu} } _workers($before);
    my $sum = 0;
    for my $worker ( _workers($now) ) {
        my $then = $cpu{ $self->number( $worker->{pid} ) };
        $sum += max 0, $worker->{cpu} - $then if !grep { !looks_like_number($_) } $worker->{cpu}, $then;
    }
    return ( $busy / $self->{seconds}, min 1, $sum / $busy );
}

sub edge_cpu {
    my ( $self, $edge ) = @_;
    my $edges    = $self->{before} ? $self->{before}{edges} : undef;
    my ($before) = grep { $self->number( $_->{pid} ) == $self->number( $edge->{pid} ) }
        grep { ref eq 'HASH' } ref $edges eq 'ARRAY' ? @$edges : ();
    return if !$before || !looks_like_number( $edge->{cpu} );
    return max 0, ( $edge->{cpu} - $self->number( $before->{cpu} ) ) / $self->{seconds};
}

sub growth {
    my ( $self, @path )   = @_;
    my ( $now,  $before ) = map {
        my $at = $_;
        $at = ref $at eq 'HASH' ? $at->{$_} : undef for @path;
        $self->number($at);
    } @{$self}{qw(now before)};
    return max 0, $now - $before;
}

sub is_partial { return defined shift->{before} }

sub new {
    my ( $class, $now, $before ) = @_;
    my $self = bless { now => $now }, $class;
    $self->{before} = $before if $before && $self->_goes_on($before);
    my $seconds = $self->{before} ? $now->{now} - $before->{now} : $self->number( $now->{uptime} );
    $self->{seconds} = max 0.001, $seconds;
    return $self;
}

sub number {
    my ( $class, $value ) = @_;
    return looks_like_number($value) ? $value + 0 : 0;
}

sub quantiles {
    my ( $self, $name ) = @_;
    my ( $now,  $old )  = map { _histogram( $_ && $_->{$name} ) } @{$self}{qw(now before)};
    my $all = $self->growth( $name, 'count' ) or return;
    return @{$now}{@NAMES} if !$self->{before};

    # The counts are cumulative. A bucket that is missing in the older snapshot had the count of the bucket
    # before it
    my %old  = map { $_->[0] => $_->[1] } @{ $old->{buckets} };
    my $last = 0;
    my ( @ends, @counts );
    for my $bucket ( @{ $now->{buckets} } ) {
        $last = $old{ $bucket->[0] } if defined $old{ $bucket->[0] };
        push @ends,   $bucket->[0];
        push @counts, $bucket->[1] - $last;
    }
    return map { scalar _within( $_ * $all, \@ends, \@counts ) } @PARTS;
}

sub rate {
    my ( $self, @path ) = @_;
    return $self->growth(@path) / $self->{seconds};
}

sub seconds { return shift->{seconds} }

sub words {
    my ( $self, $name, $seconds ) = @_;
    my @buckets = @{ _histogram( $self->{now}{$name} )->{buckets} };
    return Sirius::Base::Text->duration($seconds) if !@buckets;
    my ( $first, $last ) = map { $_->[0] } @buckets[ 0, -1 ];
    return '< ' . Sirius::Base::Text->duration($first) if $seconds <= $first;
    return '> ' . Sirius::Base::Text->duration($last)  if $seconds >= $last && $last < 9**9**9;
    return Sirius::Base::Text->duration($seconds);
}

sub worker_rate {
    my ( $self, $worker ) = @_;
    my $workers  = $self->{before} ? $self->{before}{workers} : [];
    my ($before) = grep { $self->number( $_->{pid} ) == $self->number( $worker->{pid} ) }
        grep { ref eq 'HASH' } @$workers;
    return if $self->{before} && !$before;
    my $grown = $self->number( $worker->{requests} ) - $self->number( $before && $before->{requests} );
    return max 0, $grown / $self->{seconds};
}

sub _calls {
    my $calls = shift->{calls};
    return ref $calls eq 'HASH' ? $calls : undef;
}

# Whether both snapshots are of the same server, and its counters only grew
sub _goes_on {
    my ( $self,     $before ) = @_;
    my ( $started,  $then )   = map { $self->number( $_->{started} ) } $self->{now}, $before;
    my ( $requests, $requests_then )
        = map { ref $_->{totals} eq 'HASH' ? $self->number( $_->{totals}{requests} ) : 0 } $self->{now},
        $before;
    return
           $started == $then
        && $requests >= $requests_then
        && $self->number( $self->{now}{now} ) > $self->number( $before->{now} );
}

sub _histogram {
    my $histogram = shift;
    my %got       = ref $histogram eq 'HASH'     ? %$histogram        : ();
    my @buckets   = ref $got{buckets} eq 'ARRAY' ? @{ $got{buckets} } : ();
    @buckets = grep {
        ref eq 'ARRAY' && 2 == grep { looks_like_number($_) }
            @$_
    } @buckets;
    return { %got, buckets => \@buckets };
}

# Seconds in calls of the application, those that run included
sub _spent {
    my ( $self, $answer ) = @_;
    my $sum = $self->number( _calls($answer)->{seconds} );
    for my $worker ( grep { $self->number( $_->{began} ) } _workers($answer) ) {
        $sum += max 0, $self->number( $answer->{now} ) - $self->number( $worker->{since} );
    }
    return $sum;
}

# The value at which that many are reached, interpolated within the bucket; the last bound if it is beyond
sub _within {
    my ( $wanted, $ends, $counts ) = @_;
    my $at = first { $counts->[$_] >= $wanted } 0 .. $#$counts;
    return $ends->[-1] if !defined $at;
    my ( $from, $below ) = $at ? ( $ends->[ $at - 1 ], $counts->[ $at - 1 ] ) : ( 0, 0 );
    my $width = $ends->[$at] - $from;
    return $from if $width == 9**9**9 || $counts->[$at] <= $below;
    return $from + $width * ( $wanted - $below ) / ( $counts->[$at] - $below );
}

sub _workers {
    my $workers = shift->{workers};
    return grep { ref eq 'HASH' } ref $workers eq 'ARRAY' ? @$workers : ();
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Change - what a server did between two samples

=head1 SYNOPSIS

  use Sirius::Admin::Change;

  my $change = Sirius::Admin::Change->new( $now, $before );
  printf "%.1f requests/s\n", $change->rate(qw(totals requests));

=head1 DESCRIPTION

Compares two answers of F</status.json>. Without an older one, or if the server was restarted between them, it covers
the time since the start of the server. It assumes nothing about the answers: what is missing or not a number counts as
0.

=head1 METHODS

=head2 computing

  my ( $busy, $computing ) = $change->computing;

How many workers were in a call of the application in the mean, and which part of that time they have computed, from 0 to 1, instead
of waiting; undefined if there was hardly any. An empty list without an older answer.

=head2 edge_cpu

  my $share = $change->edge_cpu($edge);

The share of a processor that one of the C<edges> has used: 1 is a whole one. Undefined if it is new or there is no
older answer.

=head2 growth

  my $number = $change->growth(qw(totals requests));

The growth of the number at this place.

=head2 is_partial

False if it covers all the time since the start.

=head2 new

  my $change = Sirius::Admin::Change->new( $now, $before );

=head2 number

  my $number = Sirius::Admin::Change->number($value);

The value as a number, 0 if it is not one.

=head2 quantiles

  my ( $p50, $p90, $p99, $p999 ) = $change->quantiles('latency');

Quantiles, in seconds, of what was added to the histogram; an empty list if nothing was. A value up to the end of the
first bucket means some time below that (see L</words>); the end of the last bucket means that or any longer time.

=head2 rate

  my $rate = $change->rate(qw(totals requests));

The L</growth> per second.

=head2 seconds

The time that it covers, in seconds.

=head2 words

  print $change->words( latency => $seconds );

A time of the histogram as text, with no more precision than its buckets have: C<< < 16 us >>, C<1.2 ms>, C<< > 2 min
>>.

=head2 worker_rate

  my $rate = $change->worker_rate($worker);

The requests per second of one of the C<workers>; undefined if it is new.

=head1 SEE ALSO

L<Sirius::CLI::Top>, L<Sirius::CLI::Top::Picture>.

=cut
