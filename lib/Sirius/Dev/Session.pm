package Sirius::Dev::Session;

use strict;
use warnings;

use POSIX        ();
use Scalar::Util qw(weaken);
use Sirius::Dev::Audience;
use Sirius::Dev::Browser;
use Sirius::Dev::Files;
use Sirius::Dev::Keys;
use Sirius::Dev::LiveReload;
use Sirius::Dev::Reload;
use Sirius::Dev::RequestLog;
use Sirius::Base::Text;
use Sirius::Log ();
use Sirius::OS::Invocation;
use Sirius::OS::Title;

my %CODE = ( strong => '1', soft => '2', url => '1;36' );

# What stands for an address that it listens on. The first one says that all is ready
sub address {
    my ( $self, $url ) = @_;
    my $link = $self->link($url);
    return 'Sirius/' . Sirius->VERSION . " listening on $link" if !$self->{command};
    my $first = !defined $self->{url};
    $self->{url} //= $link if $link =~ /\Ahttp/;
    return
          ( $first ? 'ready after ' . Sirius::Base::Text->age( Sirius::OS::Invocation->age ) . ', ' : '' )
        . 'listening on '
        . $self->paint( url => $link );
}

# Lines below the addresses
sub announced {
    my ( $self, $say ) = @_;
    $say->(
        $self->paint( soft => $self->{keys} ? Sirius::Dev::Keys->words( $self->_keys ) : 'Ctrl-C stops it' ) )
        if $self->{command};
    $self->open if $self->{conf}{open};
    return;
}

sub app { return shift->{app} }

sub audience { return shift->{audience} }

# From now on somebody may press keys
sub begin {
    my ( $self, $supervisor, %parts ) = @_;
    @{$self}{qw(reaper supervisor)} = ( $parts{reaper}, $supervisor );
    weaken $self->{$_} for qw(reaper supervisor);
    return if !$self->{command};
    $self->{keys} = Sirius::Dev::Keys->new( loop => $parts{loop}, keys => [ $self->_keys ] );
    $parts{loop}->add( $self->{keys} ) if $self->{keys};
    return;
}

# The screen, but for what somebody needs to go on
sub clear {
    my $self = shift;
    print {*STDERR} "\e[H\e[2J\e[3J",
        defined $self->{url} ? 'listening on ' . $self->paint( url => $self->{url} ) . "\n" : ();
    return;
}

# The server has ended, and nobody waits any more
sub close {
    my ( $self, $generations ) = @_;
    delete( $self->{keys} )->close if $self->{keys};
    $generations->close;
    $self->{requests}->act if $self->{requests};
    return;
}

# None if the user has asked for none (https://no-color.org)
sub colours {
    return POSIX::isatty(2) && !length( $ENV{NO_COLOR} || '' ) && ( $ENV{TERM} || 'dumb' ) ne 'dumb' ? 1 : 0;
}

sub conf { return shift->{conf} }

sub editor { return shift->{editor} }

sub files {
    my $self = shift;
    return $self->{files} ||= Sirius::Dev::Files->new(
        app       => $self->{app},
        exclude   => $self->{exclude} || [],
        include   => $self->{include},
        libraries => [ Sirius::OS::Invocation->folders ],
        live      => $self->{conf}{live_reload},
        static    => [ map { $_->{dir} } @{ $self->{conf}{static} || [] } ],
        watch     => $self->{watch},
    );
}

# What they were found by has changed
sub forget_files {
    my $self = shift;
    delete $self->{files};
    return;
}

# In place of the supervisor's own
sub generations {
    my ( $self, $supervisor, %args ) = @_;
    $self->{audience} = Sirius::Dev::Audience->new( $args{edge} ) if $self->{conf}{live_reload};
    my $generations = Sirius::Dev::Reload->new( $supervisor, %args, session => $self );
    weaken( $self->{generations} = $generations );
    return $generations;
}

# A user who closes the window of a terminal has finished: HUP does not ask for a reload then. With nohup it
# is ignored at the start
sub has_lost_terminal {
    my $self = shift;
    return $self->{terminal} && !_has_terminal() ? 1 : 0;
}

# Which code it is, to a page that may have been loaded from another server on this address
sub id {
    my ( $self, $number ) = @_;
    return "$$.$^T.$number";
}

# How the address is told to who works on this machine
sub link {
    my ( $self, $url ) = @_;
    return $url if !$self->{command};
    return $url =~ s{\Ahttp://(?:127[.]0[.]0[.]1|0[.]0[.]0[.]0|\[::1?\])(?=:)}{http://localhost}r;
}

sub named {
    my $self = shift;
    return @{ $self->{include} }, @{ $self->{watch} };
}

# app: file of the application, or undef; command: it is sirius dev; conf; exclude, include and watch: paths;
# sources
sub new {
    my ( $class, %args ) = @_;
    return bless { %args, terminal => ( $SIG{HUP} || '' ) ne 'IGNORE' && _has_terminal() }, $class;
}

# In the browser
sub open {
    my $self = shift;
    my $url  = $self->{url} // return Sirius::Log->warn('there is no address for a browser');
    return if Sirius::Dev::Browser->open( $url, $self->{reaper} );
    return Sirius::Log->warn("no browser can be opened here: set BROWSER, or go to $url");
}

# The first line; undef for that of the server
sub opening {
    my $self = shift;
    return if !$self->{command};
    my $number = $self->{conf}{workers};
    return sprintf '%s: %s, perl %vd, %s', $self->paint( strong => 'Sirius ' . Sirius->VERSION ),
        Sirius::OS::Title->app( $self->{conf} ), $^V, $number == 1 ? '1 worker' : "$number workers";
}

sub paint {
    my ( $self, $how, $text ) = @_;
    return $self->colours ? "\e[$CODE{$how}m$text\e[0m" : $text;
}

# In place of an access log, unless there is to be one
sub request_log {
    my $self = shift;
    return if !$self->{conf}{request_log};
    my $own = Sirius::Dev::LiveReload->PATH;
    return $self->{requests}
        ||= Sirius::Dev::RequestLog->new( colours => $self->colours, hidden => qr/\A\Q$own\E/ );
}

# Files that the command line is read with
sub sources { return @{ shift->{sources} || [] } }

# Whether the first generation is announced by more than the address
sub tells_ready { return !shift->{command} }

# For Sirius::Dev::Trap
sub trap {
    my $self = shift;
    return editor => $self->{editor}, files => $self->files;
}

sub _has_terminal {
    CORE::open my $tty, '<', '/dev/tty' or return 0;
    CORE::close $tty;
    return 1;
}

sub _keys {
    my $self = shift;
    weaken $self;
    return (
        [ r => 'reload', sub { $self->{generations}->reload( undef, 'r was pressed' ) } ],
        [ o => 'open',   sub { $self->open } ],
        [ c => 'clear',  sub { $self->clear } ],
        [ q => 'quit',   sub { $self->{supervisor}->stop( INT => 'q was pressed' ) } ],
    );
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Session - what C<sirius dev> and C<--reload> change in a server

=head1 SYNOPSIS

  my $session = Sirius::Dev::Session->new( app => 'app.psgi', conf => $conf, include => [], watch => [] );

=head1 DESCRIPTION

L<Sirius::CLI::Runner> makes one and passes it as the option C<develop>. The server asks it for what is different.

=head1 METHODS

=head2 address

  print $session->address($url), "\n";

The line for an address on which the server listens; with the first one the time that the start has taken.

=head2 announced

  $session->announced( sub { print "$_[0]\n" } );

Prints what follows the addresses, and opens the browser with C<--open>.

=head2 app

The path of the F<.psgi> file; undef with C<-e>.

=head2 audience

The L<Sirius::Dev::Audience> of C<--live-reload>, in the supervisor.

=head2 begin

  $session->begin( $supervisor, loop => $loop, reaper => $reaper );

From now on keys are read (L<Sirius::Dev::Keys>).

=head2 clear

Clears the terminal, and prints the first address again.

=head2 close

  $session->close($generations);

Ends what is left when the server has ended.

=head2 colours

True if colours are wanted on STDERR: it is a terminal, and neither C<NO_COLOR> nor C<TERM=dumb> is set.

=head2 conf

The settings.

=head2 editor

The L<Sirius::Dev::Editor>.

=head2 files

The L<Sirius::Dev::Files>.

=head2 forget_files

L</files> are looked for anew, as a link to the folder of the application leads elsewhere.

=head2 generations

  my $reload = $session->generations( $supervisor, %args );

A L<Sirius::Dev::Reload>.

=head2 has_lost_terminal

True if there was a controlling terminal at the start, and there is none now.

=head2 id

  my $id = $session->id($number);

The name of a generation, for pages.

=head2 link

  my $url = $session->link($url);

With the name C<localhost> in place of an address that means this machine, unless the command is C<sirius -r>.

=head2 named

  my @paths = $session->named;

The folders of C<-I>, and the files and folders of C<--watch>, by the names that they were given.

=head2 new

  my $session = Sirius::Dev::Session->new(%args);

C<app>, the path of the F<.psgi> file, or undef; C<command>, true with C<sirius dev>; C<conf>; C<editor>; C<exclude>, C<include> and C<watch>, lists of paths.

=head2 open

Opens the first address in a browser, or says that there is none.

=head2 opening

The first line that the server prints; undef for the usual one, with C<sirius -r>.

=head2 paint

  my $text = $session->paint( url => 'http://localhost:5000/' );

In a colour if colours are wanted: C<strong>, C<soft>, C<url>.

=head2 request_log

The L<Sirius::Dev::RequestLog>, or undef if there is an access log.

=head2 sources

The paths of the files of C<--config> and C<--env-file>.

=head2 tells_ready

False if L</address> says already that the application is ready.

=head2 trap

What L<Sirius::Dev::Trap> needs.

=head1 SEE ALSO

L<Sirius::CLI::Dev>.

=cut
