package Sirius::Soak::Client;

# One client of a soak: makes requests that have a number each, and judges their answers to the byte. What
# went wrong is told to the one who reads its pipe, in lines whose words stand between tabs:
#
#   requests COUNT
#   failure SINCE NOW KIND WHAT PID ID     monotonic seconds; PID of the worker that has answered, 0: unknown
#   kind COUNT RIGHT KIND                  at its end

use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use Sirius::Soak::App;
use Sirius::Test::Client;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime sleep);

use constant { PATIENCE => 60, TOLD => 50 };

# The others: 200
my %STATUS = ( die => 500, exit => 500, nothing => 204, same => 304, stuck => 504 );

# Options: address, number (its own), tell (a handle), file_size (of the one the application serves)
sub new {
    my ( $class, %option ) = @_;
    return bless { answered => '', count => {}, done => 0, alive => {}, request => 0, %option }, $class;
}

# Bytes in pieces of as many bytes, as a chunked message
sub chunked {
    my ( $class, $body, $size, @trailers ) = @_;
    return join '', map( { sprintf "%x\r\n%s\r\n", length, $_ } unpack "(a$size)*", $body ),
        map( {"$_\r\n"} '0', @trailers, '' );
}

sub done { return shift->{done} }

sub now { return clock_gettime(CLOCK_MONOTONIC) }

# A request. Options: length (of the answer), fields, body (of the request), raw (the same as it is sent),
# version
sub request {
    my ( $self, $method, $what, %option ) = @_;
    my $number = ++$self->{request};
    my $id     = "$self->{number}-$number";
    my $length = defined $option{length} ? $option{length} : int rand 4000;
    my $line   = join q( ), $method, "/$what/$id?$length", $option{version} || ();
    my $body   = $option{raw} ? undef : $option{body};
    my $bytes
        = Sirius::Test::Client::request( $line, @{ $option{fields} || [] }, defined $body ? \$body : () );
    my $status = $STATUS{$what} || 200;
    my $want
        = $status != 200 || $method eq 'HEAD' ? ''
        : $what eq 'post'                     ? md5_hex( $option{body} ) . q( ) . length $option{body}
        : $what eq 'file'                     ? Sirius::Soak::App->body_of_file( $number, $self->{file_size} )
        :                                       Sirius::Soak::App->body( $number, $length );
    return {
        bytes         => $bytes . ( defined $option{raw} ? $option{raw} : '' ),
        by_app        => $status < 500,
        ends_by_close => $what eq 'stream' && defined $option{version},
        head          => $method eq 'HEAD',
        id            => $id,
        number        => $number,
        status        => $status,
        what          => $what,
        want          => $want,
    };
}

# Sends it on the connection that is kept, or on one of its own (close), at once or in so many pieces, and
# judges the answer: at once or when it has slept for so many seconds (late)
sub ask {
    my ( $self, $kind, $request, %option ) = @_;
    my $connection = $self->connection(%option) or return $self->failure( $kind, $request, 'no connection' );
    my $bytes      = $request->{bytes};
    my $size       = 1 + int( length($bytes) / ( $option{pieces} || 1 ) );
    for my $piece ( unpack "(a$size)*", $bytes ) {
        $connection->send( $piece, PATIENCE );
        sleep 0.001 if $option{pieces};
    }
    sleep $option{late} if $option{late};
    return $self->judge( $kind, $request, $connection, $option{close} || $option{rcvbuf} );
}

# The one that is kept, or one of its own; undef when it can't be had. It is about to be used: when it was
# last known to be alive is when the last request was sent that was answered, for an answer may have been here
# long before it was read
sub connection {
    my ( $self, %option ) = @_;
    my $own   = $option{close} || $option{rcvbuf};
    my $since = $self->{asked} = now();
    return $self->{kept} if !$own && $self->{kept};
    my $connection = eval {
        Sirius::Test::Client->new( $self->{address}, $option{rcvbuf} ? ( rcvbuf => $option{rcvbuf} ) : () );
    };
    return if !$connection;
    $self->{kept}  = $connection if !$own;
    $self->{alive} = { map( { $_ => $self->{alive}{$_} } $self->{kept} || () ), $connection => $since };
    return $connection;
}

# Several requests at once, answered in their order
sub pipeline {
    my ( $self, $kind, @requests ) = @_;
    my $connection = $self->connection;
    $connection->send( join( '', map { $_->{bytes} } @requests ), PATIENCE ) if $connection;
    for my $request (@requests) {
        if ($connection) { $self->judge( $kind, $request, $connection ) }
        else             { $self->failure( $kind, $request, 'no connection' ) }
    }
    return;
}

# The next answer on this connection is the right one, and the last when the connection is of this request
# alone
sub judge {
    my ( $self, $kind, $request, $connection, $own ) = @_;
    my $answer = $connection->response( head => $request->{head}, patience => PATIENCE );
    my $what
        = $self->_wrong( $request, $answer, $connection ) || $self->_wrong_end( $answer, $connection, $own );
    return $self->failure( $kind, $request, $what, $answer, $connection ) if $what;
    vec( $self->{answered}, $request->{number}, 32 ) = _pid( $answer, $connection ) if $request->{by_app};
    $self->{alive}{$connection} = $self->{asked};
    return $self->count( $kind, 1 );
}

# One request more, right or not
sub count {
    my ( $self, $kind, $right ) = @_;
    $self->{count}{$kind}[0]++;
    $self->{count}{$kind}[1] += $right;
    $self->tell( 'requests', TOLD ) if ++$self->{done} % TOLD == 0;
    return;
}

sub failure {
    my ( $self, $kind, $request, $what, $answer, $connection ) = @_;
    my $since = $connection && $self->{alive}{$connection} || now();
    $self->tell( 'failure', $since, now(), $kind, $what, _pid( $answer, $connection ), $request->{id} );
    delete $self->{kept};
    return $self->count( $kind, 0 );
}

sub tell {
    my ( $self, @words ) = @_;
    syswrite $self->{tell}, join( "\t", @words ) . "\n" or die "the one who listens is gone: $!\n";
    return;
}

sub finish {
    my $self = shift;
    $self->tell( 'requests', $self->{done} % TOLD );
    $self->tell( 'kind', @{ $self->{count}{$_} }, $_ ) for sort keys %{ $self->{count} };
    return $self->{answered};
}

# Also of an answer that was cut; 0: unknown
sub _pid {
    my ( $answer, $connection ) = @_;
    my $pid = $answer && $answer->header('X-Pid');
    ($pid) = $connection->pending =~ /^X-Pid: (\d+)\r$/m if $connection && !$pid;
    return $pid || 0;
}

# What is wrong with this answer: nothing, or some words
sub _wrong {
    my ( $self, $request, $answer, $connection ) = @_;
    my $status = $answer->status;
    if ( $status !~ /\A\d+\z/ ) {
        return $status if $status   !~ /\A(?:cut|eof|reset)\z/;
        return $connection->pending =~ /\r\n\r\n/ ? $request->{what} eq 'cut' ? '' : 'cut' : 'unanswered';
    }
    if ( $status != $request->{status} ) {
        return $status >= 500 ? "error $status" : "status $status instead of $request->{status}";
    }
    return ''                              if !$request->{by_app};
    return 'the answer to another request' if ( $answer->header('X-Id') || '' ) ne $request->{id};
    return ''                              if $answer->body eq $request->{want};
    return 'cut' if $request->{ends_by_close} && index( $request->{want}, $answer->body ) == 0;
    return 'not the right bytes';
}

# After the last answer comes the end, after another one nothing yet
sub _wrong_end {
    my ( $self, $answer, $connection, $own ) = @_;
    my $closes = $answer->closes || $answer->status !~ /\A\d/;
    delete $self->{kept}      if $closes && !$own;
    return 'does not close'   if $own    && !$closes;
    return ''                 if !$closes;
    return 'cut, but goes on' if !length $connection->pending && $answer->status eq 'cut';
    return '' if $answer->status eq 'cut' || $connection->end(PATIENCE) =~ /\A(?:eof|reset)\z/;
    return 'something behind the last answer';
}

1;
