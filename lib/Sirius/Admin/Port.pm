package Sirius::Admin::Port;

use strict;
use warnings;

use POSIX               ();
use Scalar::Util        qw(weaken);
use Sirius::Base::Clock qw(now);
use Sirius;
use Sirius::Admin::Line;
use Sirius::Admin::Sampling;
use Sirius::Base::Backoff;
use Sirius::Config::Address;
use Sirius::Config::Options;
use Sirius::Edge::Group;
use Sirius::Listen::Listener;
use Sirius::Log ();
use Sirius::OS::Child;
use Sirius::OS::ExitStatus;
use Sirius::OS::Inherit;
use Sirius::OS::Invocation;
use Sirius::OS::Passing;
use Sirius::OS::Title;

use constant {
    ASKED    => 0.2,                   # seconds for which an answer to it holds
    PATIENCE => 0.5,                   # seconds that its process has to end
    STABLE   => 10,                    # a process that ends after this many seconds is replaced at once
    VARIABLE => 'SIRIUS_ADMIN_PORT',
};

# For a process without an application that answers small requests; other settings keep their defaults
my %LIMITS = (
    graceful_timeout => 2,
    header_timeout   => 5,
    max_connections  => 100,
    max_body         => 65_536,
    sheds_unfinished => 1,             # a client with many connections must not keep a probe out
    write_timeout    => 10
);
my @SHARED = qw(daemonize error_log group log_prefix proctitle sandbox server_software tmpdir user);

# A signal may reach the whole process group: this process keeps answering until the workers are gone
my @DEAF = qw(HUP INT PIPE QUIT TERM TTIN TTOU USR1 USR2);

sub act {
    my $self = shift;
    $self->{edge}->act if $self->{edge};
    $self->_answer     if $self->{line};
    return             if $self->{ending} || !defined $self->{at} || now() < $self->{at};
    delete $self->{at};
    return $self->start;
}

sub check {
    my ( $class, $conf ) = @_;
    my @specs = @{ $conf->{admin} || [] } or return;
    Sirius::Config::Options->fail('--admin: not available with --workers 0; use --workers 1 or more')
        if !$conf->{workers};
    $class->_check_host( $conf, $_, Sirius::Config::Address->parse($_)->{host} ) for @specs;
    return;
}

sub close {
    my $self = shift;
    delete @{$self}{qw(edge lifeline lifeline_writer line)};
    $_->close for @{ $self->{listeners} };
    return;
}

sub descriptors {
    return map { $_->fd } @{ shift->{listeners} };
}

sub due {
    my $self = shift;
    return ( $self->{edge} ? $self->{edge}->due : () ), grep {defined} $self->{at};
}

# The edge of the admin port
sub edge { return shift->{edge} }

sub end {
    my $self = shift;
    my $edge = $self->{edge};
    if ( !$self->{ending}++ ) {
        delete $self->{at};
        $_->limit( end => now() + PATIENCE ) for $self->_children;
        $edge->stop( 'INT', 0 ) if $edge;
    }
    delete $self->{lifeline_writer};
    return $edge && $edge->pid || $self->_children ? 1 : 0;
}

sub new {
    my ( $class, %args ) = @_;
    my $backoff = Sirius::Base::Backoff->new( interval => 1, free => 1 );
    return bless { backoff => $backoff, children => [], listeners => [], started => time, %args }, $class;
}

sub open {
    my ( $class, $conf, $privileges, @inherited ) = @_;
    $class->check($conf);
    my %unix  = ( mode => oct 600 );
    my @owner = $privileges->owner;
    @unix{qw(owner group)} = @owner if @owner;
    my @listeners;
    for my $spec ( map { Sirius::Listen::Listener->named( $_, @inherited ) } @{ $conf->{admin} || [] } ) {
        my $listener
            = $spec =~ /\Afd:(\d+)\z/
            ? Sirius::Listen::Listener->adopt( $1, undef, "--admin $spec" )
            : Sirius::Listen::Listener->open( $spec, $conf->{backlog}, %unix );
        $class->_check_host( $conf, $spec, $listener->host ) if !$listener->is_unix;
        push @listeners, $listener;
    }
    return $class->new( listeners => \@listeners );
}

sub pending {
    my $self = shift;
    return $self->{sampling} && $self->{sampling}->pending;
}

sub restore {
    my ( $class, $state ) = @_;
    return $class->new if !$state;
    return $class->new(
        %$state,
        listeners => [ map { Sirius::Listen::Listener->restore($_) } @{ $state->{listeners} } ],
        children  => [ map { Sirius::OS::Child->new($_) } @{ $state->{children} } ],
    );
}

# At the stop, see Sirius::Listen::Listener
sub shut {
    my $self = shift;
    $_->shut for @{ $self->{listeners} };
    return;
}

sub signal {
    my ( $self, $signal ) = @_;
    $_->signal($signal) for $self->_children;
    return;
}

sub start {
    my ( $self, %parts ) = @_;
    return if !@{ $self->{listeners} };
    @{$self}{ keys %parts } = values %parts;
    $self->{reaper}->add($_) for $self->_children;    # children of the previous program
    my ( $lifeline, $writer ) = @{$self}{qw(lifeline lifeline_writer)};
    $lifeline or pipe $lifeline, $writer or return $self->_no_process("cannot create a pipe: $!");
    $self->_start_edge( $lifeline, $writer ) if !$self->{edge};
    my ( $line, $theirs ) = Sirius::OS::Passing->pair
        or return $self->_no_process("cannot create a socket pair: $!");
    my $child = Sirius::OS::Child->fork( sub {
        eval { $self->_become( $lifeline, $theirs ) };
        Sirius::Log->pass("sirius: $@");
    } ) or return $self->_no_process( 'cannot fork: ' . Sirius::OS::Child->failure );
    $self->{lifeline_writer} = $writer;
    $self->{loop}->unwatch( $self->{line} ) if $self->{line};
    $self->{loop}->watch( $self->{line} = $line );
    if ( !$self->{sampling} ) {
        $self->{sampling}
            = Sirius::Admin::Sampling->new( board => $self->{scoreboard}, only => $self->{is_ours} );
        $self->{loop}->add( $self->{sampling} );
    }
    weaken( my $own = $self );
    $child->on_end( sub { $own->_ended(@_) } );
    $self->{reaper}->add($child);
    push @{ $self->{children} }, $self->{process} = $child;
    return;
}

# Of the server, also when this program has taken its place
sub started { return shift->{started} }

sub state {
    my $self = shift;
    return {
        listeners => [ map { $_->state } @{ $self->{listeners} } ],
        children  => [ ( map { $_->pid } $self->_children ), map { $_->pids } grep {defined} $self->{edge} ],
        started   => $self->{started},
    };
}

sub urls {
    return map { $_->url } @{ shift->{listeners} };
}

sub _again {
    my ( $self, $what, $delay ) = @_;
    $self->{at} = now() + $delay;
    Sirius::Log->error(
        "admin port: $what; " . ( $delay ? sprintf 'next attempt in %g s', $delay : 'starting another' ) );
    return;
}

# What the process asks, which has given up its rights
sub _answer {
    my $self     = shift;
    my $sampling = $self->{sampling};
    return
        if Sirius::Admin::Line->answer(
        $self->{line},
        memory  => sub { $self->_memory },
        profile => sub { $sampling->begin },
        samples => sub { $sampling->samples(@_) },
        stack   => sub { $sampling->stack(@_) },
        );
    $self->{loop}->unwatch( delete $self->{line} );
    return;
}

sub _become {
    my ( $self, $lifeline, $line ) = @_;
    $self->{loop}->hand_over( { map { $_ => 'IGNORE' } @DEAF } );
    my @listeners   = map { $_->description } @{ $self->{listeners} };
    my @descriptors = $self->{scoreboard}->descriptor;
    my $sleepers    = $self->{edge}->workers;
    my $text        = Sirius::OS::Inherit->give(
        {   admin => {
                app       => Sirius::OS::Title->app( $self->{conf} ),
                host      => ( POSIX::uname() )[1],
                listeners => $self->{served},
                pid       => getppid,
                started   => $self->{started},
                version   => Sirius->VERSION,
            },
            lifeline   => fileno $lifeline,
            conf       => _conf( $self->{conf} ),
            line       => fileno $line,
            listeners  => \@listeners,
            scoreboard => $descriptors[0],
            sleepers   => fileno $sleepers,
        },
        $lifeline,
        $line,
        $sleepers,
        @descriptors
    );
    return Sirius::OS::Invocation->run_module(
        'Sirius::Admin::Server',
        "serve('${\ VARIABLE}')",
        VARIABLE() => $text
    );
}

# The process has sent the edge something invalid
sub _broken {
    my ( $self, $pid, undef, $why ) = @_;
    my ($child) = grep { $_->pid == $pid } $self->_children or return;
    Sirius::Log->error("admin port: process $pid $why; it is killed");
    return $child->signal('KILL');
}

# Refuses a host, or a name that may resolve to any address
sub _check_host {
    my ( $class, $conf, $spec, $host ) = @_;
    return if $conf->{admin_public} || !defined $host || !Sirius::Config::Address->is_public($host);
    return Sirius::Config::Options->fail(
        "--admin $spec: other machines can reach this address; use a loopback address or a unix socket, or add --admin-public"
    );
}

# The processes that run: this one and, before a renewal, those of the previous program
sub _children {
    return grep { !$_->is_gone } @{ shift->{children} };
}

sub _conf {
    my $conf    = shift;
    my @own     = grep { !$_->{plackup} } Sirius::Config::Options->rows;
    my %default = map  { Sirius::Config::Options->key( $_->{name} ) => $_->{default} } @own;
    return { %default, %LIMITS, ( map { $_ => $conf->{$_} } @SHARED ), app => Sirius::OS::Title->app($conf) };
}

sub _ended {
    my ( $self, $child, $status ) = @_;
    $self->{children} = [ $self->_children ];
    return if $self->{ending} || $child != $self->{process};
    my $stable = $child->age >= STABLE;
    $self->{backoff}->ready if $stable;
    my $delay = $stable ? 0 : $self->{backoff}->failed;
    return $self->_again(
        'process ' . $child->pid . q( ) . Sirius::OS::ExitStatus->words( $status, 'status 0' ), $delay );
}

# Of the workers, not looked up too often
sub _memory {
    my $self = shift;
    if ( now() >= ( $self->{asked_at} // -1 ) + ASKED ) {
        my %bytes = $self->{memory_of}->();
        $self->{memory}   = join q( ), map {"$_ $bytes{$_}"} grep { defined $bytes{$_} } keys %bytes;
        $self->{asked_at} = now();
    }
    return $self->{memory};
}

sub _no_process {
    my ( $self, $error ) = @_;
    my $backoff = $self->{backoff};
    return $self->_again( $error, $backoff->failed || $backoff->failed );    # at once would not do
}

# Outlives the process that answers, and is replaced by the supervisor if it ends
sub _start_edge {
    my ( $self, $lifeline, $writer ) = @_;
    @{$self}{qw(lifeline lifeline_writer)} = ( $lifeline, $writer );
    weaken( my $port = $self );
    $self->{edge} = Sirius::Edge::Group->new(
        1,
        ( map { $_ => $self->{$_} } qw(alerts announced fallback listeners privileges reaper) ),
        access_log => undef,
        lifeline   => $lifeline,
        conf       => _conf( $self->{conf} ),
        program    => scalar $self->{trusted}->(),
        role       => 'admin edge',
        said       => 'admin port: ',
        scoreboard => undef,
        tell       => sub { $port->_broken(@_) },
    );
    $self->{edge}->start;
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::Port - the addresses of --admin, and what the supervisor has of the process that answers there

=head1 SYNOPSIS

  use Sirius::Admin::Port;

  my $admin = Sirius::Admin::Port->open( $conf, $privileges, Sirius::Service::Activation->descriptors );
  $admin->start(%parts);

=head1 DESCRIPTION

Starts L<Sirius::Admin::Server> in a separate process, so that it answers when every worker is stuck. The process is a
child of L<Sirius::Process::Supervisor> and a program of its own: it has never loaded the application, and is not one of
the workers.

Its connections belong to an edge of their own (L<Sirius::Edge::Group>), whose only worker this process is. So neither
an overload of the server nor a restart of its edge delays a probe, and each of the two can be restarted without the
other.

It ends when its pipe to the supervisor is closed, never by a signal to the process group. So it answers while the
workers finish their requests (C</readyz> answers 503 then), ends after the last of them, and ends when the supervisor
was killed. If it dies, it is started again: at once the first time, and whenever it has lived for 10 seconds, else after 1, 2,
4 ... 30 seconds. Meanwhile the supervisor keeps the sockets open, and clients wait. Its edge is started again at once.

A reload of the application does not affect it. When the supervisor becomes a new program after a reload
(L<Sirius::Process::Renewal>), the old process loses its pipe, finishes its request and ends, and the new supervisor
starts one with the new code. The addresses are those of the start, like those of C<--listen>.

=head1 ADDRESSES

The form of the addresses is that of L<Sirius::Config::Address>. The file of a unix socket is for its owner only (mode 0600), who is the user of the server, unless
C<?mode=>, C<?owner=> or C<?group=> say something else. A TCP address that is not a loopback one (127.0.0.0/8, ::1) needs
C<--admin-public>: everybody who can reach it sees what the clients of the server ask for.

With C<--workers 0> there is one process, which may be stuck; then C<--admin> is an error, because a probe that fails
for that reason says nothing about the server.

=head1 METHODS

=head2 act

Starts the process if it is due.

=head2 check

  Sirius::Admin::Port->check($conf);

Checks C<admin> as far as possible without opening anything. A wrong option ends the program (see
L<Sirius::Config::Options/fail>).

=head2 close

  $admin->close;

Closes the descriptors of this process, and removes the files of unix sockets if this process has made them. Also for a
child.

=head2 descriptors

Numbers of the listening sockets.

=head2 due

The monotonic times at which L</act> has something to do, or nothing.

=head2 edge

The L<Sirius::Edge::Group> of these addresses.

=head2 end

  my $bool = $admin->end;

Tells the process to end, and returns whether it still runs. It is killed if it needs more than half a second.

=head2 new

Without addresses: for a supervisor that has no admin port.

=head2 open

  my $admin = Sirius::Admin::Port->open( $conf, $privileges, @descriptors );

Binds all of C<< $conf->{admin} >>, which may be none. C<@descriptors> are those that L<Sirius::Service::Activation> brought.

=head2 pending

Whether a profile is being taken, or has just been (L<Sirius::Admin::Sampling/pending>).

=head2 restore

  my $admin = Sirius::Admin::Port->restore( $admin->state );

In the next program of the supervisor, with the L</descriptors> open.

=head2 signal

  $admin->signal('USR1');

Sends the signal to the process, which reacts only to this one.

=head2 start

  $admin->start(%parts);

Starts the process if there is an address to serve. A failure is logged, and the start is tried again. It needs
C<alerts>, C<conf>, C<loop>, C<privileges>, C<reaper> and C<scoreboard> of the server, and C<served>, the URLs of its listeners. Of the
subs, C<announced> tells whether the server has started; C<fallback> returns a program for the edge if the installed one does not start, C<trusted> one
to start with if the installed one has failed already;
C<memory_of> returns the private bytes of each worker, by its PID; C<is_ours>, whether a PID is of a process that descends from this one.

=head2 started

When the server was started, in seconds since 1970.

=head2 state

The state as plain data, for the next program.

=head2 urls

As L<Sirius::Listen::Listener/url> has them.

=head1 SEE ALSO

L<Sirius::Admin::Server>, L<Sirius::Process::Supervisor>, L<Sirius::Process::Renewal>, L<Sirius::CLI::Top>.

=cut
