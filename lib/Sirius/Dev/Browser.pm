package Sirius::Dev::Browser;

use strict;
use warnings;

use File::Spec ();
use POSIX      qw(SIG_SETMASK);
use Sirius::OS::Child;

# What opens an address with the browser of the user, without BROWSER
my @OPENERS = qw(xdg-open wslview);

# The words of the command; nothing if there is none
sub command {
    my ( $class, $url ) = @_;
    for my $words ( map { [ split q( ) ] } split /:/, $ENV{BROWSER} // '' ) {
        next if !@$words;
        my ( $program, @more ) = @$words;
        my $path  = _found($program) // next;
        my $named = grep {/%s/} @more;
        return $path, ( map {s/%s/$url/gr} @more ), $named ? () : $url;
    }
    return if !grep { length( $ENV{$_} // '' ) } qw(DISPLAY WAYLAND_DISPLAY WSL_DISTRO_NAME);
    my ($opener) = grep {defined} map { _found($_) } @OPENERS;
    return defined $opener ? ( $opener, $url ) : ();
}

# False if there is no such program. It is nobody's child: a browser that this starts outlives the server
sub open {
    my ( $class, $url, $reaper ) = @_;
    my @words = $class->command($url)                           or return 0;
    my $child = Sirius::OS::Child->fork( sub { _run(@words) } ) or return 0;
    $reaper->add($child);
    return 1;
}

sub _found {
    my $name = shift;
    return -x $name && !-d _ ? $name : undef if $name =~ m{/};
    for my $path ( map {"$_/$name"} File::Spec->path ) {
        return $path if -x $path && !-d _;
    }
    return;
}

# In a session of its own, which Ctrl-C does not reach
sub _run {
    my @words = @_;
    POSIX::setsid();
    my $pid = fork;
    POSIX::_exit(0) if !defined $pid || $pid;
    $SIG{$_} = 'DEFAULT'
        for grep { !/\A__/ && ref $SIG{$_} } keys %SIG;    ## no critic (RequireLocalizedPunctuationVars)
    POSIX::sigprocmask( SIG_SETMASK, POSIX::SigSet->new );
    my $null = POSIX::open( File::Spec->devnull, POSIX::O_RDWR() );
    POSIX::dup2( $null, $_ ) for 0 .. 2;
    no warnings 'exec';                                    ## no critic (ProhibitNoWarnings)
    exec { $words[0] } @words or POSIX::_exit(127);
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Browser - opens an address in the browser of the user

=head1 SYNOPSIS

  Sirius::Dev::Browser->open( 'http://localhost:5000/', $reaper ) or warn "no browser\n";

=head1 DESCRIPTION

The programs in the variable C<BROWSER>, separated by colons, of which the first that is there is used: C<%s> in one of its words is the
address, else it follows. Without it F<xdg-open> or F<wslview>, if there is a display. No shell is involved.

=head1 METHODS

=head2 command

  my @words = Sirius::Dev::Browser->command($url);

The command; nothing if there is none.

=head2 open

  my $started = Sirius::Dev::Browser->open( $url, $reaper );

Runs it. The L<Sirius::OS::Reaper> buries what has started it.

=head1 SEE ALSO

L<Sirius::Dev::Session>.

=cut
