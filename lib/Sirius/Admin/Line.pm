package Sirius::Admin::Line;

use strict;
use warnings;

use Sirius::Base::Clock qw(now);
use Sirius::OS::Passing;
use POSIX ();

use constant PATIENCE => 0.2;    # seconds that the supervisor has to answer

# In the supervisor: answers the questions on its end. False when the other end is closed
sub answer {
    my ( $class, $line, %answers ) = @_;
    my $over;
    while ( !defined $over ) {
        $! = 0;    ## no critic (RequireLocalizedPunctuationVars)
        my ( $asked, @descriptors ) = Sirius::OS::Passing->receive( fileno $line );
        $over = !$! if !defined $asked;
        POSIX::close($_) for @descriptors;
        last if !defined $asked;
        my ( $number, $name, @words ) = split / /, $asked;
        my $code = $answers{ $name // '' } or next;
        my $text = eval { $code->(@words) };
        $text //= 'error ' . $@ =~ s/\s+\z//r;
        Sirius::OS::Passing->send( fileno $line, "$number $text" );
    }
    return !$over;
}

# Undef: there was no answer
sub ask {
    my ( $self, @words ) = @_;
    my $line = fileno $self->{line};
    1 while defined Sirius::OS::Passing->receive($line);    # answers that came too late
    my $number = ++$self->{number};
    Sirius::OS::Passing->send( $line, join q( ), $number, @words ) or return;
    my $until = now() + PATIENCE;
    while ( ( my $left = $until - now() ) > 0 ) {
        vec( my $read = '', $line, 1 ) = 1;
        my $ready = select $read, undef, undef, $left;
        next   if $ready < 0 && $!{EINTR};
        return if $ready <= 0;
        my $answer = Sirius::OS::Passing->receive($line) // return;
        return $answer if $answer =~ s/\A\Q$number\E //;
    }
    return;
}

sub new {
    my ( $class, $line ) = @_;
    return bless { line => $line, number => 0 }, $class;
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Line - what the process of the admin port asks the supervisor

=head1 SYNOPSIS

  use Sirius::Admin::Line;

  # in the process of the admin port
  my $text = Sirius::Admin::Line->new($socket)->ask( stack => 4711 );

  # in the supervisor, when its end can be read
  my $open = Sirius::Admin::Line->answer( $socket, stack => sub { my $pid = shift; return $text } );

=head1 DESCRIPTION

That process has given up its rights, and the supervisor has kept them. The line is a pair of L<Sirius::OS::Passing>, and neither end blocks. A
question is a number, a name and words; its answer the same number and a text of at most 128 KiB.

=head1 METHODS

=head2 answer

  my $open = Sirius::Admin::Line->answer( $socket, %subs );

Answers what was asked, by the sub of that name, which gets the words. If it dies, the answer is C<error> and why. False when the other
end is closed.

=head2 ask

  my $text = $line->ask( $name, @words );

The answer, or undef if there was none within 0.2 seconds.

=head2 new

  my $line = Sirius::Admin::Line->new($socket);

=head1 SEE ALSO

L<Sirius::Admin::Port>, L<Sirius::Admin::Memory>, L<Sirius::Admin::Sampling>, L<Sirius::OS::Passing>.

=cut
