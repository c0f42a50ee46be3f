package Sirius::Log::Output;

use strict;
use warnings;

use Sirius::Base::Text;
use Sirius::Log ();
use Sirius::OS::Inherit;

use constant {
    LINE  => 4096,    # bytes of a line; a longer one becomes several
    PIECE => 16_384
    ,    # bytes that are read at a time, and written to the log in one call, as the reader has other work
    REST => 8,    # pieces that are read at the end: twice what a pipe holds
};

sub finish {
    my $self = shift;
    for ( 1 .. REST ) { last if !$self->_piece }
    $self->_say( delete $self->{begun} );
    delete $self->{handle};
    return;
}

sub handle { return shift->{handle} }

sub hear {
    my $self = shift;
    my $got  = $self->_piece;
    return !defined $got || $got;
}

sub new {
    my ( $class, %args ) = @_;
    return bless { begun => '', %args }, $class;
}

sub restore {
    my ( $class, $state ) = @_;
    return $class->new( %$state, handle => Sirius::OS::Inherit->take_handle( $state->{handle} ) );
}

sub state {
    my $self = shift;
    return { %$self, handle => fileno $self->{handle} };
}

# Parts that are not longer than a line may be. None begins in the middle of a character
sub _cut {
    my $line = shift;
    my @parts;
    while ( length $line > LINE ) {
        my $part = substr $line, 0, LINE;
        $part =~ s/[\xc0-\xff][\x80-\xbf]{0,3}\z// if substr( $line, LINE, 1 ) =~ /[\x80-\xbf]/;
        substr $line, 0, length $part, '';
        push @parts, $part;
    }
    return @parts, $line;
}

# Text in UTF-8 stays readable, but nothing may control a terminal, or look like another line
sub _harmless {
    my $bytes = shift;
    $bytes                  =~ s/\r+\z//;
    $bytes                  =~ tr/\t/ /;
    return $bytes if $bytes !~ /[^\x20-\x7e]/;
    my $text = $bytes;
    return Sirius::Base::Text->harmless($bytes) if !utf8::decode($text);
    $text =~ s/([\p{C}\p{Zl}\p{Zp}])/sprintf ord $1 > 255 ? '\x{%x}' : '\x%02x', ord $1/ge;
    utf8::encode($text);
    return $text;
}

# Undef: there is nothing now; 0: never again
sub _piece {
    my $self   = shift;
    my $handle = $self->{handle} or return 0;
    my $got    = sysread $handle, my $text, PIECE;
    return $got if !$got;
    my ( $whole, $begun ) = ( $self->{begun} . $text ) =~ /\A(.*\n)?([^\n]*)\z/s;
    my @parts = _cut($begun);
    $self->{begun} = pop @parts;
    $self->_say( ( defined $whole ? split /\n/, $whole : () ), @parts );
    return $got;
}

sub _say {
    my ( $self, @lines ) = @_;
    my $text = join '', map {"$self->{name}\[$self->{pid}]: $_\n"}
        map { _harmless($_) } grep {/[^\s]/} map { _cut($_) } @lines;
    Sirius::Log->relay($text) if length $text;
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Log::Output - what another program prints, as lines of the error log

=head1 SYNOPSIS

  use Sirius::Log::Output;

  my $output = Sirius::Log::Output->new( handle => $pipe, name => 'jobs', pid => 4711 );
  $output->hear;      # when it can be read
  $output->finish;    # when the program has ended

=head1 DESCRIPTION

Each line has the name of the program and its PID before it: C<jobs[4711]: 3 mails sent>. Control characters, and bytes that are not
UTF-8, are escaped, as C<\x1b>; a tab becomes a blank. Empty lines are left out. A line of more than 4096 bytes becomes several. What has no end of a line yet is kept until it has.

The handle is not blocking. At most 16 KiB are read at a time, so that a program that prints without end is slowed down, and not the
process that reads. A log that takes nothing loses lines, as with any other line of that process (L<Sirius::Log/hurry>).

=head1 METHODS

=head2 finish

  $output->finish;

Reads what is left, and closes the handle.

=head2 handle

What it reads from; undef after L</finish>.

=head2 hear

  my $bool = $output->hear;

Reads what there is, up to a limit. False at the end of the file.

=head2 new

  my $output = Sirius::Log::Output->new( handle => $handle, name => $name, pid => $pid );

=head2 restore, state

For the next program of the process: C<handle> of the state is the number of a descriptor to keep open.

=head1 SEE ALSO

L<Sirius::Log>, L<Sirius::Process::Companion>.

=cut
