# A WebSocket in a Catalyst application: an action asks the handler, so that it has what each action has,
# sessions too.
use strict;
use warnings;

package Votes::Controller::Root;
BEGIN { $INC{'Votes/Controller/Root.pm'} = __FILE__ }
use Moose;
BEGIN { extends 'Catalyst::Controller' }
use Sirius::Channel;
use Sirius::WebSocket;

__PACKAGE__->config( namespace => '' );

my $votes = Sirius::WebSocket->new(
    on_open    => sub { my ($ws) = @_; $ws->accept->subscribe('votes') },
    on_message => sub {
        my ( $ws, $text ) = @_;
        return $ws->close( 4000, 'yes or no' ) if $text !~ /\A(?:yes|no)\z/;
        Sirius::Channel->publish( votes => $text );
    },
);

sub index : Path Args(0) {
    my ( $self, $c ) = @_;
    $c->response->content_type('text/html');
    $c->response->body(<<'HTML');
<!DOCTYPE html>
<title>Votes</title>
<button>yes</button> <button>no</button> <p></p>
<script>
const votes = new WebSocket(location.origin.replace(/^http/, 'ws') + '/votes');
votes.onmessage = event => { document.querySelector('p').textContent += event.data + ' '; };
for (const button of document.querySelectorAll('button')) button.onclick = () => votes.send(button.textContent);
</script>
HTML
    return;
}

sub votes : Local Args(0) {
    my ( $self, $c ) = @_;
    $c->response->from_psgi_response( $votes->call( $c->request->env ) );
    return;
}

package Votes;    ## no critic (MultiplePackages)
use Catalyst;

__PACKAGE__->setup;
__PACKAGE__->psgi_app;
