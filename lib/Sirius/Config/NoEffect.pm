package Sirius::Config::NoEffect;

use strict;
use warnings;

use Sirius::Config::Address;

# Options, and why they have no effect with the others: a text or nothing. If ignoring an option would be
# dangerous, Sirius::Config::Options reports an error instead
my @TABLE = (
    [   [qw(max-reqs-per-child min-reqs-per-child max-rss max-lifetime)] =>
            _alone('there is no worker to replace')
    ],
    [ [qw(before-fork after-fork)] => _alone('no worker is forked') ],
    [ [qw(on-reload)]              => _alone('the server cannot be reloaded') ],
    [ [qw(graceful-timeout)]       => _alone('a stop always waits for the current request') ],
    [ [qw(beside)]                 => _alone('no command is started') ],
    [ [qw(control)]                => _alone('the server does not listen to sirius ctl; use signals') ],
    [   [qw(spawn-interval err-respawn-interval)] =>
            sub { return _command(@_) ? () : _alone('no worker is started')->(@_) }
    ],
    [   [ qw(hold-buffer hold-per-client websocket websocket-max-message websocket-rate
            websocket-ping) ] => \&_hold
    ],
    [ [qw(admin-public)]                     => _without( 'admin',   'no --admin is given' ) ],
    [ [qw(warm-up-required warm-up-workers)] => _without( 'warm-up', 'no --warm-up is given' ) ],
    [ [qw(warm-up-workers)]                  => _alone('the warm-up is in the process that serves') ],
    [   [qw(access-log-format access-log-min-time access-log-errors-only)] =>
            _without( 'access-log', 'no --access-log is given' )
    ],
    [ [qw(socket-mode socket-owner socket-group)] => \&_socket ],
    [ [qw(backlog)]                               => \&_backlog ],
    [ [qw(keepalive-timeout max-keepalive-reqs)]  => \&_keepalive ],
    [   [qw(body-timeout)] => sub {
            my $conf = shift;
            return $conf->{body_rate} ? () : 'with --body-rate 0 no rate is measured';
        }
    ],
    [ [qw(timeout)] => \&_timeout ],
    [ [qw(http2)]   => \&_http2 ],
    [   [qw(hsts tls-min tls-ciphers tls-handshake-timeout)] => sub {
            my $conf = shift;
            return ( grep { Sirius::Config::Address->is_tls($_) } @{ $conf->{listen} } )
                ? ()
                : 'no address of --listen ends with ",tls"';
        }
    ],
    [ [qw(tls-ciphers)] => \&_ciphers ],
    [   [qw(acme-webroot)] => sub {
            my $conf = shift;
            return ( grep { !Sirius::Config::Address->is_tls($_) } @{ $conf->{listen} } )
                ? ()
                : 'all addresses of --listen speak TLS, but challenges come without: add --listen 0.0.0.0:80';
        }
    ],
    [   [qw(https-redirect)] => sub {
            my $conf = shift;
            return ( !$conf->{https_redirect}
                    || grep { !Sirius::Config::Address->is_tls($_) && !m{\Aunix:|\A\@|/} }
                    @{ $conf->{listen} } )
                ? ()
                : '--listen has no address without TLS that is not a unix socket: add --listen 0.0.0.0:80';
        }
    ],
);

sub of {
    my ( $class, $conf, $given, $default ) = @_;
    my @found;
    for my $entry (@TABLE) {
        my ( $names, $why ) = @$entry;
        for my $name (@$names) {
            my $key = $name =~ tr/-/_/r;
            next if !_set( $given->{$key}, $conf->{$key}, $default->{$key} );
            my $text = $why->( $conf, $given, $key );
            push @found, [ $name, $text ] if defined $text;
        }
    }
    return @found;
}

sub _alone {
    my $what = shift;
    return sub { my $conf = shift; return $conf->{workers} ? () : "with --workers 0 $what" };
}

# Another process has made the sockets, and they are listening already
sub _backlog {
    my $conf = shift;
    return if grep { !/\A(?:fd|systemd):/ } @{ $conf->{listen} }, @{ $conf->{admin} || [] };
    return 'the sockets of --listen were opened by another process';
}

# Without an address that speaks TLS, another line says so. @SECLEVEL is also a limit for keys, with any
# version
sub _ciphers {
    my $conf = shift;
    return if $conf->{tls_min} ne '1.3' || !grep { Sirius::Config::Address->is_tls($_) } @{ $conf->{listen} };
    return if grep {/\ATLS_|\@SECLEVEL=/} split /:/, $conf->{tls_ciphers};
    return 'with --tls-min 1.3 only ciphers of TLS 1.3 are used, whose names begin with TLS_';
}

# The intervals also apply to a command that reads the log
sub _command {
    my $conf = shift;
    return defined $conf->{access_log} && $conf->{access_log} =~ /\A\|/;
}

sub _hold {
    my ( $conf, undef, $key ) = @_;
    return 'no --hold is given' if !$conf->{hold};
    return                      if $key !~ /\Awebsocket_/ || ( $conf->{websocket} || [''] )->[0] ne 'off';
    return 'with --websocket off the server speaks no WebSocket';
}

sub _http2 {
    my $conf = shift;
    return if !$conf->{http2};
    return if grep { Sirius::Config::Address->is_tls($_) } @{ $conf->{listen} };
    return 'no address of --listen ends with ",tls", and those with ",h2c" speak HTTP/2 without it'
        if grep { Sirius::Config::Address->is_h2c($_) } @{ $conf->{listen} };
    return 'no address of --listen ends with ",tls"; without TLS write ",h2c"';
}

sub _keepalive {
    my ( $conf, $given, $key ) = @_;
    return if $key eq 'keepalive_timeout' && !$conf->{$key};    # 0 is what turns keep-alive off
    return 'with --keepalive-timeout 0 each connection is closed after one response'
        if !$conf->{keepalive_timeout};
    return 'with --disable-keepalive each connection is closed after one response' if !$conf->{keepalive};
    return 'with --max-keepalive-reqs 1 each connection is closed after one response'
        if $key eq 'keepalive_timeout' && $conf->{max_keepalive_reqs} == 1;
    return;
}

# Whether the option is given, and differs from its default
sub _set {
    my ( $given, $value, $default ) = @_;
    return 0 if !defined $given || defined $value && !ref $value && !length $value;
    return 1 if !defined $value || !defined $default || ref $value;
    return $value ne $default;
}

# For socket files that this server makes, and whose address does not set this itself
sub _socket {
    my ( $conf, $given, $key ) = @_;
    my $what = $key =~ s/\Asocket_//r;
    my @files
        = grep { !/\A(?:unix:)?\@/ && ( /\Aunix:/ || m{/} ) && !/\A(?:fd|systemd):/ } @{ $conf->{listen} };
    return '--listen has no unix socket with a path' if !@files;
    return                                           if grep { !/[?&]$what=/ } @files;
    return "each unix socket has a $what in its address";
}

sub _timeout {
    my ( $conf, $given ) = @_;
    return if grep { !defined $given->{$_} } qw(body_timeout write_timeout);
    return '--body-timeout and --write-timeout are given';
}

sub _without {
    my ( $name, $why ) = @_;
    my $key = $name =~ tr/-/_/r;
    return sub {
        my $value = shift->{$key};
        return ( ref $value ? @$value : defined $value && length $value ) ? () : $why;
    };
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::NoEffect - finds options that have no effect beside others

=head1 SYNOPSIS

  use Sirius::Config::NoEffect;

  for my $option ( Sirius::Config::NoEffect->of( $conf, $given, $default ) ) {
      my ( $name, $why ) = @$option;
      warn "--$name has no effect: $why\n";
  }

=head1 DESCRIPTION

When another option makes an option ineffective, the log says so at the start and at each reload, and names both. An
option that is given with its default value causes no message.

=head1 METHODS

=head2 of

  my @found = Sirius::Config::NoEffect->of( $conf, $given, $default );

A list of pairs, name and reason. C<$conf> is what L<Sirius::Config::Options/parse> has made of C<$given>, where options that were not given
are missing; C<$default> are the defaults, all by names with underscores.

=head1 SEE ALSO

L<Sirius::Config::Options>.

=cut
