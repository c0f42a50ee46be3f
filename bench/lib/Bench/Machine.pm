package Bench::Machine;

# The machine: which core is used for what, and what a reader must know about the rest.

use strict;
use warnings;

use Config;
use Exporter qw(import);
use FindBin  ();
use POSIX    qw(strftime uname);

our @EXPORT_OK
    = qw(all_cores client_core environment pin_client raise_descriptors read_file server_core unpin_client);

my @CORES = _cores();

sub all_cores   { return @CORES }
sub server_core { return $CORES[0] }
sub client_core { return $CORES[-1] }

# Binds this process, and the load it starts
sub pin_client {
    return if system("taskset -cp @{[ client_core() ]} $$ >/dev/null") == 0;
    warn "taskset does not work here: servers and clients run on any core\n";
    return;
}

# Runs this program again, with these words, so that it and what it starts may have as many descriptors as the
# system allows. Only a shell can do that. Returns when they may already
sub raise_descriptors {
    my @words = @_;
    return if $ENV{BENCH_LIMITS}++;
    exec 'sh', '-c', 'ulimit -n $(ulimit -Hn); exec "$@"', 'sh', $^X, "$FindBin::Bin/$FindBin::Script",
        @words;
    die "exec: $!\n";
}

# Lets this process use all cores again
sub unpin_client {
    return !system "taskset -cp @{[ join ',', @CORES ]} $$ >/dev/null";
}

# Names and values in turn
sub environment {
    my $root   = shift;
    my @kernel = uname;
    my ($cpu)  = read_file('/proc/cpuinfo')                           =~ /^model name\s*: (.*)/m;
    my ($ram)  = read_file('/proc/meminfo')                           =~ /^MemTotal:\s+([0-9]+)/m;
    my $commit = `git -C $root describe --always --dirty 2>/dev/null` =~ s/\s+\z//r || 'none';
    my $pinned
        = @CORES > 1
        ? sprintf 'servers on core %s, clients on core %s', server_core(), client_core()
        : 'servers and clients share it';
    my $system = read_file('/etc/os-release') =~ /^PRETTY_NAME="?([^"\n]*)/m ? $1 : '?';
    return (
        date   => strftime( '%Y-%m-%d %H:%M UTC', gmtime ),
        commit => $commit,
        CPU    => sprintf( '%s, %d core%s; %s', $cpu // '?', scalar @CORES, @CORES > 1 ? 's' : '', $pinned ),
        memory => sprintf( '%.1f GiB', ( $ram // 0 ) / 2**20 ),
        load   => join( ' ', ( split ' ', read_file('/proc/loadavg') )[ 0 .. 2 ] ) . ' before the run',
        system => "$system, @kernel[0,2]",
        perl   => sprintf( 'v%vd%s', $^V, $Config{useithreads} ? ', threads' : '' ),
        cc     => ( split /\n/, `cc --version 2>/dev/null` )[0] // '?',
        wrk    => `wrk -v 2>&1`       =~ /^wrk (\S+)/    ? "$1" : 'none',
        ab     => `ab -V 2>/dev/null` =~ /Version (\S+)/ ? "$1" : 'none',
    );
}

sub read_file {
    my $file = shift;
    open my $fh, '<', $file or return '';
    local $/ = undef;
    my $text = <$fh> // '';
    close $fh;
    return $text;
}

# The cores that this process may use
sub _cores {
    my ($list) = read_file('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\S+)/m;
    return map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $list // 0;
}

1;
