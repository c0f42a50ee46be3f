# A Mojolicious application.
#
# Under PSGI each request is answered by one call: what the answer needs has to be there when the action
# returns. Timers, promises that wait for the event loop, and WebSockets need a server of Mojolicious itself.
# Sessions are cookies, so any worker knows them.
use Mojolicious::Lite;

app->secrets( [ $ENV{SECRET} || 'say something else' ] );
app->log->level('warn');    # to STDERR: --error-log takes it

get '/' => sub {
    my $c = shift;
    $c->render( text => 'Hello ' . ( $c->param('name') || 'World' ) );
};

get '/visits' => sub {
    my $c = shift;
    $c->render( text => ++$c->session->{visits} );
};

app->start;
