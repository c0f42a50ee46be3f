package Sirius::Control::Server;

use strict;
use warnings;

use Errno               qw(EAGAIN ECONNABORTED EINTR);
use Fcntl               qw(FD_CLOEXEC F_GETFL F_SETFD F_SETFL O_NONBLOCK);
use IO::Poll            qw(POLLHUP);
use JSON::PP            ();
use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Control::HTTP;
use Sirius::Listen::Unix;
use Sirius::Log ();
use Sirius::OS::Inherit;
use Sirius::OS::Origin;
use Sirius::OS::Peer;
use Socket qw(MSG_NOSIGNAL);

use constant {
    BACKLOG     => 64,
    CLIENTS_MAX => 64,     # connections at a time
    KEPT_MAX    => 256,    # bytes of a request that an exec may interrupt: the environment holds 128 KiB
    PAUSE       => 0.1,    # seconds in which nobody is accepted when there is no descriptor
    PATH_MAX    => Sirius::Listen::Unix->PATH_MAX - 8,    # less the longest ".PID" of that
    REQUEST_MAX => 65536,                                 # bytes
};

my %COMMANDS = map { $_ => 1 } qw(channels figures profile reload status stop workers);
my $in       = JSON::PP->new->utf8->allow_nonref;
my $out      = JSON::PP->new->canonical->allow_blessed->allow_unknown;    # bytes in and out: see _encode

sub act {
    my $self = shift;
    return if !defined $self->{at} || now() < $self->{at};
    delete $self->{at};
    $self->{loop}->watch( $self->{fh} );
    return;
}

sub close {
    my $self = shift;
    $self->{loop}->unwatch( $self->{fh} ) if $self->{loop} && $self->{fh};
    $self->_forget($_) for $self->_clients;
    my $unix = delete $self->{unix};
    $unix->remove if $unix;
    delete $self->{fh};
    return;
}

sub due {
    return grep {defined} shift->{at};
}

sub handle { return shift->{fh} }

sub new {
    my ( $class, $path, $publisher ) = @_;
    _check_path($path);
    my %want = ( mode => oct 600, late => 1, defined $publisher ? ( owner => $publisher ) : () );
    my $unix = eval { Sirius::Listen::Unix->open( $path, BACKLOG, %want ) }
        || Sirius::Log->fail("--control $path: $@");
    _prepare( $unix->handle );
    return bless { clients => {}, fh => $unix->handle, last => 0, publisher => $publisher, unix => $unix },
        $class;
}

sub restore {
    my ( $class, $state ) = @_;
    my $fh   = Sirius::OS::Inherit->take_handle( $state->{fd} );
    my $unix = Sirius::Listen::Unix->restore( $state->{unix}, $fh );
    my $self = bless { clients => {}, fh => $fh, last => 0, publisher => $state->{publisher}, unix => $unix },
        $class;
    for my $client ( @{ $state->{clients} } ) {
        my ( $fd, $text ) = @$client;
        utf8::downgrade($text);
        $self->_add( Sirius::OS::Inherit->take_handle($fd), $text );
    }
    return $self;
}

sub serve {
    my ( $self, $dispatch ) = @_;
    $self->_accept;
    for my $client ( $self->_clients ) {
        if ( $client->{asked} ) { $self->_forget($client) if _gone( $client->{fh} ) }
        else                    { $self->_read( $client, $dispatch ) }
        $self->_write($client) if defined $client->{out};
    }
    return;
}

# Clients that have not sent a complete request stay connected
sub state {
    my $self   = shift;
    my @silent = grep { !$_->{asked} && length $_->{in} <= KEPT_MAX } $self->_clients;
    Sirius::OS::Inherit->give( {}, map { $_->{fh} } @silent );
    return {
        clients => [ map { [ fileno $_->{fh}, $_->{in} ] } @silent ],
        fd      => fileno $self->{fh},
        unix    => $self->{unix}->state,
        defined $self->{publisher} ? ( publisher => $self->{publisher} ) : (),
    };
}

sub watch {
    my ( $self, $loop ) = @_;
    $self->{loop} = $loop;
    $loop->watch($_) for $self->{fh}, map { $_->{fh} } $self->_clients;
    return;
}

sub _accept {
    my $self = shift;
    while (1) {
        my $fh;
        if ( !accept $fh, $self->{fh} ) {
            next                 if $! == EINTR || $! == ECONNABORTED;
            return $self->_pause if $! != EAGAIN;
            return;
        }
        $self->_make_room;
        _prepare($fh);
        my $client = $self->_add( $fh, '' );
        $self->_expect( $client, 'read' );

        # The file's mode protects the socket already; this is a second lock, in case somebody changes the
        # mode
        my ( undef, $uid ) = _peer($fh);
        $self->_answer( $client, { ok => 0, error => "user $uid may not control this server" } )
            if $uid != 0 && $uid != $> && $uid != ( $self->{publisher} // 0 );
    }
    return;
}

sub _add {
    my ( $self, $fh, $text ) = @_;
    my $number = ++$self->{last};
    return $self->{clients}{$number} = { fh => $fh, in => $text, number => $number };
}

# Whether the user of the client may control the server. The one of --user may publish, whatever the
# application does
sub _admit {
    my ( $self, $client ) = @_;
    my ( undef, $uid )    = _peer( $client->{fh} );
    die "user $uid may only publish\n" if $uid != 0 && $uid != $>;
    return;
}

# Answers once; a client that has gone meanwhile gets nothing
sub _answer {
    my ( $self, $client, $answer ) = @_;
    return if defined $client->{out} || !$client->{fh};
    my $http = $client->{http};
    @{$client}{qw(asked out)} = ( 1, $http ? $http->answer($answer) : _encode($answer) . "\n" );
    return $self->_write($client);
}

# Returns the command and its arguments, or dies with what is wrong
sub _check {
    my $line    = shift;
    my $request = eval { $in->decode($line) };
    die "the request is not a JSON object\n" if ref $request ne 'HASH';
    my $command = $request->{command};
    die "the request has no command\n" if !defined $command || ref $command || !length $command;
    die "unknown command '$command'\n" if !$COMMANDS{$command};
    my %checked = ( command => $command, wait => $request->{wait} ? 1 : 0 );
    $checked{abort} = 1 if $command eq 'reload' && $request->{abort};
    return { %checked, _check_profile($request) } if $command eq 'profile';
    return \%checked                              if $command ne 'workers';
    my $number = $request->{workers};
    die "workers is not a whole number above 0\n"
        if !defined $number || ref $number || $number !~ /\A[1-9]\d{0,8}\z/;
    return { %checked, workers => $number + 0 };
}

sub _check_path {
    my $path = shift;
    Sirius::Log->fail(
        "--control $path: an abstract socket has no permissions, any user could connect to it; use the path of a file"
    ) if $path =~ /\A[\@\0]/;
    my $length = length $path;
    Sirius::Log->fail("--control $path: the path has $length bytes, the maximum is ${\ PATH_MAX}")
        if $length > PATH_MAX;
    return;
}

sub _check_profile {
    my $request = shift;
    my %checked = ( dump => $request->{dump} ? 1 : 0 );
    my %bounds  = ( hz   => [ 1, 1000 ], seconds => [ 0.1, 3600 ], worker => [ 0, 2**22 ] );
    for my $name ( grep { defined $request->{$_} } sort keys %bounds ) {
        my ( $value, $min, $max ) = ( $request->{$name}, @{ $bounds{$name} } );
        die "$name is not a number from $min to $max\n"
            if ref $value || $value !~ /\A[0-9]{1,9}(?:[.][0-9]{1,9})?\z/ || $value < $min || $value > $max;
        $checked{$name} = $value + 0;
    }
    die "path is not text\n"          if ref $request->{path};
    $checked{path} = $request->{path} if defined $request->{path};
    return %checked;
}

sub _clients {
    my $clients = shift->{clients};
    return map { $clients->{$_} } sort { $a <=> $b } keys %$clients;
}

# One line of UTF-8. Paths and Perl's messages are bytes; bytes that are no UTF-8 are taken as Latin-1
sub _encode {
    my $line = $out->encode(shift);
    my $copy = $line;
    utf8::encode($line) if !utf8::downgrade( $copy, 1 ) || !utf8::decode($copy);
    utf8::downgrade($line);
    return $line;
}

# Sets which event of this client wakes the process
sub _expect {
    my ( $self, $client, $what ) = @_;
    $self->{loop}->watch( $client->{fh}, $what ) if $self->{loop};
    return;
}

sub _forget {
    my ( $self, $client ) = @_;
    delete $self->{clients}{ $client->{number} };
    my $fh = delete $client->{fh} or return;
    $self->{loop}->unwatch($fh) if $self->{loop};
    return CORE::close $fh;
}

# Whether both directions are closed. A client that has only finished sending still waits for the answer
sub _gone {
    my $fh   = shift;
    my $poll = IO::Poll->new;
    $poll->mask( $fh => POLLHUP );
    $poll->poll(0);
    return $poll->events($fh) & POLLHUP;
}

# The oldest that has asked nothing goes; else the oldest
sub _make_room {
    my $self    = shift;
    my @clients = $self->_clients;
    return if @clients < CLIENTS_MAX;
    my ($silent) = grep { !$_->{asked} } @clients;
    return $self->_forget( $silent || $clients[0] );
}

# No descriptor is free: a client that wants to connect would make the loop spin
sub _pause {
    my $self = shift;
    return if !$self->{loop};
    $self->{loop}->unwatch( $self->{fh} );
    $self->{at} = now() + PAUSE;
    return;
}

# PID and user ID of the other end, as the kernel knows them
sub _peer {
    my ( $pid, $uid ) = Sirius::OS::Peer->of(shift);
    return defined $pid ? ( $pid, $uid ) : ( 0, 2**32 - 1 );
}

sub _prepare {
    my $fh = shift;
    fcntl $fh, F_SETFL, fcntl( $fh, F_GETFL, 0 ) | O_NONBLOCK;
    fcntl $fh, F_SETFD, FD_CLOEXEC;
    return;
}

sub _read {
    my ( $self, $client, $dispatch ) = @_;
    my $got  = _receive($client);
    my $weak = $self;
    weaken $weak;    # a reply that is kept for later must not keep the socket open
    my $reply = sub { return $weak && $weak->_answer( $client, @_ ) };
    my $waits = sub { return $weak && defined $client->{fh} };
    local $SIG{__DIE__};
    return $self->_read_http( $client, $got, sub { $dispatch->( shift, $reply, undef, $waits ) } )
        if $client->{http};
    my ($line) = $client->{in} =~ /\A([^\n]*)\n/;

    if ( defined $line && length $line <= REQUEST_MAX ) {
        $client->{asked} = 1;
        $self->_expect( $client, 'end' );
        my $request = eval { $self->_admit($client); _check($line) };
        return $reply->( { ok => 0, error => $@ =~ s/\n\z//r } ) if !$request;
        my $from = Sirius::OS::Origin->words( _peer( $client->{fh} ) );
        return $self->_too_late( $client, $request, $from ) if _gone( $client->{fh} );
        return if eval { $dispatch->( $request, $reply, $from, $waits ); 1 };
        return $reply->( { ok => 0, error => $@ =~ s/\s+\z//r } );
    }
    return $reply->( { ok => 0, error => 'the request has more than ' . REQUEST_MAX . ' bytes' } )
        if length $client->{in} > REQUEST_MAX;
    return $self->_forget($client) if defined $got;
    return;
}

# A publisher that does not wait for the answer has published all the same
sub _read_http {
    my ( $self, $client, $got, $run ) = @_;
    my $http = $client->{http};
    my $done = eval {
        if ( $http->read( $client->{in} ) ) {
            $client->{asked} = 1;
            $self->_expect( $client, 'end' );
            $run->( { command => 'publish', items => [ $http->items ] } );
        } elsif ( defined $got ) {
            $self->_forget($client);
        } elsif ( $http->waits ) {
            send $client->{fh}, $http->continues, MSG_NOSIGNAL;
        }
        1;
    };
    return if $done;
    my $why = $@;
    return $self->_answer( $client, ref $why ? $why : { ok => 0, error => $why =~ s/\s+\z//r } );
}

# Returns 0 at the end of what the client sends, undef if there may be more
sub _receive {
    my $client = shift;
    while (1) {
        $client->{http} //= Sirius::Control::HTTP->new if Sirius::Control::HTTP->begins( $client->{in} );
        last                                           if !$client->{http} && $client->{in} =~ /\n/;
        last if length $client->{in} > ( $client->{http} ? $client->{http}->most : REQUEST_MAX );
        my $got = sysread $client->{fh}, $client->{in}, 65_536, length $client->{in};
        next        if !defined $got && $! == EINTR;
        return $got if !$got;
    }
    return;
}

# This process was stopped, or busy. Who has asked was told that there is no answer, and does not expect it
# any more
sub _too_late {
    my ( $self, $client, $request, $from ) = @_;
    Sirius::Log->warn("ignored sirius ctl $request->{command} $from: it no longer waits for the answer")
        if $request->{command} !~ /\A(?:channels|figures|status)\z/;
    return $self->_forget($client);
}

# Writes as much as possible without waiting. Closes the connection after the last byte
sub _write {
    my ( $self, $client ) = @_;
    while ( $client->{fh} && length $client->{out} ) {
        my $sent = send $client->{fh}, $client->{out}, MSG_NOSIGNAL;
        if    ( defined $sent ) { substr $client->{out}, 0, $sent, '' }
        elsif ( $! == EAGAIN )  { return $self->_expect( $client, 'write' ) }
        elsif ( $! != EINTR )   {last}
    }
    return $self->_forget($client);
}

sub DESTROY {
    my $self = shift;
    local ( $!, $@ );
    return $self->close;
}

1;

=encoding utf8

=head1 NAME

Sirius::Control::Server - the socket to which sirius ctl connects

=head1 SYNOPSIS

  use Sirius::Control::Server;

  my $control = Sirius::Control::Server->new('/run/app.control');
  while (1) {
      ...    # until something comes
      $control->serve( sub {
          my ( $request, $reply ) = @_;
          $reply->( { ok => 1, text => "done: $request->{command}" } );
      } );
  }

=head1 DESCRIPTION

A unix socket on which the supervisor takes requests of its operator. Only the user of this process and root can
use it, and that of C<--user> to publish: it has mode 0600 before it gets its name, and the kernel says who connects. Nothing here waits, so a client
that is slow, silent or gone delays nobody. At most 64 clients are connected at a time; beyond that the oldest one that
has sent no request is dropped.

=head1 PROTOCOL

One line of JSON from the client, one line of JSON from the server, then the server closes the connection. A request has at
most 64 KiB:

  {"command":"status"}
  {"command":"figures"}
  {"command":"channels"}
  {"command":"reload","wait":true}
  {"command":"reload","abort":true}
  {"command":"stop","wait":true}
  {"command":"workers","workers":8,"wait":true}
  {"command":"profile","seconds":10,"hz":99,"worker":4711,"path":"/shop/"}
  {"command":"profile","dump":true}

Or a request of HTTP, which publishes: see L<Sirius::Control::HTTP>.

With C<wait> the answer comes when the command is done. C<ok> is 1 or 0; C<error> says why it is 0. What follows the
first line is ignored. A client may shut down its own direction; if it closes the connection, it gets no answer.

=head1 METHODS

=head2 act

  $control->act;

Accepts again after a pause: see L</due>.

=head2 close

  $control->close;

Drops all clients and closes the socket. In the process that made the file, also removes it, if it is still the same
file.

=head2 due

When L</act> has something to do: when there was no descriptor for a new client.

=head2 handle

  my $fh = $control->handle;

The listening socket.

=head2 new

  my $control = Sirius::Control::Server->new( $path, $publisher );

Listens at this path. C<$publisher>: the ID of a user who may publish, and do nothing else. A socket that nobody listens on any more is replaced. Dies with C<sirius: --control PATH: REASON>
when one is alive there or the path is something else.

=head2 serve

  $control->serve($dispatch);

Accepts, reads and writes what is possible without waiting. Calls C<< $dispatch->(\%request, $reply, $from, $waits) >> for each
request; C<%request> has C<command>, C<wait> (1 or 0) and perhaps C<workers>, all checked. C<< $reply->(\%answer) >>
may be called then or later; C<$from> says who has asked; C<< $waits->() >> whether the client is still there. A second answer, and one to a client that has gone, is dropped. An exception of
C<$dispatch> becomes the answer.

=head2 restore

  my $control = Sirius::Control::Server->restore($state);

In the next program of the same process, from L</state>, with its descriptors open.

=head2 state

  my $state = $control->state;

What can be written down, in front of an exec; C<fd> is a descriptor to keep open. Clients that have asked for nothing yet
are in it, and their descriptors are kept open here.

=head2 watch

  $control->watch($loop);

From now on this L<Sirius::OS::Loop> is woken for what L</serve> has to do.

=head1 SEE ALSO

L<Sirius::CLI::Ctl>, L<Sirius::Control::Client>, L<Sirius::Control::Place>, L<Sirius::Listen::Unix>, L<Sirius::Process::Supervisor>.

=cut
