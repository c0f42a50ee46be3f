package Bench::Section;

# The report in parts, before it becomes HTML or Markdown: { title, text => [ paragraphs ], notes => [
# paragraphs ], tables => [ { caption, head, rows, detail, figures } ], plots => [ { name, title, svg } ],
# list => [ lines ] }. detail: only in the HTML; notes, and tables with figures: not in BENCHMARKS.md, but in
# FIGURES.md.

use strict;
use warnings;
use utf8;

use List::Util    qw(max min);
use Bench::Metric qw(figures idle_of value worst_of);
use Bench::Plot;
use Bench::Statistics qw(median);
use Bench::Table;
use Bench::Target;

my @HEADLINES = qw(ok hello-c16 body8000 request log);
my @ENCRYPTED = qw(tls-hello h2-hello tls-handshake tls-resume tls-download);
my @KEPT      = ( [ 1, 'hello-c1' ], [ 4, 'hello-c4' ], [ 16, 'hello-c16' ], [ 64, 'hello-c64' ] );
my @CLOSED    = ( [ 1, 'close-c1' ], [ 8, 'close-c8' ], [ 64, 'close-c64' ] );
my @BODY      = map { [ "-c $_", "body8000-close-c$_" ] } 1, 8, 32;

# Those whose cases were run
sub all {
    my ( $class, $result ) = @_;
    my @parts = map { $_->($result) } \&_targets, \&_machine, \&_headlines, \&_connections, \&_details,
        \&_encrypted, \&_fairness,
        \&_idle, \&_memory, \&_start, \&_traces, \&_losses, \&_method;
    return grep { @{ $_->{tables} || [] } || @{ $_->{list} || [] } || $_->{always} } @parts;
}

sub _targets {
    my $result = shift;
    my @rows   = Bench::Target->rows($result);
    my $met    = grep { $_->[3] eq 'yes' } @rows;
    my @text   = ("This run meets $met of the @{[ scalar @rows ]} aims of Sirius; FIGURES lists them.");
    push @text, 'This was a quick run: it shows that everything works; its figures mean nothing.'
        if $result->{quick};
    return {
        title  => 'Aims',
        text   => \@text,
        tables =>
            [ { caption => 'Aims', head => [ 'aim', 'got', 'wanted', 'met' ], rows => \@rows, figures => 1 } ]
    };
}

sub _machine {
    my $result = shift;
    my @servers
        = map { [ Bench::Table::name( $result, $_->{name} ), $_->{keeps} ? 'yes' : 'no', $_->{at_once},
        $_->{command} ] } @{ $result->{servers} };
    my @head = ( 'server', 'keep-alive', 'served at once, of 16', 'command' );
    return {
        title => 'What was measured',
        text  => [
            '† closes each connection after its response, with these settings.',
            '‡ keeps connections, but one worker did not serve all of 16 busy ones within half a second. With'
                . ' more connections than workers its figures are those of the connections that it serves; the'
                . ' others wait.'
        ],
        notes => [
            'The commands start one worker. A case that has more workers, or a log, says so. Options that'
                . ' limit the life of a worker or a connection are set so high that they have no effect within a'
                . ' case.'
        ],
        tables => [
            {   caption => 'Machine',
                head    => [ 'where', '' ],
                rows    => [ map { [@$_] } @{ $result->{environment} } ],
                figures => 1
            },
            { caption => 'Servers', head => \@head, rows => \@servers, figures => 1 }
        ]
    };
}

sub _headlines {
    my $result = shift;
    my @cases  = grep { $result->{cases}{$_} } @HEADLINES, qw(ok-16-workers hello-16-workers);
    my @tables = map  { {
        caption => Bench::Target::title( $result->{cases}{$_} ),
        figures => 1,
        %{ Bench::Table::throughput( $result, $_ ) }
    } } @cases;
    my @plots = map { _plot( "cpu-$_", _cpu_plot( $result, $_ ) ) } @cases;
    return {
        title => 'CPU for each request',
        text  => [
            'CPU is user and system time of all processes of the server, divided by the number of answered'
                . ' requests. There is one worker unless the case says otherwise. Ratios are medians of the ratios'
                . ' of each round.'
        ],
        tables => \@tables,
        plots  => \@plots
    };
}

sub _cpu_plot {
    my ( $result, $case ) = @_;
    my $title = "CPU time for a request: $result->{cases}{$case}{title}. Shorter is better";
    return (
        $title,
        Bench::Plot->bars(
            _bars( $result, $case, 'us', sub { value( throughput => shift ) } ),
            title => $title,
            axis  => 'microseconds of CPU'
        )
    );
}

# Sorted by the value that the sub has of a server's figures and fields: [ label, value, least, most, kind ]
sub _bars {
    my ( $result, $case, $samples, $value ) = @_;
    my @rows;
    for my $server ( @{ $result->{servers} } ) {
        my $figures = figures( $result, $case, $server->{name} );
        my $got     = $value->( $figures, $server );
        next if !defined $got;
        my @all  = $samples && $figures->{$samples} ? @{ $figures->{$samples} } : $got;
        my $kind = $server->{name} =~ /\Asirius/    ? 'sirius'                  : $server->{kind};
        push @rows, [ Bench::Table::name( $result, $server->{name} ), $got, min(@all), max(@all), $kind ];
    }
    return [ sort { $a->[1] <=> $b->[1] } @rows ];
}

sub _connections {
    my $result = shift;
    my @tables = grep { $_->{head} } (
        { caption => 'Keep-alive, wrk: requests a second', _matrix( $result, 'requests/s', '%.0f', @KEPT ) },
        { caption => 'Keep-alive, wrk: CPU us for each request', _matrix( $result, 'CPU', '%.1f', @KEPT ) },
        {   caption => 'A connection for each request, ab: requests a second',
            _matrix( $result, 'requests/s', '%.0f', @CLOSED )
        },
        {   caption => 'A connection for each request, ab: CPU us for each request',
            _matrix( $result, 'CPU', '%.1f', @CLOSED )
        },
        {   caption => 'The same with 8,000 bytes: requests a second',
            _matrix( $result, 'requests/s', '%.0f', @BODY )
        },
    );
    my @plots = (
        _plot( 'rate-keepalive', _rate_plot( $result, 'keep-alive',                    @KEPT ) ),
        _plot( 'rate-close',     _rate_plot( $result, 'a connection for each request', @CLOSED ) )
    );
    return {
        title => 'By number of connections',
        text  => [
            'Hello with one worker, on one core. The columns are the number of concurrent connections (-c).'],
        tables => [ map { +{ %$_, figures => 1 } } @tables ],
        plots  => \@plots
    };
}

sub _matrix {
    my ( $result, $metric, $format, @columns ) = @_;
    my $table = Bench::Table::matrix( $result, $metric, $format, @columns ) or return ();
    return %$table;
}

sub _rate_plot {
    my ( $result, $how, @columns ) = @_;
    @columns = grep { $result->{cases}{ $_->[1] } } @columns;
    return if @columns < 2;
    my @lines;
    for my $server ( @{ $result->{servers} } ) {
        my @points = map {
            my $rate = value( throughput => figures( $result, $_->[1], $server->{name} ), 'requests/s' );
            defined $rate ? [ $_->[0], $rate ] : ()
        } @columns;
        my $kind = $server->{name} =~ /\Asirius/ ? 'sirius' : $server->{kind};
        push @lines, [ Bench::Table::name( $result, $server->{name} ), $kind, @points ] if @points;
    }
    my $title = "Hello, $how: requests a second by number of connections. Higher is better";
    my %axes  = ( x => 'connections at a time', y => 'requests a second' );
    return ( $title, Bench::Plot->lines( \@lines, title => $title, %axes ) );
}

sub _details {
    my $result = shift;
    my %shown  = map { $_ => 1 } @HEADLINES, @ENCRYPTED, qw(ok-16-workers hello-16-workers);
    my @tables = map { {
        caption => Bench::Target::title( $result->{cases}{$_} ),
        detail  => 1,
        %{ Bench::Table::throughput( $result, $_ ) }
    } } grep { !$shown{$_} && $result->{cases}{$_}{kind} eq 'throughput' } @{ $result->{order} };
    return { title => 'All other cases of throughput', tables => \@tables };
}

sub _encrypted {
    my $result = shift;
    my @cases  = grep { $result->{cases}{$_} } @ENCRYPTED;
    my @tables = map  { {
        caption => Bench::Target::title( $result->{cases}{$_} ),
        figures => 1,
        %{ Bench::Table::throughput( $result, $_ ) }
    } } @cases;
    my %other = ( 'tls-idle' => \&Bench::Table::encrypted_idle, 'tls-flood' => \&Bench::Table::flood );
    for my $case ( grep { $result->{cases}{$_} } sort keys %other ) {
        push @tables,
            { caption => $result->{cases}{$case}{title}, figures => 1, %{ $other{$case}->($result) } };
    }
    return {
        title => 'Over TLS',
        text  => [
            'TLS 1.3 with a certificate of ECDSA P-256 that has signed itself, X25519, and the cipher that the client'
                . ' likes best. nginx before Sirius passes requests on by a unix socket, on connections that it keeps;'
                . ' its CPU is that of both.'
        ],
        notes => [
            'A handshake counts as a request, and so does a MiB of the download. To verify a signature costs more than'
                . ' to make one: the client is slower than the server here, so that CPU tells how many handshakes a'
                . ' server can make on a core, and rates are those of the client. It ends each connection after its'
                . ' handshake, without a request.',
            'Idle connections are served once; meanwhile new clients come one after the other. The flood sends a'
                . ' ClientHello on each of 128 connections, resets it when the server has answered, and begins again,'
                . ' beside 16 clients that are kept and think for 20 ms, and beside new clients, one after the other.'
        ],
        tables => \@tables,
        plots  => [ map { _plot( "cpu-$_", _cpu_plot( $result, $_ ) ) } grep {/hello|handshake/} @cases ]
    };
}

sub _fairness {
    my $result = shift;
    my @cases  = grep { $result->{cases}{$_}{kind} eq 'fairness' } @{ $result->{order} };
    my %shown  = map  { $_ => 1 } qw(fairness fairness-close fair-busy fair-saturated fair-cpu fair-retire);
    my @tables = map  { {
        caption => $result->{cases}{$_}{title},
        detail  => !$shown{$_},
        figures => 1,
        %{ Bench::Table::fairness( $result, $_ ) }
    } } @cases;
    unshift @tables, { caption => 'p99 in ms, case by case', %{ Bench::Table::waiting($result) } } if @cases;
    my @plots = map { _plot( $_, _fairness_plot( $result, $_ ) ) }
        grep { $shown{$_} && !/\Afair-(?:cpu|retire|saturated)\z/ } @cases;
    push @plots, _plot( 'fairness-worst', _worst_plot($result) );
    my $own = $result->{cases}{fair} ? Bench::Table::fair($result) : undef;
    push @tables, { caption => 'bench/fair: Sirius alone', figures => 1, %$own } if $own && @{ $own->{rows} };
    return {
        title  => 'Fairness',
        text   => [ _fairness_text() ],
        notes  => [ _fairness_notes() ],
        tables => \@tables,
        plots  => \@plots
    };
}

sub _fairness_text {
    return (
        'Slow requests: four workers; 16 clients send a request, wait for 25 to 75 ms, and send the next'
            . ' one. 25 of 1,000 requests sleep for 100 ms in the application. The tables show the latency of'
            . ' the other requests, which the application answers at once; the p99 without slow requests is'
            . ' what server and machine add.' );
}

sub _fairness_notes {
    return (
        'The letters are the cases of bench/fair. a: 32 clients; 2 of 1,000 requests sleep for 500 ms,'
            . ' the others for 1 ms. b: four clients without a pause, beside one request of 10 s. d and e: two'
            . ' workers and four clients with a new connection for each request, beside connections that are'
            . ' silent, that send their header or their body a piece each second, or that read slowly. Many'
            . ' servers leave such clients to a proxy. In all of these cases a worker is free for every'
            . ' request.',
        'A request that has no answer when the run of 5 s ends counts with the time that it has waited'
            . ' ("still waiting"). A client that waits sends nothing meanwhile, which flatters servers that let'
            . ' clients wait. The least share is that of the connection that was served least, in percent of an'
            . ' even share.',
        'Saturated: 32 clients without a pause and two workers; if requests begin in order, the p99 is'
            . ' near the median. Calls that compute: four workers on all cores and 64 clients that send 5.1'
            . ' requests a second each, which is 80 % of two cores. Each server has its own default time'
            . ' limits; short ones are an advantage here. Cases c and f to m measure Sirius alone.'
    );
}

sub _fairness_plot {
    my ( $result, $case ) = @_;
    my $title = "$result->{cases}{$case}{title}: p99. Shorter is better";
    my $bars  = _bars( $result, $case, 'p99', sub { value( fairness => shift, 'p99' ) } );
    return ( $title,
        Bench::Plot->bars( $bars, title => $title, axis => 'milliseconds, logarithmic', log => 0.1 ) );
}

sub _worst_plot {
    my $result = shift;
    my $bars   = _bars( $result, '', undef, sub { worst_of( $result, pop->{name} ) } );
    return if !@$bars;
    my $title = 'The greatest p99 of fast requests, of all cases of fairness. Shorter is better';
    my %look  = ( title => $title, axis => 'milliseconds, logarithmic', log => 0.1 );
    return ( $title, Bench::Plot->bars( $bars, %look ) );
}

sub _idle {
    my $result = shift;
    my $case   = $result->{cases}{idle} or return {};
    my $title  = 'Idle connections that stay usable, two workers. Longer is better';
    my $bars   = _bars( $result, 'idle', undef, sub { my $n = idle_of(shift)->{usable}; $n ? $n : undef } );
    my $svg    = Bench::Plot->bars(
        [ reverse @$bars ],
        title  => $title,
        axis   => 'connections, logarithmic',
        log    => 0.5,
        format => '%.0f'
    );
    return {
        title => 'Idle connections',
        text => ["Two workers; connections that answer within one second after $case->{pause} s of silence."],
        notes => [
            "Two workers. Connections are opened one after the other, up to $case->{count}, each served once; the first"
                . ' that is not served within one second ends it. Then they are silent for'
                . " $case->{pause} s, while a new client comes every 0.2 s. At last each is asked once more, and is usable"
                . ' if it answers within one second. Measured with the time limit for idle connections that the server'
                . ' has by itself, and with one of 75 s where it can be set; plots and aims take the better of the two.',
            'Bytes are memory of the processes (Pss), without the memory of the kernel for a socket.'
        ],
        tables => [ { caption => 'Idle connections', figures => 1, %{ Bench::Table::idle($result) } } ],
        plots  => [ _plot( 'idle', $title, $svg ) ]
    };
}

sub _memory {
    my $result = shift;
    return {} if !$result->{cases}{memory};
    my $title = 'Memory that one more worker costs. Shorter is better';
    my $svg   = Bench::Plot->bars(
        _bars( $result, 'memory', undef, sub { shift->{worker} } ),
        title  => $title,
        axis   => 'kilobytes',
        format => '%.0f'
    );
    return {
        title => 'Memory',
        notes => [
            'Pss of all processes after half a second of hello: memory that n processes share counts as one'
                . ' nth for each. The cost of one more worker is the difference between eight and two workers,'
                . ' divided by six.'
        ],
        tables => [ { caption => 'Memory', figures => 1, %{ Bench::Table::memory($result) } } ],
        plots  => [ _plot( 'memory', $title, $svg ) ]
    };
}

sub _start {
    my $result = shift;
    my ( @tables, @plots );
    if ( $result->{cases}{start} ) {
        my $title = 'From the start to the first response, four workers. Shorter is better';
        my $bars  = _bars( $result, 'start', 'ms', sub { value( start => shift ) } );
        push @tables, { caption => 'Start', figures => 1, %{ Bench::Table::start($result) } };
        push @plots,
            _plot( 'start', $title,
            Bench::Plot->bars( $bars, title => $title, axis => 'milliseconds', format => '%.0f' ) );
    }
    push @tables, { caption => 'Reload', figures => 1, %{ Bench::Table::reload($result) } }
        if $result->{cases}{reload};
    return {
        title => 'Start and reload',
        notes => [
            'Four workers on one core, with all modules in the page cache. A reload is started by the signal'
                . ' in the table while ab runs twice, -c 4 with -k and -c 4 without. Its time ends when a third'
                . ' client gets no more answers from old workers. Failed requests are those that ab reports. ab'
                . ' keeps its connections busy: a server whose workers end with their connections does not finish'
                . ' while ab runs.'
        ],
        tables => \@tables,
        plots  => \@plots
    };
}

sub _traces {
    my $result = shift;
    my @tables;
    push @tables,
        { caption => 'System calls (strace -c -f)', figures => 1, %{ Bench::Table::syscalls($result) } }
        if $result->{cases}{syscalls};
    push @tables,
        {
        caption => 'Instructions in user space (valgrind --tool=callgrind)',
        figures => 1,
        %{ Bench::Table::instructions($result) }
        }
        if $result->{cases}{instructions};
    return {
        title => 'System calls and instructions for each request',
        notes => [
            'Hello. Instructions are measured on one kept connection, or with a connection for each request'
                . ' if the server closes connections, as the difference between 1,300 and 300 requests, so that'
                . ' start and end cancel out.'
        ],
        tables => \@tables
    };
}

sub _losses {
    my $result = shift;
    my ( %list, @titles, @rows );
    for ( Bench::Target->losses($result) ) {
        my ( $title, $what, $mine, $unit, $ahead ) = @$_;
        my $format = sub {
            my $n = shift;
            ( $n >= 100 ? sprintf '%.0f', $n : sprintf '%.3g', $n ) . ( $unit ? " $unit" : '' );
        };
        my @others = map { "$_->[0] " . $format->( $_->[1] ) } @$ahead;
        push @titles,            $title if !$list{$title};
        push @{ $list{$title} }, $what;
        push @rows,              [ "$title, $what", join( ', ', @others ), $format->($mine) ];
    }
    my @tables = {
        caption => 'All that are ahead',
        head    => [ 'case', 'others', 'Sirius' ],
        rows    => \@rows,
        figures => 1
    };
    my @list = map { "$_: " . join ', ', @{ $list{$_} } } @titles;
    return {
        title => 'Where others are ahead of Sirius',
        text  => [
            @list
            ? 'The median of the best application server is better by more than 2 % here; FIGURES has all that are ahead.'
            : 'Nowhere in this run.'
        ],
        list   => \@list,
        tables => \@tables,
        always => 1
    };
}

sub _method {
    return {
        title  => 'Method, and its limits',
        always => 1,
        list   => [
            'Servers run on one core and clients on another, if there are two. All servers of a case are'
                . ' started and then measured in turn, in rounds, every second round in reverse order, so that a'
                . ' disturbance of the machine affects all of them. Figures are medians of the rounds; the spread is'
                . ' the minimum and the maximum.',
            'One machine, loopback and small applications show what the server adds to an application, not'
                . ' how fast a site will be.'
        ],
        notes => [
            'CPU is read from schedstat, in nanoseconds. It includes what the kernel does for the server in'
                . ' the time of its processes, but not the work of interrupts.',
            'nginx and the C floor (bench/floor.c: epoll, read, write of fixed bytes, without parsing) run no'
                . ' application; they are limits. hypnotoad runs Mojolicious applications, so its application is'
                . ' another one that does the same.',
            'The access log of Plack servers is the AccessLog middleware (plackup --access-log); Sirius, uWSGI and nginx'
                . ' write theirs themselves. hypnotoad has none.'
        ]
    };
}

sub _plot {
    my ( $name, $title, $svg ) = @_;
    return $svg ? { name => $name, title => $title, svg => $svg } : ();
}

1;
