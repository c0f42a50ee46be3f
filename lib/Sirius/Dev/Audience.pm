package Sirius::Dev::Audience;

use strict;
use warnings;

use File::Basename qw(basename);
use JSON::PP       ();
use POSIX          ();
use Sirius::Dev::LiveReload;
use Sirius::OS::Inherit;
use Sirius::OS::Passing;
use Socket      qw(MSG_DONTWAIT);
use Time::HiRes qw(time);

my $JSON = JSON::PP->new->ascii;

use constant {
    MISSED => 10,     # seconds in which a page may be on its way here; then it is one that a browser has kept
    MOST   => 100,    # connections; the oldest gives way
};

# New pages are told what they may have missed on their way here
sub act {
    my $self = shift;
    while ( my ( $text, $fd, @more ) = Sirius::OS::Passing->receive( fileno $self->{line} ) ) {
        my ( $id, $made ) = split / /, $text;
        POSIX::close($_) for @more;
        next if !defined $fd;
        my $client = eval { Sirius::OS::Inherit->take_handle($fd) } or next;
        next if defined $self->{id} && $id ne $self->{id} && !_send( $client, generation => $self->{id} );
        next
            if $made
            && $made / 1000 < ( $self->{again_at} || 0 )
            && time - $self->{again_at} < MISSED
            && !_send( $client, generation => "again $self->{again_at}" );
        push @{ $self->{clients} }, $client;
        shift @{ $self->{clients} } while @{ $self->{clients} } > MOST;
    }
    return;
}

# All pages show the same code once more, with the files that have changed. With style sheets alone they stay, and use these
sub again {
    my ( $self, @paths ) = @_;
    $self->{again_at} = time;
    my $are_styles = @paths && !grep { !/[.]css\z/i } @paths;
    my @event
        = $are_styles
        ? ( styles => $JSON->encode( [ map { _name($_) } @paths ] ) )
        : ( generation => "again $self->{again_at}" );
    $self->{clients} = [ grep { _send( $_, @event ) } @{ $self->{clients} } ];
    return;
}

sub due { return () }

sub handle { return shift->{line} }

sub new {
    my $class = shift;
    my ( $line, $theirs ) = Sirius::OS::Passing->pair
        or die "cannot create a socket pair: $!\n";
    return bless { clients => [], line => $line, theirs => $theirs }, $class;
}

# The code that serves now
sub tell {
    my ( $self, $id ) = @_;
    $self->{id}      = $id;
    $self->{clients} = [ grep { _send( $_, generation => $id ) } @{ $self->{clients} } ];
    return;
}

# The end that workers use
sub theirs { return shift->{theirs} }

# Of a file, as the last part of an address may have it
sub _name {
    my $name = basename(shift);
    my $copy = $name;
    return utf8::decode($copy) ? $copy : $name;
}

sub _send {
    my ( $client, @event ) = @_;
    local $SIG{PIPE} = 'IGNORE';    # MSG_NOSIGNAL is not everywhere
    return send $client, Sirius::Dev::LiveReload->event(@event), MSG_DONTWAIT;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Audience - the open pages that are told of new code

=head1 SYNOPSIS

  my $audience = Sirius::Dev::Audience->new;
  $loop->watch( $audience->handle );
  $audience->tell($id);

=head1 DESCRIPTION

Workers pass on the connections of pages (L<Sirius::Dev::LiveReload>). One that does not read, or is closed, is forgotten when it
is told something; at most 100 are kept.

=head1 METHODS

=head2 again

Has all pages load again, which show the code that serves: a style sheet has changed.

=head2 act, due

As those of a member of a L<Sirius::OS::Loop>: C<act> takes the connections that have come.

=head2 handle, theirs

The two ends of the socket by which connections are passed.

=head2 new

  my $audience = Sirius::Dev::Audience->new;

=head2 tell

  $audience->tell($id);

Tells all pages which code serves now.

=head1 SEE ALSO

L<Sirius::Dev::Reload>.

=cut
