package Sirius::Config::Foreign;

use strict;
use warnings;

# What replaces options of uWSGI, gunicorn, Puma, hypnotoad, NGINX Unit and nginx. A list of options, or a
# sentence
my %ADVICE = (
    'accepts'                  => '--max-reqs-per-child',
    'access-logfile'           => '--access-log',
    'access-logformat'         => '--access-log-format',
    'add-header'               => 'use middleware, or the proxy',
    'async'                    => 'a worker serves one request at a time: use more --workers',
    'attach-daemon'            => '--beside',
    'auto-procname'            => 'processes have titles unless --disable-proctitle is given',
    'bind'                     => '--listen',
    'buffer-size'              => '--max-header-bytes',
    'ca-certs'                 => '--tls-client-ca',
    'cache'                    => 'there is no cache: use a separate program',
    'carbon'                   => '--admin',
    'cert'                     => '--tls-cert',
    'certfile'                 => '--tls-cert',
    'cheaper'                  => 'use --workers MIN:MAX',
    'cheaper-algo'             => 'use --workers MIN:MAX; the load decides',
    'cheaper-initial'          => 'use --workers MIN:MAX; the load decides',
    'cheaper-step'             => 'use --workers MIN:MAX; the load decides',
    'check-static'             => 'use --static /=DIR',
    'chmod-socket'             => '--socket-mode',
    'chown-socket'             => '--socket-owner, --socket-group',
    'client-body-timeout'      => '--body-timeout',
    'client-header-timeout'    => '--header-timeout',
    'client-max-body-size'     => '--max-body',
    'clients'                  => '--max-connections',
    'cluster'                  => '--workers',
    'cron'                     => 'there is no scheduler: use cron or a timer of systemd',
    'daemon'                   => '--daemonize',
    'die-on-term'              => 'TERM always stops the server',
    'directory'                => '--chdir',
    'disable-logging'          => 'requests are logged only with --access-log',
    'emperor'                  => 'there is no emperor: run a server for each application, under systemd',
    'envdir'                   => '--env-file',
    'environment'              => '--env',
    'errorlog'                 => '--error-log',
    'evil-reload-on-rss'       => '--max-rss',
    'first-worker-timeout'     => '--load-timeout',
    'forwarded-allow-ips'      => '--trust-proxy',
    'fs-reload'                => 'use sirius ctl reload, or send HUP',
    'gid'                      => '--group',
    'harakiri'                 => '--request-timeout',
    'harakiri-verbose'         => '--request-timeout and --slow-log log the URL and the stack',
    'heartbeat-timeout'        => '--request-timeout',
    'hook-post-fork'           => '--after-fork',
    'http'                     => '--listen',
    'http-socket'              => '--listen',
    'http-timeout'             => '--write-timeout, --header-timeout, --body-timeout',
    'http11-socket'            => '--listen',
    'https'                    => 'use --listen ADDRESS,tls with --tls-cert and --tls-key',
    'https-socket'             => 'use --listen ADDRESS,tls with --tls-cert and --tls-key',
    'idle'                     => 'use --workers MIN:MAX; the load decides',
    'inactivity-timeout'       => '--write-timeout, --keepalive-timeout',
    'keep-alive'               => '--keepalive-timeout',
    'keep-alive-timeout'       => '--keepalive-timeout',
    'keyfile'                  => '--tls-key',
    'lazy'                     => 'use -L Delayed',
    'lazy-apps'                => 'use -L Delayed',
    'limit-post'               => '--max-body',
    'limit-request-field-size' => '--max-header-bytes',
    'limit-request-fields'     => '--max-header-fields',
    'limit-request-line'       => '--max-request-line',
    'log-format'               => '--access-log-format',
    'log-level'                => 'the error log has all levels: see --log-prefix',
    'log-reopen'               => 'send USR1',
    'log-x-forwarded-for'      => '--trust-proxy',
    'logto'                    => '--error-log',
    'manage-script-name'       => '--path',
    'master'                   => 'not needed, as there is always a supervisor',
    'master-fifo'              => '--control',
    'max-requests-delta'       => '--min-reqs-per-child',
    'max-requests-jitter'      => '--min-reqs-per-child',
    'max-vars'                 => '--max-header-fields',
    'max-worker-lifetime'      => '--max-lifetime',
    'mount'                    => '--path',
    'mule'                     => 'there are no mules: use --beside with a separate program',
    'need-app'                 => 'an application that does not load always ends the start',
    'offload-threads'          => 'the edge always sends files',
    'perl-auto-reload'         => 'use sirius dev',
    'perl-exec'                => '-M, --after-fork',
    'perl-exec-post-fork'      => '--after-fork',
    'perl-local-lib'           => '-I',
    'persistent-timeout'       => '--keepalive-timeout',
    'plugin'                   => 'not needed: name the file of the application',
    'plugins'                  => 'not needed: name the file of the application',
    'post-buffering'           => 'bodies are always buffered: see --body-memory',
    'preload' => 'the application is always loaded before the workers are forked, unless -L Delayed is given',
    'processes'            => '--workers',
    'procname'             => 'processes have titles unless --disable-proctitle is given',
    'proxy'                => '--trust-proxy',
    'psgi'                 => 'name the file of the application, or use --app',
    'psgi-enable-psgix-io' => 'psgix.io is always there',
    'reload-mercy'         => '--graceful-timeout',
    'reload-on-as'         => '--max-rss',
    'reload-on-rss'        => '--max-rss',
    'req-logger'           => '--access-log',
    'requests'             => '--max-keepalive-reqs',
    'route'                => 'there are no rules: use middleware, or the proxy',
    'shutdown-timeout'     => '--graceful-timeout',
    'single-interpreter'   => 'not needed: a worker has one interpreter',
    'so-keepalive'         => '--keepalive-timeout',
    'socket-timeout'       => '--write-timeout, --header-timeout, --body-timeout',
    'spare'                => 'not needed: a reload starts all new workers before the old ones end',
    'spooler'              => 'there is no spooler: use --beside with a separate program',
    'static-gzip-all'      => 'compressed files beside those of --static are always sent',
    'static-index'         => 'use --static PREFIX=DIR,index',
    'static-map'           => '--static',
    'stats'                => '--admin',
    'statsd'               => '--admin',
    'thread'               => 'a worker serves one request at a time: use more --workers',
    'threads'              => 'a worker serves one request at a time: use more --workers',
    'thunder-lock'         => 'not needed: no two workers wait for the same socket',
    'touch-chain-reload'   => 'use sirius ctl reload, or send HUP',
    'touch-logreopen'      => 'send USR1',
    'touch-reload'         => 'use sirius ctl reload, with --control',
    'touch-workers-reload' => 'use sirius ctl reload, or send HUP',
    'transformation-gzip'  => 'use Plack::Middleware::Deflater, or the proxy',
    'trusted-proxies'      => '--trust-proxy',
    'uid'                  => '--user',
    'upgrade-timeout'      => '--load-timeout',
    'vacuum'               => 'unix sockets and the file of --pid are always removed at the end',
    'worker'               => '--workers',
    'worker-class'        => 'there is one kind of worker, which serves one request at a time: see --workers',
    'worker-connections'  => '--max-connections',
    'worker-processes'    => '--workers',
    'worker-reload-mercy' => '--graceful-timeout',
    'worker-timeout'      => '--request-timeout',
    'worker-tmp-dir'      => '--tmpdir',
    'wsgi-file'           => 'name the file of the application, or use --app',
);

sub advice {
    my ( $class, $name ) = @_;
    $name =~ tr/_/-/;
    my ($key)  = grep { exists $ADVICE{$_} } $name, $name =~ /\A(statsd)-/ or return;
    my $advice = $ADVICE{$key};
    my @names  = split /, (?=--)/, $advice;
    return ": $advice" if grep { !/\A--[\w-]+\z/ } @names;
    return '(did you mean ' . join( ' or ', @names ) . '?)';
}

sub names {
    my @names = sort keys %ADVICE;
    return @names;
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Foreign - what replaces options of other servers

=head1 SYNOPSIS

  use Sirius::Config::Foreign;

  print Sirius::Config::Foreign->advice('bind');      # (did you mean --listen?)
  print Sirius::Config::Foreign->advice('master');    # : not needed, as there is always a supervisor

=head1 DESCRIPTION

Options that Sirius does not have, but uWSGI, gunicorn, Puma, hypnotoad, NGINX Unit or nginx. F<docs/MIGRATING.md> has tables for some of
these servers; a test compares its table of uWSGI with this one. Options of Starlet, Starman, Gazelle and Monoceros are accepted, or
named as without effect (L<Sirius::Config::Options>).

=head1 METHODS

=head2 advice

  my $text = Sirius::Config::Foreign->advice($name);

What to do in place of this option, to follow the words "unknown option --bind"; undef if the name is unknown here too.

=head2 names

All these names.

=head1 SEE ALSO

L<Sirius::Config::Options>.

=cut
