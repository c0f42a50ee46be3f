package Sirius::Admin::Verdict;

use strict;
use warnings;

use List::Util qw(max);
use Sirius::Base::Text;

use constant {
    ERRORS  => 5,       # 5xx of the last minute that are worth a word
    LONG    => 10,      # seconds after which a request has been running for long
    SHARE   => 0.01,    # of the responses of the last minute; fewer errors are not worth it
    STALLED => 2,       # seconds that a request may wait while a worker is idle
};

my %SERVES = map { $_ => 1 } qw(busy idle);

sub edges {
    my $self    = shift;
    my @edges   = $self->_edges;
    my $missing = ( $self->{now}{edges_wanted} || 0 ) - @edges;
    return ( ( map { $self->_edge($_) } @edges ),
        $missing > 0 ? $missing == 1 ? 'an edge is missing' : "edges are missing: $missing" : () );
}

sub new {
    my ( $class, $snapshot, @errors ) = @_;
    return bless { errors => \@errors, now => $snapshot }, $class;
}

# While a new generation starts, the previous one serves
sub unready {
    my $self = shift;
    return 'the server is stopping' if $self->{now}{stopping};
    if ( my $none = $self->_no_edge ) {
        my $hanging = join ', ', map { $_->{pid} } grep { $_->{state} eq 'hanging' } $self->_edges;
        return length $hanging ? "$none: $hanging" : $none;
    }
    my @up = grep { $_->{state} =~ /\A(?:idle|busy|draining)\z/ } @{ $self->{now}{workers} };
    return 'no worker has started yet' if !@up;
    my $newest = max map { $_->{generation} } @up;
    return if grep { $_->{generation} == $newest && $SERVES{ $_->{state} } } @up;
    return "no worker of generation $newest is serving";
}

sub worst {
    my $self    = shift;
    my $now     = $self->{now};
    my @workers = @{ $now->{workers} };
    my @up      = grep { $SERVES{ $_->{state} } } @workers;
    return _is( slow => 'Stopping, ' . _many( scalar @workers, 'worker' ) . ' left' ) if $now->{stopping};
    if ( my $none = $self->_no_edge ) { return _is( bad => ucfirst $none ) }
    return _is( bad => 'No worker is serving' ) if !@up;
    my ($trouble) = $self->edges;
    return _is( bad => "Serving, but $trouble" ) if defined $trouble;
    my $waiting = $now->{connections}{waiting} || 0;
    return _is( slow => _many( $waiting, 'request' ) . ' waiting for a worker' ) if $waiting;
    return $self->_slow(@workers) || $self->_reloads(@workers) || _is(
          ( grep { $_->{state} ne 'busy' } @up )
        ? ( good => 'Serving' )
        : ( busy => 'Serving, all workers are busy' )
    );
}

# 1,234,567
sub _count {
    my $text = reverse shift;
    $text =~ s/(\d{3})(?=\d)/$1,/g;
    return scalar reverse $text;
}

# What is wrong with one. The figures are behind a colon: a screen reader is spared those
sub _edge {
    my ( $self, $edge ) = @_;
    my $now = $self->{now}{now};
    my $who = ": PID $edge->{pid}";
    return "an edge does not respond$who for "
        . Sirius::Base::Text->age( $now - ( $edge->{hangs_since} || $now ) )
        if $edge->{state} eq 'hanging';
    return "an edge is starting$who" if $edge->{state} eq 'starting';
    my $since = $edge->{waiting_since} || $now;
    return
        if $now - $since < STALLED
        || !grep { $_->{state} eq 'idle' && $now - $_->{since} >= STALLED } @{ $self->{now}{workers} };
    return "the queue of an edge does not move, although a worker is idle$who for "
        . Sirius::Base::Text->age( $now - $since );
}

sub _edges { return @{ shift->{now}{edges} || [] } }

sub _is {
    my ( $mood, $text ) = @_;
    return { mood => $mood, text => $text };
}

sub _many {
    my ( $number, $what ) = @_;
    return _count($number) . " $what" . ( $number == 1 ? '' : 's' );
}

sub _no_edge {
    my $self  = shift;
    my @edges = $self->_edges;
    return if !$self->{now}{edges_wanted} || grep { $SERVES{ $_->{state} } } @edges;
    return ( grep { $_->{state} eq 'hanging' } @edges ) ? 'no edge responds' : 'no edge is serving';
}

sub _reloads {
    my ( $self, @workers ) = @_;
    my $reload = $self->{now}{reload} || {};
    return _is( start => 'Serving while reloading' ) if $reload->{loading};
    return _is( start => 'Serving, switching to the new generation' )
        if grep { $_->{generation} != $workers[0]{generation} } @workers;
    return if !$reload->{last_at} || $reload->{last_ok};
    return _is( slow => 'Serving the old code: the last reload failed' );
}

# Errors, and a request that takes long
sub _slow {
    my ( $self,   @workers ) = @_;
    my ( $failed, $all )     = map { $_ || 0 } @{ $self->{errors} }[ 0, 1 ];
    return _is( slow => 'Serving, with errors: '
            . _count($failed) . ' of '
            . _count($all)
            . ' responses of the last minute (5xx)' )
        if $failed >= ERRORS && $failed > $all * SHARE;
    my $longest = max 0, map { $self->{now}{now} - $_->{began} } grep { $_->{began} > 0 } @workers;
    return if $longest < LONG;
    return _is( slow => 'Serving, one request has been running for ' . Sirius::Base::Text->age($longest) );
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Verdict - what is to be said of a server in one line

=head1 SYNOPSIS

  use Sirius::Admin::Verdict;

  my $verdict = Sirius::Admin::Verdict->new($snapshot);
  print $verdict->worst->{text};                                # Serving
  print 'not ready: ', $verdict->unready if $verdict->unready;

=head1 METHODS

=head2 edges

  my @said = $verdict->edges;

What is wrong with edges: one does not respond, is starting, is missing, or has a request that waits although a worker is idle.

=head2 new

  my $verdict = Sirius::Admin::Verdict->new( $snapshot, $failed, $all );

Of a snapshot of L<Sirius::Scoreboard>, with the 5xx and all responses of the last minute (L<Sirius::Admin::History/errors>).

=head2 unready

  my $why = $verdict->unready;

Why no request should be sent to this server; undef when one may be.

=head2 worst

  my $worst = $verdict->worst;

The worst condition that holds, a hash with C<text>, such as C<Serving, all workers are busy>, and C<mood>, by which the status page has a
colour for it: C<good>, C<busy>, C<start>, C<slow> or C<bad>.

=head1 SEE ALSO

L<Sirius::Admin::App>.

=cut
