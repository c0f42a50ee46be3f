package Sirius::Options;

use strict;
use warnings;

use File::Spec ();
use List::Util qw(min);
use Sirius::Type;

my $MANY = 0x7fff_ffff;
my $WEEK = 7 * 86400;

# A string opens a group, an array is an option: name, type, default, one line of text, and what else there is:
#   alias     other names
#   min, max  limits of the value
#   noop      has no effect here: why
#   passed    plackup's, and passed on to the handler
#   plackup   Plack::Runner knows it itself; "flag" when it takes no value
#   short     letter
#   typed     how the name is shown when that is not --name
#   value     word for the value in the list of options
#   hidden    for programs, not for the command line
#<<< a table: its columns mean more than the tidier's
my @TABLE = (
    'Application',
    [ 'app', 'string', undef, 'application file (default: the first argument, or app.psgi)', { short => 'a', plackup => 1, passed => 1, value => 'FILE' } ],
    [ 'e', 'string', undef, 'application as Perl text', { plackup => 1, value => 'CODE' } ],
    [ 'I', 'string', undef, 'directory to look for modules in, before all others', { plackup => 1, value => 'DIR' } ],
    [ 'M', 'string', undef, 'module to load first', { plackup => 1, value => 'MODULE' } ],
    [ 'env', 'string', 'deployment', 'PLACK_ENV; development adds Lint, StackTrace and AccessLog', { short => 'E', plackup => 1, passed => 1, value => 'NAME' } ],
    [ 'path', 'string', undef, 'mount the application under this path', { plackup => 1 } ],
    [ 'access-log', 'string', undef, 'file for an access log', { plackup => 1, value => 'FILE' } ],
    [ 'loader', 'string', undef, 'way to load the application: Delayed, Shotgun or Restarter', { short => 'L', plackup => 1, value => 'NAME' } ],
    [ 'reload', 'bool', undef, 'restart when the application or its lib directory changes', { short => 'r', plackup => 'flag' } ],
    [ 'Reload', 'string', undef, 'the same for these directories, with commas', { short => 'R', plackup => 1, value => 'DIRS' } ],
    [ 'default-middleware', 'bool', undef, 'without the middleware of development', { typed => '--no-default-middleware', plackup => 'flag' } ],
    [ 'server', 'string', 'Sirius', 'another Plack handler', { short => 's', plackup => 1, value => 'NAME' } ],
    [ 'version', 'bool', undef, 'print the version and exit', { short => 'v', plackup => 'flag' } ],
    [ 'help', 'bool', undef, 'print this list and exit', { short => 'h', plackup => 'flag' } ],

    'Listening',
    [ 'listen', 'listen', ':5000', 'host:port, :port, *:port, [v6]:port or the path of a unix socket; may be given several times', { short => 'l', plackup => 1, passed => 1 } ],
    [ 'host', 'string', undef, 'address for --port (default: all of IPv4)', { short => 'o', plackup => 1, passed => 1 } ],
    [ 'port', 'port', undef, 'TCP port; 0 lets the system choose', { short => 'p', plackup => 1, passed => 1 } ],
    [ 'socket', 'string', undef, 'path of a unix socket', { short => 'S', plackup => 1, passed => 1, alias => ['socket-path'], value => 'PATH' } ],
    [ 'backlog', 'count', 4096, 'connections the kernel holds until they are accepted; its own limit is net.core.somaxconn', { min => 1, max => 65535 } ],

    'Workers',
    [ 'workers', 'count', 10, 'worker processes; 0 serves in one process', { alias => ['max-workers'], min => 0, max => 4096 } ],
    [ 'max-reqs-per-child', 'count', 0, 'requests after which a worker is replaced; 0 is never', { alias => ['max-requests'], min => 0, max => $MANY } ],
    [ 'min-reqs-per-child', 'count', undef, 'replace it after a random number of requests from this one up (default: 90 % of the other)', { min => 1, max => $MANY } ],
    [ 'graceful-timeout', 'seconds', 30, 'what TERM leaves to the workers to finish; then they are killed', { min => 0, max => $WEEK } ],
    [ 'spawn-interval', 'seconds', 0, 'between the starts of two workers', { min => 0, max => 3600 } ],
    [ 'err-respawn-interval', 'seconds', 1, 'before a worker that failed at once is tried again, doubled up to 30', { min => 0.01, max => 3600 } ],
    [ 'child-exit', 'code', undef, q('sub {...}' that each worker calls at its end), {} ],

    'Keep-alive',
    [ 'keepalive', 'bool', 1, 'close each connection after one response, or do not', { typed => '--disable-keepalive, --enable-keepalive' } ],
    [ 'keepalive-timeout', 'seconds', 75, 'an idle connection is closed after', { min => 0, max => $WEEK } ],
    [ 'max-keepalive-reqs', 'count', 0, 'requests on one connection; 0 is no limit, 1 no keep-alive', { min => 0, max => $MANY } ],

    'Waiting',
    [ 'max-connections', 'count', 0, 'in all; the oldest idle one makes room, without one 503. 0: as many as descriptors allow', { min => 0, max => $MANY } ],
    [ 'max-queue', 'count', 1000, 'complete requests that wait for a worker; 503 past that', { min => 1, max => $MANY } ],
    [ 'queue-timeout', 'seconds', 30, 'that a complete request may wait (503); 0 is no limit', { min => 0, max => $WEEK } ],
    [ 'companion', 'bool', 1, 'off: connections of a busy worker wait for it', { hidden => 1 } ],

    'Time limits',
    [ 'header-timeout', 'seconds', 30, 'for a whole request head (408)', { alias => ['read-timeout'], min => 0.01, max => $WEEK } ],
    [ 'body-timeout', 'seconds', 30, 'over which --body-rate is measured (408)', { min => 0.01, max => $WEEK } ],
    [ 'body-rate', 'count', 100, 'bytes a second that a request body must bring', { min => 0, max => $MANY } ],
    [ 'write-timeout', 'seconds', 60, 'without progress of a response', { min => 0.01, max => $WEEK } ],
    [ 'timeout', 'seconds', undef, 'sets --write-timeout and --body-timeout where they are not given', { min => 0.01, max => $WEEK } ],

    'Size limits',
    [ 'max-request-line', 'bytes', 8192, 'of the request line (414)', { min => 16, max => 1 << 24 } ],
    [ 'max-header-bytes', 'bytes', 65536, 'of the whole request head (431)', { min => 64, max => 1 << 24 } ],
    [ 'max-header-fields', 'count', 100, 'header fields (431)', { min => 1, max => 256 } ],
    [ 'max-body', 'bytes', 1 << 30, 'of a request body (413)', { min => 0, max => 1 << 50 } ],
    [ 'body-memory', 'bytes', 65536, 'of a request body held in memory; a larger one goes to a file', { min => 0, max => 1 << 30 } ],
    [ 'tmpdir', 'dir', File::Spec->tmpdir, 'for those files (default: the system\'s)', {} ],

    'Other',
    [ 'server-software', 'token', 'Sirius', 'value of the Server header; empty for none', {} ],
    [ 'server-ready', 'code', undef, 'called for each TCP listener once it is served', { hidden => 1 } ],
    [ 'listen-sock', 'any', undef, 'a socket that listens already', { hidden => 1 } ],
    ( map { [ $_, 'any', undef, 'what frameworks pass to every handler', { hidden => 1 } ] } qw(argv extra-argv) ),

    'Accepted without effect',
    [ 'daemonize', 'bool', undef, '', { short => 'D', plackup => 'flag', passed => 1, noop => 'the server stays in the foreground, for systemd, a container or start_server to watch' } ],
    [ 'preload-app', 'bool', undef, '', { noop => 'the application is always loaded before the workers; -L Delayed is the opposite' } ],
    [ 'proctitle', 'bool', undef, '', { typed => '--disable-proctitle', noop => 'the title of the process is never changed' } ],
    [ 'max-keepalive-connection', 'any', undef, '', { alias => ['max-keepalive-connections'], noop => 'an idle connection costs no worker; --max-connections bounds all' } ],
    ( map { [ "$_-readahead-reqs", 'any', undef, '', { noop => 'a worker never waits on one connection' } ] } qw(max min) ),
    ( map { [ "$_-servers", 'any', undef, '', { noop => 'the number of workers is --workers' } ] } qw(min max min-spare max-spare) ),
);
#>>>

my ( @ROWS, %BY_NAME, $group );
for my $entry (@TABLE) {
    if ( !ref $entry ) { $group = $entry; next }
    my ( $name, $type, $default, $text, $more ) = @$entry;
    $text = "no effect: $more->{noop}" if $more->{noop};
    push @ROWS, { name => $name, type => $type, default => $default, text => $text, group => $group, %$more };
    $BY_NAME{$_} ||= $ROWS[-1] for $name, @{ $more->{alias} || [] }, grep {defined} $more->{short};
}

sub check {
    my ( $class, $row, $value ) = @_;
    local $SIG{__DIE__};
    my ($checked) = eval { Sirius::Type->check( $row, $value ) };
    return $checked if !$@;
    chomp( my $error = $@ );
    return $class->fail("--$row->{name}: $error");
}

sub fail {
    my ( $class, $message ) = @_;
    $! = 2;    # what perl exits with when nobody catches this
    die "sirius: $message\n";
}

sub parse {
    my ( $class, $raw ) = @_;
    my $given = $class->_named($raw);
    my %conf  = ( listen => $class->check( $BY_NAME{listen}, _addresses($given) ), notices => [] );
    for my $row ( grep { !$_->{plackup} || $_->{noop} } @ROWS ) {
        my $key   = _key( $row->{name} );
        my $value = $given->{$key};
        $value = $class->check( $row, $value ) if defined $value;
        if ( !$row->{noop} ) {
            $conf{$key} = defined $value ? $value : $row->{default};
        } elsif ( defined $value ) {
            push @{ $conf{notices} }, "sirius: --$row->{name} has no effect: $row->{noop}";
        }
    }
    return $class->_together( \%conf, $given );
}

sub row {
    my ( $class, $name ) = @_;
    $name =~ tr/_/-/;
    return $BY_NAME{$name};
}

sub rows { return @ROWS }

sub unknown {
    my ( $class, $name ) = @_;
    $name =~ tr/_/-/;
    my ( $best, $least ) = ( undef, 1 + min 3, int( length($name) / 2 ) );
    for my $candidate ( sort grep { length > 1 && !$BY_NAME{$_}{hidden} } keys %BY_NAME ) {
        my $distance = _distance( $name, $candidate );
        ( $best, $least ) = ( $candidate, $distance ) if $distance < $least;
    }
    return $class->fail( "unknown option --$name" . ( defined $best ? " (did you mean --$best?)" : '' ) );
}

# What plackup, a program or both said about addresses, as one list
sub _addresses {
    my $given = shift;
    my ( $host, $port, $socket ) = @{$given}{qw(host port socket)};
    my $listen = $given->{listen};
    my @listen = ref $listen eq 'ARRAY' ? @$listen : defined $listen ? $listen : ();

    # Plack::Runner always gives a list, and the host and port that it found in it
    if (@listen) {
        delete @{$given}{qw(host port)};

        # It doesn't know --socket-path; its own default is then not meant
        @listen = () if $given->{'socket-path'} && !$host && "@listen" eq ':5000';
    } elsif ( defined $port || defined $host || !defined $socket ) {
        $host = ''                                  if !defined $host;
        __PACKAGE__->check( $BY_NAME{port}, $port ) if defined $port;
        @listen = ( ( $host =~ /\A[^\[].*:/ ? "[$host]" : $host ) . ':' . ( defined $port ? $port : 5000 ) );
    }
    push @listen, $socket if defined $socket && !grep { $_ eq $socket } @listen;
    return \@listen;
}

# Levenshtein's
sub _distance {
    my ( $from, $to ) = @_;
    my @last = 0 .. length $to;
    for my $i ( 1 .. length $from ) {
        my @line = ($i);
        for my $j ( 1 .. length $to ) {
            my $same = substr( $from, $i - 1, 1 ) eq substr( $to, $j - 1, 1 );
            push @line, min $last[ $j - 1 ] + !$same, $last[$j] + 1, $line[-1] + 1;
        }
        @last = @line;
    }
    return $last[-1];
}

sub _key {
    my $name = shift;
    $name =~ tr/-/_/;
    return $name;
}

# Values by the options' own names. undef is as good as not given; the own name beats an alias
sub _named {
    my ( $class, $raw ) = @_;
    my %given;
    for my $key ( sort keys %$raw ) {
        my $row = length $key > 1 && $class->row($key) || $class->unknown($key);
        $class->fail("--$row->{name} is for the command line, not for the handler")
            if $row->{plackup} && !$row->{passed};
        next if !defined $raw->{$key};
        my $own = _key( $row->{name} );
        $given{'socket-path'} = 1            if _key($key) eq 'socket_path';
        $given{$own}          = $raw->{$key} if !defined $given{$own} || _key($key) eq $own;
    }
    return \%given;
}

# What depends on more than one option
sub _together {
    my ( $class, $conf, $given ) = @_;
    my ( $min, $max ) = @{$conf}{qw(min_reqs_per_child max_reqs_per_child)};
    $class->fail("--min-reqs-per-child: $min is more than --max-reqs-per-child, which is $max")
        if defined $min && $min > $max;
    my $timeout = delete $conf->{timeout};
    for my $key ( defined $timeout ? qw(body_timeout write_timeout) : () ) {
        $conf->{$key} = $timeout if !defined $given->{$key};
    }
    $conf->{keepalive} = 0 if !$conf->{keepalive_timeout};
    return $conf;
}

1;

=encoding utf8

=head1 NAME

Sirius::Options - every option, in one table

=head1 SYNOPSIS

  use Sirius::Options;

  my $conf = Sirius::Options->parse({ 'max-body' => '10m', workers => 4 });
  print $conf->{max_body};    # 10485760

=head1 DESCRIPTION

One table has the name, aliases, type, limits, default and text of every option. Parsing, checking, C<sirius --help> and the
list in L<sirius> come from it, so they cannot differ.

=head1 METHODS

=head2 check

  my $value = Sirius::Options->check($row, $text);

One value in its final form (see L<Sirius::Type>), or L</fail>.

=head2 fail

  Sirius::Options->fail('--workers: why');

Dies with C<sirius: --workers: why>. C<$!> is 2, so that a program that doesn't catch it exits with 2.

=head2 parse

  my $conf = Sirius::Options->parse(\%raw);

From names with dashes or underscores, aliases included, to a hash of checked values by their own names with underscores,
defaults filled in. C<undef> counts as not given. C<listen> is the list of all addresses, from C<listen>, C<host>, C<port>
and C<socket>; C<notices> a list of lines about options without effect.

=head2 row

  my $row = Sirius::Options->row('max-requests');

The row of a name, alias or letter: a hash with C<name>, C<type>, C<default>, C<text>, C<group> and what the table says.

=head2 rows

  my @rows = Sirius::Options->rows;

All of them, in the table's order.

=head2 unknown

  Sirius::Options->unknown('wrokers');

L</fail>s with C<unknown option --wrokers (did you mean --workers?)>.

=head1 SEE ALSO

L<Sirius>, L<sirius>, L<Sirius::Type>, L<Sirius::Usage>.

=cut
