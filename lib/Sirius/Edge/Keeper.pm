package Sirius::Edge::Keeper;

use strict;
use warnings;

use File::Spec   ();
use POSIX        ();
use Scalar::Util qw(weaken);
use Sirius::Base::Backoff;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Config::Address;
use Sirius::Config::Options;
use Sirius::Edge::Program;
use Sirius::Edge::Shared;
use Sirius::Log ();
use Sirius::OS::Child;
use Sirius::OS::ExitStatus;
use Sirius::OS::Inherit;
use Time::HiRes qw(stat);    # two changes may come in one second

use constant {
    LOOK   => 10,    # seconds between two looks at the files
    SETTLE => 1,     # and that they have to stay as they are, since certificate and key do not change at once
    LATE   => 60,    # that it has to read them
    GIVING => 5,     # that its predecessor has to give its set to edges that start
    SOON   => 30 * 86_400,
};

# Options that concern it
my %FROM  = Sirius::Edge::Shared->words;
my @NAMES = grep { $FROM{$_} eq 'tls' } sort keys %FROM;

# CRLs of which the start has warned: "FILE EXPIRES"
my %warned;

sub act {
    my $self = shift;
    my $now  = now();
    if ( defined $self->{look_at} && $self->{look_at} <= $now ) {
        $self->{look_at} = $now + LOOK;
        $self->_look;
        $self->outdated;
    }
    $self->_start if defined $self->{again_at} && $self->{again_at} <= $now && !$self->{next};
    return;
}

# Of each certificate: the file, its first name, and when it expires
sub certificates { return @{ shift->{certificates} } }

# At the start, by the rights of the start: exits with 2 when something is wrong. Returns warnings
sub check {
    my ( $class, $conf ) = @_;
    return if !$class->wanted($conf);
    my ( $path, @words ) = ( Sirius::Edge::Program->path, $class->words($conf) );
    my ( $text, $pid )   = ('');
    my @failed;
    {
        local ( $?, $@, $SIG{CHLD} ) = ( 0, '', 'DEFAULT' );
        pipe my $read, my $write or Sirius::Log->fail("cannot create a pipe: $!");
        my $child = Sirius::OS::Child->fork( sub {
            POSIX::dup2( fileno $write, 1 );
            exec {$path} 'sirius-edge', 'keeper=1', 'check=1', @words or POSIX::_exit(127);
        } ) or Sirius::Log->fail( 'cannot fork: ' . Sirius::OS::Child->failure );
        CORE::close $write;
        1 while sysread $read, $text, 4096, length $text;
        waitpid $child->pid, 0;
    }
    my ($why) = $text =~ /^\d+ keysfailed (.*)$/m;
    Sirius::Config::Options->fail($why) if defined $why;
    Sirius::Log->fail("$path cannot check the certificates") if $text !~ /^\d+ keysready\b/m;
    my @outdated = grep { $_->{expires} <= time } map { _certificate($_) } $text =~ /^\d+ keyscrl (.*)$/mg;
    $warned{"$_->{file} $_->{expires}"} = 1 for @outdated;
    return _expired( map { _certificate($_) } $text =~ /^\d+ keys (.*)$/mg ),
        map { _outdated_text($_) } @outdated;
}

sub child { return shift->{child} }

# Of each CRL: the file, its CA, and when the next one is due
sub crls { return @{ shift->{crls} } }

# What the next program needs
sub descriptors {
    my $self = shift;
    return grep {defined} $self->{line};
}

sub due {
    my $self = shift;
    return grep {defined} $self->{look_at}, $self->{next} ? () : $self->{again_at};
}

# Why the files were not used when they were read last
sub fault { return shift->{fault} }

# "PID WHAT WHY", of the keeper that serves, of one that is starting, or of an edge that reads the files
# itself
sub heard {
    my ( $self, $pid, $what, $why ) = @_;
    if ( $self->{beside} ) {
        push @{ $self->{crls} }, _crl($why) if $what eq 'keyscrl';
        return;
    }
    my $next = $self->{next};
    return if !$next || $next->{child}->pid != $pid;
    if ( $what eq 'keys' ) {
        push @{ $next->{certificates} }, _certificate($why);
    } elsif ( $what eq 'keyscrl' ) {
        push @{ $next->{crls} }, _crl($why);
    } elsif ( $what eq 'keysready' ) {
        $self->_ready;
    } elsif ( $what eq 'keysfailed' ) {
        $next->{why} = $why;
    }
    return;
}

# The end of a pair for an edge that starts; the other end is with the keeper. Nobody else has it when this
# returns
sub line {
    my $self = shift;
    my $line = $self->{next} && !$self->{line} ? $self->{next}{line} : $self->{line};
    return if !$line;
    return _pair( sub { Sirius::Edge::Shared->pass( fileno $line, keys => shift ) } );
}

sub new {
    my ( $class, $group, @words ) = @_;
    my $self = bless {
        backoff      => Sirius::Base::Backoff->new( interval => 1 ),
        certificates => [],
        crls         => [],
        group        => $group,
        words        => \@words
    }, $class;
    weaken $self->{group};
    return $self;
}

# Says once of each CRL that it has expired. True: there are others
sub outdated {
    my $self = shift;
    for my $crl ( grep { !$_->{told} && $_->{expires} <= time } $self->crls ) {
        $crl->{told} = 1;
        Sirius::Log->error( _outdated_text($crl) );
    }
    return scalar grep { !$_->{told} } $self->crls;
}

sub pid {
    my $self = shift;
    return $self->{child} && $self->{child}->pid;
}

# There is no keeper: an edge that starts now reads the files
sub read_beside {
    my $self = shift;
    @{$self}{qw(beside crls)} = ( 1, [] );
    return;
}

sub reads { return defined shift->{next} }

# Reads the files again, by these words if there are other ones
sub renew {
    my ( $self, @words ) = @_;
    return                   if $self->_stays(@words);
    $self->{words} = \@words if @words;
    return $self->_start     if !$self->{next};
    $self->{once_more} = 1;    # it may have read the files before this request
    return;
}

sub restore {
    my ( $class, $group, $state ) = @_;
    my $self = $class->new( $group, @{ $state->{words} } );
    @{$self}{qw(certificates fault served)} = ( @{$state}{qw(certificates fault)}, 1 );
    $self->{crls} = $state->{crls} || [];    # a server of an older version has none
    if ( defined $state->{pid} ) {
        $self->{line} = Sirius::OS::Inherit->take_handle( $state->{line} );
        $self->_serves( Sirius::OS::Child->new( $state->{pid}, since => $state->{since} ) );
    }
    $self->_watch;

    # The reload that has led here has read the files already, unless that is not done, or the program is
    # another one
    my $read = $state->{read} || {};
    @{$self}{qw(identity program)} = @{$read}{qw(identity program)}
        if $self->{child} && defined $read->{identity};
    $self->{again_at} = now() if !$self->{program} || $self->{program} ne Sirius::Edge::Program->build;
    return $self;
}

sub start {
    my $self = shift;
    $self->_watch;
    return $self->_start;
}

sub state {
    my $self = shift;
    return {
        certificates => $self->{certificates},
        crls         => $self->{crls},
        fault        => $self->{fault},
        words        => $self->{words},
        $self->{next} || defined $self->{again_at} ? ()
        : ( read => { map { $_ => $self->{$_} } qw(identity program) } ),
        $self->{line} && $self->{child}
        ? ( line => fileno $self->{line}, pid => $self->pid, since => $self->{child}->since )
        : ()
    };
}

sub stop {
    my $self = shift;
    $self->{stopping} = 1;
    delete @{$self}{qw(again_at line look_at)};
    $_->signal('KILL') for grep {defined} $self->{child}, $self->{next} && $self->{next}{child};
    return;
}

sub wanted {
    my ( $class, $conf ) = @_;
    return $conf->{ssl} || grep { Sirius::Config::Address->parse($_)->{tls} } @{ $conf->{listen} };
}

# The words of now
sub wanted_words { return shift->{words} }

sub words {
    my ( $class, $conf ) = @_;
    return if !$class->wanted($conf);
    my @words;
    for my $name (@NAMES) {
        my $value = $conf->{$name} // next;
        push @words, map { ( $name =~ tr/_/-/r ) . "=$_" } ref $value ? @$value : $value;
    }
    return @words;
}

sub _adopt {
    my ( $self, $child ) = @_;
    weaken( my $own = $self );
    $child->on_end( sub { $own->_ended(@_) if $own } );
    $self->{group}->reap($child);
    return;
}

sub _again {
    my $self = shift;
    $self->{again_at} = now() + $self->{backoff}->failed;
    return;
}

# As a keeper tells it
sub _certificate {
    my ( $expires, $name, $file ) = split / /, shift, 3;
    return { expires => $expires, name => $name, file => $file };
}

# Of one that the start has warned of, nothing more is said
sub _crl {
    my $crl = _certificate(shift);
    $crl->{told} = delete $warned{"$crl->{file} $crl->{expires}"};
    return $crl;
}

# The one that has served, or that was to
sub _ended {
    my ( $self, $child, $status ) = @_;
    $self->{group}->hear;
    my $next = $self->{next};
    if ( $next && $next->{child} == $child ) {
        delete $self->{next};
        my $why = $next->{why} // Sirius::OS::ExitStatus->words( $status, 'exited before it was ready' );
        return                                                  if $self->{stopping};
        Sirius::Log->fail("cannot read the certificates: $why") if !$self->{group}->is_announced;
        $self->{fault} = "certificates not reloaded: $why; the previous ones stay in use";
        Sirius::Log->error( $self->{fault} );
        return $self->_again if !$self->{line};
    } elsif ( $self->{child} && $self->{child} == $child ) {
        delete @{$self}{qw(child line)};
        return if $self->{stopping};
        Sirius::Log->error( 'keeper '
                . $child->pid . ' '
                . Sirius::OS::ExitStatus->words( $status, 'status 0' )
                . '; starting another; connections are not affected' );
        return $self->_again;
    }
    $self->_start if delete $self->{once_more} && !$self->{stopping};
    return;
}

# Lines about expired certificates. Only --tls-dir can have any
sub _expired {
    my @certificates = @_;
    return map {
              "--tls-dir: $_->{file} expired on "
            . POSIX::strftime( '%Y-%m-%d', gmtime $_->{expires} )
            . '; it is used all the same. Renew it, or remove it if its name is no longer needed'
    } grep { $_->{expires} <= time } @certificates;
}

# Of all files, as the words name them: what a look can tell without reading
sub _identity {
    my $self = shift;
    my @files;
    for my $word ( @{ $self->{words} } ) {
        my ( $name, $value ) = $word =~ /\A(tls-(?:cert|key|client-ca|client-crl|dir))=(.*)\z/s or next;
        if ( $name ne 'tls-dir' ) { push @files, $value; next }
        my $live = File::Spec->catdir( $value, 'live' );
        my $dir  = -d $live ? $live : $value;
        opendir my $handle, $dir or next;
        push @files,
            map { ( "$dir/$_/fullchain.pem", "$dir/$_/privkey.pem" ) } grep { !/\A[.]/ } sort readdir $handle;
        closedir $handle;
    }
    return join "\n", map { my @stat = stat; @stat ? join ' ', $_, @stat[ 0, 1, 7, 9, 10 ] : () } @files;
}

# A change is heeded when it has lasted for a moment
sub _look {
    my $self     = shift;
    my $identity = $self->_identity;
    return delete $self->{changed} if $identity eq $self->{identity};
    if ( defined $self->{changed} && $self->{changed} eq $identity ) {
        delete $self->{changed};
        Sirius::Log->note('certificates have changed: reading them');
        return $self->renew;
    }
    $self->{changed} = $identity;
    $self->{look_at} = now() + SETTLE;
    return;
}

sub _outdated_text {
    my $crl = shift;
    return
          "the CRL of $crl->{name} expired on "
        . POSIX::strftime( '%Y-%m-%d %H:%M:%S UTC', gmtime $crl->{expires} )
        . ": clients are refused whose certificates that CA has issued; renew $crl->{file}";
}

# Calls $code with one end, and returns the other; nothing if it is false
sub _pair {
    my $code = shift;
    my ( $ours, $theirs ) = map { Sirius::OS::Inherit->take_handle($_) } Sirius::Edge::Shared->line;
    return $code->( fileno $theirs ) ? $ours : ();
}

# The next one serves from now on, and all edges get its set
sub _ready {
    my $self   = shift;
    my $next   = delete $self->{next};
    my $before = delete $self->{child};
    my $first  = !$self->{served}++;      # then all edges have its line already
    $next->{child}->unlimited('late');
    @{$self}{qw(certificates crls line program)} = @{$next}{qw(certificates crls line program)};
    $self->_serves( $next->{child} );
    $self->{backoff}->ready;
    delete $self->{again_at};

    for my $place ( $first ? () : $self->{group}->running ) {
        my $end = $self->line or next;
        $place->pass( keys => fileno $end )
            or Sirius::Log->warn( 'edge ' . $place->pid . ' does not take new keys' );
    }
    if ($before) {
        $before->on_end( sub { } );
        $before->limit( late => now() + GIVING );    # it ends by itself when its line does
    }
    my ($soonest)
        = sort { $a->{expires} <=> $b->{expires} } grep { $_->{expires} > time } $self->certificates;
    my $n = $self->certificates;
    Sirius::Log->note(
        sprintf '%s: %d certificate%s, the first to expire is that of %s, in %d days',
        $first ? 'certificates read' : 'certificates reloaded',
        $n,
        $n == 1 ? '' : 's',
        $soonest->{name},
        ( $soonest->{expires} - time ) / 86_400
    ) if $soonest;
    my ($next_crl) = sort { $a->{expires} <=> $b->{expires} } grep { $_->{expires} > time } $self->crls;
    Sirius::Log->note(
        sprintf 'CRLs read: %d, the first to expire is that of %s, in %s',
        scalar $self->crls,
        $next_crl->{name}, Sirius::Base::Text->age( $next_crl->{expires} - time )
    ) if $next_crl;
    Sirius::Log->warn($_) for $first ? () : _expired( $self->certificates );    # at the start they are known
    $self->outdated;
    $self->{group}->certificates_changed;
    $self->_start if delete $self->{once_more};
    return;
}

sub _serves {
    my ( $self, $child ) = @_;
    $self->{child} = $child;
    $self->_adopt($child);
    return;
}

# Another one, which reads the files by the rights of this process, and takes over the keys of tickets
sub _start {
    my $self = shift;
    delete @{$self}{qw(again_at changed fault)};
    $self->{identity} = $self->_identity;
    my ( $ours, $theirs ) = map { Sirius::OS::Inherit->take_handle($_) } Sirius::Edge::Shared->line;
    Sirius::Edge::Shared->name_senders( fileno $theirs );    # the keeper heeds its parent only
    my $legacy = $self->{line} && $self->line;
    my ( $title, $words, @handles ) = $self->{group}->for_keeper;
    my $program = $self->{group}->program;
    my $child   = eval {
        Sirius::OS::Child->spawn(
            $program ? $program->file : Sirius::Edge::Program->path,
            [   $title, @$words, 'keeper=1',
                'keys=' . fileno $theirs,
                ( $legacy ? 'legacy-keys=' . fileno $legacy : () ),
                @{ $self->{words} }
            ],
            [ map { fileno $_ } @handles, $theirs, grep {defined} $legacy ]
        );
    };
    if ( !$child ) {
        Sirius::Log->fail( $@ =~ s/\s+\z//r ) if !$self->{group}->is_announced;
        Sirius::Log->error( 'cannot start a keeper of keys: ' . $@ =~ s/\s+\z//r );
        return $self->_again;
    }
    $child->limit( late => now() + LATE );
    $self->{next} = {
        certificates => [],
        child        => $child,
        crls         => [],
        line         => $ours,
        program      => $program ? $program->build : ''
    };
    return $self->_adopt($child);
}

# A certificate for development, as browsers in which somebody has accepted it would ask again after each
# change of the application. One that is about to expire is made anew
sub _stays {
    my ( $self, @words ) = @_;
    return if !$self->{line} || $self->{next} || !grep { $_ eq 'tls-self-signed=1' } @{ $self->{words} };
    return if @words && "@words" ne "@{ $self->{words} }";
    return $self->_identity eq $self->{identity} && !grep { $_->{expires} < time + SOON } $self->certificates;
}

sub _watch {
    my $self = shift;
    $self->{identity} = $self->_identity;
    $self->{look_at}  = now() + LOOK;
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Keeper - the process that has the private keys, as the supervisor sees it

=head1 SYNOPSIS

  my $keeper = Sirius::Edge::Keeper->new( $group, Sirius::Edge::Keeper->words($conf) );
  $keeper->start;
  my $end = $keeper->line;    # for an edge that starts
  $keeper->renew;             # the files have changed

=head1 DESCRIPTION

Private keys are in no process that runs code of an application, and not in the supervisor, which forks those. The keeper is
C<sirius-edge>, started with C<keeper=1> and with the rights of the supervisor (F<src/edge/keeper.h>): it reads and checks
certificates and keys, gives up its rights, and sends them to the edges, over pairs of sockets that this class makes. This process has no
end of such a pair once it has passed both on, and the keeper heeds notes of its parent only.

A reload starts another keeper. If that finds something wrong, it says so and ends, and nothing changes. Otherwise it takes over the
keys of session tickets, all edges get its set, and the one before is ended. The files are looked at every 10 seconds, and read
when they have changed.

=head1 METHODS

=head2 act, due

Looks at the files when it is time, and starts a keeper in place of one that has ended.

=head2 certificates

A hash for each certificate: C<file>, C<name> (the first that it is valid for) and C<expires>, in seconds since 1970. If a certificate
of the chain expires earlier, that time counts.

=head2 child

Its process, a L<Sirius::OS::Child>. Undefined if there is none.

=head2 check

  my @warnings = Sirius::Edge::Keeper->check($conf);

At the start, with an address that speaks TLS: has the program read the files, and dies with C<sirius: WHY> if something is wrong with them; C<$!>
is 2 then. Returns what to say of certificates that are used although they have expired.

=head2 crls

A hash for each CRL, of C<--tls-client-crl> and in the file of C<--tls-client-ca>: C<file>, C<name> (of the CA) and C<expires>, when the
next one is due. One that has expired is told in the log, once.

=head2 descriptors, restore, state

For the next program of the supervisor.

=head2 fault

Why the files are not used that were read last. Undefined if they are.

=head2 heard

  $keeper->heard( $pid, $what, $why );

What a keeper has said on the pipe of the edges, or an edge that reads the files itself.

=head2 line

The handle of a socket by which keys come, for one edge. Undefined if there is no keeper.

=head2 new

  my $keeper = Sirius::Edge::Keeper->new( $group, @words );

For a L<Sirius::Edge::Group>.

=head2 outdated

  my $others = $keeper->outdated;

Writes a line about each CRL that has expired since the last call. True: there are others, which have not expired yet.

=head2 pid

The PID of the keeper. Undefined if there is none.

=head2 read_beside

No keeper is started: the edge that starts next reads the files, and says which CRLs there are.

=head2 reads

Whether the files are being read.

=head2 renew

  $keeper->renew(@words);

Reads the files again, and replaces the settings if there are any words. Does nothing with C<--tls-self-signed>, unless something has
changed.

=head2 start, stop

Starts the keeper, or ends it.

=head2 wanted

  my $bool = Sirius::Edge::Keeper->wanted($conf);

Whether an address of C<--listen> speaks TLS.

=head2 wanted_words

The words with which a keeper is started.

=head2 words

  my @words = Sirius::Edge::Keeper->words($conf);

The options that concern keys, as words for the command line of the program.

=head1 SEE ALSO

L<Sirius::Edge::Group>.

=cut
