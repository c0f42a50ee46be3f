package Sirius::Control::Channels;

use strict;
use warnings;

use Sirius::Base::Clock qw(now);

use constant {
    PATIENCE => 1,        # seconds for the edges; one that hangs does not answer
    SIZE_MAX => 2**18,    # bytes of an answer
};

sub answer {
    my $self = shift;
    my ( %all, $channels, $subscriptions );
    for my $text ( map { _text($_) } @{ $self->{files} } ) {
        my ( $head, @lines ) = split /\n/, $text;
        my @sums = split q( ), $head // '';
        $channels = $sums[0] if $sums[0] && $sums[0] > ( $channels // 0 );
        $subscriptions += $sums[1] || 0;
        for my $line (@lines) {
            my ( $subscribers, $messages, $name ) = $line =~ /\A(\d+) (\d+) (.*)\z/s or next;
            my $channel = $all{$name} ||= { name => $name, subscribers => 0, messages => 0 };
            $channel->{subscribers} += $subscribers;
            $channel->{messages} = $messages if $messages > $channel->{messages};
        }
    }
    my @all = sort { $b->{subscribers} <=> $a->{subscribers} || $a->{name} cmp $b->{name} } values %all;
    $channels = @all if @all > ( $channels // 0 );
    return { ok => 1, all => $channels + 0, channels => \@all, subscriptions => ( $subscriptions // 0 ) + 0 };
}

# Whether all edges have answered, or had the time to do so
sub done {
    my $self = shift;
    return 1 if now() >= $self->{until};
    return !grep { !length _text($_) } @{ $self->{files} };
}

sub new {
    my ( $class, @files ) = @_;
    return bless { files => \@files, until => now() + PATIENCE }, $class;
}

# '' until it is complete: the first byte comes last
sub _text {
    my $file = shift;
    seek $file, 0, 0;
    my $got = sysread $file, my $text, SIZE_MAX;
    return $got && $text !~ /\A\0/ ? $text : '';
}

1;

=encoding utf8

=head1 NAME

Sirius::Control::Channels - which channels there are, by what the edges say

=head1 SYNOPSIS

  my $asked = Sirius::Control::Channels->new( $edges->channels );
  ...
  $reply->( $asked->answer ) if $asked->done;

=head1 DESCRIPTION

The answer to C<sirius ctl channels>. Each edge tells the 256 channels that have the most subscribers there; this adds up what they say.
The messages of a channel are those since it has had its first subscriber, in the edge that knows of the most.

=head1 METHODS

=head2 answer

A hash with C<channels>, an array of C<name>, C<subscribers> and C<messages>, those with the most subscribers first; C<all>, how many channels there are; and C<subscriptions>, those to all of them.

=head2 done

Whether the edges have answered, or had a second to do so.

=head2 new

  my $asked = Sirius::Control::Channels->new(@files);

For these files (L<Sirius::Edge::Group/channels>).

=head1 SEE ALSO

L<Sirius::Control::Commands>, F<src/edge/census.h>.

=cut
