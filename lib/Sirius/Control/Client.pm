package Sirius::Control::Client;

use strict;
use warnings;

use Errno               qw(EAGAIN ECONNREFUSED EINTR ENOENT);
use Fcntl               qw(F_SETFL O_NONBLOCK);
use JSON::PP            ();
use List::Util          qw(max);
use POSIX               qw(strftime);
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Config::Type;
use Sirius::OS::Proc;
use Socket      qw(AF_UNIX MSG_NOSIGNAL SOCK_STREAM SOL_SOCKET SO_PEERCRED pack_sockaddr_un);
use Time::HiRes qw(sleep);

# Exit statuses
use constant { DONE => 0, REFUSED => 1, USAGE => 2, NO_SERVER => 3, TIMEOUT => 4 };

use constant {
    LOOK     => 0.02,    # seconds between two looks whether a process is gone, or its queue has room
    PATH_MAX => 107,     # bytes of sun_path without its NUL
    PATIENCE => 10,      # seconds for an answer, without --wait
};

my %COMMANDS = map { $_ => 1 } qw(reload status stop workers);
my %FLAGS    = ( abort => 'abort', h => 'help', help => 'help', json => 'json', wait => 'wait' );
my %VALUES   = map { $_ => 1 } qw(control timeout);
my $HELP     = <<'TEXT';
Usage: sirius ctl [options] COMMAND

Commands
  status             Print the state of the server: its processes, requests and last reload
  reload             Load the new code and let new workers take over
  stop               Finish the requests, then stop
  workers N          Change the number of workers to N

Options
  --control PATH     Connect to the control socket at PATH (default: SIRIUS_CONTROL)
  --wait             Return when the command has completed, not when it has been accepted
  --abort            With reload: abort the reload that is in progress
  --timeout SECONDS  Give up waiting after this time (default: 10; with --wait: no limit)
  --json             Print the answer of the server as one line of JSON
  -h, --help         Print this help and exit
TEXT

sub run {
    my ( $class, @args ) = @_;
    my $status = eval { $class->_run(@args) };
    return $status if defined $status;
    my $error = $@;
    die $error if ref $error ne 'ARRAY';
    print {*STDERR} "sirius ctl: $error->[1]\n";
    return $error->[0];
}

# The line that the server answered; '' when it closed the connection without one
sub _answer {
    my ( $self, $fh ) = @_;
    my $text = '';
    while ( $text !~ /\n/ ) {
        my $left = $self->_left('no answer');
        my $bits = '';
        vec( $bits, fileno $fh, 1 ) = 1;
        next if select( $bits, undef, undef, $left ) <= 0;
        my $got = sysread $fh, $text, 65_536, length $text;
        next if !defined $got && ( $! == EAGAIN || $! == EINTR );
        last if !$got;
    }
    return $text =~ /\A([^\n]*)\n/ ? $1 : '';
}

sub _connect {
    my $self = shift;
    my $path = $self->{control};
    _fail( USAGE, "--control $path: the path has more than ${\ PATH_MAX} bytes" ) if length $path > PATH_MAX;
    socket my $fh, AF_UNIX, SOCK_STREAM, 0 or _fail( NO_SERVER, "socket: $!" );
    fcntl $fh, F_SETFL, O_NONBLOCK or _fail( NO_SERVER, "fcntl: $!" );
    while ( !connect $fh, pack_sockaddr_un($path) ) {
        next if $! == EINTR;
        _fail( NO_SERVER, "no server is listening on $path: $!" ) if $! == ECONNREFUSED || $! == ENOENT;
        _fail( NO_SERVER, "cannot use the socket $path: $!" )     if $! != EAGAIN;
        $self->_left('its queue is still full');
        sleep LOOK;
    }
    return $fh;
}

sub _doing {
    my ( $row, $now ) = @_;
    my $since = $row->{began} || $row->{since};
    my $age   = $since ? Sirius::Base::Text->age( $now - $since ) : '';
    return $age if $row->{state} ne 'busy' || !defined $row->{line} || !length $row->{line};
    return Sirius::Base::Text->harmless( $row->{line} ) . " ($age)";
}

sub _edge {
    my ( $edge, $now ) = @_;
    my $since = $edge->{waiting_since};
    return [
        @{$edge}{qw(pid state)},                Sirius::Base::Text->age( $now - $edge->{started} ),
        @{$edge}{qw(connections idle waiting)}, $since ? Sirius::Base::Text->age( $now - $since ) : '-',
        $edge->{accepted}
    ];
}

sub _fail {
    my ( $status, $message ) = @_;
    die [ $status, $message ];
}

# Seconds that are left, undef for all of them
sub _left {
    my ( $self, $what ) = @_;
    return if !defined $self->{deadline};
    my $left = $self->{deadline} - now();
    return $left if $left > 0;
    return _fail( TIMEOUT, sprintf '%s: %s after %g s', $self->{control}, $what, $self->{timeout} );
}

sub _parse {
    my ( $class, @args ) = @_;
    my ( %given, @words );
    while ( defined( my $arg = shift @args ) ) {
        if ( $arg !~ /\A--?([^-=][^=]*)(?:=(.*))?\z/s ) {
            push @words, $arg if $arg ne '--';
            next;
        }
        my ( $name, $value ) = ( $1, $2 );
        if ( $FLAGS{$name} ) {
            _fail( USAGE, "--$name takes no value" ) if defined $value;
            $given{ $FLAGS{$name} } = 1;
        } elsif ( $VALUES{$name} ) {
            $value = shift @args                       if !defined $value;
            _fail( USAGE, "--$name requires a value" ) if !defined $value || !length $value;
            $given{$name} = $value;
        } else {
            _fail( USAGE, "unknown option $arg; see sirius ctl --help" );
        }
    }
    return \%given if $given{help};
    $given{control} = $ENV{SIRIUS_CONTROL}        if !defined $given{control};
    $given{timeout} = _seconds( $given{timeout} ) if defined $given{timeout};
    my $request = _request(@words);
    if ( $given{abort} ) {
        _fail( USAGE, '--abort: only valid with reload' )         if $request->{command} ne 'reload';
        _fail( USAGE, '--abort: cannot be combined with --wait' ) if $given{wait};
        $request->{abort} = JSON::PP::true();
    }
    return { %given, request => $request };
}

sub _print {
    my $text = shift;
    utf8::encode($text);
    print $text, "\n";
    return;
}

sub _request {
    my ( $command, @more ) = @_;
    _fail( USAGE, "no command given: use status, reload, stop or workers N" ) if !defined $command;
    _fail( USAGE, "unknown command '$command': use status, reload, stop or workers N" )
        if !$COMMANDS{$command};
    my @number = $command eq 'workers' ? shift @more : ();
    _fail( USAGE, "unexpected argument '$more[0]'; see sirius ctl --help" ) if @more;
    return { command => $command }                                          if !@number;
    _fail( USAGE, 'workers: the number of workers is missing' )             if !defined $number[0];
    _fail( USAGE, "workers: '$number[0]' is not a whole number above 0" ) if $number[0] !~ /\A[1-9]\d{0,8}\z/;
    return { command => $command, workers => $number[0] + 0 };
}

sub _run {
    my ( $class, @args ) = @_;
    my $self = bless $class->_parse(@args), $class;
    if ( $self->{help} ) {
        print $HELP;
        return DONE;
    }
    _fail( USAGE, 'no server given: use --control PATH or set SIRIUS_CONTROL' )
        if !defined $self->{control} || !length $self->{control};
    my $request = $self->{request};
    $request->{wait}  = JSON::PP::true()         if $self->{wait};
    $self->{timeout}  = PATIENCE                 if !defined $self->{timeout} && !$self->{wait};
    $self->{deadline} = now() + $self->{timeout} if defined $self->{timeout};
    my $line   = $self->_talk($request);
    my $answer = eval { JSON::PP->new->utf8->decode($line) };
    _fail( REFUSED, "$self->{control} is not the control socket of a Sirius server" )
        if ref $answer ne 'HASH';
    $self->_wait_end if $answer->{ok} && $self->{wait} && $request->{command} eq 'stop';
    return $self->_show( $line, $answer );
}

sub _seconds {
    my $text = shift;
    my $value
        = eval { Sirius::Config::Type->check( { type => 'seconds', min => 0.001, max => 7 * 86_400 }, $text ) };
    return $value if defined $value;
    chomp( my $error = $@ );
    return _fail( USAGE, "--timeout: $error" );
}

sub _show {
    my ( $self, $line, $answer ) = @_;
    my $status = $answer->{ok} ? DONE : REFUSED;
    if ( $self->{json} ) {
        print "$line\n";
        return $status;
    }
    if ( $answer->{ok} ) {
        _print( $answer->{status} ? _status( $answer->{status} ) : $answer->{text} );
        return DONE;
    }
    my $error = join "\n", grep { defined && length } @{$answer}{qw(error said)};
    utf8::encode($error);
    return _fail( REFUSED, $error );
}

sub _status {
    my $status = shift;
    my $now    = $status->{now};
    my $text   = "Sirius $status->{version}, PID $status->{pid}, $status->{workers} workers\n" . join '',
        map {"listening on $_\n"} @{ $status->{listeners} };
    $text .= "\n"
        . _table( [qw(generation pid state age)],
        map { [ @{$_}{qw(number pid state)}, Sirius::Base::Text->age( $now - $_->{since} ) ] }
            @{ $status->{generations} } );
    my @edges = @{ $status->{edges} || [] };    # a server of before has none
    $text .= "\n"
        . _table( [qw(edge state age connections idle waiting wait accepted)],
        map { _edge( $_, $now ) } @edges )
        if @edges;
    my @rows = sort { $a->{generation} <=> $b->{generation} || $a->{pid} <=> $b->{pid} } @{ $status->{rows} };
    my @connections = grep { !@edges } 'connections';
    $text .= "\n"
        . _table( [ qw(worker generation state requests), @connections, 'doing' ],
        map { [ @{$_}{ qw(pid generation state requests), @connections }, _doing( $_, $now ) ] } @rows );

    if ( my $loading = $status->{loading} ) {
        $text .= "\nreload in progress: generation $loading->{number} for "
            . Sirius::Base::Text->age( $now - $loading->{since} ) . "\n";
    }
    my $reload = $status->{last_reload} or return "${text}\nno reload yet";
    my $result = $reload->{ok} ? $reload->{text} : join "\n", grep {defined} @{$reload}{qw(error said)};
    return "$text\nlast reload, " . strftime( '%Y-%m-%d %H:%M:%S', localtime $reload->{at} ) . ": $result";
}

# Columns of numbers to the right, the others to the left
sub _table {
    my @lines  = @_;
    my @widths = map {
        my $column = $_;
        max map { length $_->[$column] } @lines
    } 0 .. $#{ $lines[0] };
    my @right = map { $_->[0] } grep { $_->[1] !~ /\D/ } map { [ $_, $lines[-1][$_] ] } 0 .. $#widths;
    my %right = map { $_ => 1 } @right;
    my $text  = '';
    for my $line (@lines) {
        my $row = join '  ',
            map { sprintf '%*s', $right{$_} ? $widths[$_] : -$widths[$_], $line->[$_] } 0 .. $#widths;
        $text .= ( $line == $lines[0] ? uc $row : $row ) =~ s/\s+\z//r . "\n";
    }
    return $text;
}

# The server's line
sub _talk {
    my ( $self, $request ) = @_;
    my $fh   = $self->_connect;
    my $cred = getsockopt $fh, SOL_SOCKET, SO_PEERCRED;
    my $pid  = defined $cred ? ( unpack 'L3', $cred )[0] : 0;    # 0: out of sight, in a container
    $self->{server} = [ $pid, Sirius::OS::Proc->born($pid) ];

    # It fits into the socket's buffer. A server that does not want it may have closed already, and said why
    send $fh, JSON::PP->new->canonical->utf8->encode($request) . "\n", MSG_NOSIGNAL;
    my $line = $self->_answer($fh);
    return $line                       if length $line;
    return '{"ok":1,"text":"stopped"}' if $request->{command} eq 'stop';
    return _fail( REFUSED, "the server at $self->{control} closed the connection without an answer" );
}

# It has answered; now its process ends
sub _wait_end {
    my $self = shift;
    my ( $pid, $born ) = @{ $self->{server} };
    while ( defined $born && ( Sirius::OS::Proc->born($pid) || '' ) eq $born ) {
        $self->_left("PID $pid has not exited");
        sleep LOOK;
    }
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Control::Client - sirius ctl: control a running server

=head1 SYNOPSIS

  sirius --control /run/app.control --workers 4 app.psgi

  export SIRIUS_CONTROL=/run/app.control
  sirius ctl status
  sirius ctl reload --wait
  sirius ctl workers 8
  sirius ctl stop --wait --timeout 60

  use Sirius::Control::Client;
  exit Sirius::Control::Client->run(@ARGV);

=head1 DESCRIPTION

Connects to the control socket of a server that was started with C<--control>. Only root and the user of the server may use the
socket (see L<Sirius::Control::Server>). The command needs no PID and sends no signal, so it cannot affect an unrelated process.

=head1 COMMANDS

=over 4

=item B<status>

Prints the state of the server: its PID and addresses; its generations, of which the one that is C<serving> runs the newest code;
its edges and their connections; its workers with their state, the number of requests they have served, and what they have been
doing for how long; and the result of the last reload.

=item B<reload>

Runs the original command again with the new code, and lets its workers take over, as the signal C<HUP> does. With C<--wait> the
command returns when the new generation is serving and the old one has exited. If the new generation does not start, the old one
keeps serving; the command prints the error, including the messages of perl, and exits with status 1. A reload that is requested
during another one follows it, or replaces it if that takes twice as long as the last one.

With C<--abort> the reload that is in progress is aborted, and the old code keeps serving. If no reload is in progress, the exit
status is 1.

=item B<stop>

Stops gracefully, as C<TERM> does. With C<--wait> the command returns when the server has exited.

=item B<workers> I<N>

Changes the number of workers to I<N>, as C<TTIN> and C<TTOU> do in steps of one. With C<--wait> the command returns when all of
them are serving.

=back

=head1 OPTIONS

=over 4

=item B<--abort>

With B<reload>: abort the reload that is in progress.

=item B<--control> I<PATH>

Connect to the control socket at I<PATH> (default: the environment variable C<SIRIUS_CONTROL>).

=item B<--json>

Print the answer of the server as one line of JSON.

=item B<--timeout> I<SECONDS>

Give up waiting after this time (default: 10; with C<--wait>: no limit). Units are accepted as by L<sirius>: C<500ms>, C<5m>. A
command that the server has accepted is carried out nevertheless.

=item B<--wait>

Return when the command has completed, not when it has been accepted.

=item B<-h>, B<--help>

Print a summary of commands and options, and exit.

=back

=head1 EXIT STATUS

  0   the command has completed, or without --wait was accepted
  1   the server refused the command or failed; the reason is on STDERR, with --json in "error" and "said" on STDOUT
  2   wrong usage
  3   no server is listening on the socket, or the socket cannot be used
  4   the time of --timeout is over

=head1 METHODS

=head2 run

  my $status = Sirius::Control::Client->run(@arguments);

Runs the command and returns the exit status.

=head1 SEE ALSO

L<sirius>, L<Sirius::Control::Server>.

=cut
