package Sirius::Edge::Publications;

use strict;
use warnings;

use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Edge::Shared;
use Sirius::OS::Inherit;

use constant {
    BYTES_MAX  => 16 * 1_048_576,    # that may wait for an edge
    NUMBER_MAX => 4096,
    PAUSE      => 0.01,              # seconds before an edge that did not read is tried again
};

# Passes on what edges did not read at once
sub act {
    my $self  = shift;
    my %place = map { $_->pid ? ( $_->pid => $_ ) : () } $self->{group}->places;
    for my $pid ( keys %{ $self->{waiting} } ) {
        my $all = $self->{waiting}{$pid};
        shift @$all while @$all && $place{$pid} && _pass( $place{$pid}, _file( ${ $all->[0] } ) );
        delete $self->{waiting}{$pid} if !@$all || !$place{$pid};
    }
    $self->{at} = now() + PAUSE;
    return;
}

sub due {
    my $self = shift;
    return %{ $self->{waiting} } ? $self->{at} : ();
}

sub new {
    my ( $class, $group ) = @_;
    my $self = bless { group => $group, waiting => {} }, $class;
    weaken $self->{group};
    return $self;
}

# Undef, or why these items can't be published. Then no edge has got one
sub publish {
    my ( $self, @packed ) = @_;
    my @running = $self->{group}->running or return 'no edge is running';
    for my $place (@running) {
        my ( $bytes, $number ) = ( 0, 0 );
        for my $packed ( @{ $self->{waiting}{ $place->pid } || [] } ) { $bytes += length $$packed; $number++ }
        return 'edge ' . $place->pid . " does not read: $number publications wait for it"
            if $bytes > BYTES_MAX || $number > NUMBER_MAX;
    }
    my $file;
    for my $packed (@packed) {    # one after the other, as there may be thousands
        $file
            = _file($packed) // return $!{EINVAL}
            ? 'an item is malformed, or of another version of Sirius'
            : "cannot create a file in memory: $!";
    }
    for my $packed (@packed) {
        $file = _file($packed) if @packed > 1;
        for my $place (@running) {
            my $waiting = $self->{waiting}{ $place->pid } ||= [];
            push @$waiting, \$packed if @$waiting || !_pass( $place, $file );
        }
    }
    return $self->act;
}

# Undef with $!
sub _file {
    my $packed = shift;
    my $fd     = Sirius::Edge::Shared->item($packed);
    return $fd < 0 ? undef : Sirius::OS::Inherit->take_handle($fd);
}

# What waits has no file: this process needs its descriptors
sub _pass {
    my ( $place, $file ) = @_;
    return $file && $place->pass( publish => fileno $file );
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Publications - what the supervisor publishes, until all edges have it

=head1 SYNOPSIS

  my $error = $publications->publish($packed);

=head1 DESCRIPTION

Passes items (L<Sirius::Channel::Item>) to each edge that runs, also to one that another is about to replace, in the order in which they
came. Nothing waits here for an edge: for one that does not read at the moment items are kept, up to 16 MiB, while further publications are
refused above that. What was kept for an edge that ends is dropped, as its subscribers are.

=head1 METHODS

=head2 act, due

As in L<Sirius::OS::Loop>.

=head2 new

  my $publications = Sirius::Edge::Publications->new($group);

For the edges of a L<Sirius::Edge::Group>.

=head2 publish

  my $error = $publications->publish(@packed);

All of these items, or none. Returns why, if none.

=head1 SEE ALSO

L<Sirius::Edge::Group>, L<Sirius::Control::Commands>.

=cut
