package Sirius::CLI::Top::Picture;

use strict;
use warnings;

use List::Util qw(max sum);
use POSIX      qw(strftime);
use Sirius::Admin::Change;
use Sirius::Base::Text;
use Sirius::Profile::Dump;

use constant PATHS => 5;    # in the line of paths

# Name, width (negative: left-aligned), how wide the screen must be to show it, and what is shown of a worker
my @COLUMNS = (
    [ PID      => 7,  0,   sub { _number( $_[1]{pid} ) } ],
    [ GEN      => 3,  70,  sub { _number( $_[1]{generation} ) } ],
    [ STATE    => -8, 0,   sub { _text( $_[1]{state} ) } ],
    [ FOR      => 9,  0,   \&_for ],
    [ 'REQ/S'  => 6,  0,   sub { _rate( $_[0]{change}->worker_rate( $_[1] ) ) } ],
    [ REQUESTS => 10, 100, sub { _number( $_[1]{requests} ) } ],
    [ RSS    => 6, 80, sub { _number( $_[1]{rss} )     ? Sirius::Base::Text->bytes( $_[1]{rss} )     : '' } ],
    [ OWN    => 6, 90, sub { _number( $_[1]{private} ) ? Sirius::Base::Text->bytes( $_[1]{private} ) : '' } ],
    [ CLIENT => -21, 120, sub { _number( $_[1]{began} ) ? _text( $_[1]{client} ) : '' } ],
    [ ID     => -32, 160, sub { _number( $_[1]{began} ) ? _text( $_[1]{id} )     : '' } ],
    [ DOING  => 0,   0,   \&_doing ],
);

sub busy {
    return map { _number( $_->{pid} ) } grep { _number( $_->{began} ) } shift->_workers;
}

sub header {
    my ( $self, $width ) = @_;
    return _cut( $width, $self->_line( $width, map { $_->[0] } @COLUMNS ) );
}

sub lines {
    my ( $self, $width, $height ) = @_;
    my @above   = ( $self->_summary, '', $self->header($width) );
    my @workers = $self->_workers;
    my $room    = defined $height ? max 0, $height - @above : @workers;
    my $more    = @workers - $room;
    splice @workers, max 0, $room - 1 if $more > 0;
    my @table = map { $self->_worker( $width, $_ ) } @workers;
    push @table, 'and ' . ( $more + 1 ) . ' more workers' if $more > 0;
    my @lines = map { _cut( $width, $_ ) } @above, @table;
    splice @lines, $height if defined $height && @lines > $height;
    return @lines;
}

sub new {
    my ( $class, $now, $before ) = @_;
    return bless { change => Sirius::Admin::Change->new( $now, $before ), now => $now }, $class;
}

# Of a worker, as the admin port tells it
sub stack {
    my ( $class, $told, $width, $height ) = @_;
    my %stack = map { ( $_ => _text( $told->{$_} ) ) } grep { defined $told->{$_} } qw(kind line pid state);
    $stack{seconds} = _number( $told->{seconds} );
    $stack{frames}  = [ map { _text($_) } @{ $told->{frames} } ] if ref $told->{frames} eq 'ARRAY';
    my @lines = map { _cut( $width, $_ ) } split /\n/, Sirius::Profile::Dump->text( \%stack );
    splice @lines, $height if defined $height && @lines > $height;
    return @lines;
}

# "2.3 workers busy, computing 62 % of that, waiting 38 %"
sub _computing {
    my $self = shift;
    my ( $busy, $computing ) = $self->{change}->computing or return;
    return sprintf( '%.2g workers busy', $busy ),
        defined $computing
        ? (
        map { sprintf '%s %.0f %%', @$_ } [ computing => 100 * $computing ],
        [ waiting => 100 - 100 * $computing ]
        )
        : ();
}

sub _connections {
    my ( $connections, $held ) = @_;
    my %n        = map { $_ => _number( $connections->{$_} ) } qw(open idle waiting http2 streams);
    my @words    = map {"$n{$_} $_"} qw(open idle waiting);
    my $held_now = sum 0, map { _number($_) } values %$held;
    return @words, $held_now ? "$held_now held" : (),
        $n{http2} ? ( "$n{http2} with HTTP/2", "$n{streams} streams" ) : ();
}

sub _cut {
    my ( $width, $line ) = @_;
    $line =~ s/\s+\z//;
    return defined $width ? Sirius::Base::Text->cut( $line, $width ) : $line;
}

sub _doing {
    my ( $self, $worker ) = @_;
    return '' if !_number( $worker->{began} );
    my ( $line, $mark ) = ( _text( $worker->{line} ), _said( $worker->{mark} ) );
    return length $mark ? "$line [$mark]" : $line;
}

# What each edge has and does, as one line of the summary
sub _edge {
    my ( $self, $edge ) = @_;
    my $now   = _number( $self->{now}{now} );
    my $since = _number( $edge->{waiting_since} );
    my $cpu   = $self->{change}->edge_cpu($edge);
    my ( $state, $started ) = ( _text( $edge->{state} ), _number( $edge->{started} ) );
    return (
        'PID ' . _number( $edge->{pid} ),
        $state =~ /\A(?:idle|busy)\z/ ? ()                                                 : $state,
        $started                      ? 'up ' . Sirius::Base::Text->age( $now - $started ) : (),
        map( { _number( $edge->{$_} ) . ' ' . ( $_ eq 'connections' ? 'open' : $_ ) }
            qw(connections idle waiting) ),
        $since       ? 'the first for ' . Sirius::Base::Text->age( $now - $since ) : (),
        defined $cpu ? sprintf '%.0f %% CPU',
        100 * $cpu : (),
        _number( $edge->{rss} ) ? Sirius::Base::Text->bytes( $edge->{rss} ) : (),
    );
}

sub _edges {
    my $edges = shift->{now}{edges};
    return grep { ref eq 'HASH' } ref $edges eq 'ARRAY' ? @$edges : ();
}

# "50, the last 10 s ago: no row N at lib/Shop.pm line 42"
sub _exceptions {
    my $self   = shift;
    my $all    = $self->{now}{exceptions};
    my %all    = ref $all eq 'HASH' ? %$all : ();
    my ($last) = grep { ref eq 'HASH' } ref $all{last} eq 'ARRAY' ? @{ $all{last} } : ();
    return if !$last;
    my $ago = Sirius::Base::Text->age( _number( $self->{now}{time} ) - _number( $last->{at} ) );
    return _number( $all{count} ), "the last $ago ago: " . _said( $last->{text} );
}

# Files of --static
sub _files {
    my $self = shift;
    my $sent = Sirius::Base::Text->bytes( $self->{change}->rate(qw(totals files_bytes)) );
    return (
        $self->_per_second('files') . '/s',
        "$sent/s sent",
        map { $self->{change}->growth( totals => $_->[0] ) ? "$_->[1] " . $self->_per_second( $_->[0] ) : () }
            [ files_unchanged => 304 ],
        [ files_missing => 404 ]
    );
}

sub _for {
    my ( $self, $worker ) = @_;
    my $since = _number( $worker->{began} ) || _number( $worker->{since} ) or return '';
    return Sirius::Base::Text->age( _number( $self->{now}{now} ) - $since );
}

# No line without a word
sub _if_any {
    my ( $label, @words ) = @_;
    return @words ? _labelled( $label, @words ) : ();
}

sub _labelled {
    my ( $label, @words ) = @_;
    return sprintf '%-12s %s', $label, join ', ', grep {length} @words;
}

# "/report: 2 of 2 running, 48 waiting, the first for 12 s"
sub _lane {
    my ( $self, $lane ) = @_;
    my $since = _number( $lane->{waiting_since} );
    return (
        _text( $lane->{name} ) . ': '
            . _number( $lane->{running} ) . ' of '
            . _number( $lane->{limit} )
            . ' running',
        _number( $lane->{waiting} ) . ' waiting',
        $since ? 'the first for ' . Sirius::Base::Text->age( _number( $self->{now}{now} ) - $since ) : (),
        map { _number( $lane->{$_} ) ? _number( $lane->{$_} ) . ' ' . tr/_/ /r : () } qw(refused timed_out),
    );
}

sub _lanes {
    my $lanes = shift->{now}{lanes};
    return grep { ref eq 'HASH' } ref $lanes eq 'ARRAY' ? @$lanes : ();
}

sub _line {
    my ( $self, $width, @cells ) = @_;
    my @shown = grep { !defined $width || $width >= $COLUMNS[$_][2] } 0 .. $#COLUMNS;
    return join ' ', map { sprintf '%*s', $COLUMNS[$_][1], $cells[$_] } @shown;
}

sub _number { return Sirius::Admin::Change->number(shift) }

# "/report/:id 60 %", those with the most time first
sub _paths {
    my $self  = shift;
    my $calls = $self->{now}{calls};
    my $paths = ref $calls eq 'HASH' ? $calls->{paths} : undef;
    my @paths
        = grep { ref eq 'HASH' && _number( $_->{share} ) >= 0.005 } ref $paths eq 'ARRAY' ? @$paths : ();
    return
        map { sprintf '%s %.0f %%', _text( $_->{path} ), 100 * _number( $_->{share} ) }
        @paths > PATHS ? @paths[ 0 .. PATHS - 1 ] : @paths;
}

sub _per_second {
    my ( $self, @path ) = @_;
    return _rate( $self->{change}->rate( totals => @path ) );
}

sub _rate {
    my $rate = shift;
    return '' if !defined $rate;
    return sprintf $rate < 100 ? '%.1f' : '%.0f', $rate;
}

# Those passed to the application, and those for files of --static
sub _requests {
    my $self = shift;
    my ( $passed, $files ) = map { $self->{change}->rate( totals => $_ ) } qw(requests files);
    return _rate( $passed + $files ) . '/s' . ( $files ? ', files ' . _rate($files) : '' );
}

# The rates of the classes of responses that have occurred
sub _responses {
    my $self  = shift;
    my @kinds = grep { $self->{change}->growth( totals => responses => $_ ) } 1 .. 5;
    my @words = map  { "${_}xx " . $self->_per_second( responses => $_ ) } @kinds;
    push @words, map { "$_ " . $self->_per_second($_) }
        grep { $self->{change}->growth( totals => $_ ) } qw(aborted refused slow);
    return join ', ', @words;
}

# By the application
sub _said {
    my $text = shift;
    return defined $text && !ref $text ? Sirius::Base::Text->readable($text) : '';
}

sub _summary {
    my $self   = shift;
    my $now    = $self->{now};
    my $change = $self->{change};
    my ( $connections, $held, $totals )
        = map { ref eq 'HASH' ? $_ : {} } @{$now}{qw(connections held totals)};
    my %states;
    $states{ _text( $_->{state} ) }++ for $self->_workers;
    my @states    = map                                    {"$states{$_} $_"} sort keys %states;
    my @listeners = ref $now->{listeners} eq 'ARRAY' ? map { _text($_) } @{ $now->{listeners} } : ();
    my $app       = join ' on ', grep {length} map { _text($_) } @{$now}{qw(app host)};
    my @first     = (
        'Sirius ' . _text( $now->{version} ),
        $app || (),
        'PID ' . _number( $now->{pid} ),
        'up ' . Sirius::Base::Text->age( _number( $now->{uptime} ) ),
        strftime( '%H:%M:%S', localtime ),
        $change->is_partial
        ? 'rates over ' . Sirius::Base::Text->duration( $change->seconds )
        : 'rates since the start',
    );
    my $sent    = Sirius::Base::Text->bytes( $change->rate(qw(totals bytes)) );
    my $verdict = ref $now->{verdict} eq 'HASH' ? $now->{verdict} : {};
    return (
        join( ', ', @first ) . ( $now->{stopping} ? ', STOPPING' : '' ),
        defined $verdict->{text} ? _labelled( State => _text( $verdict->{text} ) ) : (),
        _labelled( Address  => join ' ',                              @listeners ),
        _labelled( Workers  => _number( $now->{wanted} ) . ' wanted', @states ),
        _labelled( Requests => $self->_requests,                      $self->_responses, "$sent/s sent" ),
        map( { _labelled( Edge => $self->_edge($_) ) } $self->_edges ),
        _labelled( Connections => _connections( $connections, $held ) ),
        _labelled( Latency     => $self->_times('latency') ),
        _labelled( Queue       => $self->_times('queue'), _number( $connections->{waiting} ) . ' in it' ),
        map( { _labelled( Lane => $self->_lane($_) ) } $self->_lanes ),
        _number( $totals->{files} ) ? _labelled( Files => $self->_files ) : (),
        _if_any( Time       => $self->_computing ),
        _if_any( Paths      => $self->_paths ),
        _if_any( Exceptions => $self->_exceptions ),
    );
}

# By clients, and others
sub _text {
    my $text = shift;
    return defined $text && !ref $text ? Sirius::Base::Text->harmless($text) : '';
}

sub _times {
    my ( $self, $name ) = @_;
    my @names = qw(p50 p90 p99 p99.9);
    my @times = $self->{change}->quantiles($name);
    return map {
        defined $times[$_] ? "$names[$_] " . $self->{change}->words( $name, _number( $times[$_] ) ) : ()
    } 0 .. $#times;
}

sub _worker {
    my ( $self, $width, $worker ) = @_;
    return $self->_line( $width, map { $_->[3]->( $self, $worker ) } @COLUMNS );
}

# Workers, with the longest request first
sub _workers {
    my $self = shift;
    my $list = $self->{now}{workers};
    my @all  = grep { ref eq 'HASH' } ref $list eq 'ARRAY' ? @$list : ();
    my @busy = sort { $a->{began} <=> $b->{began} } grep { _number( $_->{began} ) } @all;
    my @rest = grep { !_number( $_->{began} ) } @all;
    return @busy, sort { _number( $a->{pid} ) <=> _number( $b->{pid} ) } @rest;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Top::Picture - the lines that show a server

=head1 SYNOPSIS

  use Sirius::CLI::Top::Picture;

  print "$_\n" for Sirius::CLI::Top::Picture->new( $now, $before )->lines( 80, 24 );

=head1 DESCRIPTION

From one or two answers of F</status.json> to lines of printable characters, whatever the answers have in them: ASCII,
but for what the application says (L<Sirius::Base::Text/readable>). Workers that have been
in a request for the longest time stand first. The narrower the lines, the fewer columns there are.

=head1 METHODS

=head2 busy

  my @pids = $picture->busy;

Workers that have a request, the longest first.

=head2 header

  my $line = $picture->header($width);

The line of L</lines> that names the columns.

=head2 lines

  my @lines = $picture->lines( $width, $height );

The lines, at most as long and as many as given. Without a limit, all of them.

=head2 stack

  my @lines = Sirius::CLI::Top::Picture->stack( $answer, $width, $height );

What a worker does, of F</stack.json>.

=head2 new

  my $picture = Sirius::CLI::Top::Picture->new( $now, $before );

See L<Sirius::Admin::Change> for C<$before>.

=head1 SEE ALSO

L<Sirius::CLI::Top>, L<Sirius::Admin::App>.

=cut
