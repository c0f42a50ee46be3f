package Sirius::Dev::RequestLog;

use strict;
use warnings;

use Fcntl       qw(F_GETFL F_SETFL O_NONBLOCK);
use POSIX       ();
use Sirius::Log ();
use Sirius::Log::File;

use constant {
    F_SETPIPE_SZ => 1031,
    FORMAT       => "%r\t%>s\t%D\t%{queue}D\t%{cut-by}x",
    ROOM         => 1 << 20,
    WAITED       => 1000,                                   # microseconds that are worth being told
};

# Colours of a status, by its first digit, and of the less important parts
my %COLOUR = ( 1 => '36', 2 => '32', 3 => '36', 4 => '33', 5 => '1;31', soft => '2', method => '1' );

my %CUT = ( client => 'the client closed the connection', server => 'the response was cut' );

# What has come is printed
sub act {
    my $self = shift;
    1 while sysread $self->{read}, $self->{heard}, 65_536, length $self->{heard};
    while ( $self->{heard} =~ s/\A([^\n]*)\n// ) {
        my $line = $self->line($1);
        Sirius::Log->pass("$line\n") if defined $line;
    }
    return;
}

sub due { return () }

sub fd { return fileno shift->{write} }

sub fh { return shift->{write} }

sub forget {return}

sub handle { return shift->{read} }

sub kind { return 'pipe' }

# A line for the terminal, of one of the edge
sub line {
    my ( $self, $entry ) = @_;
    my ( $request, $status, $took, $waited, $how ) = split /\t/, $entry;
    return if !defined $how;
    my ( $method, $target )
        = $request =~ m{\A(\S+) (.*?)(?: HTTP/[\d.]+)?\z}s ? ( $1, $2 ) : ( '-', $request );
    return if defined $self->{hidden} && $target =~ $self->{hidden};
    my $text = join q( ),
        $self->_paint( soft   => POSIX::strftime( '%H:%M:%S', localtime ) ),
        $self->_paint( method => sprintf '%-4s', $method ),
        $target, $self->_paint( substr( $status, 0, 1 ), $status ),
        _milliseconds($took);
    $text .= $self->_paint( soft => ' (waited ' . _milliseconds($waited) . ')' )
        if $waited =~ /\A\d+\z/ && $waited >= WAITED;
    $text .= $self->_paint( 5 => q( ) . $CUT{$how} ) if $CUT{$how};
    return $text;
}

# conf: with the format; colours: whether; hidden: a pattern of paths that are the server's own
sub new {
    my ( $class, %args ) = @_;
    pipe my $read, my $write or Sirius::Log->fail("cannot create a pipe: $!");
    ( $read, $write )
        = map { Sirius::Log::File->high($_) || Sirius::Log->fail("cannot create a pipe: $!") } $read, $write;
    fcntl $write, F_SETPIPE_SZ, ROOM;    # less will do
    fcntl $_, F_SETFL, O_NONBLOCK | fcntl $_, F_GETFL, 0
        or Sirius::Log->fail("F_SETFL: $!")
        for $read, $write;
    return bless { heard => '', read => $read, write => $write, %args }, $class;
}

sub pipe     { return shift->{pipe} }
sub priority { return shift->{priority} }
sub release  {return}
sub reopen   { return 0 }

sub _milliseconds {
    my $microseconds = shift;
    return '-' if !defined $microseconds || $microseconds !~ /\A\d+\z/;
    my $ms = $microseconds / 1000;
    return $ms >= 1000 ? sprintf '%.2f s', $ms / 1000 : sprintf $ms < 10 ? '%.1f ms' : '%.0f ms', $ms;
}

sub _paint {
    my ( $self, $how, $text ) = @_;
    my $code = $COLOUR{$how};
    return $self->{colours} && $code ? "\e[${code}m$text\e[0m" : $text;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::RequestLog - the access log for somebody who watches a terminal

=head1 SYNOPSIS

  my $log = Sirius::Dev::RequestLog->new( colours => -t STDERR );
  $loop->watch( $log->handle );
  $log->act;

=head1 DESCRIPTION

Takes the place of a L<Sirius::Log::Access>: the edges write into a pipe, and the supervisor prints what comes, with the status in
colour, and the time that the request has waited for a worker if that is a millisecond or more.

  14:03:07 GET  /books?page=2 200 3.1 ms
  14:03:12 POST /books 302 81 ms (waited 74 ms)

=head1 METHODS

=head2 act

Prints what has come.

=head2 due, fd, fh, forget, kind, pipe, priority, release, reopen

As those of a L<Sirius::Log::Access>, and of a member of a L<Sirius::OS::Loop>.

=head2 handle

Readable when there is something to print.

=head2 line

  my $text = $log->line($entry);

The line to be printed for an entry in the format C<FORMAT>, or undef.

=head2 new

  my $log = Sirius::Dev::RequestLog->new( colours => $bool, hidden => qr{\A/own} );

=head1 SEE ALSO

L<Sirius::Dev::Session>.

=cut
