package Sirius::App::Isolation;

use strict;
use warnings;

use Config qw(%Config);
use Sirius::OS::Invocation;
use Sirius::OS::Signals;
use Sirius::Service::Activation;
use Sirius::Service::Notify;

# No process can continue after these, even with a handler
my %FAULT = map { $_ => 1 } qw(ABRT BUS FPE ILL SEGV SYS TRAP);

# The umask when this is loaded: with the command sirius, before any application
my $umask = umask;

my @names = _names();

# $/, $\, $,, $" and $; as perl starts with them; $| belongs to a handle
my @OURS = ( undef, "\n", undef, undef, q( ), "\034" );

sub lend {
    my ( $self, $code ) = @_;
    $self->restore;
    my $done  = eval { $code->(); 1 };
    my $error = $@;
    %$self = %{ ( ref $self )->take( $self->{conf} ) };
    return if $done;
    return defined $error && length $error ? $error : "for no reason\n";
}

sub restore {
    my $self    = shift;
    my $signals = $self->{signals};
    for my $name ( keys %$signals ) {
        if ( defined $signals->{$name} ) { $SIG{$name} = $signals->{$name} }
        else                             { delete $SIG{$name} }
    }
    my $env = $self->{env};
    for my $name ( keys %$env ) {
        if ( defined $env->{$name} ) { $ENV{$name} = $env->{$name} }
        else                         { delete $ENV{$name} }
    }
    umask $self->{umask};
    return if !$self->{variables};
    select $self->{selected};    ## no critic (ProhibitOneArgSelect)
    ( $|, $/, $\, $,, $", $; ) = @{ $self->{variables} };
    return;
}

sub take {
    my ( $class, $conf ) = @_;
    my $ours = defined $conf->{umask} ? $conf->{umask} : $umask;
    my $self = bless { conf => $conf, signals => {}, umask => umask $ours }, $class;

  # What is ignored stays ignored. 'DEFAULT' is no choice, as it may end the process, and 'IGNORE' neither, as
  # child programs inherit it
    for my $name (@names) {
        my $theirs = $SIG{$name};
        next if ( !defined $theirs || $theirs =~ /\A(?:DEFAULT|IGNORE|)\z/ ) && $name ne 'PIPE';
        $self->{signals}{$name} = $theirs;
        if ( $name =~ /\A__/ ) { delete $SIG{$name} }
        else {
            $SIG{$name} = sub { }
        }
    }
    my %theirs = %ENV;
    %ENV = %{ Sirius::OS::Invocation->env };
    $_->forget for qw(Sirius::Service::Activation Sirius::Service::Notify);
    $self->{env} = _differences(%theirs);
    my @variables = ( $|, $/, $\, $,, $", $; );
    $self->{selected} = select STDOUT;    ## no critic (ProhibitOneArgSelect)
    return $self
        if $self->{selected} eq 'main::STDOUT' && !grep { !_same( $variables[$_], $OURS[$_] ) } 1 .. 5;
    $self->{variables} = \@variables;
    ( $/, $\, $,, $", $; ) = @OURS[ 1 .. 5 ];
    return $self;
}

# What differs from %ENV as it is; undef for what is not there. A worker restores no more: each variable is a
# page or two that it would write to, and so no longer share
sub _differences {
    my (%theirs) = @_;
    return {
        ( map { $_ => undef } grep { !exists $theirs{$_} } keys %ENV ),
        ( map { $_ => $theirs{$_} } grep { !_same( $ENV{$_}, $theirs{$_} ) } keys %theirs )
    };
}

# All signals that Sirius::OS::Signals does not handle itself, each by one name
sub _names {
    my ( %seen, %number );
    my @all = split ' ', $Config{sig_name};
    @number{@all}        = split ' ', $Config{sig_num};
    $seen{ $number{$_} } = 1 for grep { defined $number{$_} } qw(ZERO KILL STOP), Sirius::OS::Signals->names;
    return qw(__DIE__ __WARN__), grep { !$FAULT{$_} && !$seen{ $number{$_} }++ } @all;
}

sub _same {
    my ( $one, $other ) = @_;
    return 0                                if ref $one      || ref $other;
    return !defined $one && !defined $other if !defined $one || !defined $other;
    return $one eq $other;
}

1;

=encoding utf8

=head1 NAME

Sirius::App::Isolation - protects the code of the server from what an application has changed in perl

=head1 SYNOPSIS

  use Sirius::App::Isolation;

  my $theirs = Sirius::App::Isolation->take($conf);
  # code of the server
  my $error = $theirs->lend( sub { $hook->() } );
  $theirs->restore;

=head1 DESCRIPTION

A generation, and the supervisor until the first reload, run in the perl that has loaded the application. A
C<$SIG{__WARN__}> that dies would end them at the next line of the log. So they put aside what an application may have
changed, and use values of their own:

=over

=item *

C<$SIG{__WARN__}>, C<$SIG{__DIE__}> and the handlers of all signals but those of L<Sirius::OS::Signals>, which does the same for its
own, and those of faults such as C<SEGV>

=item *

C<%ENV>: as it was at the start

=item *

the mask for new files: that of C<--umask>, or of the start

=item *

the selected handle, C<$/>, C<$\>, C<$,>, C<$">, C<$;>

=back

L<Sirius::App::Overrides> deals with functions that the application overrides, L<Sirius::Log> with a tied STDERR.

=head1 METHODS

=head2 lend

  my $error = $theirs->lend($code);

Calls code of the application with the application's settings, and keeps what it changes of them. Returns nothing, or
the error with which the code died.

=head2 restore

Restores everything as it was before L</take>: in a worker, or at the end.

=head2 take

  my $theirs = Sirius::App::Isolation->take($conf);

=head1 SEE ALSO

L<Sirius>, L<Sirius::App::Overrides>, L<Sirius::Process::Pool>, L<Sirius::Process::Supervisor>.

=cut
