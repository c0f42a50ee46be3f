package Sirius::Test::Swarm;

# Many short conversations at the same time: a thousand that take a second each take a second in all.
#
# A job is a hash: pieces (what is sent, with a pause after each: a list, or code that returns it), answers
# (how many are expected, 1), head (the answers are to HEAD; a list: which of them), finish (half-close
# after the last piece), follow (0: no request after the expected answers). When it is done: result,
# responses, port. The result is the statuses and how it ended:
#
#   "200 after"     answered and kept: a further request got its own answer and nothing else came
#   "400 closed"    answered, then closed by the server, the answer had said so
#   "400 reset", "timeout", "closed", "400 timeout", "garbage: ..."     and so on

use strict;
use warnings;
use Errno       qw(EAGAIN EINTR EWOULDBLOCK);
use Socket      qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(time);
use Sirius::Test::Client;
use Sirius::Test::Response;

# One empty line in front is valid (RFC 9112 2.2). After any byte that was left over, it makes a bad request
my $FOLLOW = "\r\nGET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

# Drives all jobs. Options: at_once (200), pause (seconds between two pieces, 0.002), patience (seconds
# after the last one, 10)
sub run {
    my ( $class, $address, $jobs, %option ) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $self = bless { at_once => 200, pause => 0.002, patience => 10, %option, active => {} }, $class;
    my @wait = @$jobs;
    my $most
        = $Sirius::Test::Client::TLS ? 8 : $self->{at_once};    # of 3 ms each: the other jobs wait meanwhile
    my $active = $self->{active};
    while ( @wait || %$active ) {
        my $opens = $most;
        $self->_open( $address, shift @wait ) while @wait && keys %$active < $self->{at_once} && $opens--;
        my $now = time;
        for my $job ( values %$active ) {
            $self->_send($job)              if @{ $job->{out} } && $now >= $job->{due};
            $self->_done( $job, 'timeout' ) if $now > $job->{until};
        }
        my $read = '';
        vec( $read, $_, 1 ) = 1 for keys %$active;
        my @held = grep { Sirius::Test::Client::buffered( $active->{$_}{client}->socket ) } keys %$active;
        next if select( $read, undef, undef, @held ? 0 : $self->{pause} ) <= 0 && !@held;
        vec( $read, $_, 1 ) = 1 for @held;
        vec( $read, $_, 1 ) && $self->_read( $active->{$_} ) for keys %$active;
    }
    return;
}

# Ways to deliver the same bytes: pairs of a name and a sub that returns the pieces (copies would fill the
# memory). Up to 2 KiB: byte by byte, and a split at every offset. Longer ones: the first and the last 300
# bytes one by one, the rest in pieces of 1,021; splits in the first and the last 300 bytes and around the
# first 100 line ends.
sub deliveries {
    my ( $class, $bytes ) = @_;
    my $length = length $bytes;
    return ( [ whole => sub {$bytes} ] ) if $length < 2;
    my %offset
        = map { $_ => 1 } $length <= 2048 ? 1 .. $length - 1 : ( 1 .. 300, $length - 300 .. $length - 1 );
    for (
        my ( $at, $count ) = ( 0, 0 );
        $count < 100 && ( $at = index $bytes, "\n", $at ) >= 0;
        $at++, $count++
        )
    {
        $offset{$_} = 1 for grep { $_ > 0 && $_ < $length } $at - 1 .. $at + 2;
    }
    return (
        [ whole          => sub {$bytes} ],
        [ 'byte by byte' => sub { singles($bytes) } ],
        map {
            my $at = $_;
            [ "split at $at" => sub { ( substr( $bytes, 0, $at ), substr $bytes, $at ) } ]
        } sort { $a <=> $b } keys %offset
    );
}

sub singles {
    my $bytes = shift;
    return split //, $bytes if length $bytes <= 2048;
    return (
        split( //, substr $bytes, 0, 300 ),
        unpack( '(a1021)*', substr $bytes, 300, length($bytes) - 600 ),
        split( //, substr $bytes, -300 )
    );
}

sub _open {
    my ( $self, $address, $job ) = @_;
    my $client = Sirius::Test::Client->new($address);
    $job->{client} = $client;
    $job->{fd}     = fileno $client->socket;
    $job->{port}   = $address =~ /\Aunix/ ? 0 : $client->port;
    $job->{in}     = '';
    $job->{out} = [ grep {length} ref $job->{pieces} eq 'CODE' ? $job->{pieces}->() : @{ $job->{pieces} } ];
    $job->{answers}   = 1 if !defined $job->{answers};
    $job->{responses} = [];
    $job->{due}       = 0;
    $job->{patience} ||= $self->{patience};
    $job->{until} = time + $job->{patience};
    $self->{active}{ $job->{fd} } = $job;
    return;
}

sub _done {
    my ( $self, $job, $end ) = @_;
    my @status = map { $_->status } @{ $job->{responses} };
    if ( $job->{followed} && @status > $job->{answers} ) {
        my $path = $job->{responses}[-1]->header('X-Path');
        $status[-1] = 'after' if defined $path    && $path eq '/after';
        $end        = ''      if $end eq 'closed' && $status[-1] eq 'after';
    }
    $job->{result} = join ' ', @status, length $end ? $end : ();
    my $socket = delete( $job->{client} )->socket;
    setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;    # avoids TIME_WAIT of thousands of ports
    close $socket;
    delete $self->{active}{ $job->{fd} };
    delete @$job{qw(in out)};
    return;
}

sub _send {
    my ( $self, $job ) = @_;
    my $n = syswrite $job->{client}->socket, $job->{out}[0];
    if ( defined $n ) {
        substr $job->{out}[0], 0, $n, '';
        shift @{ $job->{out} } if !length $job->{out}[0];
    } elsif ( $! != EAGAIN && $! != EWOULDBLOCK && $! != EINTR ) {
        $job->{out} = [];    # it is closed; what it has sent before can be read
    }
    $job->{due}   = time + $self->{pause};
    $job->{until} = $job->{due} + $job->{patience};
    $job->{client}->finish if !@{ $job->{out} } && $job->{finish};
    $self->_follow($job);
    return;
}

# Everything was sent and answered, and the connection is kept: asks once more, to see that no byte is left
# over
sub _follow {
    my ( $self, $job ) = @_;
    my $count = @{ $job->{responses} };
    return                              if @{ $job->{out} } || $count < $job->{answers} || $job->{followed};
    return                              if $count && $job->{responses}[-1]->closes;
    return                              if $job->{finish};
    return $self->_done( $job, 'kept' ) if exists $job->{follow} && !$job->{follow};
    return                              if !$count;
    $job->{followed} = 1;
    $job->{out}      = [$FOLLOW];
    return;
}

sub _read {
    my ( $self, $job ) = @_;
    my $n = sysread $job->{client}->socket, $job->{in}, 65_536, length $job->{in};
    return if !defined $n && ( $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR );
    my $end = defined $n ? ( $n ? '' : 'closed' ) : 'reset';
    while ( length $job->{in} ) {
        my $count    = @{ $job->{responses} };
        my $head     = $count < $job->{answers} && ( ref $job->{head} ? $job->{head}[$count] : $job->{head} );
        my $response = eval { Sirius::Test::Response->take( \$job->{in}, head => $head, eof => $end ) };
        if ($@) { chomp( my $why = $@ ); return $self->_done( $job, $why ) }
        last if !$response;
        if ( $response->status < 200 ) { push @{ $job->{interim} }, $response; next }
        push @{ $job->{responses} }, $response;
    }
    return $self->_follow($job) if !$end;
    $end = "cut $end" if length $job->{in};
    my $last = $job->{responses}[-1];
    $end = "$end without saying so" if $end eq 'closed' && $last && !$last->closes && !$job->{finish};
    return $self->_done( $job, $end );
}

1;
