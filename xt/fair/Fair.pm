package Fair;

# What the tests of fairness share: an application that tells who served, requests that last until the test
# ends them, workers that are held still so that requests come to a chosen one, and clients in a closed loop.

use strict;
use warnings;
use Errno       qw(EAGAIN EINTR EWOULDBLOCK);
use Exporter    qw(import);
use File::Temp  ();
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Client;
use Sirius::Test::Response;
use Sirius::Test::Server;

our @EXPORT = qw($APP anonymous fair_server hammer hold on_worker quantile still unlimited worker_pids);

our $DIR = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

our $APP = <<'APP';
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use Time::HiRes qw(sleep time);
sub hold {
    my ( $file, $until ) = ( "$ENV{FAIR_DIR}/$_[0]", time + 60 );
    while ( !-e $file && time < $until ) { sleep 0.005 }
    return;
}
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    if ( $path =~ m{\A/sleep/([\d.]+)} ) {
        my $until = time + $1;
        while ( ( my $left = $until - time ) > 0 ) { sleep $left }
    }
    hold($1) if $path =~ m{\A/until/(\d+)};
    push @{ $env->{'psgix.cleanup.handlers'} }, do { my $number = $1; sub { hold($number); warn "cleaned up\n" } } if $path =~ m{\A/cleanup/(\d+)};
    warn "reached: $env->{QUERY_STRING}\n" if $path eq '/note';
    my $body = $path =~ m{\A/big(?:/(\d+))?\z} ? 'x' x ( $1 || 1_000_000 ) : "$$";
    my @header = ( 'Content-Type' => 'text/plain', 'X-Worker' => $$ );
    if ( $path eq '/echo' ) {
        $body = do { local $/; readline $env->{'psgi.input'} };
        $body = '' if !defined $body;
        push @header, 'X-MD5' => md5_hex($body), 'X-Env' => join ' ', map {"$_=" . ( defined $env->{$_} ? $env->{$_} : '-' ) }
            qw(REQUEST_METHOD REQUEST_URI QUERY_STRING CONTENT_LENGTH CONTENT_TYPE REMOTE_ADDR REMOTE_PORT HTTP_X_MINE);
    }
    [ 200, \@header, [$body] ];
}
APP

# KiB of anonymous memory of these processes
sub anonymous {
    my $sum = 0;
    $sum += Sirius::Test::Server::slurp("/proc/$_/smaps_rollup") =~ /^Anonymous:\s+(\d+)/m ? $1 : 0 for @_;
    return $sum;
}

# A server whose workers have all answered once; returns it and their PIDs
sub fair_server {
    my ( $workers, @args ) = @_;
    local $ENV{FAIR_DIR} = "$DIR";
    my $server = start_server( $APP, '--workers', $workers, @args );
    my %seen;
    until_true(
        20,
        sub {
            my @client = map { $server->connect } 1 .. $workers;
            $_->send( request('GET /sleep/0.05') ) for @client;
            $seen{ $_->response->body }++ for @client;
            return worker_pids($server) == $workers && !grep { !$seen{$_} } worker_pids($server);
        }
    ) or die "not all of the $workers workers answer: @{[ %seen ]}\n" . $server->log;
    return $server, worker_pids($server);
}

# Clients in a closed loop: each asks again when it has its answer. Options: clients (a list), seconds, path,
# requests (of each client, then it rests), stop (code: end before the time), every and tick (code to call so
# often), body (code that gets each answer's). A connection that ends is opened anew. Returns answers,
# by_worker (PID => answers), failures (a list of how), latency (a list, seconds), closes (responses that said
# so).
sub hammer {
    my ( $server, %option ) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $request = request( 'GET ' . ( $option{path} || '/' ) );
    my @job     = map { { client => $_, count => 0 } } @{ $option{clients} };
    my %result  = ( answers => 0, by_worker => {}, failures => [], latency => [], closes => 0 );
    my $start   = my $tick = time;
    my $again   = sub {
        my ( $job, $how ) = @_;
        push @{ $result{failures} },
            sprintf '%s at %.3f s%s', $how, time - $start, $job->{sent} ? '' : ' between requests';
        $job->{client} = $server->connect;
        delete $job->{sent};
    };
    while (1) {
        my $over = time >= $start + $option{seconds} || $option{stop} && $option{stop}->();
        if ( !$over && $option{tick} && time >= $tick ) {
            $option{tick}->( \%result );
            $tick = time + ( $option{every} || 0.1 );
        }
        my @active = grep { $over ? $_->{sent} : !$option{requests} || $_->{count} < $option{requests} } @job;
        last if !@active;
        if ( time > $start + $option{seconds} + 10 ) {
            push @{ $result{failures} }, ('no answer within 10 s') x @active;
            last;
        }
        my $read = '';
        for my $job (@active) {
            if ( !$job->{sent} ) {
                $job->{sent} = time;
                defined syswrite $job->{client}->socket, $request or $again->( $job, "write: $!" );
            }
            vec( $read, fileno $job->{client}->socket, 1 ) = 1;
        }
        next if select( $read, undef, undef, 0.02 ) <= 0;
        for my $job (@active) {
            next if !vec $read, fileno $job->{client}->socket, 1;
            my $n = sysread $job->{client}->socket, $job->{client}{in}, 65_536, length $job->{client}{in};
            next if !defined $n && ( $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR );
            if ( !$n ) { $again->( $job, defined $n ? 'eof' : "$!" ); next }
            my $answer = eval { Sirius::Test::Response->take( \$job->{client}{in} ) };
            if ($@)         { chomp( my $why = $@ ); $again->( $job, $why ); next }
            if ( !$answer ) {next}
            push @{ $result{failures} }, $answer->status if $answer->status != 200;
            push @{ $result{failures} }, 'stray bytes'   if length $job->{client}{in};
            push @{ $result{latency} },  time - delete $job->{sent};
            $result{answers}++;
            $result{closes}++ if $answer->closes;
            $result{by_worker}{ $answer->header('X-Worker') || '?' }++;
            $option{body}->( $answer->body ) if $option{body};
            $job->{count}++;
        }
    }
    return \%result;
}

# Sends a request that lasts until the code is called that is returned, and waits until a worker is in it.
# With "cleanup" its response comes at once, and its handler lasts
my $held = 0;

sub hold {
    my ( $server, $client, $what ) = @_;
    my $number = ++$held;
    $what ||= 'until';
    $client->send( request("GET /$what/$number") );
    $server->wait_busy( 1, qr{/$what/$number\z} );
    return sub { spew( "$DIR/$number", '' ) };
}

# So many kept connections whose first request this worker has served; the others are held still meanwhile
sub on_worker {
    my ( $server, $pid, $count ) = @_;
    my @other = grep { $_ != $pid } worker_pids($server);
    still(@other);
    my @client = map { $server->connect } 1 .. $count;
    my @wrong;
    for my $client (@client) {
        my $by = $client->ask('GET /')->body;
        push @wrong, $by if $by ne $pid;
    }
    kill CONT => @other;
    die "not served by $pid: @wrong\n" if @wrong;
    return @client;
}

sub quantile {
    my ( $q, @value ) = @_;
    @value = sort { $a <=> $b } @value;
    return $value[ $q * $#value ];
}

sub state {
    return Sirius::Test::Server::slurp("/proc/$_[0]/stat") =~ /\A\d+ \(.*\) (\S)/s ? $1 : undef;
}

# Holds processes still, so that nothing wakes them, until they get CONT
sub still {
    my @pid = @_;
    kill STOP => @pid;
    until_true(
        5,
        sub {
            !grep { ( state($_) || '' ) ne 'T' } @pid;
        }
    ) or die "cannot stop @pid\n";
    return;
}

# Starts the test again with this many descriptors
sub unlimited {
    my $wanted = shift;
    my $have   = `sh -c 'ulimit -n'`;
    return if $have eq "unlimited\n" || $have >= $wanted;
    my $hard = `sh -c 'ulimit -Hn'`;
    Test::More::plan( skip_all => "needs $wanted descriptors" )
        if $hard ne "unlimited\n" && $hard < $wanted || $ENV{FAIR_UNLIMITED}++;
    exec 'sh', '-c', "ulimit -n $wanted; exec \"\$@\"", 'sh', $^X, ( map {"-I$_"} grep { !ref } @INC ), $0;
    die "exec: $!";
}

sub worker_pids {
    my @pids = shift->workers;
    return @pids;
}

1;
