package Sirius::CLI::Profile;

use strict;
use warnings;
use parent 'Sirius::CLI::Command';

use POSIX               ();
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::CLI::Profile::Choice;
use Sirius::CLI::Profile::Output;
use Sirius::Control::Client;
use Sirius::OS::Proc;
use Sirius::Profile::Collector;
use Sirius::Profile::Dump;
use Sirius::Profile::Samples;
use Sirius::Profile::Server;
use Sys::Hostname ();
use Time::HiRes   qw(sleep);

use constant ELSEWHERE => 'the server is in another container';
use constant {
    FIRST    => -20,              # the highest priority
    HZ       => 99,
    MEMORY   => 256 * 1024**2,    # bytes of different stacks
    PATIENCE => 10,    # seconds to wait for an answer of the server, beside the time that it takes samples
    SECONDS  => 10,
};

# Forms of the output, and the class and method that make it
my %FORMAT = (
    folded     => [ 'Sirius::Profile::Samples',    'folded' ],
    html       => [ 'Sirius::Profile::FlameGraph', 'html' ],
    pprof      => [ 'Sirius::Profile::Pprof',      'gzipped' ],
    speedscope => [ 'Sirius::Profile::Speedscope', 'json' ],
    table      => [ 'Sirius::Profile::Table',      'text' ],
);
my @FORMATS = qw(table folded html speedscope pprof);
my %ENDING  = (
    folded => 'folded',
    gz     => 'pprof',
    htm    => 'html',
    html   => 'html',
    json   => 'speedscope',
    pb     => 'pprof'
);
my %PICTURE = map { $_ => 1 } qw(pdf png svg);    # what other profilers write

my @ROWS = (
    [   'Commands',
        { typed => 'dump', text => 'Print what each worker does now, with its stack, instead of a profile' },
    ],
    [   'Which processes',
        {   name  => 'control',
            type  => 'string',
            value => 'PATH',
            text  =>
                'Look at the server with this control socket (default: SIRIUS_CONTROL, or the only server without --control)'
        },
        {   name  => 'worker',
            type  => 'string',
            value => 'PID|all',
            text  => 'Look at this worker only (default: all)'
        },
        {   name  => 'path',
            type  => 'string',
            value => 'PREFIX',
            text  => 'Count requests whose path begins with PREFIX only'
        },
        {   name  => 'pid',
            type  => 'count',
            min   => 1,
            max   => 2**22,
            value => 'PID',
            text => 'Look at the server with this supervisor, or at any other process that runs the same perl'
        },
    ],
    [   'How often and how long',
        {   name    => 'seconds',
            type    => 'seconds',
            default => SECONDS,
            min     => 0.1,
            max     => 3600,
            text    => 'Take samples for this time'
        },
        {   name    => 'hz',
            type    => 'count',
            default => HZ,
            min     => 1,
            max     => 1000,
            value   => 'N',
            text    => 'Take N samples of each worker in a second'
        },
    ],
    [   'Output',
        {   name  => 'format',
            type  => 'choice',
            of    => \@FORMATS,
            value => join( q(|), @FORMATS ),
            text  =>
                'Print a table; stacks with their counts; a page with a flame graph; a file for speedscope or pprof (default: by the '
                . 'ending of FILE, else table)'
        },
        {   name  => 'output',
            short => 'o',
            type  => 'string',
            value => 'FILE',
            text  => 'Write to FILE instead of STDOUT'
        },
        {   name  => 'compare',
            type  => 'string',
            value => 'FILE',
            text  =>
                'With --format html: show what has grown and shrunk since an earlier profile, a FILE of --format folded'
        },
    ],
);

sub main {
    my ( $self, $command, @words ) = @_;
    $self->wrong("unknown command '$command': use dump, or none") if defined $command && $command ne 'dump';
    $self->no_more(@words);
    my $dumps = defined $command;
    $self->_check_options($dumps);
    return $self->_dump if $dumps;
    my $format  = $self->_format;
    my $older   = $self->_older($format);
    my $samples = $self->_samples;
    $self->_say_bounds( $format, $samples );
    $self->_write( $self->_made( $format, $samples, $older ) );
    return $self->DONE;
}

sub name { return 'profile' }

sub rows { return __PACKAGE__->grouped(@ROWS) }

sub summary { return 'Show where the time goes' }

sub synopsis { return '[options] [dump]' }

# What the server answers, which may look at its workers where we may not
sub _ask {
    my ( $self, $path, %request ) = @_;
    my $seconds = $request{seconds} // 0;
    my ( $answer, $client );
    my $done = eval {
        $client = Sirius::Control::Client->new( $path, PATIENCE + $seconds );
        ($answer) = $client->ask( \%request );
        1;
    };
    if ( !$done ) {
        my $failure = $@;
        die $failure if ref $failure ne 'HASH';
        $self->fail( $self->FAILED, $failure->{text} );
    }
    $self->fail( $self->FAILED, $answer->{error} ) if !$answer->{ok};
    return ( $answer, $client );
}

# The scoreboard of the server, the path of its control socket, why it cannot be read, and the PID of the
# supervisor
sub _board {
    my ( $self, $path, $pid ) = @_;
    if ( !defined $pid ) {
        my ( $answer, $client ) = $self->_ask( $path, command => 'status' );
        $pid = $client->pid;
        return ( undef, $path, ELSEWHERE ) if !$pid || $pid != $answer->{status}{pid};
    }
    my $board = eval { Sirius::Profile::Server->board($pid) };
    my $why   = $@;
    return ( $board, $path, _is_here( $board, $pid ) ? undef : ELSEWHERE, $pid ) if $board;
    return ( undef, $path, $why->{forbidden} ) if ref $why;
    chomp $why;
    return $self->fail( $self->FAILED, $why );
}

sub _check_options {
    my ( $self, $dumps ) = @_;
    for my $name ( grep { $dumps && defined $self->given($_) } qw(compare format hz path seconds) ) {
        $self->wrong("--$name: not with dump");
    }
    $self->wrong('--control: cannot be combined with --pid')
        if defined $self->given('control') && defined $self->given('pid');
    my $worker = $self->given('worker') // 'all';
    $self->wrong("--worker: '$worker' is neither the PID of a worker nor all")
        if $worker !~ /\A(?:all|[0-9]{1,7})\z/;
    my $path = $self->given('path') // '/';
    $self->wrong("--path: '$path' does not begin with a slash: did you mean /$path?") if $path !~ m{\A/};
    return;
}

# Ours, or undef if the kernel forbids it: then the path of the socket behind it, and why
sub _collector {
    my $self   = shift;
    my $worker = $self->given('worker');
    my %which  = (
        hz      => $self->given('hz') // HZ,
        memory  => MEMORY,
        path    => $self->given('path'),
        seconds => $self->given('seconds') // SECONDS,
        worker  => defined $worker && $worker ne 'all' ? $worker : undef,
    );
    my ( $collector, $path, $why );
    my $pid = $self->given('pid');
    if ( my $server = $self->_server ) {
        ( $which{board}, $path, $why, my $supervisor ) = $self->_board( @{$server}{qw(path pid)} );

        # An application can write any PID into its row of the scoreboard
        $which{only}   = sub { Sirius::OS::Proc->descends( shift, $supervisor ) };
        $which{server} = $supervisor;
    } else {
        for my $name ( grep { defined $self->given($_) } qw(path worker) ) {
            $self->wrong("--$name: process $pid is not the supervisor of a Sirius server");
        }
        $self->{process} = $which{pid} = $pid;
    }
    $collector = eval { Sirius::Profile::Collector->new(%which) } if !defined $why;
    chomp( $why //= $@ );
    if ($collector) {
        $self->fail( $self->FAILED, "there is no worker $worker" )
            if defined $which{worker} && !@{ $collector->dump };
        return $collector;
    }
    $self->fail( $self->FAILED, $why ) if !defined $path;
    return ( undef, $path, $why, %which );
}

sub _dump {
    my $self = shift;
    my ( $collector, $path, $why, %which ) = $self->_collector;
    my $workers
        = $collector
        ? $collector->dump
        : ( $self->_ask( $path, command => 'profile', dump => 1, _known(%which) ) )[0]{workers};
    $self->_write( Sirius::Profile::Dump->text(@$workers) );
    return $self->DONE;
}

sub _format {
    my $self   = shift;
    my $format = $self->given('format');
    return $format if defined $format;
    my $file = $self->given('output') // return 'table';
    my ($ending) = map {lc} $file =~ /[.]([a-z]+)\z/i or return 'table';
    $self->wrong("--output: '$file': a flame graph is no .$ending file, but a page: use .html")
        if $PICTURE{$ending};
    return $ENDING{$ending} // 'table';
}

# Whether its rows have PIDs of this PID namespace
sub _is_here {
    my ( $board, $pid ) = @_;
    my @workers = grep { $_ > 0 } map { $board->row($_)->{pid} } $board->occupied;
    return !@workers || grep { Sirius::OS::Proc->descends( $_, $pid ) } @workers;
}

# What the server takes
sub _known {
    my %which = @_;
    return map { defined $which{$_} ? ( $_ => $which{$_} ) : () } qw(hz path seconds worker);
}

sub _made {
    my ( $self, $format, $samples, $older ) = @_;
    my ( $class, $method ) = @{ $FORMAT{$format} };
    return $samples->folded if $format eq 'folded';
    require( $class =~ s{::}{/}gr . '.pm' );
    my $title
        = 'Sirius on ' . Sys::Hostname::hostname() . POSIX::strftime( ', %Y-%m-%d %H:%M:%S', localtime );
    return $class->$method( $samples, compare => $older, none => $self->_none, title => $title );
}

# Why there are no samples
sub _none {
    my $self   = shift;
    my $path   = $self->given('path');
    my $worker = $self->given('worker') // 'all';
    return 'no samples' if $self->{process};
    return
          'no samples: no request'
        . ( defined $path ? " with a path that begins with $path" : '' )
        . ' was running'
        . ( $worker ne 'all' ? " in worker $worker" : '' );
}

sub _older {
    my ( $self, $format ) = @_;
    my $file = $self->given('compare') // return;
    $self->wrong('--compare: only with --format html') if $format ne 'html';
    open my $in, '<:raw', $file or $self->wrong("--compare: $file: $!");
    my $text = do { local $/ = undef; readline $in };
    close $in or $self->wrong("--compare: $file: $!");
    my $samples = eval { Sirius::Profile::Samples->from_folded($text) };
    chomp( my $error = $@ );
    $self->wrong("--compare: $file: $error") if !$samples;
    return $samples;
}

# Before any samples are taken, which would be lost
sub _output {
    my $self = shift;
    $self->{out} //= eval { Sirius::CLI::Profile::Output->new( $self->given('output') ) }
        // $self->fail( $self->FAILED, $@ =~ s/\n\z//r );
    return;
}

sub _samples {
    my $self = shift;
    my ( $collector, $path, $why, %which ) = $self->_collector;
    $self->_output;
    if ( !$collector ) {
        print {*STDERR} "sirius profile: $why; the server takes the samples itself\n";
        my ($answer) = $self->_ask( $path, command => 'profile', _known(%which) );
        my $samples = Sirius::Profile::Samples->from_folded( $answer->{folded} );
        $samples->set( map { $_ => $answer->{$_} || 0 } qw(cut failed hz left_out seconds taken) );
        return $samples;
    }
    print {*STDERR} 'sirius profile: taking samples for '
        . Sirius::Base::Text->duration( $self->given('seconds') // SECONDS )
        . ", Ctrl-C ends it earlier\n"
        if POSIX::isatty(2);
    local @SIG{qw(HUP INT TERM)} = ( sub { $collector->end } ) x 3;

    # Where workers keep all CPUs busy, it would be late as long as they compute, and see them wait too often.
    # Root may do this.
    my $usual = getpriority 0, 0;
    setpriority 0, 0, FIRST;
    until ( $collector->ended ) {
        my $left = $collector->due - now();
        sleep $left if $left > 0;
        $collector->act;
    }
    setpriority 0, 0, $usual;
    my $samples = $collector->samples;
    printf {*STDERR} "sirius profile: the %s ended after %.1f s\n",
        $collector->server ? 'server' : 'process', $samples->seconds
        if $collector->gone;
    return $samples;
}

# Tables have all of it, and pages some
sub _say_bounds {
    my ( $self, $format, $samples ) = @_;
    my ( $left_out, $hz ) = map { $samples->$_ } qw(left_out hz);
    my $wanted = $self->given('hz') // HZ;
    print {*STDERR} "sirius profile: @{[ $self->_none ]}\n" if !$samples->stacks && $format ne 'table';
    print {*STDERR}
        "sirius profile: each worker was looked at $hz times a second, not $wanted, as there are many\n"
        if $hz < $wanted;
    print {*STDERR}
        "sirius profile: $left_out samples are counted as (other), as there were too many different stacks\n"
        if $left_out && $format !~ /\A(?:html|table)\z/;
    return;
}

# Its path or PID, or both. A PID is there if it is one of this PID namespace. Undef: --pid is of another
# process
sub _server {
    my $self   = shift;
    my $pid    = $self->given('pid');
    my $server = eval {
        defined $pid
            ? Sirius::CLI::Profile::Choice->of($pid)
            : Sirius::CLI::Profile::Choice->find( $self->given('control') );
    };
    chomp( my $error = $@ );
    $self->wrong($error)                 if $error =~ /\Athere are/;
    $self->fail( $self->FAILED, $error ) if length $error;
    return                               if !$server;
    $self->tell_user($server)            if !defined $pid;
    delete $server->{pid}                if exists $server->{known} && !$server->{known};
    return $server;
}

sub _write {
    my ( $self, $bytes ) = @_;
    $self->_output;
    eval { $self->{out}->write($bytes); 1 } or $self->fail( $self->FAILED, $@ =~ s/\n\z//r );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Profile - sirius profile: where the time goes in a running server

=head1 SYNOPSIS

  sirius profile
  sirius profile --seconds 60 --path /report -o report.html
  sirius profile -o before.folded
  sirius profile -o after.html --compare before.folded
  sirius profile dump

  sirius profile --pid 4711

  use Sirius::CLI::Profile;
  exit Sirius::CLI::Profile->run(@ARGV);

=head1 DESCRIPTION

Reads 99 times a second in which subs of Perl each worker is, for ten seconds, and counts them. The server needs no option for it, and
its workers do not notice: they are neither stopped nor interrupted, and their code is not changed. A sample takes 20 to 200 microseconds of
this command, which as root comes before all others on the CPU while it takes samples.

Samples are taken of workers that run a request. A worker that waits (for a database, a socket, a lock, a child, a timer) is counted apart
from one that computes or wants to. The first label of each stack is the request: its method and path, in which numbers and other IDs are
C<*>. The last one may be a sub in C, such as C<DBI::st::execute (XS)>, or a function of perl, such as C<CORE::match (C)>.
The labels:

  Shop::sum lib/Shop.pm:30    a sub, with the file and the line where it is
  JSON::XS::encode (XS)       a sub in C
  ->encode (method)           a method in C that has called other subs: its class is not known any more
  CORE::match (C)             a function of perl itself: regular expressions, sort, input and output, sleep ...
  (eval) (eval 3):1           a string that is evaluated
  (require) lib/Shop.pm:3     a file that is loaded
  (sort block), (regex code), (format)
  (signal handler), (tie), (overload), (destroy), (warn handler), (die handler): why perl calls the sub that follows,
                              where that is certain
  (main program) app.psgi:3   code in no sub
  (server)                    code of the server, for this request
  (moved)                     frames further in changed too fast to be read
  ...                         frames further out, of a deep stack

A space in the name of a sub is C<\x20> with C<--format folded>, so that the name ends at the first space.

No name is guessed. One that was given while the program runs, as by L<Sub::Util/set_subname>, may be another one at any moment: such a sub is
called by its code, C<Shop::__ANON__[Shop.pm:12]>, until its code was seen 16 times with that name and with no other one. So a short profile has
some of its samples under both. What changes so fast that it can't be read as a whole is shown as far as it is certain, and then C<(moved)>; the number of these
is told. What is not seen: a sub in C that has called a sub of Perl, threads other than the main one, and programs that the application has
started.

Ctrl-C ends it earlier and shows what there is. When 256 MiB of different stacks have been seen (4 MiB if the server takes the samples), stacks
that have not been seen before are counted as C<(other)>; the command says how many.

=head2 Which server

The one of C<--control> or C<SIRIUS_CONTROL>, else the one that C<sirius ctl> finds; servers without a control socket are found where there
is no other: those of the same user, and for root all, its own before others. If several run, C<--pid> with the PID of a supervisor selects one. With C<--pid> any other process that runs the same perl, to the byte, can be looked at.

=head2 If the kernel forbids it

A process may read the memory of another one if it could debug it: root may; the same user may where F</proc/sys/kernel/yama/ptrace_scope> is
absent or 0, unless the worker has changed its user (C<--user>). In a container also root needs the capability SYS_PTRACE. If it may
not, and there is a control socket, the supervisor takes the samples, which may look at the processes that it has started. Else the command
says what is missing.

=head1 COMMANDS

=over 4

=item B<dump>

Prints what each worker does now: its request, for how long, whether it is on CPU or waits, and its stack, innermost first.

=back

=head1 OPTIONS

=over 4

=item B<--compare> I<FILE>

With C<--format html>: show what has grown and shrunk since an earlier profile, a I<FILE> of C<--format folded>.

=item B<--control> I<PATH>

Look at the server with this control socket (default: C<SIRIUS_CONTROL>, or the only server without --control).

=item B<--format> I<FORMAT>

C<table>: requests, functions and lines with the most samples. C<folded>: a line for each stack, with its count. C<html>: a page with a flame graph,
which needs nothing else. C<speedscope>: a file for L<https://www.speedscope.app>. C<pprof>: a file for C<go tool pprof>. Default: by
the ending of the file of C<--output> (F<.folded>, F<.html>, F<.json>, F<.pb.gz>), else C<table>. F<.svg>, F<.png> and F<.pdf> are
refused.

=item B<--hz> I<N>

Take I<N> samples of each worker in a second (default: 99). It takes fewer where there are many workers: 3200 of all together.

=item B<-o>, B<--output> I<FILE>

Write to I<FILE> instead of STDOUT.

=item B<--path> I<PREFIX>

Count requests whose path begins with I<PREFIX> only.

=item B<--pid> I<PID>

Look at the server with this supervisor, or at any other process that runs the same perl.

=item B<--seconds> I<SECONDS>

Take samples for this time (default: 10).

=item B<--worker> I<PID>

Look at this worker only (default: C<all>).

=item B<-h>, B<--help>

Print a summary of commands and options, and exit.

=back

=head1 EXIT STATUS

  0   done
  1   it was not possible; the reason is on STDERR
  2   wrong usage

=head1 METHODS

=head2 run

  exit Sirius::CLI::Profile->run(@ARGV);

Runs the command with these words, and returns its exit status.

=head1 SEE ALSO

L<sirius>.

=cut
