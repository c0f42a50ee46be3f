package Sirius::Process::Companions;

use strict;
use warnings;

use Sirius::Base::Clock qw(now);
use Sirius::Config::Companion;
use Sirius::Log ();
use Sirius::OS::Invocation;
use Sirius::Process::Companion;
use Sirius::Service::Starter;

use constant EACH => 0.5;    # seconds between two looks for the server before this one

sub act {
    my $self = shift;
    return if $self->_is_early;
    $_->act for $self->_all;
    my $all = $self->{all};
    delete @{$all}{ grep { !$self->{listed}{$_} && !$all->{$_}->is_alive } keys %$all };
    return;
}

sub alive {
    return grep { $_->is_alive } shift->_all;
}

sub due {
    my $self = shift;
    return $self->{look_at} if defined $self->{look_at};
    return map { $_->due } $self->_all;
}

sub follow {
    my ( $self, $number, $plan ) = @_;
    return if $self->{stopping} || $number == ( $self->{number} || 0 );
    $self->{number} = $number;
    $self->{plan}   = Sirius::Config::Companion->valid($plan)
        if $plan && Sirius::Config::Companion->valid($plan);
    my $setting = $self->_setting;
    $self->{listed} = {};
    for my $one ( @{ $self->{plan}{commands} } ) {
        my $name = $one->{name};
        $self->{listed}{$name} = 1;
        $self->{all}{$name} ||= Sirius::Process::Companion->new( name => $name, $self->_parts );
        $self->{all}{$name}->follow( $one->{command}, $setting, $self->{grace} );
    }
    $_->end( $self->{grace} ) for grep { !$self->{listed}{ $_->name } } $self->_all;
    $self->{look_at} = 0 if !$self->{begun}++;
    $self->{changed}->();
    return;
}

sub groups {
    return grep {defined} map { $_->group } shift->_all;
}

sub hear {
    my $self = shift;
    $_->hear for $self->_all;
    return;
}

sub new {
    my ( $class, %args ) = @_;
    my $state = delete $args{state} || {};
    my $self  = bless {
        all    => {},
        listed => {},
        %args, map { $_ => $state->{$_} } grep { $_ ne 'each' } keys %$state
        },
        $class;
    for my $one ( @{ $state->{each} || [] } ) {
        my $companion
            = Sirius::Process::Companion->restore( { %$one, setting => $self->_setting }, $self->_parts );
        $self->{all}{ $companion->name }    = $companion;
        $self->{listed}{ $companion->name } = 1;
    }
    return $self;
}

sub number { return shift->{number} }

sub settled {
    my $self = shift;
    return !defined $self->{look_at} && !grep { $_->is_ending } $self->_all;
}

sub state {
    my $self = shift;
    my @each = map { $_->state } $self->_all;
    return { each => \@each, map { $_ => $self->{$_} } qw(begun number plan) };
}

sub status {
    return map { $_->status } shift->_all;
}

sub stop {
    my ( $self, $signal, $grace ) = @_;
    $self->{stopping} = 1;
    delete $self->{look_at};
    $_->end($grace) for $self->_all;
    return;
}

sub _all {
    my $all = shift->{all};
    return map { $all->{$_} } sort keys %$all;
}

# Under Server::Starter the server before this one has its commands until it ends
sub _is_early {
    my $self = shift;
    return 0 if !defined $self->{look_at};
    return 1 if now() < $self->{look_at};
    my ($before) = Sirius::Service::Starter->before;
    if ( !defined $before ) {
        delete $self->{look_at};
        return 0;
    }
    Sirius::Log->note("--beside: started when the server before this one, PID $before, has ended")
        if !$self->{look_at} && %{ $self->{all} };
    $self->{look_at} = now() + EACH;
    return 1;
}

sub _parts {
    my $self = shift;
    return map { $_ => $self->{$_} } qw(changed interval loop privileges reaper);
}

# A reload runs the command of the server in its directory again, which may be a link to another one by now
sub _setting {
    my $self = shift;
    my $plan = $self->{plan};
    my %env  = ( %ENV, %{ $plan->{env} } );
    delete @env{ grep {/\ASERVER_STARTER_/} keys %env };
    return {
        chdir => $plan->{chdir} // Sirius::OS::Invocation->directory,
        env   => \%env,
        umask => $plan->{umask}
    };
}

1;

=encoding utf8

=head1 NAME

Sirius::Process::Companions - the commands of --beside

=head1 SYNOPSIS

  my $companions = Sirius::Process::Companions->new( plan => Sirius::Config::Companion->plan($conf), ... );
  $companions->follow( $generation->number, $generation->beside );    # it serves
  $companions->stop( 'TERM', 30 );

=head1 DESCRIPTION

They are children of the supervisor. They are started when the first worker is ready, and each time that another generation serves they
are told to end, and started again with what the configuration says then. A reload that fails does not concern them. Of a command there
is never more than one at a time.

Under L<Server::Starter> they are started when the server before this one has ended.

=head1 METHODS

=head2 act, due

As L<Sirius::OS::Loop/add> wants it.

=head2 alive

The L<Sirius::Process::Companion> objects of which something is there.

=head2 follow

  $companions->follow( $number, $plan );

The generation of this number serves: each command is started again. Without a plan (L<Sirius::Config::Companion/plan>) it is the one
before. Does nothing at the second call for a generation, nor after L</stop>.

=head2 groups

The numbers of their groups of processes.

=head2 hear

Reads what they print.

=head2 new

  my $companions = Sirius::Process::Companions->new(%args);

C<plan>; C<grace>, the seconds they have to end; C<interval>, C<loop>, C<privileges>, C<reaper> and C<changed>, as for
L<Sirius::Process::Companion/new>; C<state>, what L</state> has returned in the program before this one.

=head2 number

The number of the generation that they follow; undef before the first.

=head2 settled

True if none is about to end.

=head2 state

For the next program of the supervisor.

=head2 status

A list of hashes: L<Sirius::Process::Companion/status>.

=head2 stop

  $companions->stop( $signal, $seconds );

They have so much time to end. None is started any more.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>, L<Sirius::Process::Reload>.

=cut
