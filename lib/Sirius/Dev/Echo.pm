package Sirius::Dev::Echo;

use strict;
use warnings;

use List::Util qw(min);

use constant {
    IN_A_ROW  => 5,      # changes by the application that are loaded like others
    PAUSE     => 1,      # seconds that the next one waits; each further one twice as long
    PAUSE_MAX => 300,    # and at the most
};

# How long a change waits: 0, it does not. by_itself: the application was at work then
sub changed {
    my ( $self, $by_itself, @paths ) = @_;
    $self->_forget if !$by_itself || !grep { $self->{paths}{$_} } @paths;
    return 0       if !$by_itself;
    my $is_known = !grep { !$self->{known}{$_} } @paths;
    $self->{paths} = { map { $_ => 1 } @paths };
    return 0 if ++$self->{times} <= IN_A_ROW && !$is_known;
    $self->{known}{$_} = 1 for @paths;
    return $self->{pause} = min PAUSE_MAX, $self->{pause} ? 2 * $self->{pause} : PAUSE;
}

# Whether these are no more than what waits already
sub has {
    my ( $self, @paths ) = @_;
    return !grep { !$self->{paths}{$_} } @paths;
}

sub new {
    my $class = shift;
    my $self  = bless { known => {}, told => {} }, $class;
    $self->_forget;
    return $self;
}

sub paths {
    my @paths = sort keys %{ shift->{paths} };
    return @paths;
}

sub pause { return shift->{pause} }

sub times { return shift->{times} }

# Once for each set of files
sub to_tell {
    my $self = shift;
    return !$self->{told}{ join "\0", $self->paths }++;
}

sub _forget {
    my $self = shift;
    @{$self}{qw(paths pause times)} = ( {}, 0, 0 );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Echo - notices an application that changes its own files

=head1 SYNOPSIS

  my $echo  = Sirius::Dev::Echo->new;
  my $pause = $echo->changed( $at_work, @paths );
  load() if !$pause;

=head1 DESCRIPTION

An application that writes a file of those that are watched, each time it is loaded or in each request, would be loaded again for
ever. Nobody tells who has written a file. But what a person saves comes while the application is idle, at least once in
a while. So changes count in which a file of the previous one is changed again, while the application is being loaded or answers a
request; code that it has loaded counts only while it is being loaded. From the sixth one in a row they wait, for 1, 2, 4 ... 300 seconds; in later rows these files wait from the first one on.
Any other change ends the row, and does not wait.

=head1 METHODS

=head2 changed

  my $pause = $echo->changed( $at_work, @paths );

The seconds after which the application is to be loaded again for this change; 0 for at once. The first argument says whether it was at
work when the files were changed.

=head2 has

  return if $echo->has(@paths);

True if all of these are among the files of the last change in the row.

=head2 new

  my $echo = Sirius::Dev::Echo->new;

=head2 pause, paths, times

The last pause; the files of the last change; how many there have been in a row.

=head2 to_tell

  warn 'again: ', $echo->paths if $echo->to_tell;

True the first time for these files.

=head1 SEE ALSO

L<Sirius::Dev::Reload>.

=cut
