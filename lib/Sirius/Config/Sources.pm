package Sirius::Config::Sources;

use strict;
use warnings;

use Sirius::Config::Options;

# Variables that begin with SIRIUS_ but set no option
my $OTHERS = qr/\ASIRIUS_(?:BENCH_|TEST|(?:CONFIG|DEV|GENERATION)\z)/;

# What Kubernetes sets in every container for a Service named sirius or sirius-x:
# SIRIUS_PORT=tcp://10.0.0.1:80, SIRIUS_SERVICE_HOST, SIRIUS_PORT_80_TCP_ADDR, SIRIUS_X_SERVICE_PORT_HTTP
my $KUBERNETES
    = qr/\ASIRIUS_(?:\w+_)?(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)\z/;
my $LINK = qr{\A(?:tcp|udp|sctp)://}i;

# Options that settle others too: if a source sets one, sources of lower rank are not asked for the others
my @address  = qw(host listen port socket);
my @loader   = qw(Reload loader reload);
my %REPLACES = (
    ( map { $_ => \@address } qw(listen socket) ),
    ( map { $_ => \@loader } @loader ),
    ( map { $_ => [qw(app e)] } qw(app e) ),
    ( map { $_ => [ $_, qw(listen socket) ] } qw(host port) ),
    max_reqs_per_child => [qw(max_reqs_per_child min_reqs_per_child)],
    timeout            => [qw(body_timeout timeout write_timeout)],
    workers            => [qw(max_servers min_servers workers)],
);

sub fill {
    my ( $self, $given ) = @_;
    my %from;
    for my $layer ( @{ $self->{layers} } ) {
        my %taken = map { $_ => 1 } map { $REPLACES{$_} ? @{ $REPLACES{$_} } : $_ } keys %$given;
        for my $key ( grep { !$taken{$_} } keys %$layer ) {
            ( $given->{$key}, $from{$key} ) = @{ $layer->{$key} }{qw(value from)};
        }
    }
    return \%from;
}

# undef counts as not given; the full name overrides an alias
sub given {
    my ( $class, $raw ) = @_;
    my %given;
    for my $key ( sort keys %$raw ) {
        my ( $name, $value ) = ( $key =~ tr/_/-/r, $raw->{$key} );
        my ( $row,  $sense ) = length $name > 1 ? Sirius::Config::Options->find($name) : ();
        Sirius::Config::Options->unknown($name) if !$row;
        Sirius::Config::Options->fail("--$row->{name} is an option of the command line, not of the handler")
            if $row->{plackup} && !$row->{passed} || $row->{runner} && !$raw->{sources};
        next if !defined $value;
        $value = Sirius::Config::Options->check( { %$row, name => $name }, $value ) ? $sense : 1 - $sense
            if defined $sense;
        my $own = Sirius::Config::Options->key( $row->{name} );
        $given{$own} = $value if !defined $given{$own} || $name eq $row->{name};
    }
    _plackup( \%given ) if !$given{sources};
    return \%given;
}

sub notices { return @{ shift->{notices} } }

# Plack::Runner passes an option that was given several times as so many pairs. A list is what a program
# gives: it replaces what came before, as in a hash, and so does a text behind it
sub pairs {
    my ( $class, @pairs ) = @_;
    my ( %raw, %texts, %last );
    while (@pairs) {
        my ( $name, $value ) = splice @pairs, 0, 2;
        my $row = length $name > 1 ? Sirius::Config::Options->row($name) : undef;
        if ( !$row || !$row->{many} ) {
            $raw{$name} = $value;
            next;
        }
        my $key   = Sirius::Config::Options->key( $row->{name} );
        my $texts = $texts{$key} ||= [];
        if ( !defined $value ) {

            # withdraws the value given under this name only: an alias that is not given says nothing
            next if ( $last{$key} // '' ) ne $name;
            delete $raw{$key};
            @$texts = ();
        } elsif ( ref $value ) {
            $raw{$key} = $value;
            delete $texts{$key};
        } else {
            push @$texts, $value;
            $raw{$key} = @$texts > 1 ? $texts : $value;
        }
        $last{$key} = $name;
    }
    return \%raw;
}

sub read {
    my ( $class, %args ) = @_;
    my $self = bless { command => $args{command}, notices => [], places => $args{places} || {} }, $class;
    my $env  = $args{env} || \%ENV;
    my ( $file, $from ) = ( $args{file}, undef );
    ( $file, $from ) = ( $env->{SIRIUS_CONFIG}, 'SIRIUS_CONFIG' )
        if !defined $file && defined $env->{SIRIUS_CONFIG} && length $env->{SIRIUS_CONFIG};
    $self->{layers} = [
        $self->_environment($env),
        defined $file  ? $self->_file( $file, $from ) : (),
        $args{command} ? $self->_port($env)           : (),
    ];
    return $self;
}

# An empty variable counts as not set, since compose files and units set such. Only for the Server header
# empty means something
sub _environment {
    my ( $self, $env ) = @_;
    my %layer;
    my @kubernetes
        = grep { /$KUBERNETES/ || /\ASIRIUS_(?:\w+_)?PORT\z/ && $env->{$_} =~ $LINK } sort keys %$env;
    my %others = map { $_ => 1 } @kubernetes;
    for my $variable ( grep { /\ASIRIUS_./ && !/$OTHERS/ && !$others{$_} } sort keys %$env ) {
        my $name = lc $variable =~ s/\ASIRIUS_//r =~ tr/_/-/r;
        my ( $row, $sense ) = length $name > 1 ? _find($name) : ();
        my $value = $env->{$variable};
        if ( !$row ) {
            my $hint = Sirius::Config::Options->hint( $name =~ tr/_/-/r, q(), \&_is_settable );
            $hint =~ s/(?:\A \(did you mean | or )\K(?:--)?([\w-]+)/'SIRIUS_' . uc $1 =~ tr{-}{_}r/ge;
            $self->_note("$variable does not name an option$hint");
        } elsif ( ( $row->{plackup} || $row->{runner} ) && !$self->{command} ) {
            $self->_note("$variable has no effect: only the sirius command reads $name from the environment");
        } elsif ( length $value || $row->{type} eq 'token' ) {
            $value = _several( $row->{type}, $value ) if $row->{many};
            $self->_take( \%layer, $row, $sense, $name, $value, $self->_place($variable) );
        }
    }
    $self->_note( "$kubernetes[0]"
            . ( @kubernetes > 1 ? ' and ' . ( @kubernetes - 1 ) . ' more variables are' : ' is' )
            . ' ignored: Kubernetes sets them for a Service of that name (see enableServiceLinks)' )
        if @kubernetes;
    return \%layer;
}

sub _file {
    my ( $self, $path, $from ) = @_;
    Sirius::Config::Options->fail( "--config $path: the path contains a NUL byte", $from ) if $path =~ /\0/;
    open my $fh, '<', $path or Sirius::Config::Options->fail( "--config $path: $!", $from );
    Sirius::Config::Options->fail( "--config $path: is a directory", $from ) if -d $fh;
    local $/ = "\n";
    my @lines = readline $fh;
    close $fh or Sirius::Config::Options->fail( "--config $path: $!", $from );
    my ( %layer, %seen );

    for my $number ( 1 .. @lines ) {
        my ( $text, $where ) = ( $lines[ $number - 1 ], "$path, line $number" );
        $text =~ s/\A\xef\xbb\xbf//;
        next if $text =~ /\A\s*(?:[#;]|\z)/;
        my ( $name, $value ) = $text =~ /\A\s*(\w[\w-]*)\s*=\s*(.*?)\s*\z/s
            or Sirius::Config::Options->fail(
            "$where: '" . $text =~ s/\A\s+|\s+\z//gr . q(' is not 'name = value') );
        my ( $row, $sense ) = $self->_find_in_file( $name, $where );
        $value =~ s/\A(["'])((?:(?!\1).)*)\1(?:\s+#.*)?\z/$2/s or $value =~ s/(?:\A|\s+)#.*\z//s;
        Sirius::Config::Options->fail("$where: $name has no value")
            if !length $value && $row->{type} ne 'token';
        my $seen = $seen{ $row->{name} } ||= [];
        Sirius::Config::Options->fail("$where: $name is already set in line @$seen")
            if @$seen && !$row->{many};
        push @$seen, $number;
        $where = "$path, lines " . join ', ', @$seen if @$seen > 1;
        $self->_take( \%layer, $row, $sense, $name, $row->{many} ? [$value] : $value, $where );
    }
    return \%layer;
}

# Single letters are not allowed here, nor options for the command line only
sub _find {
    my $name = shift;
    my ( $row, $sense ) = Sirius::Config::Options->find($name);
    return if !$row || $row->{hidden} || $row->{command} || length $name == 1 && $row->{name} ne $name;
    return $row, $sense;
}

sub _find_in_file {
    my ( $self, $name, $where ) = @_;
    my ( $row, $sense ) = _find($name);
    return $row, $sense if $row && ( $self->{command} || !$row->{plackup} && !$row->{runner} );
    Sirius::Config::Options->fail("$where: only the sirius command reads $name from a file") if $row;
    Sirius::Config::Options->fail("$where: $name can only be given on the command line")
        if ( Sirius::Config::Options->row($name) || {} )->{command};
    my $hint = Sirius::Config::Options->hint( $name =~ tr/_/-/r, q(), \&_is_settable );
    $hint =~ s/(?:\A \(did you mean | or )\K--//g;
    return Sirius::Config::Options->fail("$where: unknown option $name$hint");
}

# In a file or in the environment
sub _is_settable {
    my ($row) = _find(shift);
    return defined $row;
}

sub _note {
    my ( $self, $text ) = @_;
    push @{ $self->{notices} }, "sirius: $text";
    return;
}

# A variable, and where it was set if that was a file
sub _place {
    my ( $self, $variable ) = @_;
    my $place = $self->{places}{$variable};
    return defined $place ? "$variable in $place" : $variable;
}

# Plack::Runner always gives a list, with the host and port of its own options; :5000 if none was given
sub _plackup {
    my $given  = shift;
    my $listen = $given->{listen};
    return if !defined $listen;
    $listen = $given->{listen} = [$listen] if ref $listen ne 'ARRAY';
    my ( $host, $port ) = delete @{$given}{ @$listen ? qw(host port) : () };
    delete $given->{listen}
        if !@$listen || "@$listen" eq ':5000' && !defined $host && ( $port || 0 ) eq '5000';
    return;
}

# The port that platforms for containers set. It may be meant for another program, so every other source
# overrides it. Who is given a socket does not look at it: deploy/server-starter has an address in a variable
# of that name.
sub _port {
    my ( $self, $env ) = @_;
    my $port = $env->{PORT};
    return {}
        if !defined $port || !length $port || grep {defined} @{$env}{qw(SERVER_STARTER_PORT LISTEN_FDS)};
    return { port => { from => $self->_place('PORT'), value => $port } };
}

# The values of a variable. Code and commands have blanks and commas, a lane may have a blank, and a directory
# of --static has options behind commas
sub _several {
    my ( $type, $value ) = @_;
    return [$value]                                             if $type =~ /\A(?:beside|warm-up)\z/;
    return [ $value =~ /\S.*?=\d+(?:,\S*)?(?=\s|\z)|\S.*\z/gs ] if $type eq 'lane'; # "POST /x=1 /y=2,queue=3"
    my $between
        = $type eq 'static'
        ? qr/\s+/
        : $type eq 'listen' ? qr/\s+|,(?!(?:tls|h2c)(?:[\s,?]|\z))/i                # "ADDRESS,tls" is one
        :                     qr/[\s,]+/;
    return [ grep {length} split $between, $value ];
}

# The full name overrides an alias; lists are appended to
sub _take {
    my ( $self, $layer, $row, $sense, $name, $value, $from ) = @_;
    my $key = Sirius::Config::Options->key( $row->{name} );
    $value = Sirius::Config::Options->check( { %$row, name => $name }, $value, $from ) ? $sense : 1 - $sense
        if defined $sense;
    if    ( ref $value && $layer->{$key} ) { $value = [ @{ $layer->{$key}{value} }, @$value ] }
    elsif ( $layer->{$key} && $name =~ tr/_/-/r ne $row->{name} ) {return}
    $layer->{$key} = { from => $from, value => $value };
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Sources - options from the environment and from a file

=head1 SYNOPSIS

  use Sirius::Config::Sources;

  my $given  = Sirius::Config::Sources->given({ 'max-workers' => 4 });
  my $config = Sirius::Config::Sources->read( file => '/etc/sirius.conf' );
  my $from   = $config->fill($given);

=head1 DESCRIPTION

Options that are not given on the command line (or by a program) are taken from the environment, then from a file.
L<sirius/ENVIRONMENT> and L<sirius/CONFIGURATION FILE> describe the form of both. This module checks names;
L<Sirius::Config::Options> checks values later.

C<plackup> passes the address C<:5000> even if its user gave none. It counts as not given.

For the command L<sirius> the variable C<PORT> is the last source of all: it sets C<port> where no source has a port, a listening
address or a unix socket.

=head1 METHODS

=head2 fill

  my $from = $config->fill( \%given );

Adds missing options. Returns for each added key where the value came from: C<SIRIUS_WORKERS>, C</etc/sirius.conf, line
3>. An option also replaces related ones: C<listen> on the command line replaces all addresses of the file, C<workers>
also C<min-servers> and C<max-servers>.

=head2 given

  my $given = Sirius::Config::Sources->given( \%raw );

Converts names with dashes or underscores, aliases, and the forms of C<plackup> to the main names of the options with
underscores. An unknown name is an error.

=head2 notices

  warn "$_\n" for $config->notices;

Lines about variables that begin with C<SIRIUS_> and do not name an option.

=head2 pairs

  my $raw = Sirius::Config::Sources->pairs( tls_cert => 'a.pem', tls_cert => 'b.pem', workers => 2 );

The arguments of a handler as a hash. If an option that may be given several times is, all its values are kept, in a list; of any
other option, the last one.

=head2 read

  my $config = Sirius::Config::Sources->read(%args);

C<file>, by default what C<SIRIUS_CONFIG> names; C<env>, by default C<%ENV>; C<command>, true for the command L<sirius>,
which can take C<app>, C<env> and all else that is otherwise up to C<plackup>, and C<PORT>; C<places>, a hash that says for some
variables where they were set (L<Sirius::Config::EnvFile/set>), for messages.

=head1 SEE ALSO

L<sirius>, L<Sirius::Config::Options>, L<Sirius::CLI::Runner>.

=cut
