package Sirius::Config::Values;

use strict;
use warnings;

use List::Util qw(max min);
use Sirius::Config::Address;
use Sirius::Config::Lane;
use Sirius::Config::NoEffect;
use Sirius::Config::Options;
use Sirius::Config::Sources;
use Sirius::Config::Static;

use constant {
    SLOTS_MAX => 50_000,        # that the queue and those of the lanes have together
    YEAR      => 31_536_000,    # seconds
};

my @FIXED
    = qw(admin admin_public backlog control daemonize drain_delay edges error_log graceful_timeout group listen load_timeout
    log_prefix pid socket_group socket_mode socket_owner user);

# The settings that a reload cannot change, as text: only the supervisor uses them, or the sockets it holds;
# and whom all processes run as, which must be the same for all of them
sub fixed {
    my ( $class, $conf ) = @_;
    return {
        map {
            my $value = $conf->{$_};
            $_ => ref $value eq 'ARRAY' ? join( q( ), @$value )
                : defined $value && !ref $value ? "$value"
                : ''
        } @FIXED
    };
}

sub parse {
    my ( $class, $raw ) = @_;
    my $given  = Sirius::Config::Sources->given($raw);
    my $config = $given->{sources} || Sirius::Config::Sources->read( file => $given->{config} );
    my $from   = $config->fill($given);
    my %conf   = ( notices => [ $config->notices ] );
    for my $row ( ( grep { !$_->{plackup} } Sirius::Config::Options->rows ), _family($given) ) {
        my $key   = Sirius::Config::Options->key( $row->{name} );
        my $value = $given->{$key};
        push @{ $conf{notices} }, $class->_few( $row, $value, $from->{$key} )
            if $row->{few} && defined $value;
        $value = Sirius::Config::Options->check( $row, $value, $from->{$key} ) if defined $value;
        if ( !$row->{noop} ) {
            $conf{$key} = defined $value ? $value : $row->{default};
        } elsif ( defined $value ) {
            push @{ $conf{notices} }, "sirius: --$row->{name} has no effect: $row->{noop}"
                . ( $from->{$key} ? " (from $from->{$key})" : '' );
        }
    }
    return $class->_together( \%conf, $given, $from );
}

# Merges all options about addresses into one list
sub _addresses {
    my ( $class, $conf, $given,  $from )   = @_;
    my ( $host,  $port, $listen, $socket ) = delete @{$conf}{qw(host port listen socket)};
    my @listen = $given->{listen} ? @$listen : ();
    $conf->{listen_given}
        = grep { defined $given->{$_} && ( $from->{$_} || '' ) !~ /\APORT\b/ } qw(host port listen socket);
    if (@listen) {
        push @{ $conf->{notices} }, "sirius: --$_ has no effect: --listen sets all addresses"
            for grep { defined $given->{$_} } qw(host port);
    } elsif ( defined $port || defined $host || !defined $socket ) {
        $host = '' if !defined $host;
        Sirius::Config::Options->fail(
            "--host: '$host' is not a host: use --listen HOST:PORT, or --socket PATH for a unix socket",
            $from->{host} )
            if $host =~ m{[/\s]|\A(?:\@|unix:|(?:fd|systemd)\z|\w[^:]*:\d*\z)};
        @listen = ( ( $host =~ /\A[^\[].*:/ ? "[$host]" : $host ) . ':' . ( defined $port ? $port : 5000 ) );
    }

    # Plack::Runner also gives as --socket what it does not know in --listen: HOST:PORT,tls and systemd:NAME
    undef $socket if defined $socket && grep { $_ eq $socket } @listen;

    Sirius::Config::Options->fail(
        "--socket: '$socket' is an address, not the path of a unix socket:"
            . " use --listen $socket, or --socket ./$socket for a file of that name",
        $from->{socket}
    ) if defined $socket && Sirius::Config::Address->is_no_path($socket);

    # it can't be anything else
    $socket = "unix:$socket" if defined $socket && $socket !~ m{/|\A(?:\@|unix:)};
    push @listen, $socket if defined $socket && !grep { $_ eq $socket } @listen;
    $conf->{listen} = Sirius::Config::Options->check( Sirius::Config::Options->row('listen'), \@listen );
    return;
}

# Options of families such as net-server-*, which cover every name that begins so
sub _family {
    my $given = shift;
    my %own   = map { $_->{name} => 1 } Sirius::Config::Options->rows;
    return grep { !$own{ $_->{name} } } map { Sirius::Config::Options->row($_) } sort keys %$given;
}

# Warns of a valid size that is so small that megabytes may be meant
sub _few {
    my ( $class, $row, $value, $from ) = @_;
    return if $value !~ /\A0*[1-9]\d*\z/ || $value >= $row->{few};
    $from = defined $from ? " (from $from)" : '';
    return "sirius: --$row->{name} $value means $value bytes; for megabytes, write ${value}m$from";
}

sub _lanes {
    my ( $class, $conf, $from ) = @_;
    my $place = $from->{lane};
    my ($field) = Sirius::Config::Lane->fields( $conf->{lane} );
    Sirius::Config::Options->fail(
        "--lane: '$field' is of a field, which requires --trust-proxy, or every client could set it", $place )
        if defined $field && !$conf->{trust_proxy};
    my $sum = $conf->{max_queue} + Sirius::Config::Lane->queues($conf);
    Sirius::Config::Options->fail(
        "--lane: the queues of all lanes and --max-queue have $sum places together: the maximum is "
            . SLOTS_MAX,
        $place
    ) if $sum > SLOTS_MAX;
    return;
}

# Whether others may read the file, and enter the directories that lead there
sub _open_to_all {
    my $path = shift;
    my $mode = ( stat $path )[2];
    return if !defined $mode || !-f _ || !( $mode & oct 4 );
    while ( $path =~ s{(?<=.)/[^/]*\z}{} ) {
        $mode = ( stat $path )[2];
        return if defined $mode && !( $mode & oct 1 );
    }
    return 1;
}

# With --chdir as seen from there, since the files belong to the application
sub _static {
    my ( $class, $conf, $from ) = @_;
    for my $folder ( @{ $conf->{static} || [] } ) {
        my $error = Sirius::Config::Static->locate( $folder, $conf->{chdir} );
        Sirius::Config::Options->fail( "--static $folder->{prefix}: $error", $from->{static} )
            if defined $error;
    }
    return;
}

# Which addresses speak TLS, and whether there is a certificate for them
sub _tls {
    my ( $class, $conf, $given, $from ) = @_;
    for my $spec ( $conf->{ssl} ? @{ $conf->{listen} } : () ) {
        Sirius::Config::Options->fail(
            "--enable-ssl: cannot be combined with --listen $spec: with TLS, HTTP/2 needs no \",h2c\"",
            $from->{ssl} )
            if Sirius::Config::Address->is_h2c($spec);
        $spec .= ',tls' if !Sirius::Config::Address->is_tls($spec);
    }
    my ($listen) = grep { Sirius::Config::Address->is_tls($_) } @{ $conf->{listen} };
    my @certs    = @{ $conf->{tls_cert} || [] };
    my @keys     = @{ $conf->{tls_key}  || [] };
    my ($unused)
        = grep { defined $conf->{$_} && length $conf->{$_} && $conf->{$_} }
        qw(tls_cert tls_key tls_dir tls_client_ca tls_client_crl tls_self_signed);
    Sirius::Config::Options->fail(
        '--' . $unused =~ tr/_/-/r . ': no address of --listen speaks TLS: write --listen ADDRESS,tls',
        $from->{$unused} )
        if defined $unused && !defined $listen;
    Sirius::Config::Options->fail(
        sprintf
            '--tls-key: %d given for %d --tls-cert; give one for each, in the same order, or none if the keys are in the same files',
        scalar @keys,
        scalar @certs
    ) if @keys && @keys != @certs;
    push @{ $conf->{notices} }, map {"sirius: private key $_ is readable by every user: run chmod 0600 $_"}
        grep { _open_to_all($_) } @keys ? @keys : @certs;
    Sirius::Config::Options->fail( '--tls-self-signed: cannot be combined with --tls-cert or --tls-dir',
        $from->{tls_self_signed} )
        if $conf->{tls_self_signed} && ( @certs || defined $conf->{tls_dir} );
    my $state = $ENV{XDG_STATE_HOME} // '';
    my $home  = $ENV{HOME}           // '';
    $state = "$home/.local/state"
        if $state !~ m{\A/} && $home =~ m{\A/} && -d $home;    # it is not made: nobody has none
    $conf->{tls_self_signed_file} = "$state/sirius/self-signed.pem"
        if $conf->{tls_self_signed} && $state =~ m{\A/[^\n]*\z};
    push @{ $conf->{notices} },
        'sirius: --https-redirect leads to port 443, but no address of --listen speaks TLS: add one,'
        . ' such as --listen 0.0.0.0:443,tls; if another server answers there, write --https-redirect=443'
        if ( $conf->{https_redirect} || 0 ) == 1 && !defined $listen;
    push @{ $conf->{notices} },
        'sirius: --hsts: browsers put a name on their preload list only with a year or more, includeSubDomains and preload'
        if ( $conf->{hsts} || '' ) =~ /preload/
        && ( $conf->{hsts} !~ /includeSubDomains/ || $conf->{hsts} =~ /=(\d+)/ && $1 < YEAR );
    Sirius::Config::Options->fail( '--acme-webroot: the name of the directory contains a line break',
        $from->{acme_webroot} )
        if ( $conf->{acme_webroot} // '' ) =~ /\n/;
    Sirius::Config::Options->fail( '--tls-client-crl: requires --tls-client-ca, which is not given',
        $from->{tls_client_crl} )
        if @{ $conf->{tls_client_crl} || [] } && !defined $conf->{tls_client_ca};
    Sirius::Config::Options->fail( '--tls-client-verify: requires --tls-client-ca, which is not given',
        $from->{tls_client_verify} )
        if defined $given->{tls_client_verify} && !defined $conf->{tls_client_ca};
    Sirius::Config::Options->fail( ( $conf->{ssl} ? '--enable-ssl' : "--listen $listen" )
        . ': TLS needs a certificate: give --tls-cert and --tls-key, --tls-dir, or for development --tls-self-signed'
    ) if defined $listen && !@certs && !defined $conf->{tls_dir} && !$conf->{tls_self_signed};
    return;
}

# Checks that depend on more than one option
sub _together {
    my ( $class, $conf, $given, $from ) = @_;
    $class->_addresses( $conf, $given, $from );
    $class->_tls( $conf, $given, $from );
    my ($h2c) = grep { Sirius::Config::Address->is_h2c($_) } @{ $conf->{listen} };
    Sirius::Config::Options->fail(
        "--disable-http2: cannot be combined with --listen $h2c, which asks for HTTP/2",
        $from->{http2} )
        if defined $h2c && defined $conf->{http2} && !$conf->{http2};
    my ( $min, $max ) = @{$conf}{qw(min_reqs_per_child max_reqs_per_child)};
    Sirius::Config::Options->fail(
        "--min-reqs-per-child: $min is greater than --max-reqs-per-child, which is $max",
        $from->{min_reqs_per_child} )
        if defined $min && $min > $max;
    $class->_workers( $conf, $given );
    Sirius::Config::Options->fail( '--drain-delay: not available with --workers 0; use --workers 1 or more',
        $from->{drain_delay} )
        if $conf->{drain_delay} && !$conf->{workers};
    Sirius::Config::Options->fail(
        '--underscores-in-headers: trusted requires --trust-proxy, which is not given',
        $from->{underscores_in_headers} )
        if $conf->{underscores_in_headers} eq 'trusted' && !$conf->{trust_proxy};
    $class->_lanes( $conf, $from );
    $class->_static( $conf, $from );
    my ( undef, $timeout ) = delete @{$conf}{qw(sources timeout)};

    for my $key ( defined $timeout ? qw(body_timeout write_timeout) : () ) {
        $conf->{$key} = $timeout if !defined $given->{$key};
    }
    my %default
        = map { Sirius::Config::Options->key( $_->{name} ) => $_->{default} } Sirius::Config::Options->rows;
    for my $option ( Sirius::Config::NoEffect->of( { %$conf, timeout => $timeout }, $given, \%default ) ) {
        my ( $name, $why ) = @$option;
        my $place = $from->{ Sirius::Config::Options->key($name) };
        push @{ $conf->{notices} },
            "sirius: ${\ _typed( $name, $conf ) } has no effect: $why"
            . ( defined $place ? " (from $place)" : '' );
    }
    $conf->{keepalive} = 0 if !$conf->{keepalive_timeout};
    return $conf;
}

# As it was given: --enable-http2
sub _typed {
    my ( $name, $conf ) = @_;
    my $row = Sirius::Config::Options->row($name);
    my ( $on, $off ) = split /, /, $row->{typed} // "--$name";
    return $conf->{ Sirius::Config::Options->key($name) } ? $on : $off // $on;
}

# Splits --workers into two numbers: workers at the start, and at most
sub _workers {
    my ( $class, $conf, $given ) = @_;
    my ( $workers, $min, $max )  = delete @{$conf}{qw(workers min_servers max_servers)};
    my $fixed = defined $given->{workers} && $given->{workers} =~ /\A\d+\z/;
    my ( $low, $high ) = ref $workers ? @$workers : ( $workers, $workers );
    if ( ref $workers ) {
        push @{ $conf->{notices} }, "sirius: --$_ has no effect: --workers sets both limits"
            for grep { defined $given->{ Sirius::Config::Options->key($_) } } qw(min-servers max-servers);
    } else {
        my ($name) = defined $min ? '--min-servers' : '--max-servers';
        Sirius::Config::Options->fail("$name: not available with --workers 0, which has no workers")
            if !$workers && ( $min || $max );
        Sirius::Config::Options->fail("--min-servers: $min is greater than --workers, which is $workers")
            if defined $min && !defined $max && $fixed && $min > $workers;
        Sirius::Config::Options->fail("--max-servers: $max is less than --workers, which is $workers")
            if defined $max && !defined $min && $fixed && $max < $workers;
        Sirius::Config::Options->fail("--min-servers: $min is greater than --max-servers, which is $max")
            if defined $min && defined $max && $min > $max;
        $low  = defined $min ? $min : min $workers, grep {defined} $max;
        $high = defined $max ? $max : max $low,     $workers;
    }
    @{$conf}{qw(workers workers_max)} = ( $low, $high );
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Values - the checked values of all options

=head1 SYNOPSIS

  use Sirius::Config::Values;

  my $conf = Sirius::Config::Values->parse({ 'max-body' => '10m', workers => 4 });
  print $conf->{max_body};    # 10485760

=head1 DESCRIPTION

The rows of L<Sirius::Config::Options> check single options; this module checks what depends on several of them.

=head1 METHODS

=head2 fixed

  my $values = Sirius::Config::Values->fixed($conf);

The values, as text, of the options that a reload cannot change.

=head2 parse

  my $conf = Sirius::Config::Values->parse(\%raw);

Takes names with dashes or underscores, aliases included, and returns a hash of checked values by their main names with
underscores. Missing values are taken from the environment, then from the file of C<config> (see
L<Sirius::Config::Sources>), then from the defaults. C<undef> counts as not given. C<listen> is the list of all
addresses, from C<listen>, C<host>, C<port> and C<socket>; C<workers> and C<workers_max> are the numbers of workers at
the start and at the most; C<notices> is a list of lines about options without effect.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Config::Options>, L<Sirius::Config::Sources>.

=cut
