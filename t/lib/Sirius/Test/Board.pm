package Sirius::Test::Board;

# The scoreboard of a server under test, read by a program beside it: a scoreboard is mapped by the number of
# its descriptor, which may be in use in the test. The program ends with the test.

use strict;
use warnings;
use JSON::PP ();
use POSIX    ();

my $JSON = JSON::PP->new->latin1;

# Of the server with this PID
sub new {
    my ( $class, $pid, @include ) = @_;
    pipe my $from_test, my $to    or die "pipe: $!";
    pipe my $from,      my $reply or die "pipe: $!";
    my $child = fork // die "fork: $!";
    if ( !$child ) {
        open STDIN,  '<&', $from_test or POSIX::_exit(126);
        open STDOUT, '>&', $reply     or POSIX::_exit(126);
        {
            exec $^X, ( map {"-I$_"} @include ), "-M$class", '-e', "$class->answer($pid)"
        }
        POSIX::_exit(127);
    }
    $to->autoflush(1);
    return bless { to => $to, from => $from, pid => $child, owner => $$ }, $class;
}

# What Sirius::Scoreboard->snapshot returns, without what takes long to find out
sub snapshot {
    my $self = shift;
    local $SIG{PIPE} = 'IGNORE';
    print { $self->{to} } "\n";
    return $JSON->decode( readline( $self->{from} ) // die "the scoreboard cannot be read\n" );
}

# The program: a snapshot for each line of STDIN
sub answer {
    my ( $class, $pid ) = @_;
    require Sirius::Scoreboard;
    my ($path) = grep { ( readlink($_) // '' ) =~ /memfd:sirius scoreboard/ } glob "/proc/$pid/fd/*"
        or die "$pid has no scoreboard\n";
    my ($number) = $path =~ /(\d+)\z/;
    my $opened   = POSIX::open( $path, POSIX::O_RDWR() ) // die "$path: $!\n";
    POSIX::dup2( $opened, $number ) // die "dup2: $!\n" if $opened != $number;
    my $board = Sirius::Scoreboard->adopt($number);
    STDOUT->autoflush(1);

    while (<STDIN>) {
        my $snapshot = $board->snapshot( quick => 1 );
        delete $snapshot->{$_}{buckets} for qw(latency queue);
        print $JSON->encode($snapshot), "\n";
    }
    return;
}

sub DESTROY {
    my $self = shift;
    return if $self->{owner} != $$;
    local ( $?, $! );
    kill KILL => $self->{pid};    # other children of the test may have the pipe
    waitpid $self->{pid}, 0;
    return;
}

1;
