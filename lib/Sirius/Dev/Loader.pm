package Sirius::Dev::Loader;

use strict;
use warnings;
use parent 'Plack::Loader';

use Cwd        ();
use Errno      ();
use File::Spec ();
use IO::Handle ();
use JSON::PP   ();
use POSIX      ();
use Sirius::App::Forked;
use Sirius::Dev::Audience;
use Sirius::Dev::Broken;
use Sirius::Dev::Exit;
use Sirius::Dev::Fresh;
use Sirius::Dev::LiveReload;
use Sirius::Dev::Preloader;
use Sirius::Dev::Project;
use Sirius::OS::Inherit;
use Sirius::OS::Title;
use Sirius::Process::Launch;
use Sirius::Worker;
use Time::HiRes ();

my $JSON = JSON::PP->new->ascii->allow_nonref;

sub new {
    my ( $class, $session ) = @_;
    return bless { session => $session }, $class;
}

# Not yet: that is for generations
sub preload_app {
    my ( $self, $builder ) = @_;
    $self->{builder} = $builder;
    return;
}

# In the supervisor; or in what runs the same command for it, which comes back from there as a generation
sub run {
    my ( $self, $server ) = @_;
    my $variable = Sirius::Process::Launch->VARIABLE;
    return $server->run( sub { die "a supervisor serves nothing\n" } )
        if !Sirius::OS::Inherit->has($variable);
    my $state = Sirius::OS::Inherit->take($variable);
    Sirius::OS::Title->set( $self->{session}->conf, 'base' );
    Sirius::Dev::Exit->install( $self->{session}->files );
    my ( $order, $news, $said )
        = Sirius::Dev::Preloader->run( Sirius::OS::Inherit->take_handle( $state->{base} ) );
    Sirius::OS::Title->set( $self->{session}->conf, 'loading' );
    my $log = POSIX::dup(2);
    die "sirius: STDERR: $!\n" if !defined $log || !defined POSIX::dup2( $said, 2 );
    POSIX::close($said);
    my $live = defined $state->{live} ? Sirius::OS::Inherit->take_handle( $state->{live} ) : undef;
    Sirius::OS::Inherit->put( $variable,
        { %$state, news => $news, number => $order->{number}, pid => POSIX::getpid(), stderr => $log } );
    my $page = $order->{page};
    delete $server->{conf}{warm_up} if $page;    # which is for the application
    my $app
        = $page
        ? Sirius::Dev::Broken->restore($page)->app( $self->{session}->editor )
        : $self->_load($news);
    $app = Sirius::Dev::Fresh->wrap($app);
    return $server->run( $live ? _live( $server, $app, $order, $live ) : $app );
}

sub _build {
    my $self = shift;
    my $file = $self->{session}->app;
    die _missing($file) if defined $file && !_opens($file);    # Plack says why, and not which it is
    return Sirius::Worker->check_app( $self->{builder}->() );
}

# Its pages are told of other code
sub _live {
    my ( $server, $app, $order, $live ) = @_;
    $server->{conf}{hold_channel} = Sirius::Dev::LiveReload->CHANNEL;
    return Sirius::Dev::LiveReload->wrap(
        $app,
        ( map { $_ => $order->{$_} } qw(id number) ),
        seen => sub { return Sirius::Dev::Audience->seen($live) }
    );
}

# What it cannot load is for the supervisor to show
sub _load {
    my ( $self, $news ) = @_;
    STDOUT->autoflush(1);  # what the application prints to see it would wait in a buffer, until a worker ends
    my $here   = Cwd::getcwd();
    my %before = %INC;
    my $began  = Time::HiRes::time();
    my $pid    = POSIX::getpid();
    my $app;
    Sirius::Dev::Exit->heed( sub { _tell( $news, exits => { at => Sirius::Dev::Exit->words(@_) } ) } );
    my $clean = eval {
        Sirius::Dev::Exit->load( sub { $app = $self->_build } );
    };
    my $error = $@;
    Sirius::Dev::Exit->heed;
    Sirius::App::Forked->exit_child( $pid, 'while it was loaded' );
    my %files = map { ( $_ => _whole( $INC{$_}, $here ) ) }
        grep { defined $INC{$_} && !ref $INC{$_} && ( $before{$_} // '' ) ne $INC{$_} } keys %INC;
    _tell( $news, files => { began => $began, ended => Time::HiRes::time(), files => \%files } );
    return Sirius::Dev::Exit->wrap($app) if $clean;
    _tell( $news, broken => Sirius::Dev::Broken->because( $error, $self->{session}->files )->data );
    exit 1;
}

# With what may be meant
sub _missing {
    my $file  = shift;
    my $error = "$file: $!";
    return "$error\n" if !$!{ENOENT};
    my ($app) = Sirius::Dev::Project->find('.');
    return
        $error
        . ( defined $app ? "; the application of this directory is $app: sirius dev $app" : '' ) . "\n";
}

sub _opens {
    open my $in, '<', shift or return 0;
    close $in;
    return 1;
}

# A line to the supervisor, which reads it
sub _tell {
    my ( $news, $what, $value ) = @_;
    my $line = "$what " . $JSON->encode( Sirius::OS::Inherit->text($value) ) . "\n";
    my $copy = POSIX::dup($news);
    open my $to, '>&=', $copy or return;
    while ( length $line ) {
        my $done = syswrite $to, $line;
        last if !$done && !$!{EINTR};
        substr $line, 0, $done || 0, '';
    }
    close $to;
    return;
}

sub _whole {
    my ( $path, $here ) = @_;
    return File::Spec->rel2abs( $path, $here );
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Loader - loads an application in processes of its own, again and again

=head1 SYNOPSIS

  my $loader = Sirius::Dev::Loader->new($session);
  $loader->preload_app($builder);
  $loader->run($server);

=head1 DESCRIPTION

A L<Plack::Loader> for C<sirius dev>. In the supervisor it loads nothing. In the process that generations are forked from it
waits (L<Sirius::Dev::Preloader>), and in each generation it loads the application, and tells the supervisor which files that
were, and why if it could not.

=head1 METHODS

=head2 new, preload_app, run

As those of L<Plack::Loader>; C<new> takes a L<Sirius::Dev::Session>.

=head1 SEE ALSO

L<Sirius::Dev::Reload>.

=cut
