package Sirius::Dev::Watcher;

use strict;
use warnings;

use Cwd                 ();
use Errno               qw(EMFILE ENOMEM ENOSPC);
use File::Basename      qw(dirname);
use Sirius::Base::Clock qw(now);
use Sirius::Dev::Files;
use Sirius::OS::Inotify;
use Sirius::OS::Mounts;
use Time::HiRes ();

use constant {
    LOST => 0.5,     # seconds between two looks for a folder that is gone
    SCAN => 0.5,     # and between two scans of all files, where inotify is not used
    TICK => 0.01,    # seconds by which the time of a file may lie before that of its writing
};

# Paths that have changed since the last call, each once
sub changed {
    my $self = shift;
    my %changed;
    $changed{$_} = 1
        for splice( @{ $self->{late} } ), $self->{inotify} ? $self->_hear : $self->_scan, $self->_find_lost;
    my @changed = sort keys %changed;
    delete @{ $self->{plain} }{@changed};
    return @changed;
}

sub due {
    my $self = shift;
    return
        @{ $self->{late} } ? now()            : (),
        !$self->{inotify}  ? $self->{scan_at} : (),
        %{ $self->{lost} } ? $self->{lost_at} : ();
}

# Replaces the list of extra files to watch, wherever they are. What has changed since that time (of day)
# counts as changed now, in folders that nobody has watched until now
sub follow {
    my ( $self, $since, @files ) = @_;
    my %wanted;
    $self->{followed} = {
        map  { $_ => 1 }
        grep { !$self->{files}->is_excluded($_) }
        map  { ( $_, $self->_real($_) ) } grep { !$self->{files}->is_editors($_) } @files
    };
    for my $path ( keys %{ $self->{followed} } ) { push @{ $wanted{ dirname($path) } }, $path }
    return $self->_note_new($since) if !$self->{inotify};
    for my $folder ( grep { !$wanted{$_} && !$self->{tree}{$_} } keys %{ $self->{numbers} } ) {
        $self->_drop($folder);
    }
    for my $folder ( sort keys %wanted ) {
        next if defined $self->{numbers}{$folder};
        last if !$self->_add($folder);
        push @{ $self->{late} }, grep { ( ( _stat($_) )[-1] || 0 ) > $since - TICK } @{ $wanted{$folder} };
    }
    return;
}

sub follows {
    my ( $self, $path ) = @_;
    return $self->{followed}{$path};
}

# Readable when something has changed; undef while it scans
sub handle {
    my $self = shift;
    return $self->{inotify} && $self->{inotify}->handle;
}

# files: a Sirius::Dev::Files; scan: true to look instead of being told; say: hears why it scans
sub new {
    my ( $class, %args ) = @_;
    my $self = bless {
        followed => {},
        late     => [],
        lost     => {},
        names    => {}, # folders, by the number of their watch: several if links or ".." lead to the same one
        numbers  => {},
        plain    => {}, # files that are followed and no links
        say      => sub { },
        times    => {},
        tree     => {},        # folders of the application
        %args
    }, $class;
    my $inotify = delete $self->{scan} ? undef : $self->_inotify;
    my $all     = $self->{files}->folders;
    if ( !$all ) {
        my @of_app = map { dirname($_) } grep {defined} $self->{files}{app};
        $self->{say}->(
            sprintf 'there are more than %d folders below %s: only those of loaded files are watched; '
                . 'name others with --watch',
            Sirius::Dev::Files->FOLDERS_MAX,
            join ', ',
            @of_app,
            @{ $self->{files}{trees} || [] }
        );
        $all = [ @{ $self->{files}{flat} }, @of_app ];
    }
    $all = [ @$all, $self->_beside ];
    my ($remote)
        = $inotify ? grep {defined} map { Sirius::OS::Mounts->remote($_) } @$all ? $all->[0] : () : ();
    if ( defined $remote ) {
        $self->{say}
            ->("the files are on $remote, which does not tell of changes: looking for them twice a second");
        undef $inotify;
    }
    $self->{inotify} = $inotify;
    $self->{tree}{$_} = 1 for @$all;
    for my $folder (@$all) {
        last if $self->{inotify} && !$self->_add($folder);
    }
    $self->_note_times if !$self->{inotify};
    return $self;
}

sub scans { return !shift->{inotify} }

# False when inotify cannot be had any more
sub _add {
    my ( $self, $folder ) = @_;
    my $number = $self->{inotify}->add($folder);
    if ( defined $number ) {
        $self->{names}{$number}{$folder} = 1;
        $self->{numbers}{$folder} = $number;
        return 1;
    }
    if ( $!{ENOSPC} || $!{ENOMEM} ) {
        $self->_fall_back("$folder cannot be watched ($!): raise /proc/sys/fs/inotify/max_user_watches");
        return 0;
    }
    $self->{lost}{$folder} = 1 if $self->{tree}{$folder} && $!{ENOENT};
    $self->{lost_at} ||= now() + LOST;
    return 1;
}

# What begins to be there with a folder, or was there before it was watched
sub _add_tree {
    my ( $self, $top ) = @_;
    my $all = $self->{files}->folders($top) || [$top];
    my @found;
    for my $folder (@$all) {
        $self->{tree}{$folder} = 1;
        last if $self->{inotify} && !defined $self->{numbers}{$folder} && !$self->_add($folder);
        push @found, grep { $self->_counts($_) } _files($folder);
    }
    return @found;
}

# Folders of --static elsewhere. One that is too large is none of the application's, which is watched without
# it
sub _beside {
    my $self = shift;
    my @all;
    for my $top ( $self->{files}->beside ) {
        my $folders = $self->{files}->folders($top);
        push @all, @{ $folders || [] };
        $self->{say}->(
            sprintf 'there are more than %d folders below %s: pages are not told of changes there',
            Sirius::Dev::Files->FOLDERS_MAX, $top
        ) if !$folders;
    }
    return @all;
}

sub _counts {
    my ( $self, $path ) = @_;
    return $self->{followed}{$path} || $self->{files}->counts($path);
}

sub _drop {
    my ( $self, $folder ) = @_;
    my $number = delete $self->{numbers}{$folder};
    return if !defined $number;
    my $names = $self->{names}{$number} || {};
    delete $names->{$folder};
    return if %$names;
    delete $self->{names}{$number};
    $self->{inotify}->remove($number) if $self->{inotify};
    return;
}

# With all below it
sub _drop_tree {
    my ( $self, $top ) = @_;
    for my $folder ( grep { $_ eq $top || index( $_, "$top/" ) == 0 } keys %{ $self->{numbers} } ) {
        $self->_drop($folder);
        delete $self->{tree}{$folder};
    }
    return;
}

# Events were lost: all that is there may have changed
sub _everything {
    my $self = shift;
    my @tops = grep { !$self->{tree}{ dirname($_) } } sort keys %{ $self->{tree} };
    return ( sort keys %{ $self->{followed} } ), map { $self->_add_tree($_) } @tops;
}

sub _fall_back {
    my ( $self, $why ) = @_;
    $self->{say}->("$why; until then, files are looked at twice a second");
    delete $self->{inotify};
    @{$self}{qw(names numbers)} = ( {}, {} );
    $self->_note_times;
    return;
}

sub _files {
    my $folder = shift;
    opendir my $dir, $folder or return;
    my @files = grep { !-d } map {"$folder/$_"} grep { !/\A[.]{1,2}\z/ } readdir $dir;
    closedir $dir;
    return @files;
}

# Folders of the application that were gone
sub _find_lost {
    my $self = shift;
    return if !%{ $self->{lost} } || now() < $self->{lost_at};
    $self->{lost_at} = now() + LOST;
    my @found;
    for my $folder ( sort grep {-d} keys %{ $self->{lost} } ) {
        delete $self->{lost}{$folder};
        push @found, $folder, $self->_add_tree($folder);
    }
    return @found;
}

sub _hear {
    my $self = shift;
    my @changed;
    for my $event ( $self->{inotify}->read ) {
        return ( @changed, $self->_everything ) if $event->{overflow};
        for my $folder ( sort keys %{ $self->{names}{ $event->{number} } || {} } ) {
            push @changed, $self->_hear_in( $event, $folder );
        }
        last if !$self->{inotify};
    }
    return @changed;
}

sub _hear_folder {
    my ( $self, $event, $path ) = @_;
    if ( $event->{created} || $event->{moved_to} ) {
        return if !$self->{tree}{ dirname($path) } || $self->{files}->is_left_out($path) || -l $path;
        $self->_drop_tree($path);    # one of the same name, before
        return $self->_add_tree($path);
    }
    return if !$event->{deleted} && !$event->{moved_from} || !defined $self->{numbers}{$path};
    $self->_drop_tree($path);
    return $path;
}

sub _hear_in {
    my ( $self, $event, $folder ) = @_;
    if ( $event->{ignored} ) {
        delete $self->{names}{ $event->{number} };
        delete $self->{numbers}{$folder} if ( $self->{numbers}{$folder} // -1 ) == $event->{number};
        return;
    }
    return $self->_lose($folder) if $event->{gone} || $event->{moved} || $event->{unmounted};
    return                       if !length $event->{name};
    my $path = "$folder/$event->{name}";
    return $self->_hear_folder( $event, $path ) if $event->{folder};
    return $path if $self->_counts($path) && ( !$event->{created} || _is_complete($path) );
    return;
}

sub _inotify {
    my $self = shift;
    return delete $self->{inotify} if $self->{inotify};    # of a test
    my $inotify = Sirius::OS::Inotify->new;
    return $inotify if $inotify || $!{ENOSYS};             # not Linux
    my $hint = $!{EMFILE} ? ': raise /proc/sys/fs/inotify/max_user_instances' : '';
    $self->{say}->("inotify cannot be used ($!)$hint; until then, files are looked at twice a second");
    return;
}

# A file that is there at once: a link. Others are told when they are closed
sub _is_complete {
    my $path = shift;
    my @stat = lstat $path or return 0;
    return -l _ || $stat[3] > 1;
}

# The folder at the top was renamed or deleted; others are told of by the one they are in
sub _lose {
    my ( $self, $folder ) = @_;
    my $known = defined $self->{numbers}{$folder};
    my $top   = !$self->{tree}{ dirname($folder) };
    $self->_drop_tree($folder);
    return if !$known || !$top;
    $self->{lost}{$folder} = $self->{tree}{$folder} = 1;
    $self->{lost_at} = now() + LOST;
    return $folder;
}

# Of files that were not looked at before
sub _note_new {
    my ( $self,   $since ) = @_;
    my ( $before, $now )   = ( $self->{times}, $self->_times );
    for my $path ( grep { !defined $before->{$_} } keys %{ $self->{followed} } ) {
        next if !defined $now->{$path};
        $before->{$path} = $now->{$path};
        push @{ $self->{late} }, $path if ( split q( ), $now->{$path} )[-1] > $since - TICK;
    }
    my %known = ( %$now, map { $_ => 1 } grep { $self->_counts($_) } keys %$before );
    delete @{$before}{ grep { !$known{$_} } keys %$before };
    return;
}

# What is there now, as it is
sub _note_times {
    my $self = shift;
    $self->{times}   = $self->_times;
    $self->{scan_at} = now() + SCAN;
    return;
}

# Without links. What is none is kept until it changes
sub _real {
    my ( $self, $path ) = @_;
    return $path if $self->{plain}{$path};
    my $real = Cwd::realpath($path);
    return                    if !defined $real || -d $real;
    $self->{plain}{$path} = 1 if $real eq $path;
    return $real;
}

sub _scan {
    my $self = shift;
    return if now() < $self->{scan_at};
    my $before = $self->{times};
    $self->_note_times;
    my $after = $self->{times};
    my %all   = ( %$before, %$after );
    return grep { ( $before->{$_} // '' ) ne ( $after->{$_} // '' ) } keys %all;
}

# Which file it is, its size and, at the end, its time. A link to a folder is followed for where it leads, not
# for what changes there
sub _stat {
    my $path = shift;
    return ( readlink($path), ( Time::HiRes::lstat $path )[ 1, 9 ] ) if -l $path && -d $path;
    return ( Time::HiRes::stat $path )[ 1, 2, 7, 9 ];
}

# Of each file that counts: which it is, its size and its time
sub _times {
    my $self = shift;
    my %times;
    my @tops    = grep { !$self->{tree}{ dirname($_) } } keys %{ $self->{tree} };
    my %folders = map  { $_ => 1 } map { @{ $self->{files}->folders($_) || [$_] } } @tops;
    for my $path ( keys %{ $self->{followed} }, grep { $self->_counts($_) } map { _files($_) } keys %folders )
    {
        my @stat = _stat($path) or next;
        $times{$path} = join q( ), @stat;
    }
    return \%times;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Watcher - tells which files of an application have changed

=head1 SYNOPSIS

  my $watcher = Sirius::Dev::Watcher->new( files => Sirius::Dev::Files->new( app => 'app.psgi' ) );
  $loop->watch( $watcher->handle ) if $watcher->handle;
  $watcher->follow( $since, values %INC );
  my @paths = $watcher->changed;

=head1 DESCRIPTION

Folders are watched by inotify. Where that does not work, all files are looked at twice a second: with C<scan>, on a network
file system (L<Sirius::OS::Mounts>), and when a limit of inotify is reached.

A file counts as changed when it is closed after writing, renamed, deleted, linked, or when its mode or times are set. One
that is being written is not reported before it is closed.

=head1 METHODS

=head2 changed

The paths of files and folders that have changed since the last call.

=head2 due

The monotonic times at which L</changed> is to be called even if L</handle> is not readable.

=head2 follow

  $watcher->follow( $since, @files );

The files that were loaded, in place of those of the last call, and links to folders. They are watched wherever they are. If one is in a folder that
was not watched before, and is newer than C<$since> (seconds since the epoch), it is reported.

=head2 follows

True if L</follow> was called with this path.

=head2 handle

Readable when there is something to report; undef while the watcher scans.

=head2 new

  my $watcher = Sirius::Dev::Watcher->new( files => $files, scan => $bool, say => sub { warn "$_[0]\n" } );

=head2 scans

True if the watcher looks at the files itself.

=head1 SEE ALSO

L<Sirius::Dev::Files>, L<Sirius::OS::Inotify>.

=cut
