package Sirius::OS::Inherit;

use strict;
use warnings;

use Fcntl    qw(FD_CLOEXEC F_GETFD F_SETFD F_SETFL O_NONBLOCK);
use JSON::PP ();

# A variable can hold 128 KiB (MAX_ARG_STRLEN, execve(2)). Longer text is passed in a pipe, which holds up to
# ROOM
use constant { F_SETPIPE_SZ => 1031, LONG => 100_000, ROOM => 1 << 20 };

my $json = JSON::PP->new->canonical->ascii;

my %given;    # texts by the name of their variable
my %held;     # handles by descriptor number; perl closes a descriptor with the last handle
my @lent;     # handles that the next program gets

# Paths and arguments are bytes, and the kernel gets them as perl stores them; JSON has turned bytes above
# 0x7f into text
sub bytes {
    my ( $class, $value ) = @_;
    return _each_text( $value, sub { utf8::downgrade( $_[0], 1 ) } );
}

sub close_on_exec {
    my ( $class, @numbers ) = @_;
    for my $fd ( grep { $_ > 2 && $_ < 2**31 } @numbers ) {
        my $fh = _hold($fd) or next;    # the code that uses it will report that it is missing
        fcntl $fh, F_SETFD, FD_CLOEXEC;
    }
    return;
}

sub give {
    my ( $class, $state, @descriptors ) = @_;
    my @handles;
    for my $it (@descriptors) {
        my $fh    = ref $it || ref \$it eq 'GLOB' ? $it : _hold($it) || die "descriptor $it: $!\n";
        my $flags = fcntl $fh, F_GETFD, 0;
        fcntl $fh, F_SETFD, $flags & ~FD_CLOEXEC or die "F_SETFD: $!\n";
        push @handles, $fh;
    }
    push @lent, @handles;    # a handle that goes out of scope would close its descriptor before the exec
    return _in_pipe( $json->encode(
        $class->text( { %$state, descriptors => [ map { fileno $_ } @handles ] } ) ) );
}

sub handle {
    my ( $class, $fd ) = @_;
    open my $fh, '+<&=', $fd or die "descriptor $fd: $!\n";
    delete $held{$fd};
    return $fh;
}

# Whether it was passed to this program, which has not taken it yet
sub has {
    my ( $class, $name ) = @_;
    return defined $given{$name} || defined $ENV{$name};
}

sub import {
    my ( $class, @names ) = @_;
    for my $name (@names) {
        $given{$name} = _from_pipe( delete $ENV{$name} );
        my $state = eval { $json->decode( $given{$name} ) };
        $class->close_on_exec( @{ $state->{descriptors} || [] } ) if ref $state eq 'HASH';

        # The directory of this file is first in @INC only for loading it
        shift @INC if __FILE__ eq "$INC[0]/Sirius/OS/Inherit.pm";
    }
    return;
}

# For take, in this process
sub put {
    my ( $class, $name, $state ) = @_;
    $given{$name} = $json->encode( $class->text($state) );
    return;
}

sub take {
    my ( $class, $name ) = @_;
    my $text = delete $given{$name};
    $text = _from_pipe( delete $ENV{$name} ) if !defined $text;
    return if !defined $text;
    my $state = eval { $json->decode($text) };
    die "sirius: $name is reserved for Sirius itself and must not be set\n" if ref $state ne 'HASH';
    return $class->bytes($state);
}

sub take_back {
    fcntl $_, F_SETFD, FD_CLOEXEC for splice @lent;
    return;
}

sub take_handle {
    my ( $class, $fd ) = @_;
    my $fh = $class->handle($fd);
    fcntl $fh, F_SETFD, FD_CLOEXEC or die "descriptor $fd: F_SETFD: $!\n";
    return $fh;
}

# What `bytes` gives back, once it was JSON
sub text {
    my ( $class, $value ) = @_;
    return _each_text( $value, \&utf8::encode );
}

sub _each_text {
    my ( $value, $change ) = @_;
    return [ map { _each_text( $_, $change ) } @$value ] if ref $value eq 'ARRAY';
    return { map { _each_text( $_, $change ) } %$value } if ref $value eq 'HASH';
    $change->($value)                                    if utf8::is_utf8($value);
    return $value;
}

sub _from_pipe {
    my $text = shift;
    return $text if !defined $text || $text !~ /\Apipe (\d+)\z/;
    open my $read, '<&=', $1 or return $text;
    local $/ = undef;
    my $whole = readline $read;
    close $read or return $text;
    return $whole;
}

# For reading: then perl does not complain at the end if another has closed the descriptor
sub _hold {
    my $fd = shift;
    return $held{$fd} if $held{$fd};
    open my $fh, '<&=', $fd or return;    ## no critic (RequireBriefOpen)
    return $held{$fd} = $fh;
}

# Returns a text that is short, or when there is no pipe, as it is: then exec reports the error
sub _in_pipe {
    my $text = shift;
    return $text if length $text < LONG;
    pipe my $read, my $write or return $text;
    fcntl $write, F_SETPIPE_SZ, ROOM;
    fcntl $write, F_SETFL,      O_NONBLOCK or return $text;
    my $done = 0;
    while ( $done < length $text ) {
        $done += syswrite( $write, $text, 65_536, $done ) || return $text;
    }
    fcntl $read, F_SETFD, 0 or return $text;
    push @lent, $read;
    return 'pipe ' . fileno $read;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Inherit - state and descriptors across an exec

=head1 SYNOPSIS

  # in a child that is about to exec
  $ENV{SIRIUS_GENERATION} = Sirius::OS::Inherit->give( { listener => fileno $fh }, $fh );

  # in the new program
  my $state = Sirius::OS::Inherit->take('SIRIUS_GENERATION');
  my $fh    = Sirius::OS::Inherit->take_handle( $state->{listener} );

=head1 DESCRIPTION

A new program gets the state of the old one as text in an environment variable, with descriptors by their numbers.
Programs that an application starts get none of them: see L</import>.

=head1 METHODS

=head2 bytes

  my $plain = Sirius::OS::Inherit->bytes( $json->decode($text) );

A copy of hashes, lists and texts, in which each text of characters up to 0xff is bytes. Texts that L</give> is given as characters
are written down as UTF-8, which is what the kernel would have got of them. See L</text>.

=head2 close_on_exec

  Sirius::OS::Inherit->close_on_exec(@numbers);

Keeps descriptors that are open already from the programs that this process starts. 0 to 2, and what is not open, are left alone.
L</handle> gives them to who uses them.

=head2 give

  my $text = Sirius::OS::Inherit->give( \%state, @descriptors );

Leaves the descriptors (numbers or handles) open on exec and returns the state as text (JSON), which has their numbers in it.
For a process that execs next and does nothing else; see L</take_back>.

=head2 handle

  my $fh = Sirius::OS::Inherit->handle($number);

A handle on an open descriptor, not a copy of it.

=head2 import

  perl -MSirius::OS::Inherit=SIRIUS_X ...

Removes the inherited state from the environment before the application can read it, pass it on or clear it, and sets
its descriptors to close on exec, so that programs which the application starts while it loads get none. The directory
in which this module was found is removed from C<@INC> if it is the first.

=head2 put

  Sirius::OS::Inherit->put( $name, $state );

As if this program had been given the state, for L</take> in this process.

=head2 take

  my $state = Sirius::OS::Inherit->take($name);

The state in this environment variable, which is deleted; nothing if it is not set. Dies if it is something else.

=head2 take_back

  Sirius::OS::Inherit->take_back;

When the exec has failed: closes on exec again what L</give> has left open.

=head2 take_handle

  my $fh = Sirius::OS::Inherit->take_handle($number);

A handle on an inherited descriptor, closed on exec from now on.

=head2 text

  my $json = JSON::PP->new->ascii->encode( Sirius::OS::Inherit->text($value) );

A copy of hashes, lists and texts, in which characters are written down as UTF-8. When it was JSON, L</bytes> gives it back.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Process::Pool>.

=cut
