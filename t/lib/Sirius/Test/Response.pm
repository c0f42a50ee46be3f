package Sirius::Test::Response;

# A strict reader of HTTP/1.1 responses (RFC 9112). It refuses what a lenient client would repair, because a
# proxy in between may repair it in another way.

use strict;
use warnings;

my $TOKEN = qr/[!#\$%&'*+\-.^_`|~0-9A-Za-z]+/;
my $DATE  = qr/(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),[ ]\d\d[ ]
               (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ ]\d{4}[ ]\d\d:\d\d:\d\d[ ]GMT/x;

# Stands for a response that did not come: its status is the reason ("timeout", "eof", "reset", "garbage:
# ...")
sub failure {
    my ( $class, $reason ) = @_;
    return bless { status => $reason, reason => '', headers => [], body => '', interim => [] }, $class;
}

# Takes one response from the front of $$bytes. Options: head (it answers a HEAD), eof (no more bytes come).
# Returns undef if it is not complete, dies with "garbage: ..." if it is invalid.
sub take {
    my ( $class, $bytes, %option ) = @_;
    my $end = index $$bytes, "\r\n\r\n";
    if ( $end < 0 ) {
        garbage("no status line in '$$bytes'")
            if substr( $$bytes, 0, 9 ) ne substr 'HTTP/1.1 ', 0, length substr $$bytes, 0, 9;
        return;
    }
    my $self  = $class->_head( substr $$bytes, 0, $end );
    my $taken = $self->_body( $bytes, $end + 4, %option ) or return;
    substr $$bytes, 0, $taken, '';
    return $self;
}

sub body    { return $_[0]{body} }
sub chunks  { return @{ $_[0]{chunks} || [] } }
sub interim { return @{ $_[0]{interim} } }

sub names {
    return map { $_->[0] } @{ $_[0]{headers} };
}
sub reason { return $_[0]{reason} }
sub status { return $_[0]{status} }

# Whether the response says that the connection ends with it
sub closes {
    my $self = shift;
    return scalar grep { lc eq 'close' } split /[ \t]*,[ \t]*/, join ',', $self->headers('Connection');
}

# The value of a field; undef without one, all values joined by " AND " if there are several
sub header {
    my ( $self, $name ) = @_;
    my @value = $self->headers($name);
    return @value ? join ' AND ', @value : undef;
}

sub headers {
    my ( $self, $name ) = @_;
    return map { $_->[1] } grep { lc $_->[0] eq lc $name } @{ $self->{headers} };
}

sub garbage { die "garbage: $_[0]\n" }

sub _head {
    my ( $class,  $head )   = @_;
    my ( $first,  @line )   = split /\r\n/, $head, -1;
    my ( $status, $reason ) = $first =~ /\AHTTP\/1\.1 ([1-9]\d\d) ([\t\x20-\x7e]*)\z/
        or garbage("status line '$first'");
    my @header;
    for my $line (@line) {
        my ( $name, $value ) = $line =~ /\A($TOKEN):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)\z/
            or garbage("field line '$line'");
        push @header, [ $name, $value ];
    }
    my $self = bless { status => $status, reason => $reason, headers => \@header, body => '', interim => [] },
        $class;
    $self->_check;
    return $self;
}

sub _check {
    my $self = shift;
    my ( $status, @te ) = ( $self->{status}, $self->headers('Transfer-Encoding') );
    my @length = $self->headers('Content-Length');
    garbage("Transfer-Encoding '@te'")        if @te                && "@te" ne 'chunked';
    garbage("Content-Length '@length'")       if @length            && "@length" !~ /\A(?:0|[1-9]\d*)\z/;
    garbage('Content-Length beside chunked')  if @te                && @length;
    garbage("a framing field in a $status")   if ( @te || @length ) && ( $status < 200 || $status == 204 );
    garbage("Transfer-Encoding in a $status") if @te                && $status == 304;
    my @date = $self->headers('Date');
    garbage("Date '@date' in a $status") if $status >= 200 && "@date" !~ /\A$DATE\z/;
    return;
}

# Reads the body, which begins at $at, by its framing. Returns where it ends, and nothing if it is not
# complete. This is asked after each read, so a body is copied once, when all of it is there: 30 MB copied at
# each read take longer than they are waited for.
sub _body {
    my ( $self, $bytes, $at, %option ) = @_;
    my $status = $self->{status};
    return $at if $option{head} || $status < 200 || $status == 204 || $status == 304;
    return $self->_chunked( $bytes, $at ) if $self->headers('Transfer-Encoding');
    if ( defined( my $length = $self->header('Content-Length') ) ) {
        return if length($$bytes) - $at < $length;
        $self->{body} = substr $$bytes, $at, $length;
        return $at + $length;
    }
    garbage("a $status with no end: no length, not chunked, no 'Connection: close'") if !$self->closes;
    return                                                                           if !$option{eof};
    $self->{until_close} = 1;
    $self->{body}        = substr $$bytes, $at;
    return length $$bytes;
}

sub _chunked {
    my ( $self, $bytes, $at ) = @_;
    my @place;
    while (1) {
        my $eol  = index $$bytes, "\r\n", $at;
        my $line = substr $$bytes, $at, $eol < 0 ? 18 : $eol - $at;
        garbage("chunk size '$line'")
            if $eol >= 0 ? $line !~ /\A[0-9A-Fa-f]{1,16}\z/ : $line =~ /[^0-9A-Fa-f\r]/;
        return if $eol < 0;
        my $size = hex $line;
        $at = $eol + 2;
        return                                              if length $$bytes < $at + $size + 2;
        garbage("a chunk of $size bytes ends without CRLF") if substr( $$bytes, $at + $size, 2 ) ne "\r\n";
        push @place, [ $at, $size ] if $size;
        $at += $size + 2;
        last if !$size;
    }
    my @chunk = map { substr $$bytes, $_->[0], $_->[1] } @place;
    $self->{body}   = join '', @chunk;
    $self->{chunks} = \@chunk;
    return $at;
}

1;
