package Sirius::Admin::Profile;

use strict;
use warnings;

use JSON::PP            ();
use List::Util          qw(max);
use POSIX               ();
use Sirius::Base::Clock qw(now);
use Sirius::Profile::FlameGraph;
use Sirius::Profile::Samples;

use constant {
    LATE     => 2,       # seconds after which samples that were promised do not come any more
    PATIENCE => 60,      # seconds that its page may take
    READ     => 0.05,    # seconds in which the page is read, if it comes
    SECONDS  => 10,      # for which they are taken at most
};

my @SHOWN = qw(at cut failed left_out samples seconds workers);

sub begin {
    my $self = shift;
    return if $self->state->{phase} eq 'running';
    my ( $what, $more ) = split / /, $self->_ask('profile'), 2;
    die "$more\n" if $what eq 'error';
    delete @{$self}{qw(facts failed html)};
    $self->{until} = now() + ( $what eq 'begun' ? $more : SECONDS );
    return;
}

sub html {
    my $self = shift;
    $self->state;
    return $self->{html};
}

sub new {
    my ( $class, $line, $title ) = @_;
    return bless { line => $line, title => $title }, $class;
}

sub stack {
    my ( $self, $pid ) = @_;
    my $answer = $self->_ask( stack => $pid );
    die substr( $answer, 6 ) . "\n" if $answer =~ /\Aerror /;
    return $answer;
}

sub state {
    my $self = shift;
    $self->_fetch if defined $self->{until} && now() >= $self->{until};
    $self->_read  if $self->{pipe};
    return { phase => 'running', left => max 0, $self->{until} - now() } if defined $self->{until};
    return { phase => 'running', left => 0 }                             if $self->{pipe};
    return { phase => 'failed', text => $self->{failed} }                if defined $self->{failed};
    return { phase => 'none' }                                           if !defined $self->{html};
    return { phase => 'done', map { $_ => $self->{facts}{$_} } @SHOWN };
}

sub _ask {
    my ( $self, @words ) = @_;
    return $self->{line} && $self->{line}->ask(@words) // 'error the supervisor does not answer';
}

sub _fetch {
    my $self = shift;
    my $text = '';
    my $left = 1;
    while ($left) {
        my ( $what, $more ) = split / /, $self->_ask( samples => length $text ), 2;
        if ( $what eq 'left' ) {
            ( $left, my $part ) = split / /, $more, 2;
            $text .= $part;
            next if length $part || !$left;
        }
        return if $what ne 'none' && now() < $self->{until} + LATE;
        return $self->_lost( $what eq 'error' ? $more : 'it was interrupted; take another one' );
    }
    delete $self->{until};
    my ( $facts, $folded ) = split /\n/, $text, 2;
    my %facts = %{ JSON::PP->new->decode($facts) };
    @facts{qw(at samples)} = ( time, $facts{taken} );
    $self->{facts} = \%facts;
    return $self->_render($folded);
}

sub _html {
    my ( $self, $folded ) = @_;
    my $facts   = $self->{facts};
    my $samples = Sirius::Profile::Samples->from_folded($folded);
    $samples->set( map { $_ => $facts->{$_} } qw(cut failed hz left_out seconds taken) );
    return Sirius::Profile::FlameGraph->html( $samples,
        title => $self->{title} . POSIX::strftime( ', %Y-%m-%d %H:%M:%S', localtime $facts->{at} ) );
}

sub _lost {
    my ( $self, $why ) = @_;
    delete @{$self}{qw(pipe until)};
    $self->{failed} = "the profile is lost: $why";
    return;
}

# What the child has made of it so far
sub _read {
    my $self = shift;
    my ( $child, $pipe ) = @{ $self->{pipe} }[ 0, 1 ];
    my $until = now() + READ;
    while ( ( my $left = $until - now() ) > 0 ) {
        vec( my $ready = '', fileno $pipe, 1 ) = 1;
        next if select( $ready, undef, undef, $left ) <= 0;
        my $got = sysread $pipe, $self->{pipe}[2], 65_536, length $self->{pipe}[2];
        next if $got || !defined $got && $!{EINTR};
        waitpid $child, 0;
        return $self->_lost('its page could not be made') if $?;
        $self->{html} = $self->{pipe}[2];
        delete $self->{pipe};
        last;
    }
    return;
}

# In a child, as it takes seconds where stacks are deep, in which probes would have to wait
sub _render {
    my ( $self, $folded ) = @_;
    pipe my $pipe, my $writer or return $self->_lost("cannot create a pipe: $!");
    my $child = fork // return $self->_lost("cannot fork: $!");
    if ( !$child ) {
        my $made = eval {
            local $SIG{ALRM} = 'DEFAULT';
            alarm PATIENCE;
            binmode $writer;
            print {$writer} $self->_html($folded);
            close $writer;
        };
        POSIX::_exit( $made ? 0 : 1 );
    }
    $self->{pipe} = [ $child, $pipe, '' ];
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Profile - stacks and profiles of the workers, as the admin port shows them

=head1 SYNOPSIS

  use Sirius::Admin::Profile;

  my $profile = Sirius::Admin::Profile->new( Sirius::Admin::Line->new($socket), 'shop.psgi on web1' );
  $profile->begin;
  ...    # some seconds later
  print $profile->html if $profile->state->{phase} eq 'done';

=head1 DESCRIPTION

L<Sirius::Admin::Sampling>, in the supervisor, takes the samples. This object waits for nothing: it asks for them when somebody looks
after the time, and a child makes the page. It keeps the last one.

=head1 METHODS

=head2 begin

  $profile->begin;

Has one taken, unless that is under way. Dies with a line that says why it is not possible; then the last one stays.

=head2 html

  my $bytes = $profile->html;

The last one as a page (L<Sirius::Profile::FlameGraph>), or undef.

=head2 new

  my $profile = Sirius::Admin::Profile->new( $line, $title );

=head2 stack

  my $json = $profile->stack($pid);

As L<Sirius::Admin::Sampling/stack>.

=head2 state

  my $state = $profile->state;

A hash with C<phase>: C<none>, C<running> with C<left>, in seconds (0: it will come in a moment), C<failed> with C<text>, or C<done>. Then it has the number of C<samples>, the
C<workers> that had requests, the C<seconds>, and C<at>, the end, in seconds since 1970; and how many samples C<failed>, were C<cut> or
were C<left_out> of the stacks because there were too many different ones.

=head1 SEE ALSO

L<Sirius::Admin::App>.

=cut
