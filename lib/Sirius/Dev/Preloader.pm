package Sirius::Dev::Preloader;

use strict;
use warnings;

use Cwd      ();
use Fcntl    qw(O_ACCMODE F_GETFL O_RDONLY);
use JSON::PP ();
use POSIX    ();
use Sirius::Dev::Files;
use Sirius::OS::Child;
use Sirius::OS::Inherit;
use Sirius::OS::Passing;

my $JSON = JSON::PP->new->ascii->canonical;

# Modules that look at the program that loads them, which is another one here
my %LOOKS_AT_PROGRAM
    = map { $_ => 1 } qw(FindBin.pm FindBin/Real.pm FindBin/libs.pm rlib.pm Devel/NYTProf.pm);

# Returns in a process that is to be a generation, with what it is told and the descriptors that it got
sub run {
    my ( $class, $line ) = @_;
    my $self = bless { line => $line }, $class;
    while ( my ( $text, @descriptors ) = Sirius::OS::Passing->receive( fileno $line ) ) {
        my $order = Sirius::OS::Inherit->bytes( $JSON->decode($text) );
        my $begin = $order->{becomes} ? '_become' : '_fork';
        if    ( $order->{preload} )                      { $self->_preload($order) }
        elsif ( $self->$begin( $order, \@descriptors ) ) { return $order, @descriptors }
        POSIX::close($_) for @descriptors;
    }
    return POSIX::_exit(0);    # the supervisor is gone
}

# Where no parent adopts orphans the process itself is the generation, and the supervisor starts another
sub _become {
    my ( $self, $order, $descriptors ) = @_;
    $self->_say( { number => $order->{number}, pid => POSIX::getpid() } );
    return $self->_begin($descriptors);
}

# Not before the supervisor knows this process
sub _begin {
    my ( $self, $descriptors ) = @_;
    close delete $self->{line};
    my $heard = '';
    open my $report, '<&', $descriptors->[0] or POSIX::_exit(1);    ## no critic (RequireBriefOpen)
    until ( $heard =~ /\n/ ) {
        POSIX::_exit(0) if !sysread $report, $heard, 64, length $heard;
    }
    POSIX::_exit(0) if $heard !~ /\Ago\n/;
    close $report;
    $^T = time;    ## no critic (RequireLocalizedPunctuationVars)
    srand;
    return 1;
}

# As require does; a module of that name that is elsewhere is another one
sub _finds {
    my ( $name, $path ) = @_;
    for my $folder ( grep { !ref } @INC ) {
        return Cwd::realpath("$folder/$name") eq $path || "$folder/$name" eq $path if -f "$folder/$name";
    }
    return 0;
}

# True in the child, which is the supervisor's: its parent ends at once, and orphans are the supervisor's
sub _fork {
    my ( $self, $order, $descriptors ) = @_;
    Sirius::OS::Child->flush;
    my $pid = fork;
    if ( !defined $pid ) {
        $self->_say( { number => $order->{number}, error => "cannot fork: $!" } );
        return 0;
    }
    if ($pid) {
        local $?;
        waitpid $pid, 0;
        return 0;
    }
    my $own = fork;
    if    ( !defined $own ) { $self->_say( { number => $order->{number}, error => "cannot fork: $!" } ) }
    elsif ($own)            { $self->_say( { number => $order->{number}, pid   => $own } ) }
    POSIX::_exit(0) if !defined $own || $own;
    _open_files_anew();
    return $self->_begin($descriptors);
}

# What modules read from (__DATA__, tables) has one position for all processes that share it
sub _open_files_anew {
    opendir my $dir, '/proc/self/fd' or return;
    for my $fd ( grep { /\A\d+\z/ && $_ > 2 } readdir $dir ) {
        my $path = readlink "/proc/self/fd/$fd";
        next if !defined $path || $path !~ m{\A/} || !-f $path;
        open my $old, '<&', $fd or next;                   ## no critic (RequireBriefOpen)
        my $flags = fcntl $old, F_GETFL, 0;
        next if ( $flags & O_ACCMODE ) != O_RDONLY;
        open my $own, '<', "/proc/self/fd/$fd" or next;    ## no critic (RequireBriefOpen)
        my $at = sysseek $old, 0, 1;
        sysseek $own, $at, 0 if $at;
        POSIX::dup2( fileno $own, $fd );
    }
    closedir $dir;
    return;
}

# Each by itself. One that fails, or leaves behind what generations must not share, is named, and this process
# is of no use
sub _preload {
    my ( $self, $order ) = @_;
    my $files = Sirius::Dev::Files->new( %{ $order->{files} } );
    my $here  = Cwd::getcwd();
    my @loaded;
    for my $entry ( @{ $order->{preload} } ) {
        my ( $name, $path ) = @$entry;
        next if exists $INC{$name} || $LOOKS_AT_PROGRAM{$name} || !_finds( $name, $path );
        my %before = ( ( map { $_ => 1 } _sockets() ), %INC );
        $self->_say( { loading => $name } );
        local ( $@, $! );
        local ( $/, $\, $,, $_ ) = ( "\n", undef, undef, undef );
        my $why = eval {
            local $SIG{__WARN__} = sub { };
            require $name;
            1;
        } ? undef : "$@";
        my ($inside) = grep {
            !$before{$_} && defined $INC{$_} && !ref $INC{$_} && -f $INC{$_} && $files->is_inside( $INC{$_} )
        } keys %INC;    # "(set by Moose)" is no file
        $why = "it loads $INC{$inside}"           if !defined $why && defined $inside;
        $why = 'it keeps a socket or a pipe open' if !defined $why && grep { !$before{$_} } _sockets();
        $why = 'it changes the directory'         if !defined $why && ( Cwd::getcwd() // '' ) ne $here;
        if ( defined $why ) {
            $self->_say( { refused => $name, why => $why =~ s/\n.*//sr } );
            POSIX::_exit(0);
        }
        push @loaded, $name;
    }
    return $self->_say( { preloaded => \@loaded } );
}

sub _say {
    my ( $self, $note ) = @_;
    Sirius::OS::Passing->send( fileno $self->{line}, $JSON->encode($note) );
    return;
}

sub _sockets {
    opendir my $dir, '/proc/self/fd' or return;
    my @found = grep { defined && /\A(?:socket|pipe):/ } map { readlink "/proc/self/fd/$_" } readdir $dir;
    closedir $dir;
    return @found;
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Preloader - the process that generations are forked from

=head1 SYNOPSIS

  my ( $order, @descriptors ) = Sirius::Dev::Preloader->run($line);

=head1 DESCRIPTION

Modules that do not change while somebody works on an application are loaded once, in this process, and each generation is a
fork of it that has only the application itself to load.

A module is loaded by a plain C<require>, with its warnings suppressed: they were shown when the application loaded it. It
is refused, and this process ends, if it dies, loads a file of the application, keeps a socket or a pipe open or changes
the directory; L<Sirius::Dev::Reload> then starts another without it. A module that is found elsewhere than the application
has found it is left to the application, as is one that looks at the program that loads it, such as L<FindBin>.

Files that modules keep open for reading, as C<__DATA__> is, are opened anew in each generation, at the same position.

A generation is a child of the supervisor, not of this process: it is forked by a child that ends, and the supervisor is the
subreaper. It begins when the supervisor has answered C<go>. Where a process cannot adopt orphans (macOS), this process
itself becomes the generation, by an order with C<becomes>, and the supervisor starts another of its kind for the next one.

=head1 METHODS

=head2 run

  my ( $order, @descriptors ) = Sirius::Dev::Preloader->run($line);

Carries out orders until one of them makes this a generation: then it returns in a child, or in the process itself by an order
with C<becomes>.

=head1 SEE ALSO

L<Sirius::Dev::Base>.

=cut
