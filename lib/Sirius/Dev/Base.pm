package Sirius::Dev::Base;

use strict;
use warnings;

use JSON::PP     ();
use Scalar::Util qw(weaken);
use Sirius::OS::Inherit;
use Sirius::OS::Passing;

my $JSON = JSON::PP->new->ascii->canonical;

# False with $!: it does not listen
sub ask {
    my ( $self, $order, @descriptors ) = @_;
    my $text = $JSON->encode( Sirius::OS::Inherit->text($order) );
    return Sirius::OS::Passing->send( fileno $self->{line}, $text, @descriptors );
}

sub child { return shift->{child} }

# What it says, decoded
sub hear {
    my $self = shift;
    my @heard;
    while ( defined( my $text = Sirius::OS::Passing->receive( fileno $self->{line} ) ) ) {
        my $note = eval { $JSON->decode($text) };
        push @heard, Sirius::OS::Inherit->bytes($note) if ref $note eq 'HASH';
    }
    return @heard;
}

sub is_gone { return shift->{child}->is_gone }

sub line { return shift->{line} }

# Starts a child that runs the original command until it would load the application. Dies if it cannot
sub new {
    my ( $class, %args )   = @_;
    my ( $line,  $theirs ) = Sirius::OS::Passing->pair
        or die "cannot create a socket pair: $!\n";
    my $child = $args{launch}->base( { base => $theirs, %{ $args{handles} } } );
    my $self  = bless { child => $child, line => $line, loop => $args{loop} }, $class;
    my $ended = $args{ended};
    weaken( my $own = $self );
    $child->on_end( sub { $ended->( $own, $_[1] ) if $own } );
    $args{reaper}->add($child);
    $args{loop}->watch($line);
    return $self;
}

sub release {
    my $self = shift;
    $self->{loop}->unwatch( $self->{line} );
    $self->{child}->begin_again;    # it may have waited for hours
    return $self->{child};
}

# In place of this one another is started, or none
sub stop {
    my $self  = shift;
    my $child = $self->release;
    $child->on_end( sub { } );
    $child->signal('KILL');
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Base - the process that generations are forked from, as the supervisor sees it

=head1 SYNOPSIS

  my $base = Sirius::Dev::Base->new(
      ended  => sub { my ( $base, $status ) = @_; ... },
      launch => $launch,
      loop   => $loop,
      reaper => $reaper,
  );
  $base->ask( { preload => [ [ 'Plack/Request.pm', '/usr/share/perl5/Plack/Request.pm' ] ] } );
  $base->ask( { number => 3 }, fileno $report, fileno $said );
  $_->{pid} && print "generation $_->{number}: $_->{pid}\n" for $base->hear;

=head1 DESCRIPTION

What the process itself does is in L<Sirius::Dev::Preloader>.

=head1 METHODS

=head2 ask

  $base->ask( $order, @descriptors );

Sends an order. It is carried out after those that were sent before.

=head2 child

Its L<Sirius::OS::Child>.

=head2 hear

What it has said since the last call: hashes.

=head2 is_gone

True when it has ended.

=head2 line

The socket to it.

=head2 new

  my $base = Sirius::Dev::Base->new(%args);

Starts it; C<ended> is called with it and its status when it has ended. C<handles>: what generations get besides, by their
names in the state of L<Sirius::Process::Launch>. C<launch>, C<loop> and C<reaper> are those of the server.

=head2 release

  my $child = $base->release;

The process has become a generation: its L<Sirius::OS::Child>, to which nothing else is said here any more.

=head2 stop

  $base->stop;

Kills it; nobody is told of its end.

=head1 SEE ALSO

L<Sirius::Dev::Reload>.

=cut
