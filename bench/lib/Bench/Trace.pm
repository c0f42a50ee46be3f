package Bench::Trace;

# What a request costs in system calls (strace) and in instructions of user space (valgrind): figures that do
# not depend on what else the machine does.

use strict;
use warnings;

use Bench::Load    qw(exactly);
use Bench::Machine qw(read_file server_core);
use Bench::Server;
use Time::HiRes qw(sleep);

my @KINDS = (
    [ 'keep-alive, 1 connection',       1 ],
    [ 'keep-alive, 16 connections',     16 ],
    [ 'a connection each, 8 at a time', 8, close => 1 ],
);

# Field of $o: requests, info (name => { at_once }: connections that a worker serves at a time). Returns
# name => { calls => { KIND => { call => for each request } } }
sub syscalls {
    my ( $o, @names ) = @_;
    my %result;
    for my $name (@names) {
        for my $kind (@KINDS) {
            my ( $title, $connections, %option ) = @$kind;
            $o->{tick}->($name);
            next if !$option{close} && $connections > $o->{info}{$name}{at_once};
            my $server = Bench::Server->new( name => $name, app => 'hello', %option );
            my $calls  = eval {
                $server->start;
                _strace( $server, sub { exactly( $server->{port}, $connections, $o->{requests}, %option ) } );
            };
            $result{$name}{error} = $@ =~ s/\s+/ /gr if !$calls;
            $result{$name}{calls}{$title} = { map { $_ => $calls->{$_} / $o->{requests} } keys %$calls };
            $server->stop;
        }
    }
    return \%result;
}

sub syscalls_plan {
    my ( $o, $count ) = @_;
    return ( $count * @KINDS, $count * @KINDS * ( 1.3 + $o->{requests} / 3000 ) );
}

# Two runs that differ in the number of requests only: the start and the end cancel out. name => { count }
sub instructions {
    my ( $o, @names ) = @_;
    my %result;
    for my $name (@names) {
        my %total;
        for my $requests ( 300, 1300 ) {
            $o->{tick}->($name);
            $total{$requests} = eval { _callgrind( $name, $requests ) }
                or $result{$name}{error} = $@ =~ s/\s+/ /gr;
        }
        next if $result{$name}{error};
        $result{$name}{count} = ( $total{1300} - $total{300} ) / 1000;
    }
    return \%result;
}

sub instructions_plan {
    my ( undef, $count ) = @_;
    return ( $count * 2, $count * 10 );
}

# Name of a system call => how often
sub _strace {
    my ( $server, $load ) = @_;
    my $file = "$server->{output}.strace";
    $load->();    # warm
    my $pid = fork // die "fork: $!\n";
    if ( !$pid ) {
        open STDERR, '>', "$file.messages" or die $!;
        exec 'taskset', '-c', server_core(), qw(strace -c -f -o), $file, map { ( '-p', $_ ) } $server->pids
            or die "strace: $!\n";
    }
    for ( 1 .. 100 ) {
        sleep 0.05;
        my $attached = () = read_file("$file.messages") =~ /attached/g;
        last if $attached >= $server->pids;
    }
    sleep 0.2;
    $load->();
    sleep 0.2;
    kill INT => $pid;
    waitpid $pid, 0;
    my %calls = reverse read_file($file)
        =~ /^\s*[0-9.]+\s+[0-9.]+\s+[0-9]+\s+([0-9]+)\s+(?:[0-9]+\s+)?([a-z_0-9]+)$/mg;
    unlink $file, "$file.messages";
    delete $calls{total};
    return \%calls;
}

sub _callgrind {
    my ( $name, $requests ) = @_;
    my $file = "$Bench::Peer::DIR/callgrind";
    unlink glob "$file.*";
    local @ENV{qw(PERL_HASH_SEED PERL_PERTURB_KEYS)} = ( 0, 0 );
    my @under
        = ( qw(dev/valgrind -q --tool=callgrind --trace-children=yes), "--callgrind-out-file=$file.%p" );
    my $server = Bench::Server->new( name => $name, app => 'hello', alone => 1, under => \@under )->start;
    exactly( $server->{port}, 1, $requests );
    $server->stop;
    my $total = 0;
    $total += $_ for map { read_file($_) =~ /^totals: ([0-9]+)/mg } glob "$file.*";
    unlink glob "$file.*";
    return $total || die "valgrind has counted nothing\n";
}

1;
