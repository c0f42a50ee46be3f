package Sirius::Test::Program;

# A perl of its own, from another exec, so that its addresses are others: what samplers look at.
#
#   my $pid     = perl_of($code);
#   my $sampler = sampler_of($pid);
#   ended($pid);

use strict;
use warnings;

use Exporter   qw(import);
use File::Temp ();
use POSIX      ();
use Sirius::OS::Sampler;
use Sirius::Test;

our @EXPORT
    = qw(crowded ended ends_with_test perl_of runs sampler_of);    ## no critic (ProhibitAutomaticExportation)

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
chmod 0755, "$dir" or die $!;
my ( %file_of, $count );

END {
    my $status = $?;
    kill KILL => keys %file_of;
    waitpid $_, 0 for keys %file_of;
    $? = $status;
}

# PIDs of some that are busy, as on a machine that is: a sub of a microsecond is seen when its process waits
# for a CPU in the middle of it
sub crowded {
    return map { scalar perl_of('1 while 1') } 1 .. 3;
}

sub ended {
    my @pids = @_;
    kill KILL => @pids;
    waitpid $_, 0 for @pids;
    delete @file_of{@pids};
    return;
}

# A process that the test has started by itself
sub ends_with_test {
    my $pid = shift;
    $file_of{$pid} = q();
    return;
}

# PID. With: another perl
sub perl_of {
    my ( $code, $perl ) = @_;
    $perl //= $^X;
    my $file = spew( "$dir/program" . ++$count, $code );
    my $pid  = fork // die "fork: $!";
    if ( !$pid ) {
        exec {$perl} $perl, $file or POSIX::_exit(1);
    }
    $file_of{$pid} = $file;
    return $pid;
}

# Whether it is no fork of the test any more
sub runs {
    my $pid = shift;
    return Sirius::Test::Server::slurp("/proc/$pid/cmdline") =~ /\Q$file_of{$pid}\E\0\z/;
}

# As soon as it runs perl
sub sampler_of {
    my $pid = shift;
    my $sampler;
    until_true(
        20,
        sub {
            runs($pid) && ( $sampler = eval { Sirius::OS::Sampler->new($pid) } );
        }
    );
    return $sampler;
}

1;
