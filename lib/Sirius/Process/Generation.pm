package Sirius::Process::Generation;

use strict;
use warnings;

use JSON::PP            ();
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Log ();
use Sirius::OS::Inherit;
use Socket qw(MSG_NOSIGNAL);

use constant ERROR_MAX => 8192;    # characters of the output of a failed generation that are kept

my $JSON = JSON::PP->new->ascii->allow_nonref;

# What it may report, as "WHAT MORE". It may have dropped its privileges while this process has not, so
# nothing else is accepted
my %HEARS = (
    asked => sub {
        my ( $self, $more ) = @_;
        $self->{asked} = Sirius::Base::Text->harmless( substr $more, 0, 200 )
            if $more =~ /\A(?:INT|QUIT|TERM) from /;
        return;
    },
    beside => sub {
        my ( $self, $more ) = @_;
        $self->{beside} = _decoded($more);
        return;
    },
    broken => sub {
        my ( $self, $more ) = @_;
        $self->{broken} = _decoded($more) if !$self->{up};
        return;
    },
    edge => sub {
        my ( $self, $more ) = @_;
        $self->{edge} = Sirius::OS::Inherit->bytes( eval { $JSON->decode($more) } ) if $more =~ /\A\[/;
        return;
    },
    exits => sub {
        my ( $self, $more ) = @_;
        my $place = $self->{up} ? undef : _decoded($more);
        $self->{exits} = $place->{at} if $place && !ref $place->{at};
        return;
    },
    files => sub {
        my ( $self, $more ) = @_;
        my $files = $self->{up} ? undef : _decoded($more);
        return $files ? ( files => $files ) : ();
    },
    hook => sub {
        my ( $self, $more ) = @_;
        my ( $of,   $name ) = $more =~ /\A(generation|worker) (\w{1,20})\z/ or return;
        $self->{hook} = $name eq 'none' ? undef : { of => $of, name => "--$name" =~ tr/_/-/r, at => now() };
        return;
    },
    ready    => sub { my $self = shift; $self->{ready} = 1; return 'ready' },
    said     => sub { my ( $self, $more ) = @_; return $self->_note($more) },
    trouble  => sub { return 'trouble' },
    unopened => sub {
        my ( $self, $more ) = @_;
        return if $more !~ /\A--(?:access|error)-log /;
        return unopened => Sirius::Base::Text->harmless( substr $more, 0, 1000 );
    },
    up      => sub { my $self = shift; $self->{up} = 1; return 'up' },
    workers => sub {
        my ( $self, $more ) = @_;
        $self->{workers} = [ $1, $2 ] if $more =~ /\A(\d{1,4}) (\d{1,4})\z/;
        return;
    },
);

sub age { return now() - shift->{since} }

sub asked { return shift->{asked} }

# Only its end helps
sub be_hung {
    my ( $self, $words ) = @_;
    $self->{hung} = $words;
    $self->signal('KILL');
    return;
}

sub be_late { return shift->{late} = 1 }

sub beside { return shift->{beside} }

sub broken { return shift->{broken} }

sub child { return shift->{child} }

# Lets its workers finish the requests they have
sub drain {
    my ( $self, $until, $late ) = @_;
    $self->{draining} = 1;
    $self->end_by( $until, $late );
    $self->signal('TERM');
    return;
}

sub edge { return shift->{edge} }

sub end_by {
    my ( $self, $until, $late ) = @_;
    return $self->{child}->limit( end => $until, sub { $late->($self) } );
}

sub exits { return shift->{exits} }

sub gave_up { return shift->{gave_up} }

sub give_up {
    my ( $self, $why ) = @_;
    $self->{gave_up} = $why;
    $self->{took}    = $self->age;
    return;
}

sub handles {
    return grep {defined} @{ +shift }{qw(news stderr)};
}

# Returns what the supervisor has to do after its reports: names with their arguments
sub hear {
    my ( $self, $loop ) = @_;
    my @news;
    $loop->read( $self->{news}, \$self->{heard} );
    while ( $self->{heard} =~ s/\A([^\n]*)\n// ) {
        my ( $what, $more ) = $1 =~ /\A(\w+)(?: (.*))?\z/s or next;
        my $code = $HEARS{$what} or next;
        my @told = $code->( $self, defined $more ? $more : '' );
        push @news, \@told if @told;
        $self->_up if @told && $told[0] eq 'up';
    }
    $self->_read_stderr($loop) if $self->{stderr};
    return @news;
}

sub hook { return shift->{hook} }

sub hung { return shift->{hung} }

sub is_draining { return shift->{draining} }

sub is_late { return shift->{late} }

sub is_ready { return shift->{ready} }

sub is_reload { return shift->{reload} }

sub is_up { return shift->{up} }

sub is_warming {
    my $self = shift;
    my $hook = $self->{hook};
    return !$self->{up} && $hook && $hook->{of} eq 'generation' && $hook->{name} eq '--warm-up';
}

sub new {
    my ( $class, $child, %args ) = @_;
    return bless { child => $child, heard => '', missed => {}, replies => [], since => $child->since, %args },
        $class;
}

sub number { return shift->{number} }

sub pid { return shift->{child}->pid }

# Records whose reload this is, and the fallen generation that it replaces, if any
sub reloads {
    my ( $self, $reply, $replaces ) = @_;
    @{$self}{qw(reload replaces replies)} = ( 1, $replaces, [$reply] );
    return;
}

sub replaces { return shift->{replaces} }

# Those who wait for the outcome; returns them once
sub replies {
    return grep {defined} @{ delete shift->{replies} || [] };
}

sub said { return shift->{said} }

sub signal {
    my ( $self, $name ) = @_;

    # A program that is still loading has no handlers, and would die of the signal. It gets the signal once it
    # is up
    return $self->{child}->signal($name) if $self->{up} || $name =~ /\A(?:INT|KILL|TERM)\z/;
    $self->{missed}{$name} = 1;
    return;
}

sub since { return shift->{since} }

sub state {
    my $self = shift;
    return {
        ( map { $_ => $self->{$_} } qw(number since ready up) ),
        news => fileno $self->{news},
        pid  => $self->pid,
    };
}

# Sends a line to this generation alone
sub tell {
    my ( $self, $line ) = @_;
    return send $self->{news}, "$line\n", MSG_NOSIGNAL;
}

sub told { return shift->{told}++ }

sub took { return shift->{took} }

sub workers { return @{ shift->{workers} || [] } }

# A hash of what only a process that has its rights still may say
sub _decoded {
    my $value = eval { $JSON->decode(shift) };
    return ref $value eq 'HASH' ? Sirius::OS::Inherit->bytes($value) : undef;
}

# A line of the log that the generation has written itself
sub _note {
    my ( $self, $json ) = @_;
    return if !defined $self->{said} || $self->{ready};
    my $line = eval { $JSON->decode($json) };
    return              if !defined $line || ref $line;
    utf8::encode($line) if !utf8::downgrade( $line, 1 );    # what our own process sends is bytes
    $line =~ s/\n*\z/\n/;
    $self->{said} = substr $self->{said} . $line, -ERROR_MAX();
    return;
}

# Its output while it loads goes to the log as usual, and is kept for the clients that wait for the reload
sub _read_stderr {
    my ( $self, $loop ) = @_;
    $loop->read( $self->{stderr}, \my $text );
    return if !length $text;
    Sirius::Log->pass($text);
    $self->{said} = substr $self->{said} . $text, -ERROR_MAX();
    return;
}

sub _up {
    my $self = shift;
    $self->{child}->signal($_) for keys %{ $self->{missed} };
    $self->{missed} = {};
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Generation - a process that has loaded the application, as the supervisor sees it

=head1 SYNOPSIS

  my $generation = $launch->program(2);
  for my $news ( $generation->hear($loop) ) {
      my ( $what, $more ) = @$news;
      ...
  }
  $generation->drain( now() + 30, sub {...} );

=head1 DESCRIPTION

What the process itself does is in L<Sirius::Process::Pool>; how one replaces another, in L<Sirius::Process::Reload>. It tells how it
goes in lines on a socket. All but the first also have a STDERR of their own while they load.

=head1 METHODS

=head2 age

Seconds since it was started.

=head2 asked

Who has asked it to end, if that was not the supervisor.

=head2 be_hung

  $generation->be_hung('was not ready within 300 s');

Kills it; these words are why.

=head2 be_late

It was not ready in time, and goes on.

=head2 beside

What it has said of C<--beside> (L<Sirius::Config::Companion/plan>), if it has.

=head2 child

Its L<Sirius::OS::Child>.

=head2 drain

  $generation->drain( $until, sub { my $generation = shift; ... } );

Its workers are to finish what they have begun. The code is called if it has not ended by then.

=head2 edge

The settings that it has for the edges, if it has any.

=head2 end_by

  $generation->end_by( $until, $code );

As L</drain>, without telling it to.

=head2 exits

Where the application has called C<exit> while it was loaded, in words, if C<sirius dev> knows it.

=head2 gave_up, give_up

  $generation->give_up($why);

It is not to serve; C<gave_up> says why.

=head2 handles

Those on which it is heard.

=head2 hear

  my @news = $generation->hear($loop);

Reads what it has to tell. What concerns others is returned, as arrays: C<up>, its first worker is ready; C<ready>, all are;
C<trouble>, a worker has counted something; C<unopened> and a text, a log could not be opened anew.

=head2 hook

The hook in which it or one of its workers is: C<of>, C<name>, and C<at>, since when; or undef.

=head2 hung

The words of L</be_hung>.

=head2 is_draining, is_late, is_ready, is_reload, is_up, is_warming

Whether it was told to L</drain>; was L</be_late>; has all its workers; was started by a reload; has a worker that is ready; has
begun to warm up and has not said that it is done.

=head2 new

  my $generation = Sirius::Process::Generation->new( $child, number => 2, news => $socket, stderr => $pipe );

=head2 number

Its number: 1 at the start, one more at each attempt.

=head2 pid

The PID of its process.

=head2 reloads

  $generation->reloads( $reply, $replaces );

It is a reload, of which C<$reply> is to hear; or it stands in for one that has ended.

=head2 replaces

True if it stands in for one that has ended.

=head2 replies

Who is to hear how it went. Once: the second time there is nobody.

=head2 said

What it has said on STDERR, and its errors of the log.

=head2 signal

  $generation->signal('USR1');

To its process. One whose program still loads gets it when it is up, but for C<INT>, C<TERM> and C<KILL>.

=head2 since

When it was started, in monotonic seconds.

=head2 state

What another program of the supervisor needs to know of it.

=head2 tell

  $generation->tell('4711 timeout why');

Tells it what an edge says of a worker.

=head2 told

False the first time.

=head2 took

How long it had taken when it was given up.

=head2 workers

The numbers of workers, at the start and at the most, that its program was told.

=head1 SEE ALSO

L<Sirius::Process::Reload>, L<Sirius::Process::Launch>, L<Sirius::Process::Pool>.

=cut
