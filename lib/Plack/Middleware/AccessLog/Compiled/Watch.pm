package Plack::Middleware::AccessLog::Compiled::Watch;

use strict;
use warnings;

sub close {
    my $self  = shift;
    my $inner = delete $self->{inner} or return;
    my $value = $inner->close;
    $self->_over;
    return $value;
}

sub getline {
    my $self = shift;
    my $line = $self->{inner} ? $self->{inner}->getline : undef;
    $self->{bytes} += length $line if defined $line;
    return $line;
}

sub new {
    my ( $class, $inner, $over ) = @_;
    return bless { inner => $inner, over => $over, bytes => 0 }, $class;
}

# The callback gets this object, so that what it writes is counted too
sub poll_cb {
    my ( $self, $cb ) = @_;
    return $self->{inner}->poll_cb( $cb && sub { $cb->($self) } );
}

sub write {
    my ( $self, @data ) = @_;
    defined and $self->{bytes} += length for @data;
    return $self->{inner}->write(@data);
}

sub _over {
    my $self = shift;
    my $over = delete $self->{over} or return;
    return $over->( $self->{bytes} );
}

sub DESTROY {
    my $self = shift;
    return if ${^GLOBAL_PHASE} eq 'DESTRUCT';
    local ( $@, $!, $? );    ## no critic (RequireInitializationForLocalVars)
    $self->_over;
    return;
}

1;

=encoding utf8

=head1 NAME

Plack::Middleware::AccessLog::Compiled::Watch - a body or a writer whose bytes are counted

=head1 SYNOPSIS

  my $body = Plack::Middleware::AccessLog::Compiled::Watch->new( $body, sub { my $bytes = shift; ... } );

=head1 DESCRIPTION

Stands for the body of a response that is read by C<getline>, or for the writer of one that is streamed. The callback is
called once: when it is closed, or when it is dropped without that, as happens when the client or the application has died.

=head1 METHODS

=head2 close

Closes what it stands for, then calls the callback.

=head2 getline

The next piece of the body.

=head2 new

  my $watch = Plack::Middleware::AccessLog::Compiled::Watch->new( $body_or_writer, $callback );

=head2 poll_cb

Of a writer that has it.

=head2 write

Writes a piece.

=head1 SEE ALSO

L<Plack::Middleware::AccessLog::Compiled>

=cut
