package Sirius::Control::Client;

use strict;
use warnings;

use Errno               qw(EAGAIN ECONNREFUSED EINTR ENOENT);
use Fcntl               qw(F_SETFL O_NONBLOCK);
use JSON::PP            ();
use List::Util          qw(min);
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Listen::Unix;
use Sirius::OS::Peer;
use Sirius::OS::Proc;
use Socket      qw(AF_UNIX MSG_NOSIGNAL SOCK_STREAM pack_sockaddr_un);
use Time::HiRes qw(sleep);

use constant {
    ENDS     => 3,       # seconds in which a process ends that has closed the connection
    LOOK     => 0.02,    # seconds between two checks whether a process is gone, or its queue has room
    PATH_MAX => Sirius::Listen::Unix->PATH_MAX,    # bytes of sun_path without its NUL
    TRIES    => 3,    # a server that becomes a new program drops requests that are not complete
};

sub ask {
    my ( $self, $request ) = @_;
    my $line   = $self->_talk($request);
    my $answer = eval { JSON::PP->new->utf8->decode($line) };
    _fail( refused => "$self->{path} is not the control socket of a Sirius server" ) if ref $answer ne 'HASH';
    return _harmless($answer), $line;
}

sub new {
    my ( $class, $path, $timeout ) = @_;
    _fail( wrong => "--control $path: the path has more than ${\ PATH_MAX} bytes" )
        if length $path > PATH_MAX;
    my $deadline = defined $timeout ? now() + $timeout : undef;
    return bless { deadline => $deadline, path => $path, timeout => $timeout }, $class;
}

sub pid { return shift->{server}[0] }

sub publish {
    my ( $self, $packed ) = @_;
    require Sirius::Control::HTTP;
    my $answer = '';
    for ( 1 .. TRIES ) {
        my $fh = $self->_connect;
        $self->_send( $fh, Sirius::Control::HTTP->request($packed) );
        $answer = $self->_answer( $fh, qr/\n\r?\n.*\n/s );
        last if length $answer;
    }
    my ( $status, $text ) = $answer =~ m{\AHTTP/1[.]1 (\d+).*?\n\r?\n(.*)\n\z}s;
    return if ( $status // 0 ) == 200;
    my ($refused) = $answer =~ /"error":"(.*?)"/;    # of another version, or to another user
    return _fail(
        refused => _harmless(
            $text // $refused // "the server at $self->{path} closed the connection without an answer"
        )
    );
}

# It has answered; now its process ends
sub wait_end {
    my $self = shift;
    my ( $pid, $born ) = @{ $self->{server} };
    while ( defined $born && ( Sirius::OS::Proc->born($pid) || '' ) eq $born ) {
        $self->_left("PID $pid has not exited");
        sleep LOOK;
    }
    return;
}

# What the server has answered until $whole matches, or it closed the connection
sub _answer {
    my ( $self, $fh, $whole ) = @_;
    my $text = '';
    while ( $text !~ $whole ) {
        my $left = $self->_left('no answer');
        my $bits = '';
        vec( $bits, fileno $fh, 1 ) = 1;
        next if select( $bits, undef, undef, $left ) <= 0;
        my $got = sysread $fh, $text, 65_536, length $text;
        next if !defined $got && ( $! == EAGAIN || $! == EINTR );
        last if !$got;
    }
    return $text;
}

sub _connect {
    my $self = shift;
    my $path = $self->{path};
    socket my $fh, AF_UNIX, SOCK_STREAM, 0 or _fail( unreachable => "socket: $!" );
    fcntl $fh, F_SETFL, O_NONBLOCK or _fail( unreachable => "fcntl: $!" );
    while ( !connect $fh, pack_sockaddr_un($path) ) {
        next if $! == EINTR;
        _fail( unreachable => "no server is listening on $path: $!" ) if $! == ECONNREFUSED || $! == ENOENT;
        _fail( unreachable => "cannot use the socket $path: $!" )     if $! != EAGAIN;
        $self->_left('its queue is still full');
        sleep LOOK;
    }
    return $fh;
}

sub _fail {
    my ( $kind, $text ) = @_;
    die { kind => $kind, text => $text };
}

# Root may ask a socket of any user, and shows the answer in a terminal
sub _harmless {
    my $value = shift;
    if ( ref $value eq 'HASH' ) {
        %$value = map { _harmless($_) } %$value;
    } elsif ( ref $value eq 'ARRAY' ) {
        $_ = _harmless($_) for @$value;
    } elsif ( !ref $value && defined $value && $value =~ /[^\n\t\x20-\x7e]/ ) {
        $value =~ s/(?![\n\t])([\p{C}\p{Zl}\p{Zp}])/Sirius::Base::Text->harmless($1)/ge;
    }
    return $value;
}

# Whether the process that has closed the connection ends. If it is not visible, nobody listens then
sub _has_ended {
    my $self = shift;
    my ( $pid, $born ) = @{ $self->{server} };
    my $until = min now() + ENDS, $self->{deadline} // ();
    my $there = sub {
        return $pid ? ( Sirius::OS::Proc->born($pid) // '' ) eq ( $born // 'ended' ) : $self->_listens;
    };
    while ( $there->() ) {
        return 0 if now() >= $until;
        sleep LOOK;
    }
    return 1;
}

# The seconds left for a step, undef for no limit
sub _left {
    my ( $self, $what ) = @_;
    return if !defined $self->{deadline};
    my $left = $self->{deadline} - now();
    return $left if $left > 0;
    return _fail( timeout => sprintf '%s: %s after %g s', $self->{path}, $what, $self->{timeout} );
}

sub _listens {
    my $self = shift;
    socket my $fh, AF_UNIX, SOCK_STREAM, 0 or return 1;
    fcntl $fh, F_SETFL, O_NONBLOCK;
    return connect( $fh, pack_sockaddr_un( $self->{path} ) ) || $! != ECONNREFUSED && $! != ENOENT;
}

# All of it, or until the server does not take more: then it has given its reason
sub _send {
    my ( $self, $fh, $bytes ) = @_;
    while ( length $bytes ) {
        my $sent = send $fh, $bytes, MSG_NOSIGNAL;
        if ( defined $sent ) {
            substr $bytes, 0, $sent, '';
            next;
        }
        next   if $! == EINTR;
        return if $! != EAGAIN;
        my $left = $self->_left('it does not read');
        my $bits = '';
        vec( $bits, fileno $fh, 1 ) = 1;
        select undef, $bits, undef, $left;
    }
    return;
}

# Sends the request and returns the server's line
sub _talk {
    my ( $self, $request ) = @_;
    my $fh = $self->_connect;
    my ($pid) = ( Sirius::OS::Peer->of($fh), 0 );    # 0: not visible, as from another container
    $self->{server} = [ $pid, Sirius::OS::Proc->born($pid) ];

    # The request fits the socket's buffer. A server that refuses it may have closed already, and given its
    # reason
    send $fh, JSON::PP->new->canonical->utf8->encode($request) . "\n", MSG_NOSIGNAL;
    my ($line) = $self->_answer( $fh, qr/\n/ ) =~ /\A([^\n]*)\n/ ? $1 : '';
    return $line                       if length $line;
    return '{"ok":1,"text":"stopped"}' if $request->{command} eq 'stop' && $self->_has_ended;
    return _fail( refused => "the server at $self->{path} closed the connection without an answer" );
}

1;

=encoding utf8

=head1 NAME

Sirius::Control::Client - talks to the control socket of a server

=head1 SYNOPSIS

  use Sirius::Control::Client;

  my $client = Sirius::Control::Client->new( '/run/app.control', 10 );
  my ( $answer, $line ) = $client->ask( { command => 'reload', wait => JSON::PP::true() } );

=head1 DESCRIPTION

The other end of L<Sirius::Control::Server>, which describes what is said. It needs no PID and sends no signal, so it cannot affect an
unrelated process. Nothing waits beyond the time limit of L</new>.

=head1 METHODS

Each method dies with a hash when it fails: C<text> says why, and C<kind> is C<wrong> (the path cannot be one of a socket),
C<unreachable> (no server is listening), C<refused> (what listens gave no answer, or another one) or C<timeout>.

=head2 ask

  my ( $answer, $line ) = $client->ask( \%request );

Sends the request, and returns the answer of the server, decoded and as it came. Call it once. A server that is asked to stop and ends
without an answer has stopped.

=head2 new

  my $client = Sirius::Control::Client->new( $path, $seconds );

For the control socket at C<$path>. All that follows has C<$seconds> together; undefined: no limit.

=head2 pid

The PID of the process that has answered; 0 if it is not visible, as from another container.

=head2 publish

  $client->publish($packed);

Publishes an item (L<Sirius::Channel::Item>). Returns when the server has passed it on to its edges.

=head2 wait_end

  $client->wait_end;

Returns when the process that has answered has exited.

=head1 SEE ALSO

L<Sirius::CLI::Ctl>, L<Sirius::Control::Server>.

=cut
