package Sirius::Dev::Reload;

use strict;
use warnings;
use parent 'Sirius::Process::Reload';

use Cwd                 ();
use Errno               qw(ESRCH);
use File::Basename      qw(dirname);
use List::Util          qw(max min);
use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Dev::Base;
use Sirius::Dev::Broken;
use Sirius::Dev::Echo;
use Sirius::Dev::SlowLoad;
use Sirius::Dev::Watcher;
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::Child;
use Sirius::OS::ExitStatus;
use Sirius::OS::Reaper;
use Sirius::Process::Generation;
use Sirius::Process::Launch;
use Time::HiRes qw(time);

use constant {
    SETTLE      => 0.03,    # seconds without a change, after which a save is over
    SETTLE_MAX  => 1,       # seconds after the first change, when it is over in any case
    REST        => 1,       # seconds between a generation and the next process of its kind
    PRELOAD_MAX => 60,      # seconds that modules have to load by themselves
    REFUSED_MAX => 20,      # modules that may refuse it before it is given up
    NAMES_MAX   => 3,       # files that are named in a line
    NOTICED     => 0.25,    # seconds in which a change is noticed by inotify
    WITH_PAGE   => 5,   # seconds after loading in which requests may be those of pages that were loaded again
};

# Of the server itself, or loaded before any application
my %OWN = %INC;

sub act {
    my $self = shift;
    $self->_hear_base;
    if ( !$self->{supervisor}->is_stopping ) {
        $self->_look;
        $self->{slow_load}->act( $self->_loads );
        if    ( defined $self->{load_at} )    { $self->_load_changed  if $self->_load_due <= now() }
        elsif ( defined $self->{preload_by} ) { $self->_preload_hangs if $self->{preload_by} <= now() }
        if    ( defined $self->{base_at} && $self->{base_at} <= now() ) {
            $self->_start_base;
            $self->_preload if !$self->{forks};
        }
    }
    return $self->SUPER::act;
}

# Nobody serves and nothing is loaded yet
sub begin {
    my $self    = shift;
    my $session = $self->{session};
    my $loop    = $self->{loop};
    $self->{forks} = Sirius::OS::Reaper->adopt;    # else a base becomes a generation
    $self->_begin_to_watch;

    my $log = $self->{access_log};
    if ( $log && $log->can('handle') ) {
        $loop->watch( $log->handle );
        $loop->add($log);
    }
    $session->begin( $self->{supervisor}, map { $_ => $self->{$_} } qw(loop reaper) );
    $self->_start_base;
    $self->_order( first => 1 );
    return;
}

# The server has ended
sub close {
    my $self = shift;
    my $base = delete $self->{base} or return;
    $base->child->signal('KILL');
    $base->child->wait(1);
    return;
}

sub due {
    my $self = shift;
    return $self->SUPER::due if $self->{supervisor}->is_stopping;
    return $self->SUPER::due, grep {defined} @{$self}{qw(load_at preload_by base_at)},
        $self->{watcher}   ? $self->{watcher}->due                    : (),
        $self->{slow_load} ? $self->{slow_load}->due( $self->_loads ) : ();
}

sub new {
    my ( $class, $supervisor, %args ) = @_;
    my $self = $class->SUPER::new( $supervisor, %args );
    $self->{$_} ||= {} for qw(changed outside preloaded refused);
    $self->{echo} = Sirius::Dev::Echo->new;
    return $self;
}

# What is asked for: other options or another version of a library may be the reason
sub reload {
    my ( $self, $reply, $why, $again ) = @_;
    return $self->_order( again => 1 ) if $again;
    return $self->{supervisor}->stop( INT => "$why, and the terminal is closed" )
        if !$reply && $self->{session}->has_lost_terminal;
    $self->_hold($why);
    $self->_replace_base;
    return $self->_order( reply => $reply, why => $why );
}

# The supervisor of a session is not replaced
sub renewed { return 0 }

sub settled {
    my $self = shift;
    return !$self->{awaited} && $self->SUPER::settled;
}

sub stop {
    my ( $self, @how ) = @_;
    delete @{$self}{qw(awaited load_at)};
    if ( my $base = delete $self->{base} ) { $base->stop }
    return $self->SUPER::stop(@how);
}

# Nothing of what loads now is wanted any more
sub _abandon {
    my ( $self, $why ) = @_;
    if ( my $awaited = delete $self->{awaited} ) {
        push @{ $self->{waiting} }, grep {defined} $awaited->{reply};
    }
    my $loading = delete $self->{loading};
    ($loading) = grep { !$_->is_ready && !defined $_->gave_up && !$_->is_draining } $self->all if !$loading;
    return if !$loading;
    push @{ $self->{waiting} }, $loading->replies;
    return $self->_give_up( $loading, $why );
}

# What the application begins with, and the links that lead to it and to its modules. One that is gone may
# come again
sub _app {
    my $self    = shift;
    my $session = $self->{session};
    my @app     = grep {defined} $session->app;
    my %folders = map  { dirname($_) => 1 } @{ $self->{inside} || [] };
    my @gone    = grep { !lstat } keys %{ $self->{links} || {} };
    my @links   = map  { Sirius::Dev::Files->links($_) } @app, $session->named, keys %folders;
    $self->{links} = { map { $_ => 1 } @gone, @links };
    return $session->sources, @app, sort keys %{ $self->{links} };
}

# The process that generations come from says that there is another one
sub _arrived {
    my ( $self, $pid, $order ) = @_;
    my $child      = $self->{forks} ? Sirius::OS::Child->new($pid) : $self->_release_base;
    my $generation = Sirius::Process::Generation->new(
        $child,
        number => $order->{number},
        news   => $order->{news},
        stderr => $order->{stderr},
        said   => '',
    );
    $self->{page} = $order->{page} ? $order->{number} : undef;
    if ( $order->{first} || $order->{page} ) {
        $generation->reloads( undef, 1 ) if $order->{page};
        $self->{loading} = $generation;
        $self->started($generation);
        $self->publish;
    } else {
        my @replies = ( grep( {defined} $order->{reply} ), splice @{ $self->{waiting} || [] } );
        my $reply   = @replies ? sub { $_->(@_) for @replies } : undef;
        $self->_begun( $generation, $reply, @{$order}{qw(why again)} );
    }
    $generation->tell('go');
    $child->ended(0) if !kill( 0, $pid ) && $!{ESRCH};    # killed before it was known here
    return;
}

sub _base_ended {
    my ( $self, $base, $status ) = @_;
    return if $base != ( $self->{base} || 0 ) || $self->{supervisor}->is_stopping;
    $self->_hear_base;
    return if $base != ( $self->{base} || 0 );
    $self->{loop}->unwatch( $base->line );
    delete $self->{base};
    $self->{preloaded} = {};
    my $how = 'the process that generations are forked from ' . Sirius::OS::ExitStatus->words( $status, '' );

    if ( defined( delete $self->{preload_by} ) ) {
        my $name = delete $self->{preloading};
        return $self->_refuse( $name, $how ) if defined $name;
    }
    my $delay = $self->{base_failures}++ ? min 30, 2**$self->{base_failures} : 0;
    Sirius::Log->error( "sirius dev: $how; " . ( $delay ? "next attempt in $delay s" : 'starting another' ) );
    $self->{base_at} = now() + $delay;
    return;
}

# The folders of the application: at first, and when a link leads to others
sub _begin_to_watch {
    my $self    = shift;
    my $session = $self->{session};
    my $say     = sub { Sirius::Log->warn("sirius dev: $_[0]") };
    $self->{loop}->unwatch( delete $self->{watched} ) if $self->{watched};
    $session->forget_files;
    $self->{watcher} = Sirius::Dev::Watcher->new(
        files => $session->files,
        say   => $say,
        scan  => $session->conf->{watch_scan},
    );
    $self->{watcher}->follow( time, $self->_followed );
    $self->{slow_load}
        = Sirius::Dev::SlowLoad->new( app => $session->app, files => $session->files, say => $say );
    return $self->_watch;
}

sub _complete {
    my ( $self, $generation ) = @_;
    return if $generation->is_draining || defined $generation->gave_up;
    if ( $self->_is_page($generation) ) {
        $self->{backoff}->ready;
        delete @{$self}{qw(again_at fallen loading)};
        $self->_drain($_) for grep { $_->number < $generation->number && !$_->is_draining } $self->all;
        $self->_end_orphans;
        $self->publish;
    } else {
        delete $self->{loading} if !$generation->is_reload;
        $self->SUPER::_complete($generation);
        $self->_preload;
    }
    my $number = $generation->number;
    $self->{session}->audience->tell( $number, $self->{session}->id($number) ) if $self->{session}->audience;
    return;
}

# Before it was ready: what would be served is the reason
sub _ended {
    my ( $self, $generation, $status ) = @_;
    return $self->SUPER::_ended( $generation, $status )
        if $generation->is_ready
        || $generation->is_draining
        || defined $generation->gave_up
        || $self->_is_page($generation)
        || $self->{supervisor}->ending;
    $self->_forget($generation);
    my $at = $status & 127 ? undef : $generation->exits;
    my $how
        = defined $generation->hung ? $generation->hung
        : $status                   ? Sirius::OS::ExitStatus->words( $status, '' )
        :                             'called exit while it was loaded';
    $how .= $status ? ": exit was called $at" : ", $at" if defined $at && !defined $generation->hung;
    my $broken
        = $generation->broken
        ? Sirius::Dev::Broken->restore( $generation->broken )
        : Sirius::Dev::Broken->process( "generation @{[ $generation->number ]} $how",
        $generation->said, $self->{session}->files );
    Sirius::Log->pass( $broken->terminal( $self->{session}->colours ) );
    my $data = $broken->data;
    $self->{inside}
        = [ @{ $self->{inside} || [] }, @{ $self->{before} || [] } ];    # it had not come to all of them
    $self->{watcher}->follow( time, $self->_followed, grep {defined} $data->{file} );
    $self->_watch;
    $self->_not_reloaded( $generation, 'reload failed: ' . ( split /\n/, $data->{text} )[0] )
        if $generation->is_reload;
    return $self->_order( page => $data );
}

# Of what is loaded now, and of what was loaded when it was whole
sub _followed {
    my $self = shift;
    return $self->_app, @{ $self->{inside} || [] }, values %{ $self->{outside} };
}

# There is no other that would have to be told
sub _given_up {return}

sub _hear_base {
    my $self = shift;
    my $base = $self->{base} or return;
    for my $note ( $base->hear ) {
        if    ( defined $note->{number} )  { $self->_ordered($note) }
        elsif ( defined $note->{loading} ) { $self->{preloading} = $note->{loading} }
        elsif ( defined $note->{refused} ) { $self->_refuse( @{$note}{qw(refused why)} ) }
        elsif ( $note->{preloaded} )       { $self->_preloaded( @{ $note->{preloaded} } ) }
    }
    return;
}

sub _heard {
    my ( $self, $generation, $what, $more ) = @_;
    return if $what ne 'files' || ref $more->{files} ne 'HASH';
    my ( $all,    $files ) = ( $more->{files}, $self->{session}->files );
    my ( @inside, %outside );
    for my $name ( grep { !ref $all->{$_} && defined $all->{$_} } keys %$all ) {
        my $path = $all->{$name};
        if    ( $files->is_inside($path) )                      { push @inside, $path }
        elsif ( !$OWN{$name} && $name =~ m{\A\w[\w/]*[.]pm\z} ) { $outside{$name} = $path }
    }
    $self->{before}  = $self->{inside};
    $self->{inside}  = \@inside;
    $self->{outside} = { %{ $self->{outside} }, %outside };
    my ( $began, $ended )
        = map { ( $_ // q() ) =~ /\A\d+(?:[.]\d+)?\z/ ? $_ : time } @{$more}{qw(began ended)};
    $self->{built}  = $ended if $generation->number == $self->{last_number};
    $self->{loaded} = $generation->number;
    $self->{watcher}->follow( $began, $self->_followed );
    return $self->_watch;
}

# From now on no request is begun by the code that serves
sub _hold {
    my ( $self, $why ) = @_;
    Sirius::Edge::Shared->hold( fileno $self->{sleepers}, $self->{last_number} );
    $self->_abandon($why);
    $self->_drain($_) for grep { $_->is_up && !$_->is_draining && !defined $_->gave_up } $self->all;
    return;
}

# Whether the application may have made these changes: before it was loaded, or in a request. Not in its code
# in a request: who saves that as soon as the last save is served is a person, or a test
sub _is_at_work {
    my ( $self, @changed ) = @_;
    my $built = $self->{built};
    return 1 if !defined $built;
    my $at = max map { ( Time::HiRes::stat $_ )[10] || time } @changed;
    return 1 if $at <= $built;
    my %code = map { $_ => 1 } map { ( $_, Cwd::realpath($_) // () ) } $self->_followed;
    return 0 if grep { $code{$_} } @changed;
    my $noticed = NOTICED + ( $self->{watcher}->scans ? Sirius::Dev::Watcher->SCAN : 0 );
    return ( time - $built < WITH_PAGE || defined $self->{load_at} )
        && grep { $_->{pid} > 0 && ( $_->{state} eq 'busy' || now() - $_->{since} < $noticed ) }
        $self->{scoreboard}->table;
}

# It serves the reason why another one could not
sub _is_page {
    my ( $self, $generation ) = @_;
    return $generation->number == ( $self->{page} || 0 );
}

# All that was saved together has been saved
sub _load_changed {
    my $self    = shift;
    my @changed = sort keys %{ $self->{changed} };
    $self->_hold( $self->_named(@changed) . ' changed' ) if !defined $self->{first_change};
    delete @{$self}{qw(first_change load_at)};
    $self->{changed} = {};
    my %outside = reverse %{ $self->{outside} };
    my @names   = map { $outside{$_} || () } @changed;
    push @names, grep {
        my $name = $_;
        grep {m{/\Q$name\E\z}} @changed
    } keys %{ $self->{preloaded} };
    my %sources      = map  { $_ => 1 } $self->{session}->sources;
    my $is_elsewhere = grep { $self->{links}{$_} } @changed;
    if ( $is_elsewhere || @names || grep { $sources{$_} } @changed ) {
        delete @{ $self->{outside} }{@names};    # where the application finds them now is for it to say
        $self->_begin_to_watch if $is_elsewhere;
        $self->_replace_base;
    }
    return $self->_order( why => $self->_named(@changed) . ' changed' );
}

# What waits because the application may have written it itself waits until that has been loaded
sub _load_due {
    my $self = shift;
    $self->{load_at} = now() + $self->{echo}->pause
        if !defined $self->{first_change} && ( $self->{awaited} || $self->{loading} );
    return $self->{load_at};
}

# The generation that has not loaded the application yet
sub _loads {
    my $self = shift;
    my ($loads)
        = grep { !$_->is_up && !$_->is_draining && !defined $_->gave_up && !$self->_is_page($_) } $self->all;
    return $loads && $loads->number != ( $self->{loaded} || 0 ) ? $loads : undef;
}

# Requests wait from the first change on
sub _look {
    my $self    = shift;
    my @told    = $self->{watcher}->changed     or return;
    my @changed = $self->_without_assets(@told) or return $self->_watch;
    if ( !defined $self->{first_change} ) {
        my $at_work = $self->_is_at_work(@changed);
        return $self->_watch if $at_work && defined $self->{load_at} && $self->{echo}->has(@changed);
        my $pause = $self->{echo}->changed( $at_work, @changed );
        if ($pause) {
            $self->_tell_echo if $self->{echo}->to_tell;
            $self->{changed}{$_} = 1 for @changed;
            $self->{load_at} = now() + $pause;
            return $self->_watch;
        }
    }
    $self->{changed}{$_} = 1 for @changed;
    if ( !defined $self->{first_change} ) {
        $self->{first_change} = now();
        $self->_hold( $self->_named(@changed) . ' changed' );
    }
    $self->{load_at} = min now() + SETTLE, $self->{first_change} + SETTLE_MAX;
    return $self->_watch;
}

sub _named {
    my ( $self, @changed ) = @_;
    my $files = $self->{session}->files;
    my %seen;
    my @paths = grep { !$seen{$_}++ }
        map { Sirius::Base::Text->harmless( $files->short( -d $_ ? $_ : Cwd::realpath($_) // $_ ) ) }
        @changed;
    my @first = splice @paths, 0, NAMES_MAX;
    return join( ', ', @first ) . ( @paths ? ' and ' . @paths . ' more' : '' );
}

# Another generation, as soon as the process that they are forked from has time for it
sub _order {
    my ( $self, %order ) = @_;
    return             if $self->{supervisor}->is_stopping;
    $self->_start_base if $self->{rests};
    my $number = ++$self->{last_number};
    $self->{built} = $order{page} ? time : undef;
    my ( $news, $report, $stderr, $said );
    my $sent = eval {
        ( $news, $report ) = Sirius::Process::Launch->pair;
        pipe $stderr, $said or die "cannot create a pipe: $!\n";
        $self->{awaited} = { %order, news => $news, number => $number, stderr => $stderr };
        my $base = $self->{base} or return 1;    # again when there is one
        $base->ask(
            {   id     => $self->{session}->id($number),
                number => $number,
                $order{page}   ? ( page => $order{page} ) : (),
                $self->{forks} ? ()                       : ( becomes => 1 ),
            },
            fileno $report,
            fileno $said
        ) or die "cannot send an order: $!\n";
        1;
    };
    return if $sent;
    chomp( my $error = $@ );
    delete $self->{awaited};
    return $self->_again("cannot start another generation: $error");
}

sub _ordered {
    my ( $self, $note ) = @_;
    my $order = $self->{awaited};
    if ( !$order || $order->{number} != $note->{number} ) {    # nobody waits for it: it ends
        return $self->{forks} ? () : $self->_replace_base;
    }
    delete $self->{awaited};
    delete $self->{base_failures};
    return $self->_arrived( $note->{pid}, $order ) if $note->{pid};
    return $self->_again("cannot start another generation: $note->{error}");
}

# What the application needs from outside of its folders, and has not been loaded for all generations yet
sub _preload {
    my $self = shift;
    my $base = $self->{base};
    return if !$base || !$self->{session}->conf->{preload_modules} || defined $self->{preload_by};
    my $outside = $self->{outside};
    my @names   = sort grep { !$self->{preloaded}{$_} && !$self->{refused}{$_} } keys %$outside;
    return if !@names || keys %{ $self->{refused} } >= REFUSED_MAX;
    my $order
        = { files => $self->{session}->files->state, preload => [ map { [ $_, $outside->{$_} ] } @names ] };
    return if !$base->ask($order);    # it is about to end, or this is more than a note can hold
    $self->{preloaded}{$_} = 1 for @names;
    $self->{preload_by} = now() + PRELOAD_MAX;
    return;
}

sub _preload_hangs {
    my $self = shift;
    my $name = delete $self->{preloading};
    delete $self->{preload_by};
    $self->_refuse( $name, 'it does not finish loading' ) if defined $name;
    return;
}

sub _preloaded {
    my ( $self, @names ) = @_;
    delete @{$self}{qw(preload_by preloading)};
    return;
}

# It is loaded with the application each time
sub _refuse {
    my ( $self, $name, $why ) = @_;
    $self->{refused}{$name} = 1;
    my $more = keys %{ $self->{refused} } >= REFUSED_MAX ? '; no modules are loaded in advance any more' : '';
    Sirius::Log->info("sirius dev: $name is not loaded in advance: $why$more");
    my $order = delete $self->{awaited};
    $self->_replace_base;
    return $order ? $self->_order(%$order) : $self->_preload;
}

# What has become a generation is no base any more. The next one starts when it has had time to load, or when
# it is needed
sub _release_base {
    my $self = shift;
    my $base = delete $self->{base};
    $self->{preloaded} = {};
    $self->{rests}     = 1;
    $self->{base_at}   = now() + REST;
    return $base->release;
}

# With nothing loaded in it
sub _replace_base {
    my $self = shift;
    my $base = delete $self->{base};
    $base->stop if $base;
    delete @{$self}{qw(preload_by preloading)};
    $self->{preloaded} = {};
    return $self->_start_base;
}

# Nothing runs beside a page
sub _runs_beside {
    my ( $self, $generation ) = @_;
    return if $self->_is_page($generation);
    return $self->SUPER::_runs_beside($generation);
}

# The address says it already
sub _say_ready {
    my $self = shift;
    return $self->{session}->tells_ready ? $self->SUPER::_say_ready : ();
}

sub _start_base {
    my $self = shift;
    delete @{$self}{qw(base_at rests)};
    weaken( my $own = $self );
    my $audience = $self->{session}->audience;
    my %more     = $audience ? ( live => $audience->theirs ) : ();
    $self->{base} = eval {
        Sirius::Dev::Base->new(
            ( map { $_ => $self->{$_} } qw(launch loop reaper) ),
            ended   => sub { $own->_base_ended(@_) if $own },
            handles => \%more
        );
    };
    if ( !$self->{base} ) {
        chomp( my $error = $@ );
        Sirius::Log->error("sirius dev: $error; next attempt in 1 s");
        $self->{base_at} = now() + 1;
        return;
    }
    my $order = delete $self->{awaited} or return;
    return $self->_order(%$order);
}

sub _tell_echo {
    my $self  = shift;
    my $echo  = $self->{echo};
    my @paths = $echo->paths;
    my $what  = join q( ), map { '--watch-exclude ' . Sirius::Base::Text->harmless($_) } splice @paths, 0,
        NAMES_MAX;
    Sirius::Log->warn( 'sirius dev: '
            . $self->_named( $echo->paths )
            . sprintf
            ' changed %d times in a row while the application was being loaded or answered a request; '
            . 'if the application writes it, add %s. Until then it is loaded again after pauses of 1, 2, 4 ... %d s',
        $echo->times, $what, $echo->PAUSE_MAX );
    return;
}

# Its handle may be gone, for it scans now
sub _watch {
    my $self   = shift;
    my $handle = $self->{watcher}->handle;
    my $loop   = $self->{loop};
    if ($handle) { $loop->watch($handle) if !$self->{watched}; }
    $self->{watched} = $handle;
    return;
}

# A changed file that the edge serves does not reload the application; open pages are loaded again
sub _without_assets {
    my ( $self,    @changed ) = @_;
    my ( $session, $watcher ) = @{$self}{qw(session watcher)};
    my %asset = map { $_ => 1 } grep { !$watcher->follows($_) && $session->files->is_asset($_) } @changed;
    $session->audience->again( sort keys %asset ) if %asset && $session->audience;
    return grep { !$asset{$_} } @changed;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Reload - replaces the code that serves when a file has changed

=head1 SYNOPSIS

  my $reload = Sirius::Dev::Reload->new( $supervisor, session => $session, ... );
  $reload->begin;

=head1 DESCRIPTION

A L<Sirius::Process::Reload> for somebody who works on the application.

=over 4

=item *

When a file has changed (L<Sirius::Dev::Watcher>), the workers begin no request any more and are told to end. Requests stay in the
queue. When no further file has changed for 30 ms, another generation is started. So a request that is sent after the change was
noticed is answered by the new code.

=item *

A generation is forked from a process that has loaded the modules from outside of the application's folders
(L<Sirius::Dev::Preloader>). Which these are, the generations tell. When one of them changes, refuses to be loaded by itself, or a
file of its name appears in the application, that process is replaced.

=item *

What the application itself seems to write again and again (L<Sirius::Dev::Echo>) is loaded after a pause, and requests do not wait for it.

=item *

If a generation does not become ready, the next one serves a page with the reason (L<Sirius::Dev::Broken>), until a file changes. What
loads while a file changes is given up.

=back

=head1 METHODS

=head2 act, begin, due, new, reload, renewed, settled, stop

As those of L<Sirius::Process::Reload>. C<new> takes a L<Sirius::Dev::Session> as C<session>.

=head2 close

Ends the process that generations are forked from.

=head1 SEE ALSO

L<Sirius::Dev::Session>, L<Sirius::Process::Reload>.

=cut
