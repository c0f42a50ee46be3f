package Sirius::Config::Shown;

use strict;
use warnings;

use Sirius::Config::Options;
use Sirius::Config::Usage;
use Text::Wrap ();

my @ADDRESS = qw(host listen port socket);

sub text {
    my ( $class, $given, $from, %plack ) = @_;
    my $self = bless { from => $from, given => $given, plack => \%plack }, $class;
    my ( $text, $group, @unset ) = ( '', '' );
    for my $row ( Sirius::Config::Options->rows ) {
        next
            if $row->{hidden}
            || $row->{noop}
            || $row->{command} && $row->{name} ne 'config';
        my ( $source, @values ) = $self->_setting($row);
        if ( !@values ) {
            push @unset, $row->{name};
            next;
        }
        $text .= ( length $text ? "\n" : '' ) . "# $row->{group}\n" if $row->{group} ne $group;
        $group = $row->{group};
        $text .= sprintf "%-22s = %-24s (%s)\n", $row->{name}, _value( $row, $_ ), $source for @values;
    }
    local ( $Text::Wrap::columns, $Text::Wrap::unexpand ) = ( 100, 0 );
    return $text . "\n" . Text::Wrap::wrap( '# Not set: ', '#   ', join ', ', sort @unset ) . "\n";
}

# A value that nobody has set: its source, and the value
sub _default {
    my ( $self,  $row )   = @_;
    my ( $given, $plack ) = @{$self}{qw(given plack)};
    my $name = $row->{name};
    return if $name eq 'listen' && grep { defined $given->{$_} } @ADDRESS;
    return ( defined $ENV{PLACK_ENV} ? 'PLACK_ENV' : 'default', $plack->{env} )    if $name eq 'env';
    return ( 'default',                                         $plack->{server} ) if $name eq 'server';
    return ( 'default', 5000 ) if $name eq 'port' && defined $given->{host} && !defined $given->{listen};
    return ( 'default', 'app.psgi' )                          if $name eq 'app' && !defined $given->{e};
    return ( 'default', defined $given->{error_log} ? 1 : 0 ) if $name eq 'log-prefix';
    return ( 'default', 1 )                                   if $name eq 'default-middleware';
    return ( '--timeout, ' . $self->_source('timeout'), $given->{timeout} )
        if defined $given->{timeout} && $name =~ /\A(?:body|write)-timeout\z/;
    return if $name eq 'warm-up-workers';    # without a value it is neither yes nor no
    return ( 'default', $row->{default} ) if defined $row->{default};
    return $row->{type} eq 'bool' ? ( 'default', 0 ) : ();
}

# The source, and the values, of which there may be several
sub _setting {
    my ( $self, $row ) = @_;
    my $key   = Sirius::Config::Options->key( $row->{name} );
    my $value = $self->{given}{$key};
    return $self->_default($row) if !defined $value;
    return ( $self->_source($key), ref $value eq 'ARRAY' ? @$value : $value );
}

sub _source {
    my ( $self, $key ) = @_;
    my $from = $self->{from}{$key};
    return defined $from ? $from : 'command line';
}

# As a file of --config has it
sub _value {
    my ( $row, $value ) = @_;
    return Sirius::Config::Options->check( $row, $value ) ? 'yes' : 'no' if $row->{type} eq 'bool';
    return Sirius::Config::Usage->bytes($value) if $row->{type} eq 'bytes' && $value =~ /\A\d+\z/;
    $value                                   =~ s/\s*\n\s*/ /g;
    $value                                   =~ s/([\0-\x1f\x7f])/sprintf '\x%02x', ord $1/ge;
    return $value if length $value && $value !~ /\A[\s"']|\s#|\s\z/;
    return $value                            =~ /"/ ? "'$value'" : qq("$value");
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Shown - the value of each option, and where it comes from

=head1 SYNOPSIS

  use Sirius::Config::Shown;

  print Sirius::Config::Shown->text( \%given, $from, env => 'deployment', server => 'Sirius' );

=head1 DESCRIPTION

Makes what C<--show-config> prints:

  # Workers
  workers                = 4                        (command line)
  max-rss                = 500m                     (/etc/shop/sirius.conf, line 9)

Of a file of C<--env-file> only the name is shown, never a variable, unless it sets an option.

=head1 METHODS

=head2 text

  my $text = Sirius::Config::Shown->text( \%given, $from, %plack );

C<%given> are the values by the keys of the options, as L<Sirius::Config::Sources/fill> completes them, C<$from> is what that returns.
C<env> and C<server> are those of L<Plack::Runner>.

=head1 SEE ALSO

L<Sirius::CLI::Runner>, L<Sirius::Config::Sources>.

=cut
