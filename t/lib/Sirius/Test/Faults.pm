package Sirius::Test::Faults;

# A server with t/lib/faults.c preloaded, whose system calls and allocations fail when the test says so.
#
#   my $faults = Sirius::Test::Faults->new;                 # ends the test file where that can't work
#   my $server = $faults->start( app => $app, args => [...] );
#   $faults->set( short_read => 0.3, accept => [ 1, EMFILE ] );
#   ...
#   $faults->clear;
#   cmp_ok $faults->injected('accept'), '>', 0, 'it happened';

use strict;
use warnings;
use Config      qw(%Config);
use Errno       qw(EAGAIN ECONNRESET EINTR EMFILE ENOMEM ENOSPC EIO);
use File::Path  qw(make_path);
use POSIX       ();
use Test::More  ();
use Time::HiRes qw(sleep time);
use Sirius::Test::Server;

# In the order of faults.c, each with its usual error
my @FAULT = (
    [ short_read  => 0 ],
    [ short_write => 0 ],
    [ eagain      => EAGAIN ],
    [ eintr       => EINTR ],
    [ reset       => ECONNRESET ],
    [ accept      => EMFILE ],
    [ give        => EAGAIN ],
    [ take        => EMFILE ],
    [ memory      => ENOMEM ],
    [ watch       => ENOMEM ],
    [ handle      => EMFILE ],
    [ spool       => ENOSPC ],
    [ log         => ENOSPC ],
    [ unread      => EIO ],
    [ thread      => EAGAIN ],
    [ fork        => EAGAIN ],
    [ clock       => 0 ],
    [ garbled     => 0 ],
);
my %INDEX = map { $FAULT[$_][0] => $_ } 0 .. $#FAULT;
my %AT    = ( attached => 0, seed => 8, pid => 16, clock => 24 );
use constant { HEAD => 32, SIZE => 24 };

# CPU time of the processes in seconds
sub cpu {
    my ( $class, @pid ) = @_;
    my $ticks = 0;
    for my $pid (@pid) {
        my @field = split ' ', Sirius::Test::Server::slurp("/proc/$pid/stat") =~ s/\A.*\) //sr;
        $ticks += $field[11] + $field[12] if @field > 12;
    }
    return $ticks / POSIX::sysconf( POSIX::_SC_CLK_TCK() );
}

# CPU time of these processes in seconds while the code runs, and how often one of their threads went to sleep
sub load_of {
    my ( $class, $code, @pid ) = @_;
    my ( $cpu, $sleeps ) = ( $class->cpu(@pid), _sleeps(@pid) );
    $code->();
    return ( $class->cpu(@pid) - $cpu, _sleeps(@pid) - $sleeps );
}

sub new {
    my $class = shift;
    my $library
        = _library() || Test::More::plan( skip_all => 'no C compiler that makes a library to preload' );
    Test::More::plan( skip_all => 'something else is preloaded, or runs the server' )
        if $ENV{LD_PRELOAD} || $ENV{SIRIUS_TEST_WRAP};
    my $self = bless { library => $library, dir => File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 ) },
        $class;
    my $file = "$self->{dir}/faults";
    open $self->{file}, '+>:raw', $file or die "$file: $!";
    $self->_put( 0, pack 'x' . ( HEAD + SIZE * @FAULT ) );
    $self->_put( $AT{seed}, pack 'Q', $ENV{SIRIUS_TEST_SEED} || 20_261_122 );
    $self->clear;
    {
        local @ENV{qw(LD_PRELOAD FAULTS_FILE)} = ( $library, $file );
        system $^X, '-e', '1';
    }
    Test::More::plan( skip_all => 'LD_PRELOAD does not work here' ) if !$self->_number('attached');
    return $self;
}

# Ends all faults; the counters remain
sub clear {
    my $self = shift;
    $self->_put( $AT{$_}, pack 'q', 0 ) for qw(clock pid);
    $self->_put( _place($_), pack 'LLQ', 0, 0, 0 ) for keys %INDEX;
    return;
}

# Makes all processes believe that it is so many seconds later
sub clock {
    my ( $self, $seconds ) = @_;
    return $self->_put( $AT{clock}, pack 'q', $seconds );
}

# How often the fault has happened
sub injected {
    my ( $self, $name ) = @_;
    return unpack 'Q', $self->_get( _place($name) + 16, 8 );
}

# Makes only the call with this number fail, of those that could fail this way
sub nth {
    my ( $self, $name, $number, $errno ) = @_;
    $errno = $FAULT[ $INDEX{$name} ][1] if !defined $errno;
    return $self->_put( _place($name), pack 'LLQ', 0, $errno, $number );
}

# Limits the faults to this process, until clear
sub only {
    my ( $self, $pid ) = @_;
    return $self->_put( $AT{pid}, pack 'q', $pid );
}

# What a program under it prints
sub run {
    my ( $self, @command ) = @_;
    local @ENV{qw(LD_PRELOAD FAULTS_FILE)} = ( $self->{library}, "$self->{dir}/faults" );
    open my $out, '-|', @command or die "$command[0]: $!";
    my $text = join '', readline $out;
    close $out or die "$command[0] has failed: $? $!";
    return $text;
}

# Which part of the calls fails: NAME => 0.3, or NAME => [ 0.3, ERRNO ]
sub set {
    my ( $self, %rate ) = @_;
    for my $name ( sort keys %rate ) {
        my ( $rate, $errno ) = ref $rate{$name} ? @{ $rate{$name} } : $rate{$name};
        $errno = $FAULT[ $INDEX{$name} ][1] if !defined $errno;
        $self->_put( _place($name), pack 'LLQ', int 65_536 * $rate, $errno, 0 );
    }
    return;
}

# The options of Sirius::Test::Server->start
sub start {
    my ( $self, %option ) = @_;
    my %env = ( LD_PRELOAD => $self->{library}, FAULTS_FILE => "$self->{dir}/faults" );
    return Sirius::Test::Server->start( %option, env => { %env, %{ $option{env} || {} } } );
}

sub _get {
    my ( $self, $at, $length ) = @_;
    sysseek $self->{file}, $at, 0;
    sysread( $self->{file}, my $bytes, $length ) == $length or die "the file of the faults: $!";
    return $bytes;
}

# Built once; two tests may need it at the same time
sub _library {
    my $root   = $Sirius::Test::Server::ROOT;
    my $source = "$root/t/lib/faults.c";
    my $built  = "$root/build/faults.so";
    return $built if -e $built && -M $built <= -M $source;
    make_path("$root/build");
    my @flags = qw(-std=gnu11 -Wall -Wextra -Werror -O1 -shared -fPIC -D_FILE_OFFSET_BITS=64);
    my $log   = "$built.$$.log";
    system("$Config{cc} @flags -o $built.$$ $source -ldl >$log 2>&1") == 0
        or Test::More::diag( Sirius::Test::Server::slurp($log) );
    unlink $log;
    return rename( "$built.$$", $built ) ? $built : undef;
}

sub _number {
    my ( $self, $what ) = @_;
    return unpack 'Q', $self->_get( $AT{$what}, 8 );
}

sub _place {
    my $name = shift;
    defined $INDEX{$name} or die "no such fault: $name";
    return HEAD + SIZE * $INDEX{$name};
}

sub _put {
    my ( $self, $at, $bytes ) = @_;
    sysseek $self->{file}, $at, 0;
    syswrite( $self->{file}, $bytes ) == length $bytes or die "the file of the faults: $!";
    return;
}

sub _sleeps {
    my $sum = 0;
    for my $pid (@_) {
        $sum += Sirius::Test::Server::slurp($_) =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : 0
            for glob "/proc/$pid/task/*/status";
    }
    return $sum;
}

1;
