package Sirius::Runner;

use strict;
use warnings;
use parent 'Plack::Runner';

use Sirius::Options;

# Sirius::Options makes the addresses: here port 0 would become 5000 and [::1]:80 the host "["
sub mangle_host_port_socket {
    my ( $self, $host, $port, $socket, @listen ) = @_;
    return host => $host, port => $port, listen => \@listen, socket => $socket;
}

sub parse_options {
    my ( $self, @args ) = @_;
    my @rest;
    for my $i ( 0 .. $#args ) {
        next if $args[$i] ne '--';
        ( undef, @rest ) = splice @args, $i;
        last;
    }
    $self->SUPER::parse_options( _explicit(@args) );
    push @{ $self->{argv} }, @rest;

    # Before the application is loaded, which may take its time
    Sirius::Options->parse( { @{ $self->{options} } } ) if $self->{server} eq 'Sirius';
    return;
}

sub setup {
    my $self = shift;
    if ( $self->{help} ) {
        require Sirius::Usage;
        print Sirius::Usage->help;
        exit 0;
    }
    return $self->SUPER::setup;
}

sub version_cb {
    return sub {
        require Plack;
        require Sirius;
        printf "Sirius %s (Plack %s, perl %vd)\n", Sirius->VERSION, Plack->VERSION, $^V;
    };
}

# Arguments in a form that Plack::Runner cannot take for another: there an option that it doesn't know takes the next
# argument, whatever it is
sub _explicit {
    my @args = @_;
    my @out;
    while ( defined( my $arg = shift @args ) ) {
        if ( $arg =~ /\A-[IMe]./s || $arg !~ /\A--?([^-=][^=]*)(?:=(.*))?\z/s ) {
            push @out, $arg;
            next;
        }
        my ( $name, $value ) = ( $1, $2 );
        my ( $row,  $bool )  = _known($name);
        if ( ( $row->{plackup} || '' ) eq 'flag' ) {
            Sirius::Options->fail("--$row->{name} takes no value") if defined $value;
            push @out, $arg;
            next;
        }
        $value = $bool                  if !defined $value && $row->{type} eq 'bool';
        $value = _value( $row, \@args ) if !defined $value;
        Sirius::Options->check( $row, $value ) if $row->{plackup};
        push @out, length $row->{name} > 1 ? "--$row->{name}=$value" : ( "-$row->{name}", $value );
    }
    return @out;
}

# The row of a name, and what it says about a bool: --keepalive and --enable-keepalive 1, --disable-keepalive ''
sub _known {
    my $name = shift;
    $name =~ tr/_/-/;
    my $row = Sirius::Options->row($name);
    return $row, 1 if $row && !$row->{hidden};
    if ( $name =~ /\A(enable|disable|no)-(.+)\z/ ) {
        my ( $prefix, $rest ) = ( $1, $2 );
        $row = Sirius::Options->row($rest);
        my $runner = $row && $row->{plackup};
        return $row, $prefix eq 'enable' ? 1 : ''
            if $row
            && $row->{type} eq 'bool'
            && ( $prefix eq 'no' ? $rest eq 'default-middleware' : !$runner );
    }
    return Sirius::Options->unknown($name);
}

sub _value {
    my ( $row, $args ) = @_;
    Sirius::Options->fail("--$row->{name} needs a value")
        if !@$args || length $row->{name} > 1 && $args->[0] =~ /\A--[[:alpha:]]/;
    return shift @$args;
}

1;

=encoding utf8

=head1 NAME

Sirius::Runner - the command line of sirius

=head1 SYNOPSIS

  use Sirius::Runner;

  my $runner = Sirius::Runner->new(server => 'Sirius', env => 'deployment');
  $runner->parse_options(@ARGV);
  $runner->run;

=head1 DESCRIPTION

L<Plack::Runner> with the traps of its command line removed. There an option that it doesn't know takes the next argument
as its value, so that C<--preload-app app.psgi> loses the application; here every option is known from the table in
L<Sirius::Options>, flags take nothing, a wrong or unknown option ends the program before the application is loaded.
Port 0 and IPv6 addresses work. What follows C<--> is no option.

=head1 METHODS

Those of L<Plack::Runner>, and these in its place:

=head2 mangle_host_port_socket

Leaves addresses as they are: L<Sirius::Options> makes one list of them.

=head2 parse_options

  $runner->parse_options(@ARGV);

Reads the command line and checks all of it.

=head2 setup

As in L<Plack::Runner>, with a C<--help> of our own.

=head2 version_cb

Prints the versions of Sirius, Plack and perl.

=head1 SEE ALSO

L<sirius>, L<Sirius::Options>, L<Plack::Runner>.

=cut
