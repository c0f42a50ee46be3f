package Bench::Case;

# What is measured. Each case takes the options and the servers, prints its table and returns its raw numbers.

use strict;
use warnings;

use Bench::Load   qw(ab exactly wrk);
use Bench::Report qw(median spread table);
use Bench::Server;
use Time::HiRes qw(sleep);

my @CASES = (
    [ 'hello-c16', 'keep-alive, wrk -t1 -c16', \&_cpu, app => 'hello', connections => 16 ],
    [ 'hello-c1',  'keep-alive, wrk -t1 -c1',  \&_cpu, app => 'hello', connections => 1 ],
    [   'close-c8', 'a connection for each request, ab -c 8', \&_cpu,
        app         => 'hello',
        connections => 8,
        close       => 1
    ],
    [ 'body8000', '8000-byte body, keep-alive, wrk -t1 -c16', \&_cpu, app => 'body8000', connections => 16 ],
    [ 'memory',       'private memory after 1000 requests, kB',      \&_memory ],
    [ 'syscalls',     'system calls for each request, strace -c -f', \&_syscalls ],
    [ 'instructions', 'instructions for each request, user space',   \&_instructions ],
);

sub names {
    return map { $_->[0] } @CASES;
}

sub run {
    my ( $class, $name, $options, @names ) = @_;
    my ($case) = grep { $_->[0] eq $name } @CASES or die "No such case: $name. There are: @{[ names() ]}\n";
    my ( undef, $title, $code, %field ) = @$case;
    print "\n### $name: $title\n\n";
    return $code->( { %$options, %field }, @names );
}

# CPU time, in rounds: every server in turn, so that a change of the weather hits all
sub _cpu {
    my ( $o, @names ) = @_;
    my @servers
        = map { Bench::Server->new( name => $_, app => $o->{app}, close => $o->{close} )->start } @names;
    my %load = map { $_->{name} => _load( $o, $_ ) } @servers;
    my %result;
    for my $round ( 1 .. $o->{rounds} ) {
        for my $server (@servers) {
            my $before = $server->cpu_seconds;
            my ( $requests, $seconds, $errors ) = $load{ $server->{name} }->();
            my $cpu    = $server->cpu_seconds - $before;
            my $result = $result{ $server->{name} } ||= {};
            push @{ $result->{us} },     $cpu / $requests * 1e6;
            push @{ $result->{rate} },   $requests / $seconds;
            push @{ $result->{errors} }, $errors;
        }
    }
    print table( [ 'server', 'CPU us', 'spread', 'x floor', 'spread', 'x sirius', 'requests/s', 'errors' ],
        map { _cpu_row( $_, \%result ) } @names );
    return \%result;
}

sub _load {
    my ( $o,    $server )      = @_;
    my ( $port, $connections ) = ( $server->{port}, $o->{connections} );
    if ( !$o->{close} ) {
        wrk( $port, $connections, 1 );    # warm
        return sub { return wrk( $port, $connections, $o->{seconds} ) };
    }
    my ( $requests, $seconds ) = ab( $port, $connections, 2000 );
    my $total = int( $requests / $seconds * $o->{seconds} / 100 + 1 ) * 100;
    return sub { return ab( $port, $connections, $total ) };
}

sub _cpu_row {
    my ( $name, $result ) = @_;
    my %mine   = %{ $result->{$name} };
    my @floor  = _ratios( $mine{us}, $result->{floor}{us} );
    my @sirius = _ratios( $mine{us}, $result->{sirius}{us} );
    my $errors = 0;
    $errors += $_ for @{ $mine{errors} };
    return [
        $name,
        sprintf( '%.2f', median( @{ $mine{us} } ) ),
        spread( '%.2f', @{ $mine{us} } ),
        @floor  ? ( sprintf( '%.2f', median(@floor) ), spread( '%.2f', @floor ) ) : ( '', '' ),
        @sirius ? sprintf( '%.2f', median(@sirius) )                              : '',
        sprintf( '%.0f', median( @{ $mine{rate} } ) ),
        $errors
    ];
}

# Round by round
sub _ratios {
    my ( $mine, $other ) = @_;
    return $other ? map { $mine->[$_] / $other->[$_] } 0 .. $#{$mine} : ();
}

# What a worker adds to the supervisor it was forked from
sub _memory {
    my ( $o, @names ) = @_;
    my ( %result, @rows );
    for my $name ( grep { $_ ne 'floor' } @names ) {
        my $server = Bench::Server->new( name => $name, app => 'hello' )->start;
        exactly( $server->{port}, 1, 1000 );
        my ( $supervisor, @workers ) = map { $server->private_memory($_) } $server->pids;
        $result{$name} = { supervisor => $supervisor, workers => \@workers };
        push @rows,
            [ $name, $supervisor, join( ' + ', @workers ), @workers ? $workers[-1] - $supervisor : '' ];
    }
    print table( [ 'server', 'supervisor', 'workers', 'worker minus supervisor' ], @rows );
    return \%result;
}

sub _syscalls {
    my ( $o, @names ) = @_;
    my ( %result, @rows );
    my @kinds = (
        [ 'keep-alive, 1 connection',   'hello',    1 ],
        [ 'keep-alive, 16 connections', 'hello',    16 ],
        [ 'close, 1 at a time',         'hello',    1, close => 1 ],
        [ 'close, 8 at a time',         'hello',    8, close => 1 ],
        [ '8000 bytes, keep-alive',     'body8000', 1 ],
    );
    for my $name (@names) {
        for (@kinds) {
            my ( $kind, $app, $connections, %option ) = @$_;
            my $server = Bench::Server->new( name => $name, app => $app, %option )->start;
            next if $connections > 1 && !$option{close} && !$server->is_event_driven;
            my $calls = _strace( $server,
                sub { exactly( $server->{port}, $connections, $o->{requests}, %option ) } );
            my @most = sort { $calls->{$b} <=> $calls->{$a} || $a cmp $b } keys %$calls;
            $result{$name}{$kind} = $calls;
            push @rows,
                [
                $name, $kind, join ', ', map { sprintf '%s %.4g', $_, $calls->{$_} / $o->{requests} } @most
                ];
        }
    }
    print table( [ 'server', 'requests', 'calls' ], @rows );
    return \%result;
}

# Name of a system call => how often
sub _strace {
    my ( $server, $load ) = @_;
    my $file = "$server->{log}.strace";
    $load->();    # warm
    my $pid = fork // die "fork: $!\n";
    if ( !$pid ) {
        open STDERR, '>', "$file.messages" or die $!;
        exec qw(taskset -c 0 strace -c -f -o), $file, map { ( '-p', $_ ) } $server->pids
            or die "strace: $!\n";
    }
    for ( 1 .. 100 ) {
        sleep 0.05;
        my $attached = () = Bench::Server::read_file("$file.messages") =~ /attached/g;
        last if $attached >= $server->pids;
    }
    sleep 0.2;
    $load->();
    sleep 0.2;
    kill INT => $pid;
    waitpid $pid, 0;
    my %calls = reverse Bench::Server::read_file($file)
        =~ /^\s*[0-9.]+\s+[0-9.]+\s+[0-9]+\s+([0-9]+)\s+(?:[0-9]+\s+)?([a-z_0-9]+)$/mg;
    delete $calls{total};
    return \%calls;
}

# Two runs that differ in the number of requests only: the start and the end cancel out
sub _instructions {
    my ( $o, @names ) = @_;
    my ( %result, @rows );
    for my $name (@names) {
        my %total = map { $_ => _callgrind( $name, $_ ) } 500, 1500;
        $result{$name} = ( $total{1500} - $total{500} ) / 1000;
        push @rows, [ $name, sprintf '%.0f', $result{$name} ];
    }
    print table( [ 'server', 'instructions' ], @rows );
    return \%result;
}

sub _callgrind {
    my ( $name, $requests ) = @_;
    my $file = "$Bench::Server::ROOT/build/bench/callgrind";
    unlink glob "$file.*";
    local @ENV{qw(PERL_HASH_SEED PERL_PERTURB_KEYS)} = ( 0, 0 );
    my @under  = ( 'valgrind', '-q', '--tool=callgrind', "--callgrind-out-file=$file.%p" );
    my $server = Bench::Server->new( name => $name, app => 'hello', alone => 1, under => \@under )->start;
    exactly( $server->{port}, 1, $requests );
    $server->stop;
    my $total = 0;
    $total += $_ for map { Bench::Server::read_file($_) =~ /^totals: ([0-9]+)/mg } glob "$file.*";
    return $total;
}

1;
