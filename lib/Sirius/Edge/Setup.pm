package Sirius::Edge::Setup;

use strict;
use warnings;

use List::Util qw(max);
use Sirius::Config::Lane;
use Sirius::Config::Static;
use Sirius::Edge::Shared;
use Sirius::Edge::Types;
use Sirius::Worker;

# How each word is made that concerns an option: as the option is, as 1 or 0, or below (src/share/words.h)
my %FROM     = Sirius::Edge::Shared->words;
my @PLAIN    = grep { $FROM{$_} eq 'option' } sort keys %FROM;
my @SWITCHES = grep { $FROM{$_} eq 'onoff' } sort keys %FROM;

# sr_informational
my %INFORMATIONAL = ( direct => 0, on => 1, off => 2 );

# sr_holds
my %HOLD = ( none => 0, all => 1, own => 2 );

# sr_http2
my %HTTP2 = ( off => 0, on => 1, built => 2 );

# Slow requests that are logged in a minute, by all edges together
use constant SLOW_LOG_MAX => 20;

# As lingering_timeout of nginx
use constant LINGER => 5;

# Accepts known settings only, and only text: it comes from a process that may have dropped its privileges
sub known {
    my ( $class, $said ) = @_;
    return if ref( $said || 0 ) ne 'ARRAY' || grep { !defined || ref || /[\0\n]/ } @$said;
    return [ grep { /\A([a-z0-9-]+)=/ && $FROM{ $1 =~ tr/-/_/r } } @$said ];
}

# The operator's settings as words that can be compared and passed on
sub of {
    my ( $class, $conf ) = @_;
    my $trust   = $conf->{trust_proxy} || { networks => [] };
    my %setting = (
        ( map { $_ => $conf->{$_} } @PLAIN ),
        ( map { $_ => $conf->{$_} ? 1 : 0 } @SWITCHES ),
        $class->_log_setup($conf),
        acme_webroot => defined $conf->{acme_webroot}
            && Sirius::Config::Static->webroot( $conf->{acme_webroot} ),
        forwarded       => $trust->{forwarded}                  ? 1                       : 0,
        half_closed     => $conf->{half_closed} eq 'serve'      ? 1                       : 0,
        https_port      => ( $conf->{https_redirect} || 0 ) > 1 ? $conf->{https_redirect} : undef,
        https_redirect  => $conf->{https_redirect}              ? 1                       : undef,
        informational   => $INFORMATIONAL{ $conf->{informational} || 'direct' },
        http2           => _http2($conf),
        hold            => $HOLD{ $conf->{hold} ? 'all' : $conf->{live_reload} ? 'own' : 'none' },
        layout          => Sirius::Edge::Shared->layout,             # of the workers that read these settings
        linger_timeout  => LINGER,
        max_connections => Sirius::Worker->max_connections($conf),
        server          => $conf->{server_software},
        slow_log_max    => max( 2, int SLOW_LOG_MAX / ( $conf->{edges} || 1 ) ),
        tmpdir_is       => _identity( $conf->{tmpdir} ),
        underscores         => $conf->{underscores_in_headers} ne 'off'     ? 1 : 0,
        trusted_underscores => $conf->{underscores_in_headers} eq 'trusted' ? 1 : 0,
        websocket           => $conf->{websocket} && join( q{ }, @{ $conf->{websocket} } ),
        trust_proxy         => join( ',', @{ $trust->{networks} } ),
        x_forwarded_host    => $trust->{'x-forwarded-host'} ? 1 : 0,
        x_forwarded_port    => $trust->{'x-forwarded-port'} ? 1 : 0,
    );
    my @folders = map {"static=$_"} Sirius::Config::Static->words( $conf->{static}, $conf->{develop} );
    $setting{types} = Sirius::Edge::Types->text if @folders;
    return $class->words(%setting), @folders, map {"lane=$_"} Sirius::Config::Lane->words($conf);
}

sub words {
    my ( $class, %setting ) = @_;
    return map { (tr/_/-/r) . "=$setting{$_}" }
        grep { defined $setting{$_} && length $setting{$_} } sort keys %setting;
}

sub _http2 {
    my $on = shift->{http2};
    return $HTTP2{ !defined $on ? 'built' : $on ? 'on' : 'off' };
}

# An edge holds its descriptor: another directory in its place needs another edge
sub _identity {
    my @stat = stat shift;
    return @stat ? "$stat[0]:$stat[1]" : undef;
}

sub _log_setup {
    my ( $class, $conf ) = @_;
    return if !defined $conf->{access_log}  || !length $conf->{access_log};
    my $format = $conf->{access_log_format} || 'combined';
    utf8::encode($format) if utf8::is_utf8($format) && !utf8::downgrade( $format, 1 );
    return (
        access_log_at_once     => $conf->{request_log}            ? 1 : 0,
        access_log_errors_only => $conf->{access_log_errors_only} ? 1 : 0,
        access_log_format      => $format,
        access_log_min_time    => $conf->{access_log_min_time} || 0,
    );
}

1;

=encoding utf8

=head1 NAME

Sirius::Edge::Setup - the options that concern the edge, as words of its command line

=head1 SYNOPSIS

  my @words = Sirius::Edge::Setup->of($conf);    # max-body=1073741824 ...

=head1 DESCRIPTION

Words can be compared, and handed on: from one version of Sirius to the next, and to C<sirius-edge>, which reads them in
F<src/share/words.h>.

=head1 METHODS

=head2 known

  my $words = Sirius::Edge::Setup->known($data);

The settings sent by another process that this version knows; nothing if they are malformed.

=head2 of

  my @words = Sirius::Edge::Setup->of($conf);

The settings of the operator.

=head2 words

  my @words = Sirius::Edge::Setup->words( max_body => 100, tmpdir => undef );    # max-body=100

Names and values as such words. What is undefined or empty is left out.

=head1 SEE ALSO

L<Sirius::Edge::Group>, L<Sirius::Config::Options>.

=cut
