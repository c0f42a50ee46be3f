package Sirius::Dev::Exit;

use strict;
use warnings;
use parent 'Plack::Middleware';

use Cwd         ();
use File::Spec  ();
use Sirius::Log ();

use constant CALLS_MAX => 200;    # frames that are looked at: a recursion may have millions

my $WARNING = qr/\AWarning: Use of "exit" without parentheses is ambiguous at /;

# The process in which an exit is told, and who is told: not a child that the application has forked
my ( $files, $owner, $told );

# In a worker, and in a generation that warms up
sub call {
    my ( $self, $env ) = @_;
    $self->heed;
    return $self->app->($env);
}

# From now on, and of this process
sub heed {
    my ( $class, $code ) = @_;
    ( $owner, $told ) = ( $$, $code || \&_log );
    return;
}

# Before code of the application is compiled. An override that is there already stays, and one that comes
# later takes its place. For perl the argument of an override in "exit -1" may be two things, so it warns
sub install {
    my ( $class, $of ) = @_;
    $files = $of;
    return if defined &CORE::GLOBAL::exit;
    no warnings 'once';    ## no critic (ProhibitNoWarnings)
    *CORE::GLOBAL::exit = \&_exit;
    return;
}

# Calls code that compiles the application, without perl's warning. Its own handler of warnings stays
sub load {
    my ( $class, $code ) = @_;
    my $before = $SIG{__WARN__};
    my $own    = sub { warn @_ if ref $_[0] || $_[0] !~ $WARNING };    ## no critic (RequireCarping)
    $SIG{__WARN__} = $own if !$before;    ## no critic (RequireLocalizedPunctuationVars)
    my $done  = eval { $code->(); 1 };
    my $error = $@;
    delete $SIG{__WARN__} if !$before && ref $SIG{__WARN__} && $SIG{__WARN__} == $own;
    return $done || die $error;           ## no critic (RequireCarping)
}

sub words {
    my ( $class, @places ) = @_;
    return join ', called ', map {"at $_->[0] line $_->[1]"} @places;
}

# What perl calls in place of its function. The status must not be restored by a local
sub _exit (;$) {    ## no critic (ProhibitSubroutinePrototypes)
    my @status = @_;
    _note();
    no warnings;    ## no critic (ProhibitNoWarnings)
    return CORE::exit( @status ? $status[0] : 0 );
}

sub _log {
    my @places = @_;
    $_->[0] = $files->short( Cwd::realpath( $_->[0] ) // $_->[0] ) for @places;
    Sirius::Log->warn( 'sirius dev: exit was called ' . __PACKAGE__->words(@places) );
    return;
}

# Where it was called; if that is code of others, also where the application has called these. In an END block
# there was a reason before
sub _note {
    return if !$told || $owner != $$ || ${^GLOBAL_PHASE} eq 'END';
    local ( $!, $@ );
    my @places;
    for my $i ( 1 .. CALLS_MAX ) {
        my ( $package, $file, $line ) = caller $i or last;
        last if $package =~ /\ASirius(?:::|\z)/;    # which has called the application
        my $is_file = -f $file;
        my $path    = $is_file ? File::Spec->rel2abs($file) : $file;
        my $is_own  = $is_file && $files->is_inside($path);
        push @places, [ $path, $line ] if $is_own || !@places;
        last if $is_own;
    }
    return @places ? $told->(@places) : ();
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Exit - tells where the application has called exit

=head1 SYNOPSIS

  Sirius::Dev::Exit->install($files);
  Sirius::Dev::Exit->heed( sub { my @places = @_; ... } );
  Sirius::Dev::Exit->load( sub { $app = Plack::Util::load_psgi('app.psgi') } );
  $app = Sirius::Dev::Exit->wrap($app);

=head1 DESCRIPTION

A process that has called C<exit> cannot say where: perl has left all subs when END blocks run. So C<sirius dev> puts a sub into
C<CORE::GLOBAL::exit> before the application is compiled, which notes the place and calls the function of perl. If the application
overrides C<exit> itself, that is called, and nothing is noted. As with any override, code that was compiled before calls it too.

As middleware it writes the place into the log: C<sirius dev: exit was called at lib/Shop.pm line 12>. Children that the application has
forked end without a line, and so do END blocks.

=head1 METHODS

=head2 call

As that of L<Plack::Middleware>.

=head2 heed

  Sirius::Dev::Exit->heed($code);

From now on calls of C<exit> in this process are told to the code: it gets the file and the line of each place, as arrays; the second
place is in the application, if the first one is not. Without code there is a line in the log.

=head2 install

  Sirius::Dev::Exit->install($files);

Overrides C<exit> in all code that is compiled later, unless that is done already. C<$files> is a L<Sirius::Dev::Files>.

=head2 load

  Sirius::Dev::Exit->load($code);

Calls the code, and dies as it does. Perl warns of C<exit -1> if C<exit> is overridden; this warning is left out.

=head2 words

  my $text = Sirius::Dev::Exit->words(@places);    # at /srv/shop/lib/Shop.pm line 12

=head1 SEE ALSO

L<Sirius::Dev::Loader>, L<Sirius::App::Overrides>.

=cut
