package Sirius::Channel;

use strict;
use warnings;

use Carp qw(croak);
use Sirius::Channel::Item;

use constant PATIENCE => 10;    # seconds that the control socket has to answer

# By its address
my %remote;

my %KNOWN = map { $_ => 1 } qw(close control formats id prev_id sender);

sub publish {
    my ( $class, $channel, $bytes, %how ) = @_;
    local $@;
    my ( @items, @packed );
    eval {
        @items  = _items( $channel, $bytes, %how );
        @packed = map { Sirius::Channel::Item->packed($_) } @items;
    } or croak 'Sirius::Channel->publish: ' . $@ =~ s/\s+\z//r;
    my $url   = defined $how{control} ? q()                   : $ENV{GRIP_URL} // q();
    my $error = length $url           ? _post( $url, @items ) : _send( $how{control}, @packed );
    croak "Sirius::Channel->publish: $error" if defined $error;
    return 1;
}

# By the control socket
sub _ask {
    my ( $path, @packed ) = @_;
    require Sirius::Control::Client;
    require Sirius::Control::Place;
    my $done = eval {
        $path //= $ENV{SIRIUS_CONTROL} // _of_worker();
        die
            "its server has no control socket (--control none, or --workers 0), so only its workers can publish\n"
            if Sirius::Control::Place->is_none($path);
        my $loads = Sirius::Worker->can('loads');
        $path = Sirius::Control::Place->choose( own => $loads && Sirius::Worker->$loads, path => $path );
        Sirius::Control::Client->new( $path, PATIENCE )->publish($_) for @packed;
        1;
    };
    return if $done;
    my $why  = $@;
    my $text = ref $why ? $why->{text} : $why =~ s/\s+\z//r;
    $text =~ s/(?:with --pid, or )?(by|use) --control PATH/$1 control => PATH/;
    return $text =~ s/\A--control /control /r;
}

sub _items {
    my ( $channel, $bytes, %how ) = @_;
    my @unknown = grep { !$KNOWN{$_} } sort keys %how;
    die "unknown argument '$unknown[0]'\n"          if @unknown;
    die "the channel is missing\n"                  if !length( $channel // '' );
    die "there is nothing to publish\n"             if !defined $bytes && !$how{formats} && !$how{close};
    die "either the content or formats, not both\n" if defined $bytes  && $how{formats};
    return Sirius::Channel::Item->items(
        $channel,
        close     => $how{close},
        formats   => $how{formats} || ( defined $bytes ? Sirius::Channel::Item->formats($bytes) : undef ),
        id        => $how{id},
        'prev-id' => $how{prev_id},
        sender    => $how{sender},
    );
}

# Of the server of this worker, or child of one
sub _of_worker {
    my $control = Sirius::Worker->can('control');
    return $control && Sirius::Worker->$control;
}

# Undef, or why the server of GRIP does not have them
sub _post {
    my ( $url, @items ) = @_;
    require Sirius::Channel::Remote;
    eval { ( $remote{$url} ||= Sirius::Channel::Remote->new($url) )->publish(@items); 1 } and return;
    return $@ =~ s/\s+\z//r;
}

# Undef, or why it is not possible. A child that the application of a worker has forked uses the control
# socket, as other processes do
sub _send {
    my ( $path, @packed ) = @_;
    my $ring = defined $path ? undef : Sirius::Worker::RequestLoop->can('publish');
    shift @packed while @packed && $ring && Sirius::Worker::RequestLoop->$ring( $packed[0] );
    return @packed ? _ask( $path, @packed ) : undef;
}

1;

=encoding utf8

=head1 NAME

Sirius::Channel - publishes to held connections

=head1 SYNOPSIS

  use Sirius::Channel;

  Sirius::Channel->publish( news => "data: hello\n\n" );

  # in order, for clients that come again with the last id they have seen
  Sirius::Channel->publish( news => "id: 8\ndata: hello\n\n", id => '8', prev_id => '7' );

  # something else for each kind of client
  Sirius::Channel->publish(
      'room-5' => undef,
      formats  => {
          'http-stream' => { content => "data: hello\n\n" },
          'ws-message'  => { content => 'hello' }
      }
  );

  Sirius::Channel->publish( 'progress-17' => "data: done\n\n", close => 1 );

=head1 DESCRIPTION

Sends something to all clients that listen to a channel of a server with C<--hold>: to event streams and other responses that are held
(C<Grip-Hold: stream>), to those that wait for one answer (C<Grip-Hold: response>), and to WebSockets. From an application of the server
this needs no connection. Other processes, such as jobs and children that the application forks, use the control socket of the server: they have to run as its user or as root.

A client gets what is published while it listens, in the order of each publisher, once at most. Nothing is stored.

Where another server of GRIP holds the connections, as Pushpin in front of several hosts, GRIP_URL in the environment says where it
takes items: C<GRIP_URL=http://127.0.0.1:5561>. See L<Sirius::Channel::Remote>.

=head1 METHODS

=head2 publish

  Sirius::Channel->publish( $channel, $bytes, %how );

Returns when the server has the item; no client delays that. Dies if no server can be reached, or says what is wrong: nothing was
published then. Strings are bytes: encode characters above 0xff, as with C<Encode::encode_utf8>. An item has at most 1 MiB.

C<$bytes> go to streams as they are, and to WebSockets as a text message, or as a binary one if they are not UTF-8. Undefined: nothing,
or what C<formats> say.

=over 4

=item close

True: then ends the streams and WebSockets of the channel.

=item control

The path of the control socket (default: C<SIRIUS_CONTROL> of the environment, or that of the only server that can be found; see
L<Sirius::CLI::Ctl>). Within the server, and in commands of C<--beside>, it is not needed: with C<--hold> and C<--control> the server
sets SIRIUS_CONTROL.

=item formats

What each kind of client gets, as in L<Sirius::Channel::Item>.

=item id, prev_id

The id of this item, and of the one before it in the channel.

=item sender

Who publishes it: subscriptions with the filter C<skip-self> whose client is of this user do not get it (F<docs/LIVE.md>).

=back

=head1 SEE ALSO

L<Sirius::Channel::Item>, C<sirius ctl publish> (L<Sirius::CLI::Ctl>).

=cut
