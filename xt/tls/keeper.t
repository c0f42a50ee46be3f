# The keeper of keys heeds notes of its parent, and of nobody else who has the other end of its line
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use POSIX ();
use Sirius::Edge::Program;
use Sirius::Edge::Shared;
use Sirius::OS::Child;
use Sirius::OS::Inherit;
use Socket qw(MSG_DONTWAIT SOL_SOCKET SO_PASSCRED);
use Test::More;
use Sirius::Test;

# As Sirius::Edge::Keeper does it; PASSCRED: whether the kernel is asked who has sent a note
sub keeper {
    my $asked = shift;
    my ( $ours, $theirs ) = map { Sirius::OS::Inherit->take_handle($_) } Sirius::Edge::Shared->line;
    setsockopt $theirs, SOL_SOCKET, SO_PASSCRED, 1 if $asked;
    pipe my $news,     my $report or die $!;
    pipe my $lifeline, my $writer or die $!;
    my $child = Sirius::OS::Child->spawn(
        Sirius::Edge::Program->path,
        [   'sirius-edge',            'keeper=1',
            'tls-self-signed=1',      'name=keeper',
            'keys=' . fileno $theirs, 'report=' . fileno $report,
            'lifeline=' . fileno $lifeline
        ],
        [ map { fileno $_ } $theirs, $report, $lifeline ]
    );
    close $report;
    my $said = '';
    while ( $said !~ /keysready/ ) { sysread $news, $said, 1000, length $said or last }
    like $said, qr/^\d+ keysready$/m, 'a keeper';
    return { child => $child, writer => $writer, line => $ours };
}

# Asks for keys, in this process or in a child of it: what comes to the end of the pair. "keys", "closed",
# "nothing"
sub asks {
    my ( $keeper, $in_child ) = @_;
    my ( $ours,   $theirs )   = map { Sirius::OS::Inherit->take_handle($_) } Sirius::Edge::Shared->line;
    my $pass = sub { Sirius::Edge::Shared->pass( fileno $keeper->{line}, keys => fileno $theirs ) };
    if ($in_child) {
        my $pid = fork // die $!;
        POSIX::_exit( $pass->() ? 0 : 1 ) if !$pid;
        waitpid $pid, 0;
        is $?, 0, 'a note is sent';
    } else {
        ok $pass->(), 'a note is sent';
    }
    close $theirs;    # so that the end is closed when the keeper closes it, too
    vec( my $read = '', fileno $ours, 1 ) = 1;
    return 'nothing' if !select $read, undef, undef, 20;
    recv $ours, my $note, 1000, MSG_DONTWAIT;
    return length $note ? 'keys' : 'closed';
}

sub end {
    my $keeper = shift;
    close $keeper->{writer};
    waitpid $keeper->{child}->pid, 0;
    return is $?, 0, 'it ends with its parent';
}

my $keeper = keeper(1);
is asks($keeper),      'keys',   'its parent gets keys';
is asks( $keeper, 1 ), 'closed', 'a child of it does not, though it has the line';
is asks($keeper),      'keys',   'its parent does, again';
end($keeper);

$keeper = keeper(0);
is asks($keeper), 'closed', 'nobody gets any where the kernel does not say who it is';
end($keeper);
done_testing;
