package Sirius::Test::Load;

# Clients in processes of their own, each in a closed loop, until they are stopped.
#
#   my $load = Sirius::Test::Load->start( $server, clients => 4, ask => sub { my ( $client, $number ) = @_; 'GET /' } );
#   ...
#   is_deeply [ keys %{ $load->stop } ], [200], 'all were answered';

use strict;
use warnings;
use POSIX ();
use Sirius::Test::Client;

# Options: address; clients (4); ask (a sub that returns the arguments of Sirius::Test::Client->ask for
# request NUMBER of CLIENT; default: a plain GET /); sign (a sub that returns the result of an answer;
# default: its status). Every second client keeps its connection as long as possible, the others connect for
# each request.
sub start {
    my ( $class, $server, %option ) = @_;
    my $self = bless { owner => $$, clients => [], %option }, $class;
    $self->{address} ||= $server->address;
    my $count = delete $option{clients} || 4;
    $self->{clients} = [];
    pipe my $stop, $self->{go_on} or die "pipe: $!";
    for my $number ( 1 .. $count ) {
        pipe my $read, my $write or die "pipe: $!";
        my $pid = fork;
        die "fork: $!" if !defined $pid;
        if ( !$pid ) {
            close $self->{go_on};
            my $text = eval { $self->_drive( $stop, $number ) } || "1 the client died: $@";
            syswrite $write, $text;
            POSIX::_exit(0);
        }
        push @{ $self->{clients} }, { pid => $pid, read => $read };
    }
    return $self;
}

# How often each result came, as a hash. Requests under way are finished first
sub stop {
    my $self = shift;
    close delete $self->{go_on} if $self->{go_on};
    my %result;
    for my $client ( splice @{ $self->{clients} } ) {
        my $in = $client->{read};
        while ( defined( my $line = readline $in ) ) {
            my ( $times, $what ) = $line =~ /\A(\d+) (.*)/s or next;
            chomp $what;
            $result{$what} += $times;
        }
        waitpid $client->{pid}, 0;
    }
    return \%result;
}

sub _drive {
    my ( $self, $stop, $client ) = @_;
    local $SIG{PIPE} = 'IGNORE';
    local $Sirius::Test::Client::PATIENCE = 30;         # the machine may be busy
    my ( $number, $connection, %result ) = (0);
    until ( _is_over($stop) ) {
        my @ask = $self->{ask} ? $self->{ask}->( $client, ++$number ) : 'GET /';
        $connection ||= eval { Sirius::Test::Client->new( $self->{address} ) };
        if ( !$connection ) { $result{ $@ =~ s/ at .*//sr }++; next }
        my $answer = $connection->ask(@ask);
        $result{ $self->{sign} ? $self->{sign}->( $answer, $client, $number ) : $answer->status }++;
        undef $connection if $client % 2 || $answer->status !~ /\A\d+\z/ || $answer->closes;
    }
    return join '', map {"$result{$_} $_\n"} sort keys %result;
}

# Nobody may hold the other end any longer
sub _is_over {
    my $stop = shift;
    vec( my $bits = '', fileno $stop, 1 ) = 1;
    return select( $bits, undef, undef, 0 ) > 0;
}

# In case a test dies
sub DESTROY {
    my $self = shift;
    local ( $?, $!, $@ );
    return if $self->{owner} != $$;
    $self->stop;
    return;
}

1;
