package Sirius::Admin::History;

use strict;
use warnings;

use List::Util qw(sum);
use Sirius::Admin::Change;

use constant {
    EVERY  => 5,      # seconds between two samples
    MINUTE => 60,
    SPAN   => 300,    # seconds for which samples are kept
};

# The fields of a sample, in the order in which they are stored. Rates and percentiles are for the time since
# the previous sample
my @FIELDS
    = qw(at started requests responses errors rate error_rate p50 p90 p99 busy workers queued open active);

sub errors {
    my ( $self, $now ) = @_;
    my ($before) = grep { $_->{at} >= $now->{now} - MINUTE } $self->samples;
    return ( 0, 0 ) if !$before;
    my ( $all, $failed ) = _responses($now);
    return ( $failed - ( $before->{errors} || 0 ), $all - ( $before->{responses} || 0 ) );
}

sub json {
    my $self  = shift;
    my @rows  = map { _row($_) } $self->samples;
    my $names = join q{,}, map {qq("$_")} @FIELDS;
    return sprintf qq({"every":%d,"names":[%s],"samples":[%s]}\n), EVERY, $names, join q{,}, @rows;
}

sub look {
    my ( $self, $now ) = @_;
    my $change  = Sirius::Admin::Change->new( $now, $self->{before} );
    my $partial = $change->is_partial;
    my ( $totals, $connections, $workers ) = @{$now}{qw(totals connections workers)};
    my ( $all, $failed ) = _responses($now);
    my %sample = (
        active    => $connections->{open} - $connections->{idle},
        at        => $now->{now},
        busy      => scalar( grep { $_->{began} > 0 } @$workers ),
        errors    => $failed,
        open      => $connections->{open},
        queued    => $connections->{waiting},
        requests  => $totals->{requests},
        responses => $all,
        started   => $self->{started},
        workers   => scalar @$workers,
    );

    if ($partial) {
        $sample{rate}            = $change->rate(qw(totals requests)) + $change->rate(qw(totals files));
        $sample{error_rate}      = $change->rate( qw(totals responses), 5 );
        @sample{qw(p50 p90 p99)} = $change->quantiles('latency');
    }
    push @{ $self->{samples} }, \%sample;
    $self->_forget( $now->{now} );
    $self->{before} = { map { $_ => $now->{$_} } qw(latency now totals workers) };
    return;
}

sub new {
    my ( $class, %args ) = @_;
    return bless { samples => [], started => 0, %args }, $class;
}

# Takes only samples of this server and of the past: others can write to where they were kept
sub restore {
    my ( $self, $bytes, $now ) = @_;
    my $width = 8 * @FIELDS;
    return if length($bytes) % $width;
    my @samples;
    while ( length $bytes ) {
        my %sample;
        @sample{@FIELDS} = map { $_ - $_ == 0 ? $_ : undef } unpack 'd*', substr $bytes, 0, $width, '';
        return if grep { !defined $sample{$_} } qw(at started busy workers open active);
        return if $sample{at} > $now || @samples && $sample{at} < $samples[-1]{at};
        push @samples, \%sample if $sample{started} == $self->{started};
    }
    $self->{samples} = \@samples;
    return $self->_forget($now);
}

sub samples { return @{ shift->{samples} } }

sub state {
    my $self = shift;
    return join '', map {
        pack 'd*',
            map { defined $_ ? $_ : 'nan' }
            @{$_}{@FIELDS}
    } $self->samples;
}

# Limits the number as well, since the clock may stand still
sub _forget {
    my ( $self, $now ) = @_;
    my $samples = $self->{samples};
    shift @$samples while @$samples && ( $samples->[0]{at} < $now - SPAN || @$samples > 1 + SPAN / EVERY );
    return;
}

# Those that are final, and how many of them are errors
sub _responses {
    my $now   = shift;
    my @final = map { $_ || 0 } @{ $now->{totals}{responses} }{ 2 .. 5 };
    return ( sum(@final), $final[-1] );
}

sub _row {
    my $sample = shift;
    return '['
        . join( q{,},
        map { defined $_ && $_ - $_ == 0 ? 0 + sprintf '%.12g', $_ : 'null' } @{$sample}{@FIELDS} )
        . ']';
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::History - the last five minutes of a server

=head1 SYNOPSIS

  use Sirius::Admin::History;

  my $history = Sirius::Admin::History->new( started => $epoch );
  $history->restore( $board->kept, $now );
  $history->look( $board->snapshot( quick => 1 ) );    # every EVERY seconds
  $board->keep( $history->state );
  print $history->json;

=head1 DESCRIPTION

The samples of which the status page draws its plots, so that it shows the last five minutes as soon as it is opened.
There is a sample for every 5 seconds, at most 61 of them with 15 numbers each, whatever the traffic, the number of
workers and the uptime.

=head1 METHODS

=head2 errors

  my ( $failed, $all ) = $history->errors($snapshot);

How many responses were 5xx in the minute before that snapshot, and how many there were.

=head2 json

  my $bytes = $history->json;

One line: C<every>, the seconds between two samples; C<names>, the names of the numbers in a sample; C<samples>, a list
of lists. Unknown values are null, such as percentiles of a time without requests.

=head2 look

  $history->look( \%snapshot );

Takes a sample of a snapshot of L<Sirius::Scoreboard>.

=head2 new

  my $history = Sirius::Admin::History->new( started => $epoch );

=head2 restore

  $history->restore( $bytes, $now );

Continues with the L</state> of another process. Samples of another server, and other data, are ignored. C<$now> is the
monotonic time.

=head2 samples

  my @samples = $history->samples;

Hashes, the oldest first.

=head2 state

  my $bytes = $history->state;

All samples, in less than 8192 bytes.

=head1 SEE ALSO

L<Sirius::Admin::App>, L<Sirius::Admin::Change>.

=cut
