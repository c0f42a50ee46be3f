package Sirius::Admin::App;

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Spec     ();
use Sirius::Admin::History;
use Sirius::Admin::Memory;
use Sirius::Admin::Metrics;
use Sirius::Admin::Profile;
use Sirius::Admin::Status;
use Sirius::Admin::Verdict;
use Sirius::Base::Page;

my $FOLDER = File::Spec->rel2abs( dirname(__FILE__) );

my %ROUTE = (
    '/'             => \&_page,
    '/healthz'      => \&_healthz,
    '/history.json' => \&_history,
    '/metrics'      => \&_metrics,
    '/profile'      => \&_take_profile,
    '/profile.html' => \&_profile,
    '/readyz'       => \&_readyz,
    '/stack.json'   => \&_stack,
    '/status.json'  => \&_status,
);

# What does something, by POST
my %ACTION = ( '/profile' => 1 );

# They show what clients ask for, or what the application does
my %PRIVATE = map { $_ => 1 } qw(/ /history.json /profile /profile.html /stack.json /status.json);

my @HEADERS = (
    'Cache-Control'                => 'no-store',
    'Cross-Origin-Opener-Policy'   => 'same-origin',
    'Cross-Origin-Resource-Policy' => 'same-origin',
    'Referrer-Policy'              => 'no-referrer',
    'X-Content-Type-Options'       => 'nosniff',
);
my $NOTHING = q{default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'};

sub look {
    my ( $self, $snapshot ) = @_;
    $self->{history}->look($snapshot);
    return $self->{history}->state;
}

sub new {
    my ( $class, %option ) = @_;
    my $self = bless { listeners => [], started => time, %option }, $class;
    $self->{memory}  = Sirius::Admin::Memory->new( line => $self->{line} );
    $self->{history} = Sirius::Admin::History->new( started => $self->{started} );
    $self->{history}->restore( @{ delete $self->{past} } ) if $self->{past};
    $self->{profile}
        = Sirius::Admin::Profile->new( $self->{line}, join ' on ', grep {defined} @{$self}{qw(app host)} );
    ( $self->{html}, my $policy ) = Sirius::Base::Page->assemble( $FOLDER, 'page.html' );
    $self->{policy} = "$NOTHING; connect-src 'self'; $policy";
    return $self;
}

sub to_app {
    my $self = shift;
    return sub {
        my $env      = shift;
        my $response = $self->_respond($env);
        push @{ $response->[1] }, 'Content-Length' => length $response->[2][0];
        $response->[2] = [] if $env->{REQUEST_METHOD} eq 'HEAD';
        return $response;
    };
}

sub _answer {
    my ( $status, $type, $body, @headers ) = @_;
    push @headers, 'Content-Security-Policy' => $NOTHING if !@headers;
    return [ $status, [ 'Content-Type' => $type, @HEADERS, @headers ], [$body] ];
}

# Against DNS rebinding: a foreign web page in an administrator's browser, whose name was made to resolve to
# this machine, would read the status as its own. The name shows in Host, and the request goes to a loopback
# address.
sub _by_other_name {
    my $env = shift;
    my ( $client, $host ) = map { defined $_ ? $_ : '' } @$env{qw(REMOTE_ADDR HTTP_HOST)};
    return 0 if $client !~ /\A(?:127\.|::1\z|::ffff:127\.)/;
    return $host !~ /\A(?:|[\d.]+|\[[\da-f:.]+\]|(?:[\w-]+\.)*localhost)(?::\d+)?\z/ia;
}

# A foreign web page in that browser can send a request, although it can't read the answer. Browsers say from
# where; other clients do not
sub _by_other_page {
    my $env = shift;
    my ( $site, $origin, $host ) = @$env{qw(HTTP_SEC_FETCH_SITE HTTP_ORIGIN HTTP_HOST)};
    return $site ne 'same-origin' if defined $site;
    return defined $origin && $origin !~ m{\Ahttps?://\Q${\ ( $host // '' )}\E\z}i;
}

# With what takes the kernel some time
sub _figures {
    my $self     = shift;
    my $snapshot = $self->{snapshot}->();
    $self->{memory}->add( @{ $snapshot->{workers} } );
    return $snapshot;
}

sub _healthz { return _text( 200, 'ok' ) }

sub _history {
    my $self = shift;
    return _answer( 200, 'application/json', $self->{history}->json );
}

sub _metrics {
    my ( $self, $env ) = @_;
    my %figures = %{ $self->_figures };
    delete $figures{calls} if _by_other_name($env);    # paths
    my $text = Sirius::Admin::Metrics->text(
        \%figures,
        version => $self->{version},
        started => $self->{started}
    );
    return _answer( 200, 'text/plain; version=0.0.4; charset=utf-8', $text );
}

sub _page {
    my $self = shift;
    return _answer( 200, 'text/html; charset=utf-8',
        $self->{html}, 'Content-Security-Policy' => $self->{policy} );
}

# It has a policy of its own
sub _profile {
    my $self = shift;
    my $html = $self->{profile}->html
        // return _text( 404, 'No profile was taken. Take one on the status page, or by POST /profile' );
    return _answer( 200, 'text/html; charset=utf-8',
        $html, 'Content-Security-Policy' => q{frame-ancestors 'none'} );
}

sub _readyz {
    my $self    = shift;
    my $verdict = Sirius::Admin::Verdict->new( $self->{snapshot}->() );
    my $why     = $verdict->unready;
    return _text( 503, "not ready: $why" ) if defined $why;
    return _text( 200, join "\n", 'ready', $verdict->edges );
}

sub _refuse_name {
    return _text( 403,
        q{Open this page by IP address or as localhost: other names of a loopback address are refused.} );
}

sub _respond {
    my ( $self, $env ) = @_;
    my $path  = $env->{PATH_INFO} || '/';
    my $route = $ROUTE{$path}
        or return _text( 404, 'Not found. Available: ' . join q{ }, sort keys %ROUTE );
    my @may = $ACTION{$path} ? 'POST' : qw(GET HEAD);
    return _text( 405, 'The method must be ' . join( ' or ', @may ), Allow => join ', ', @may )
        if !grep { $_ eq $env->{REQUEST_METHOD} } @may;
    return _refuse_name() if $PRIVATE{$path} && _by_other_name($env);
    return _text( 403, 'This was asked for by a page of elsewhere' )
        if $ACTION{$path} && _by_other_page($env);
    local $@;
    my $response = eval { $self->$route($env) };
    return $response if $response;
    chomp( my $error = $@ );
    $env->{'psgi.errors'}->print("sirius: --admin: $error\n");
    return _text( 500, 'The figures cannot be read; see the error log' );
}

# What a worker does now
sub _stack {
    my ( $self, $env ) = @_;
    my ($pid) = ( $env->{QUERY_STRING} // '' ) =~ /\Apid=([1-9][0-9]{0,9})\z/
        or return _text( 400, 'The PID of a worker is missing: /stack.json?pid=4711' );
    my $json = eval { $self->{profile}->stack($pid) };
    return _answer( 200, 'application/json', "$json\n" ) if defined $json;
    return _text( $@ =~ /\Athere is no worker/ ? 404 : 503, $@ =~ s/\n\z//r );
}

sub _status {
    my $self     = shift;
    my $snapshot = $self->_figures;
    my $verdict  = Sirius::Admin::Verdict->new( $snapshot, $self->{history}->errors($snapshot) );
    return _answer(
        200,
        'application/json',
        Sirius::Admin::Status->json(
            $snapshot,
            ( map { $_ => $self->{$_} } qw(app host listeners pid started version) ),
            profile => $self->{profile}->state,
            verdict => $verdict->worst,
        )
    );
}

# It is ready after some seconds
sub _take_profile {
    my $self = shift;
    return _text( 202, 'A profile is being taken. It will be at /profile.html' )
        if eval { $self->{profile}->begin; 1 };
    return _text( 503, $@ =~ s/\n\z//r );
}

sub _text {
    my ( $status, $text, @headers ) = @_;
    push @headers, 'Content-Security-Policy' => $NOTHING;
    return _answer( $status, 'text/plain; charset=utf-8', "$text\n", @headers );
}

1;

=encoding utf8

=head1 NAME

Sirius::Admin::App - status page, metrics and probes of the admin port

=head1 SYNOPSIS

  use Sirius::Admin::App;

  my $app = Sirius::Admin::App->new(
      snapshot  => sub { Sirius::Scoreboard->snapshot },
      version   => Sirius->VERSION,
      started   => $epoch,
      listeners => ['http://0.0.0.0:5000/'],
      pid       => $supervisor,
  )->to_app;

=head1 DESCRIPTION

A PSGI application that shows the figures of a server. A separate process serves it, so requests of the server's
clients cannot delay it.

=over 4

=item C</>

A page for people. It is one document that loads nothing from elsewhere. It requests C</status.json> twice a second,
and nothing while it is hidden.

=item C</status.json>

The snapshot of L<Sirius::Scoreboard>, with C<verdict> (L<Sirius::Admin::Verdict/worst>), C<profile> (L<Sirius::Admin::Profile/state>), C<version>, C<pid>, C<listeners>, C<started> and C<uptime>;
see L<Sirius::Admin::Status>. Each worker also has C<private>, its memory that it shares with no other process (L<Sirius::Admin::Memory>).

=item C</stack.json?pid=4711>

What a worker does now, with its stack (L<Sirius::Admin::Profile/stack>). 404 if there is no such worker, 503 with the reason if its stack
cannot be read.

=item C</profile>, C</profile.html>

POST to the first takes a profile of all workers for ten seconds: 202, or 503 with the reason. If one is being taken, it begins no other.
Afterwards the second has its flame graph (L<Sirius::Profile::FlameGraph>), and 404 before the first one. C<profile> of C</status.json> tells how
far it is.

=item C</history.json>

The samples of the last five minutes, which the page asks for when it is opened; see L<Sirius::Admin::History>.

=item C</metrics>

The same for Prometheus, without addresses and URLs, but with paths, whose ids are left out; see L<Sirius::Admin::Metrics>.

=item C</healthz>

200 whenever there is an answer: the supervisor lives.

=item C</readyz>

200 while requests are served: the server is not stopping, and a worker of the newest generation that has started is idle or
busy. Else 503, and the reason as text. Further lines say what is wrong with edges. A reload changes nothing here, as the old generation serves until the new one does.

=back

Other methods get 405. No answer may be cached. If the snapshot cannot be read, the
answer is 500 and the log has the reason.

All but metrics and probes show who requests what, or what the application does, so other web pages in the same browser must not
read them. Their values are never inserted as HTML, because clients choose URLs. The Content-Security-Policy of the
page allows only its own scripts, by their hashes. On a loopback address these answer only if the Host field is
an IP address or C<localhost>, because the owner of another name can make it resolve to this address. A profile is not taken for a page of
elsewhere, of which C<Sec-Fetch-Site> or C<Origin> tell. C</metrics>,
C</healthz> and C</readyz> answer to any name, but then without paths.

=head1 METHODS

=head2 look

  my $bytes = $admin->look( \%snapshot );

Takes a sample for C</history.json>, and returns all samples for the successor of this process. Call it every
C<Sirius::Admin::History::EVERY> seconds.

=head2 new

  my $admin = Sirius::Admin::App->new(%option);

=over 4

=item C<snapshot>

Code that returns a snapshot; called once for each answer that needs one.

=item C<past>

What L</look> has last returned in the predecessor of this process, and the present monotonic time.

=item C<app>, C<host>, C<version>, C<started>, C<listeners>, C<pid>

What is shown of the server: the name of the application, the name of the machine, the version, the time of the start
(seconds since 1970), the URLs on which it listens, the PID of its supervisor.

=back

Reads the files of the page, which are beside this module, and dies with one line if they are missing.

=head2 to_app

The application. It never dies.

=head1 SEE ALSO

L<Sirius::Admin::Metrics>, L<Sirius::Admin::Status>, L<Sirius::Admin::Memory>, L<Sirius::Admin::Profile>, L<Sirius::Scoreboard>, F<docs/OBSERVABILITY.md>.

=cut
