package Sirius::Dev::LiveReload;

use strict;
use warnings;
use parent 'Plack::Middleware';

use Plack::Util ();
use Time::HiRes qw(time);

# All that is the server's own begins so
use constant { CHANNEL => 'sirius-live', PATH => '/__sirius/live' };

# Seconds in which a page may be on its way here; then it is one that a browser has kept
use constant MISSED => 10;

my $SCRIPT = <<'JS';
(() => {
    const [path, query] = document.currentScript.src.split(/[?]/);
    const [pid, time, number, made] = query.split('.'), shown = [pid, time, number].join('.');
    const events = new EventSource(path.replace(/[.]js$/, made ? '?' + made : ''));
    const again = () => { events.close(); location.reload(); };
    const file = link => {
        const url = new URL(link.href, location);
        try { return url.origin === location.origin && decodeURIComponent(url.pathname.split('/').pop()); } catch { return false; }
    };
    events.addEventListener('generation', event => { if (event.data !== shown) again(); });

    // A new link beside the old one, which goes when the new one is there: the page is never without a style
    events.addEventListener('styles', event => {
        const all = [...document.querySelectorAll('link[rel~="stylesheet"][href]')].filter(link => !link.dataset.siriusNext);
        const links = JSON.parse(event.data).map(name => all.filter(link => file(link) === name));
        if (links.some(of => !of.length)) return again();
        for (const old of new Set(links.flat())) {
            const link = old.cloneNode(), url = new URL(old.href, location);
            url.searchParams.set('sirius', Date.now());
            link.href = url.href;
            link.removeAttribute('integrity');
            old.dataset.siriusNext = 1;
            link.onload = () => old.remove();
            link.onerror = again;
            old.after(link);
        }
    });
    addEventListener('pagehide', () => events.close());
})();
JS

sub call {
    my ( $self, $env ) = @_;
    my $path = $env->{SCRIPT_NAME} . $env->{PATH_INFO};
    return $self->_script          if $path eq PATH . '.js';
    return $self->_subscribe($env) if $path eq PATH;
    my $response = $self->app->($env);
    return $response if !_is_page($env);
    return Plack::Util::response_cb( $response, sub { return $self->_add( $env, @_ ) } );
}

# What an event is on the wire
sub event {
    my ( $class, $name, $data ) = @_;
    return "event: $name\ndata: $data\n\n";
}

# For a page
sub script {
    my ( $class, $id ) = @_;
    return '<script src="' . PATH . qq(.js?$id"></script>);
}

# Before the end of a body that is there; after a body that comes in pieces, which goes out as it comes
sub _add {
    my ( $self, $env, $response ) = @_;
    my ( $status, $headers ) = @$response;
    my $type = Plack::Util::header_get( $headers, 'Content-Type' ) || '';
    return if $type !~ m{\A\s*(?:text/html|application/xhtml[+]xml)\b}i || $status == 206 || $status < 200;
    return if Plack::Util::status_with_no_entity_body($status);
    my $coding = Plack::Util::header_get( $headers, 'Content-Encoding' );
    return if defined $coding && $coding !~ /\A\s*identity\s*\z/i;
    my $script = $self->script( $self->{id} . sprintf '.%.0f', 1000 * time );
    if ( $type =~ /charset\s*=\s*"?utf-?(?:16|32)/i ) {return}
    Plack::Util::header_remove( $headers, $_ ) for qw(Content-Length ETag Content-MD5 Digest Last-Modified);

    if ( $response->[2] && ref $response->[2] eq 'ARRAY' ) {
        my $body = $response->[2];
        for my $i ( reverse 0 .. $#$body ) {
            next if !defined $body->[$i] || $body->[$i] !~ m{.*(?=</body\s*>)}is;
            $response->[2] = [
                @$body[ 0 .. $i - 1 ],
                substr( $body->[$i], 0, $+[0] ) . "$script\n" . substr( $body->[$i], $+[0] ),
                @$body[ $i + 1 .. $#$body ]
            ];
            return;
        }
        $response->[2] = [ @$body, $script ];
        return;
    }
    my $over;
    return sub {
        my $piece = shift;
        return $piece if defined $piece;
        return $over++ ? undef : $script;
    };
}

# A browser that shows what it gets; not a part of a page that a script asks for
sub _is_page {
    my $env = shift;
    return 0 if $env->{REQUEST_METHOD} !~ /\A(?:GET|HEAD|POST)\z/;
    return 0
        if lc( $env->{HTTP_X_REQUESTED_WITH} || '' ) eq 'xmlhttprequest' || exists $env->{HTTP_HX_REQUEST};
    my $for = $env->{HTTP_SEC_FETCH_DEST};
    return !defined $for || $for =~ /\A(?:document|iframe|frame)\z/ ? 1 : 0;
}

sub _script {
    return [
        200,
        [   'Content-Type'   => 'text/javascript; charset=utf-8',
            'Content-Length' => length $SCRIPT,
            'Cache-Control'  => 'no-store'
        ],
        [$SCRIPT]
    ];
}

# The edge keeps the connection, and this worker is free again. The page may be older than what was told while
# it was on its way
sub _subscribe {
    my ( $self, $env ) = @_;
    my $site = $env->{HTTP_SEC_FETCH_SITE};
    return [ 403, [ 'Content-Type' => 'text/plain' ], ["only for pages of this server\n"] ]
        if defined $site && $site !~ /\A(?:same-origin|none)\z/;
    return [ 405, [ 'Content-Type' => 'text/plain', Allow => 'GET' ], ["GET only\n"] ]
        if $env->{REQUEST_METHOD} ne 'GET';
    my $seen   = $self->{seen}->();
    my @fields = ( 'Content-Type' => 'text/event-stream', 'Cache-Control' => 'no-store' );
    my $retry  = "retry: 200\n\n";
    return [ 200, \@fields, [$retry] ] if !$seen;
    my ($made) = ( $env->{QUERY_STRING} // '' ) =~ /\A(\d{1,15})\z/;
    my @events
        = $self->event( generation => $seen->{generation} > $self->{number} ? $seen->{id} : $self->{id} );
    push @events, $self->event( generation => "again $seen->{again}" )
        if $made && $made < $seen->{again} && time - $seen->{again} / 1000 < MISSED;
    push @fields,
        'Grip-Hold'       => 'stream',
        'Grip-Channel'    => CHANNEL . "; prev-id=$seen->{number}",
        'Grip-Keep-Alive' => ':\n\n; format=cstring; timeout=30';
    return [ 200, \@fields, [ $retry, @events ] ];
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::LiveReload - has browsers load a page again when the code has changed

=head1 SYNOPSIS

  $app = Sirius::Dev::LiveReload->wrap( $app, id => $id, number => 3, seen => sub { Sirius::Dev::Audience->seen($handle) } );

=head1 DESCRIPTION

Middleware of C<sirius dev --live-reload>. It adds to each page, a response of the type C<text/html> that is not
compressed, the line

  <script src="/__sirius/live.js?ID.TIME"></script>

before the last C<< </body> >> if the body is a list of strings, else after the end of the body: a body that is streamed goes out
as it comes, and nothing of it is kept. The length, the ETag, the date and digests are removed from the response. Parts of pages that scripts ask
for (C<X-Requested-With>, C<HX-Request>, a C<Sec-Fetch-Dest> other than C<document>) stay as they are.

The script connects to F</__sirius/live>, a stream that the edge holds (F<docs/LIVE.md>), so an open page occupies no worker; what the
supervisor publishes (L<Sirius::Dev::Audience>) goes to it. Without C<--hold> no other response is held. TIME is when the page was made: a
style sheet that has changed since then may be missing in it.

When only style sheets have changed the page stays: links to files of these names, of the same server, are replaced by new
ones. If the page has none, as with C<@import>, it is loaded again.

A Content-Security-Policy must allow the script and the connection: C<script-src 'self'; connect-src 'self'> is enough, since
both come from the same server. With a policy of nonces or hashes alone the browser refuses the script, and says so in its
console; nothing else changes.

=head1 METHODS

=head2 call

The method of L<Plack::Middleware>.

=head2 event

  my $bytes = Sirius::Dev::LiveReload->event( generation => $id );

An event for the script: C<generation> with the name of the code that serves, or C<styles> with the names of style sheets in JSON.

=head2 script

  my $html = Sirius::Dev::LiveReload->script($id);

=head1 SEE ALSO

L<Sirius::Dev::Session>.

=cut
