package Sirius::Dev::Audience;

use strict;
use warnings;

use File::Basename qw(basename);
use JSON::PP       ();
use Sirius::Channel::Item;
use Sirius::Dev::LiveReload;
use Sirius::Log ();
use Socket      qw(AF_UNIX MSG_DONTWAIT MSG_PEEK PF_UNSPEC SOCK_DGRAM);
use Time::HiRes qw(time);

use constant SIZE_MAX => 256;    # bytes of what workers see

my $JSON = JSON::PP->new->ascii;

# All pages show the same code once more, with the files that have changed. With style sheets alone they stay,
# and use these
sub again {
    my ( $self, @paths ) = @_;
    $self->{seen}{again} = sprintf '%.0f', 1000 * time;
    my $are_styles = @paths && !grep { !/[.]css\z/i } @paths;
    return $self->_publish(
        $are_styles
        ? ( styles => $JSON->encode( [ map { _name($_) } @paths ] ) )
        : ( generation => "again $self->{seen}{again}" )
    );
}

sub new {
    my ( $class, $edge ) = @_;
    socketpair my $ours, my $theirs, AF_UNIX, SOCK_DGRAM, PF_UNSPEC
        or die "cannot create a socket pair: $!\n";
    my $self = bless {
        edge   => $edge,
        ours   => $ours,
        seen   => { again => 0, generation => 0, number => 0 },
        theirs => $theirs
    }, $class;
    $self->_show;
    return $self;
}

# What is to be seen at the end of workers: nothing is taken out. Undef: it can't be read
sub seen {
    my ( $class, $theirs ) = @_;
    defined recv $theirs, my $text, SIZE_MAX, MSG_PEEK | MSG_DONTWAIT or return;
    my ( $number, $again, $generation, $id ) = split / /, $text, 4;
    return { number => $number, again => $again, generation => $generation, id => $id };
}

# The code that serves now
sub tell {
    my ( $self, $generation, $id ) = @_;
    @{ $self->{seen} }{qw(generation id)} = ( $generation, $id );
    return $self->_publish( generation => $id );
}

# The end that workers use
sub theirs { return shift->{theirs} }

# Of a file, as the last part of an address may have it
sub _name {
    my $name = basename(shift);
    my $copy = $name;
    return utf8::decode($copy) ? $copy : $name;
}

# Workers see it before it is published. So one that has seen less says so by its prev-id, and the edge ends
# that stream: the page comes again
sub _publish {
    my ( $self, @event ) = @_;
    my $before = $self->{seen}{number}++;
    $self->_show;
    return if !$self->{edge}->running;
    my $stream = { 'http-stream' => { content => Sirius::Dev::LiveReload->event(@event) } };
    my $error  = eval {
        my $item = {
            channel   => Sirius::Dev::LiveReload->CHANNEL,
            formats   => $stream,
            id        => $self->{seen}{number},
            'prev-id' => $before
        };
        $self->{edge}->publish( Sirius::Channel::Item->packed($item) );
    } // $@;
    Sirius::Log->warn("--live-reload: pages are not told: $error") if length $error;
    return;
}

# In place of what was to be seen, which there is at each moment
sub _show {
    my $self = shift;
    my $text = join q( ), @{ $self->{seen} }{qw(number again generation)}, $self->{seen}{id} // q();
    send $self->{ours}, $text, MSG_DONTWAIT or die "cannot tell the workers: $!\n";
    recv $self->{theirs}, my $before, SIZE_MAX, MSG_DONTWAIT if $self->{shown}++;
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Audience - the open pages that are told of new code

=head1 SYNOPSIS

  my $audience = Sirius::Dev::Audience->new($edge);
  $audience->tell( 3, $id );

  my $seen = Sirius::Dev::Audience->seen($theirs);    # in a worker

=head1 DESCRIPTION

The edge holds the streams of pages (L<Sirius::Dev::LiveReload>), and what is told is published to them. A page that subscribes at that
moment is told as well: a worker sees what was told last, as a message that stays in a socket, and says which one that was, as the prev-id.
If there is a newer one the edge ends the stream, and the browser comes again.

=head1 METHODS

=head2 again

  $audience->again(@paths);

These files have changed, and the code has not: pages take the new style sheets, or load again.

=head2 new

  my $audience = Sirius::Dev::Audience->new($edge);

For the pages of this L<Sirius::Edge::Group>. Dies if there is no socket.

=head2 seen

  my $seen = Sirius::Dev::Audience->seen($theirs);

What was told last, for a worker: C<number>, that of the message; C<generation>, its number, and C<id>, its name, both of the code that
serves; C<again>, the time of the last change of other files, in ms since the epoch, or 0. Undef if that can't be read.

=head2 tell

  $audience->tell( $generation, $id );

Tells all pages which code serves now.

=head2 theirs

The handle for L</seen>.

=head1 SEE ALSO

L<Sirius::Dev::Reload>.

=cut
