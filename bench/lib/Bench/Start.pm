package Bench::Start;

# How long until a started server answers, and what its clients see while it is told to replace its workers.

use strict;
use warnings;

use Bench::Load qw(ab_result dial start_ab);
use Bench::Server;
use Time::HiRes qw(sleep time);

my $WORKERS = 4;

# Returns name => { ms }, a value for each round: from exec to the first answer
sub up {
    my ( $o, @names ) = @_;
    my %result;
    for my $round ( 1 .. $o->{rounds} ) {
        for my $name ( $round % 2 ? @names : reverse @names ) {
            $o->{tick}->($name);
            my $server = Bench::Server->new( name => $name, app => 'hello', workers => $WORKERS );
            if ( eval { $server->start } ) {
                push @{ $result{$name}{ms} }, 1000 * $server->{started_in};
            } else {
                $result{$name}{error} = $@ =~ s/\s+/ /gr;
            }
            $server->stop;
        }
    }
    return \%result;
}

sub up_plan {
    my ( $o, $count ) = @_;
    return ( $count * $o->{rounds}, $count * $o->{rounds} * 0.7 );
}

# Field of $o: seconds. Returns name => { how, ms, new_code, requests, failed }
sub reload {
    my ( $o, @names ) = @_;
    my %result;
    for my $name (@names) {
        $o->{tick}->($name);
        my ( $signal, $how ) = Bench::Peer::reload($name);
        $result{$name} = { skipped => 'has no signal for it' };
        next if !$signal;
        my $server = Bench::Server->new( name => $name, app => 'reload', workers => $WORKERS, reload => 1 );
        $result{$name} = eval { _reload( $o, $server->start, $signal ) } || { error => $@ =~ s/\s+/ /gr };
        $result{$name}{how} = "$signal: $how";
        $server->stop;
    }
    return \%result;
}

sub reload_plan {
    my ( $o, $count ) = @_;
    return ( $count, $count * ( $o->{seconds} + 1.5 ) );
}

# ab with kept connections and ab without run all the time; a client of ours looks who answers
sub _reload {
    my ( $o, $server, $signal ) = @_;
    my $port   = $server->{port};
    my @before = map { _who($port) || () } 1 .. 60;
    my %old    = map { $_->{pid}    => 1 } @before;
    my %stamp  = map { $_->{loaded} => 1 } @before;
    my @ab     = map { start_ab( $port, 4, $o->{seconds}, keep => $_ ) } 0, 1;
    sleep 1;
    kill $signal => $server->{pid};
    my ( $told, $last_old, $first_new, $code ) = ( time, 0, 0, 0 );

    while ( time < $told + $o->{seconds} - 1.5 ) {
        my $who = _who($port);
        sleep 0.005;
        next if !$who;
        if ( $old{ $who->{pid} } ) { $last_old = time; next }
        $first_new ||= time;
        $code = 1 if !$stamp{ $who->{loaded} };
    }
    my %figures = ( requests => 0, failed => 0, new_code => $code );
    for my $pipe (@ab) {
        my ( $done, undef, $failed ) = ab_result( do { local $/ = undef; readline $pipe } );
        close $pipe;
        $figures{requests} += $done;
        $figures{failed}   += $failed;
    }
    my $last = $last_old > $first_new ? $last_old : $first_new;
    $figures{ms} = 1000 * ( $last - $told ) if $first_new;
    my $file = "$Bench::Peer::DIR/hypnotoad-$port.pid";
    $server->{successor} = Bench::Machine::read_file($file) + 0 if -s $file;
    return \%figures;
}

# pid and the time at which it loaded the application
sub _who {
    my $port   = shift;
    my $answer = eval {
        local $SIG{ALRM} = sub { die "slow\n" };
        local $SIG{PIPE} = 'IGNORE';
        alarm 2;
        my $socket = dial($port);
        syswrite $socket, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        local $/ = undef;
        my $text = readline $socket;
        alarm 0;
        $text;
    };
    alarm 0;
    return ( $answer // '' ) =~ /\r\n\r\n(?:[0-9a-f]+\r\n)?([0-9]+) ([0-9.]+)/
        ? { pid => $1, loaded => $2 }
        : undef;
}

1;
