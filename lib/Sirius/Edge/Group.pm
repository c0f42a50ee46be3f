package Sirius::Edge::Group;

use strict;
use warnings;

use Fcntl               qw(F_GETFL F_SETFL O_NONBLOCK);
use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Edge::Keeper;
use Sirius::Edge::Place;
use Sirius::Edge::Program;
use Sirius::Edge::Programs;
use Sirius::Edge::Publications;
use Sirius::Edge::Pulse;
use Sirius::Edge::Setup;
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::ExitStatus;
use Sirius::OS::Inherit;
use Sirius::OS::Title;
use Time::HiRes qw(sleep);

use constant {
    LATE  => 2,     # seconds an edge has to end, in addition to the time for answering requests
    KILLS => 6,     # up to twice as many within --err-respawn-interval cause no pause
    READY => 30,    # seconds an edge has to get ready, unless the server itself is starting
};

# After how many attempts that failed another build is started
use constant ATTEMPTS => 2;

# The words for the keeper
my $KEYS = qr/\Atls-(?!handshake-timeout=)/;

# Seconds between two attempts, and how many there are, while the supervisor lacks memory; then it gives up
# the update
use constant { PAUSE => 0.02, TRIES => 50 };

sub act {
    my $self = shift;
    for my $place ( $self->places ) {
        next if $place->pid || !$self->_replaces($place) || $place->backoff->at > now();
        my $error = $self->_start( $place, $self->_limit ) // next;
        my $delay = $place->backoff->failed;
        my $with  = $self->_try_other($place);
        Sirius::Log->error( sprintf 'cannot start an edge: %s; next attempt in %g s%s',
            $error, $delay, $with );
    }
    $self->_renew        if $self->{renews} && !$self->{stopping};
    $self->{keeper}->act if $self->{keeper};
    $self->{publications}->act;
    $self->{pulse}->act if !$self->{stopping};
    return;
}

# The bells by which edges wake each other
sub bells {
    return map { $_->bell } shift->places;
}

# Publishes the certificates and CRLs
sub certificates_changed { return shift->{changed}->() }

# Files to which edges write which channels there are (src/edge/census.h)
sub channels {
    my $self = shift;
    my @files;
    for my $place ( $self->running ) {
        my $fd = Sirius::Edge::Shared->page;
        next if $fd < 0;
        my $file = Sirius::OS::Inherit->take_handle($fd);
        push @files, $file if $place->pass( channels => $fd );
    }
    return @files;
}

# From now on each response says "Connection: close"
sub close {
    my $self = shift;
    $self->{closing} = 1;
    $_->signal('USR1') for grep { $_->is_ready } $self->places;
    return;
}

# The memory of all edges
sub common { return fileno shift->{common} }

# The descriptors that must stay open when this process becomes a new program
sub descriptors {
    my $self = shift;
    my %seen;
    return @{$self}{qw(common news report)}, ( grep { !$seen{$_}++ } map { $_->descriptors } $self->places ),
        ( grep { !$seen{$_}++ } map { $_ ? $_->descriptors : () } $self->{programs}->before ),
        $self->{keeper} ? $self->{keeper}->descriptors : ();
}

# Empty if nothing has to be done before a signal comes
sub due {
    my $self = shift;
    return ( map { !$_->pid && $self->_replaces($_) ? $_->backoff->at : () } $self->places ),
        $self->{publications}->due,
        $self->{stopping} ? ()                   : $self->{pulse}->due,
        $self->{keeper}   ? $self->{keeper}->due : ();
}

# Why edges could not be renewed
sub fault { return shift->{fault} }

# Title, words and handles for a keeper
sub for_keeper {
    my $self   = shift;
    my $conf   = $self->{conf};
    my $title  = $conf->{proctitle} ? Sirius::OS::Title->words( $conf, 'keeper' ) : 'sirius-edge';
    my %number = (
        lifeline => $self->{lifeline} && fileno $self->{lifeline},
        detach   => $conf->{daemonize} ? 1 : undef,
        name     => 'keeper',
        report   => fileno $self->{report},
        $self->_ids
    );
    my @words = grep {/\A(?:layout|sandbox)=/} @{ $self->{setup} };
    return $title, [ @words, Sirius::Edge::Setup->words(%number) ],
        grep {defined} @{$self}{qw(lifeline report)};
}

# Tells others since when that edge does not respond; 0: it does
sub hangs {
    my ( $self, $place, $since ) = @_;
    $self->{scoreboard}->edge_hangs( $place->number, $since ) if $self->{scoreboard};
    return;
}

# Reads the reports of the edges: "PID WHAT WHY"
sub hear {
    my $self = shift;
    1 while sysread $self->{news}, $self->{heard}, 4096, length $self->{heard};
    while ( $self->{heard} =~ s/\A([^\n]*)\n// ) {
        my ( $pid, $what, $why ) = $1 =~ /\A(\d+) (\S+) ?(.*)\z/ or next;
        if    ( $what eq 'ready' )   { $self->_ready($pid) }
        elsif ( $what eq 'trouble' ) { $self->{alerts}->begin }
        elsif ( $what eq 'lost' )    { Sirius::Log->error("$self->{said}worker $pid $why") }
        elsif ( $what eq 'more' )    { Sirius::Log->warn("$self->{said}$why") }
        elsif ( $what =~ /\A(?:broken|slow|timeout)\z/ ) { $self->{tell}->( $pid, $what, $why ) }
        elsif ( $what eq 'apart' )                       { $self->_apart( $pid, $why ) }
        elsif ( $what eq 'unfiltered' )                  { $self->_unfiltered($why) }
        elsif ( $what eq 'badkeys' ) { Sirius::Log->error("edge $pid cannot use the new certificates: $why") }
        elsif ( $what =~ /\Akeys/ && $self->{keeper} ) { $self->{keeper}->heard( $pid, $what, $why ) }
    }
    return;
}

# Whether the server has started
sub is_announced { return shift->{announced}->() }

# Undef without TLS
sub keeper { return shift->{keeper} }

sub log_errors_to {
    my ( $self, $fd ) = @_;
    $_->pass( errors => $fd ) for grep { $_->pid } $self->places;
    return;
}

sub log_to {
    my ( $self, $fd ) = @_;
    $_->pass( log => $fd ) for grep { $_->pid } $self->places;
    return;
}

sub new {
    my ( $class, $rows, %args ) = @_;
    my $self = $class->_of(
        heard    => '',
        common   => Sirius::OS::Inherit->take_handle( Sirius::Edge::Shared->common ),
        sleepers => Sirius::OS::Inherit->take_handle( Sirius::Edge::Shared->sleepers($rows) ),
        %args,
    );
    my $number = $self->{number} || 1;
    $self->{setup} = [ Sirius::Edge::Setup->of( $self->{conf} ) ];

    # Two places for each edge: a replacement begins in the second
    $self->{places}
        = [ map { Sirius::Edge::Place->new( $_, $self->{conf}, $self->{said} ) } 0 .. 2 * $number - 1 ];
    $_->be( serves => $self->{setup} ) for @{ $self->{places} }[ 0 .. $number - 1 ];

    # Both ends stay here, as they outlive any edge. They don't block: an edge that can't report now does so
    # later
    pipe my $news, my $report or Sirius::Log->fail("cannot create a pipe: $!");
    for my $end ( $news, $report ) {
        fcntl $end, F_SETFL, O_NONBLOCK | fcntl $end, F_GETFL, 0 or Sirius::Log->fail("F_SETFL: $!");
    }
    @{$self}{qw(news report)} = ( $news, $report );
    $self->{keeper} = Sirius::Edge::Keeper->new( $self, Sirius::Edge::Keeper->words( $self->{conf} ) )
        if grep { $_->is_tls } @{ $self->{listeners} };
    return $self;
}

sub news { return shift->{news} }

sub pid { return ( shift->pids )[0] }

sub pids {
    return map { $_->pid || () } shift->places;
}

sub places { return @{ shift->{places} } }

# The one that is in use since the start or the last reload. Undef if none was installed
sub program { return shift->{programs}->current }

# Of an edge that serves
sub proven {
    my $self = shift;
    my ($place) = grep { $_->role eq 'serves' && $_->is_ready && $_->program } $self->places;
    return $place && $place->program;
}

# Hands these items to all edges. Undef, or why that is not possible
sub publish {
    my ( $self, @packed ) = @_;
    return $self->{publications}->publish(@packed);
}

# Has the owner of a child told of its end
sub reap {
    my ( $self, $child ) = @_;
    return $self->{reaper}->add($child);
}

# Gives all edges these settings, and the program that is installed now
sub renew {
    my ( $self, $said ) = @_;
    my $words = Sirius::Edge::Setup->known($said);
    my @keys  = grep {/$KEYS/} @{ $words || [] };
    $words = [ grep { !/$KEYS/ } @$words ] if $words;
    @{$self}{qw(setup said_last)} = ( $words, $said ) if $words && @$words;
    delete $self->{fault};
    $self->_change_program;
    $self->renew_certificates(@keys);
    $self->{renews} = 1;
    return $self->act;
}

# Has their files read again, by these words if there are any
sub renew_certificates {
    my ( $self, @keys ) = @_;
    $self->{keeper}->renew(@keys) if $self->{keeper} && !$self->{stopping};
    return;
}

# In a supervisor that has become a new program; the workers' side exists already
sub restore {
    my ( $class, $state, %args ) = @_;
    my %known;
    my $self = $class->_of(
        %args,
        setup => $state->{settings},    # of a version that called it so
        %$state,
        before => scalar Sirius::Edge::Program->restore( $state->{before}, \%known ),
        ( map { $_ => Sirius::OS::Inherit->take_handle( $state->{$_} ) } qw(common news report) ),
        places => [
            map {
                Sirius::Edge::Place->restore( $_, $args{conf}, '',
                    Sirius::Edge::Program->restore( $_->{program}, \%known ) )
            } @{ $state->{places} }
        ],
    );
    $self->_change_program;
    $self->_adopt($_) for grep { $_->pid } $self->places;
    $self->{renews} = 1;    # there may be another program, and settings that the previous one did not know
    my $words = Sirius::Edge::Setup->known( $self->{said_last} );
    $self->{setup}  = [ grep { !/$KEYS/ } @$words ]                            if $words && @$words;
    $self->{keeper} = Sirius::Edge::Keeper->restore( $self, $state->{keeper} ) if $state->{keeper};
    return $self;
}

sub running {
    return grep { $_->pid } shift->places;
}

# How lines of the log begin
sub said { return shift->{said} }

# Whether an edge accepts connections, as far as this process can tell
sub serves {
    my $self = shift;
    return
        scalar grep { $_->pid && $_->is_ready && $_->role ne 'retires' && !$self->{pulse}->hangs( $_->pid ) }
        $self->places;
}

# None is starting in another's place
sub settled {
    return !grep { $_->role eq 'heir' } shift->places;
}

sub start {
    my $self = shift;
    $self->{keeper}->start if $self->{keeper};
    $self->_start( $_, $self->_limit ) for grep { $_->role eq 'serves' } $self->places;
    return;
}

sub state {
    my $self = shift;
    return {
        ( map { $_ => $self->{$_} } grep { defined $self->{$_} } qw(fault heard said_last setup) ),
        ( map { $_ => fileno $self->{$_} } qw(common news report) ),
        before   => $self->{programs}->before && $self->{programs}->before->state,
        places   => [ map { $_->state } $self->places ],
        settings => $self->{setup},    # for a version that calls it so
        $self->{keeper} ? ( keeper => $self->{keeper}->state ) : (),
    };
}

# Requests that have come are answered within $grace seconds
sub stop {
    my ( $self, $signal, $grace ) = @_;
    $self->{stopping} = 1;
    $self->{keeper}->stop if $self->{keeper};
    $_->stop( $signal, $grace + LATE ) for $self->places;
    $self->_over_when_last;
    return;
}

# What workers need to introduce themselves
sub workers { return shift->{sleepers} }

# Has this object told of the end of the edge; returns nothing
sub _adopt {
    my ( $self, $place ) = @_;
    weaken( my $own = $self );
    weaken( my $its = $place );
    my $child = $place->child;
    $child->on_end( sub { $own->_ended( $its, $_[1] ) } );
    $self->{reaper}->add($child);
    return;
}

# The edge cannot pass its connections on
sub _apart {
    my ( $self, $pid, $why ) = @_;
    return Sirius::Log->note(
              "$self->{said}edge $pid keeps its connections, as the edge that replaces it $why: "
            . 'each is closed after its next response, within '
            . Sirius::Base::Text->age( $self->{conf}{graceful_timeout} ) );
}

# The scoreboard in which the edge counts
sub _board {
    my $self = shift;
    return $self->{scoreboard} ? $self->{scoreboard}->descriptor : ();
}

# A reload: from now on the program that is installed is started
sub _change_program {
    my $self = shift;
    $self->{missing} = $self->{programs}->install ? 0 : 1;
    return if !$self->{missing};
    my $text = 'sirius-edge is not installed, or cannot be executed: edges keep running the previous one';
    return ( $self->{fault} // '' ) eq $text ? () : $self->_fault($text);
}

# Not for the edge of the admin port, which has no scoreboard
sub _count {
    my ( $self, $status, $why ) = @_;
    return if !$self->{scoreboard};
    return $self->{scoreboard}->edge_exited( Sirius::OS::ExitStatus->kind( $status, $why, length $why ) );
}

# The descriptors by number, and the name that ps shows
sub _descriptors {
    my ( $self, $place ) = @_;
    my ($board) = $self->_board;
    my %number = (
        $self->_log($place),
        lifeline   => $self->{lifeline} && fileno $self->{lifeline},
        detach     => $self->{conf}{daemonize} ? 1 : undef,
        edge       => $place->number,
        name       => $self->{role},
        scoreboard => $board,
        strict     => $self->_is_strict($place),
        $self->_ids,
        bells => join( ',', map { fileno $_ } $self->bells ),
        ( map { $_ => fileno $self->{$_} } qw(common report sleepers) ),
        $place->words
    );
    return Sirius::Edge::Setup->words(%number), map {
        join ':', 'listen=' . $_->fd,
            ( $_->is_tls ? 'tls+' : $_->is_h2c ? 'h2c+' : '' ) . ( $_->is_unix ? 'unix' : 'tcp' ),
            $_->port,
            $_->name
    } @{ $self->{listeners} };
}

# The process in that place has ended
sub _ended {
    my ( $self, $place, $status ) = @_;
    my ( $pid, $age ) = ( $place->pid, $place->child->age );
    $self->hear;
    my %had = $place->ended;
    my ( $role, $ready ) = @had{qw(role ready)};
    $self->_part($place);
    $self->{scoreboard}->release( $self->{scoreboard}->rows + $place->number ) if $self->{scoreboard};
    $self->_count( $status, $role ne 'retires' && !$self->{stopping} ? '' : 'stopped' );
    return $self->_over_when_last if $self->{stopping};
    my $how = "$self->{said}edge $pid " . Sirius::OS::ExitStatus->words( $status, 'status 0' );
    return $self->_not_renewed( $place, $how ) if $role eq 'heir';

    if ( $role eq 'retires' ) {
        Sirius::Log->error("$how while finishing its requests; its connections were closed") if $status;
        return;
    }
    if ( !$ready && !$self->is_announced ) {
        $self->_over;
        Sirius::Log->fail("$how: the server cannot start");
    }
    $place->resume(%had);
    my $delay
        = $ready
        ? $place->backoff->died( age => $age, killed => ( $status & 127 ) == 9, among => KILLS )
        : $place->backoff->failed;
    my $with = $ready ? '' : $self->_try_other($place);
    Sirius::Log->error( $how
            . ( $ready ? '; its connections were closed; '      : '; it never became ready; ' )
            . ( $delay ? sprintf 'next attempt in %g s', $delay : 'starting another' )
            . $with );
    my $crashes = $ready && $self->{programs}->crashes( $status, $age );
    $self->_revert( $place, "$how; $crashes" ) if $crashes;
    return $self->act;
}

# Why edges could not be renewed, until the next reload
sub _fault {
    my ( $self, $text ) = @_;
    $self->{fault} = $text;
    return Sirius::Log->error($text);
}

# The user and group to which the program changes
sub _ids {
    my $privileges = shift->{privileges};
    return $privileges ? $privileges->ids : ();
}

# Tries again: this process must not end for lack of memory or descriptors, which others may free soon
sub _insist {
    my $code = shift;
    local $@;
    for ( 1 .. TRIES ) {
        return 1 if eval { $code->(); 1 };
        sleep PAUSE;
    }
    Sirius::Log->error(
        "cannot update the memory that workers and edges share: $@" =~ s/ at \S+ line \d+\.?\n\z//r );
    return 0;
}

# Whether one that finds a folder of --static missing ends with that error. In place of one that has died it
# serves the rest
sub _is_strict {
    my ( $self, $place ) = @_;
    return !$self->is_announced || $place->role eq 'heir' ? 1 : undef;
}

# Seconds in which an edge has to get ready. One that gets keys waits for their keeper, and the server's start
# has no limit
sub _limit {
    my $self = shift;
    return $self->is_announced && !$self->{keeper} ? READY : undef;
}

sub _log {
    my ( $self, $place ) = @_;
    my $log = $self->{access_log};
    return if !$log || !grep {/\Aaccess-log-format=/} @{ $place->setup };
    return ( access_log => $log->fd, access_log_kind => $log->kind, access_log_priority => $log->priority );
}

# An edge that was to replace another has ended
sub _not_renewed {
    my ( $self, $place, $how ) = @_;
    my $before = $self->_predecessor($place);
    $before->no_heir;
    delete $self->{renews};    # the next reload tries again
    $self->{programs}->undo( $before->program );
    return $self->_fault( "$how before it was ready: "
            . ( $before->pid ? 'edge ' . $before->pid . ' keeps serving' : 'starting another' )
            . ' with the previous settings' );
}

sub _of {
    my ( $class, %args ) = @_;
    my $self = bless { role => 'edge', said => '', %args }, $class;
    $self->{programs} = Sirius::Edge::Programs->new(
        current => delete $self->{program},
        map { $_ => delete $self->{$_} } qw(before fallback)
    );
    $self->{publications} = Sirius::Edge::Publications->new($self);
    $self->{pulse}        = Sirius::Edge::Pulse->new($self);
    return $self;
}

# No request will ever come
sub _over {
    my $self = shift;
    _insist( sub { Sirius::Edge::Shared->over( fileno $self->{sleepers} ) } );
    return;
}

sub _over_when_last {
    my $self = shift;
    $self->_over if !$self->pids;
    return;
}

# Tells workers that no edge is in this place any more
sub _part {
    my ( $self, $place ) = @_;
    my @memory = map { fileno $self->{$_} } qw(sleepers common);
    return _insist( sub { Sirius::Edge::Shared->part( @memory, $place->number ) } );
}

# The place whose heir is this one, until its process has ended; or undef
sub _predecessor {
    my ( $self, $place ) = @_;
    return ( grep { ( $_->heir // -1 ) == $place->number } $self->places )[0];
}

sub _ready {
    my ( $self, $pid ) = @_;
    my ($place) = grep { ( $_->pid || 0 ) == $pid } $self->places or return;
    $place->got_ready;
    $place->not_late        if !$self->{stopping};
    $place->signal('USR1')  if $self->{closing};
    $self->_succeed($place) if $place->role eq 'heir' && !$self->{stopping};
    return;
}

# Edges that have other settings, or run another program, get an heir as soon as a place is free. Not while
# their predecessor runs, even if another's place is free: it would lose its heir, and close what it cannot
# pass on
sub _renew {
    my $self    = shift;
    my $program = $self->program ? $self->program->build : '';
    my @places  = $self->places;
    my $left    = 0;
    for my $place ( grep { $_->role eq 'serves' && $_->pid } @places ) {
        next
            if ( !length $program || $place->program && $place->program->build eq $program )
            && "@{ $place->setup }" eq "@{ $self->{setup} }";
        $left++;
        next if defined $place->heir || !$place->is_ready;
        my ($free) = $self->_predecessor($place) ? () : grep { $_->role eq '' } @places;
        if ( !$free ) {
            Sirius::Log->note(
                'edge ' . $place->pid . ' keeps its settings until its predecessor has exited' )
                if !$self->{waits}++;
            next;
        }
        $free->be( heir => $self->{setup}, $self->program );
        $place->heir_is( $free->number );
        my $error = $self->_start( $free, READY ) // next;
        $free->ended;
        delete @{$self}{qw(renews waits)};    # the next reload tries again
        $place->no_heir;
        $self->{programs}->undo( $place->program );
        return $self->_fault( 'cannot start an edge in place of edge '
                . $place->pid
                . ", which keeps serving with its settings: $error" );
    }
    return if $left;
    delete @{$self}{qw(renews waits)};
    delete $self->{fault} if !$self->{missing};
    return;
}

# Whether an edge that has ended is to be replaced. Not while its heir is starting
sub _replaces {
    my ( $self, $place ) = @_;
    return !$self->{stopping} && $place->role eq 'serves' && !defined $place->heir;
}

# Edges of a new build crash: edges that start from now on run the previous build, if it is known
sub _revert {
    my ( $self, $place, $how ) = @_;
    my $programs = $self->{programs};
    my $other    = $programs->other( $place->program, $programs->before ) or return;
    $self->_switch( $place, $other );
    delete $self->{renews};    # the next reload tries again
    return $self->_fault("$how: edges run the previous sirius-edge until a reload");
}

# Starts an edge. Undef, or why there is no process
sub _start {
    my ( $self, $place, $limit ) = @_;
    $place->be( $place->role, undef, $self->program ) if !$place->program;
    my @handles = ( @{$self}{qw(lifeline common report sleepers)}, $place->theirs, $self->bells );
    push @handles, grep {defined} map { $_->fh } grep {defined} $self->{access_log};
    my $keys = $self->{keeper} && $self->{keeper}->line;
    return 'there is no keeper of keys yet' if $self->{keeper} && !$keys;
    push @handles, $keys if $keys;
    my $error = !$place->program ? 'sirius-edge is not installed' : $place->start(
        descriptors =>
            [ ( map { fileno $_ } @handles ), $self->_board, map { $_->fd } @{ $self->{listeners} } ],
        limit => $limit,
        words => [ $self->_words($place), $keys ? 'keys=' . fileno $keys : () ],
    );
    return $self->_adopt($place) if !defined $error;
    Sirius::Log->fail($error)    if !$self->is_announced;
    return $error                if $place->role ne 'serves';
    my $other = $self->{programs}->other( $place->program ) or return $error;
    Sirius::Log->error(
        "$self->{said}cannot start the edge that is installed: $error; starting the previous one");
    $self->_switch( $place, $other );
    return $self->_start( $place, $limit );
}

# The edge serves: it takes over from the previous one
sub _succeed {
    my ( $self, $place ) = @_;
    my $before = $self->_predecessor($place);
    $self->{programs}->replaced( $before->program, $place->program );
    $place->be('serves');
    return $before->ended if !$before->pid;
    my ( $from, $to );
    my $line = _insist( sub {
        ( $from, $to ) = map { Sirius::OS::Inherit->take_handle($_) } Sirius::Edge::Shared->line;
    } );
    if ( $line && $place->pass( legacy => fileno $to ) && $before->pass( retire => fileno $from ) ) {
        Sirius::Log->note( "$self->{said}edge " . $place->pid . ' replaces edge ' . $before->pid );
    } else {    # it does not read, so it ends as at a stop of the server
        Sirius::Log->warn(
            'cannot tell edge ' . $before->pid . ' that edge ' . $place->pid . " replaces it: $!" );
        $before->signal('TERM');
    }
    $before->be('retires');
    $before->late_at( now() + $self->{conf}{graceful_timeout} + LATE );
    return;
}

# This place, and all that have no program yet, use another build
sub _switch {
    my ( $self, $place, $other ) = @_;
    $self->{programs}->switch( $place->program, $other );
    return $place->be( 'serves', undef, $other );
}

# No edge of its program gets ready in that place: the next attempt is made with another build, if one is
# known. Returns words for the log
sub _try_other {
    my ( $self, $place ) = @_;
    my $programs = $self->{programs};
    my $all      = $place->backoff->failing >= ATTEMPTS;
    my $other    = $programs->other( $place->program,
        $all ? ( scalar Sirius::Edge::Program->keep, $programs->before ) : () );
    return '' if !$other;
    $self->_switch( $place, $other );
    return
          ' with the '
        . ( $other->build eq Sirius::Edge::Program->build ? 'installed' : 'previous' )
        . ' sirius-edge';
}

# Logged once, as every edge reports it
sub _unfiltered {
    my ( $self, $why ) = @_;
    return if length $self->{said} || $self->{said_unfiltered}++;
    return Sirius::Log->info("$self->{said}edges run without a filter of system calls (seccomp): $why");
}

# What the program is started with
sub _words {
    my ( $self, $place ) = @_;
    my $conf  = $self->{conf};
    my $title = $conf->{proctitle} ? Sirius::OS::Title->words( $conf, $self->{role} ) : 'sirius-edge';
    return $title, @{ $place->setup }, $self->_descriptors($place);
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Group - starts, replaces and stops the processes that own the connections

=head1 SYNOPSIS

  my $edge = Sirius::Edge::Group->new( $rows, conf => $conf, ... );
  $edge->start;
  my $sleepers = $edge->workers;                # for each worker
  $edge->act;                                  # starts another one when it is time
  $edge->stop( 'TERM', 30 );

=head1 DESCRIPTION

Starts C<sirius-edge> (L<Sirius::Edge::Program>) with its settings and the numbers of its descriptors as words, and starts
another one when it ends. With C<--edges N> there are N of them, which share the listening sockets.

If the settings or the installed program differ from those of a running edge (L</renew>), another edge starts beside
it, in a place of its own (L<Sirius::Edge::Place>). When it is ready, the old edge stops accepting and passes each
connection on to it when that waits for a request. The old edge ends when it has no connection left, or after
C<--graceful-timeout>. Until then the new one is not replaced in its turn. If the new edge does not become ready, the old one
goes on, and the log says why.

In place of an edge that has died, the program that runs already is started. If no edge of it gets ready, twice in a row, the installed
program is tried, or the one before the last reload. That one takes over too when three edges of a new program have crashed within 10 seconds of
their start; L</fault> says so until the next reload.

=head1 METHODS

=head2 act

Starts another edge for one that has ended, when it is L</due>, and does what L</renew> has asked for.

=head2 bells

The handles by which edges wake each other, in the order of their places.

=head2 certificates_changed

Tells those who show them.

=head2 channels

  my @files = $edges->channels;

Asks all edges which channels there are. Their answers will be in these files, as F<src/edge/census.h> says.

=head2 close

Makes the edges say C<Connection: close> in each response, because the server will stop soon.

=head2 descriptors

The handles that the next program needs.

=head2 due

The monotonic times at which L</act> has something to do; none while all is well.

=head2 fault

Why edges do not run the installed program or the settings of the last reload. Undef if they do.

=head2 for_keeper, is_announced, reap, running

For L<Sirius::Edge::Keeper>: what its process is started with; whether the server has started; L<Sirius::OS::Reaper/add>; the
places that have a process.

=head2 hear

Reads what the edges report: that one is ready, that a request is slow or takes too long, or that a worker has written something
impossible. What concerns a worker is passed to the generation of the worker (L<Sirius::Process::Reload/tell>).

=head2 keeper

The L<Sirius::Edge::Keeper>, or undef without TLS.

=head2 log_errors_to

  $edge->log_errors_to($fd);

Makes the reopened error log the STDERR of the edges.

=head2 log_to

  $edge->log_to($fd);

Makes the edges write the reopened access log to this descriptor.

=head2 new

  my $edge = Sirius::Edge::Group->new( $rows, %args );

For as many workers as there are C<$rows>. Makes what the edge and the workers share, and starts nothing. It needs C<access_log> and
C<scoreboard>, which may be undef; C<alerts>, a L<Sirius::Process::Alerts>; C<conf>; C<lifeline>, a handle whose end of file tells the
edges to end; C<listeners>; C<privileges>, to which they drop; C<reaper>, a L<Sirius::OS::Reaper>; C<role>, their name in F<ps>;
C<program>, with which they start instead of the installed one; C<said>, how their lines in the log begin; C<number>, how many edges there are (1). Of the subs, C<announced> tells whether the server
has started; C<changed> is called when certificates have changed; C<tell> with the PID of a worker, C<broken>, C<slow> or C<timeout>,
and why.

=head2 news

The handle that L</hear> reads.

=head2 pid

The PID of a running edge, or undef.

=head2 pids

The PIDs of all running edges.

=head2 program

The L<Sirius::Edge::Program> with which edges start, or undef if none is installed.

=head2 proven

The program of an edge that serves; undef if none is ready.

=head2 publish

  my $error = $edges->publish(@packed);

See L<Sirius::Edge::Publications/publish>.

=head2 renew

  $edge->renew($said);

Gives all edges these settings, as far as this version knows them (L<Sirius::Edge::Setup/known>), and the installed program.

=head2 renew_certificates

  $edge->renew_certificates;

Has the files of certificates and keys read again, unless the edges stop.

=head2 restore

  my $edge = Sirius::Edge::Group->restore( $state, %args );

In the next program, from what L</state> has returned. The arguments are as for L</new>, with C<sleepers>, what L</workers> returned.

=head2 settled

True unless an edge is starting in order to replace another.

=head2 start

Starts the programs, in children of this process.

=head2 state

What the next program needs to continue with the same edges: settings, numbers of descriptors and PIDs, as text.

=head2 stop

  $edge->stop( 'TERM', $seconds );

With C<TERM> it takes no more connections, answers what has come, and ends; with C<INT> it ends with the requests that workers have
at that moment. It is killed 2 seconds after the time it has. Workers are let go when it has ended.

=head2 workers

The handle that a worker needs to connect: the memory in which it sleeps and finds the edges.

=head1 SEE ALSO

L<Sirius::Edge::Place>, L<Sirius::Edge::Programs>, L<Sirius::Edge::Setup>, L<Sirius::Edge::Beside>, L<Sirius::Process::Supervisor>, L<Sirius::Worker>.

=cut
