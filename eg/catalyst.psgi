# A Catalyst application in one file. One with folders of its own: sirius -I lib script/hello.psgi
#
# It is set up once, before the workers are forked. Connections of its models that are made by then would be
# shared by all workers: those of DBIx::Class are not, they notice the fork. Behind a proxy give --trust-proxy
# to the server instead of using_frontend_proxy to the application.
use strict;
use warnings;

package Hello::Controller::Root;
BEGIN { $INC{'Hello/Controller/Root.pm'} = __FILE__ }
use Moose;
BEGIN { extends 'Catalyst::Controller' }

__PACKAGE__->config( namespace => '' );

sub index : Path Args(0) {
    my ( $self, $c ) = @_;
    $c->response->body( 'Hello ' . ( $c->request->query_params->{name} || 'World' ) );
    return;
}

# Written piece by piece, it holds its worker until the action returns
sub count : Local Args(0) {
    my ( $self, $c ) = @_;
    $c->response->write("$_\n") for 1 .. 3;
    return;
}

package Hello;    ## no critic (MultiplePackages)
use Catalyst;

__PACKAGE__->setup;
__PACKAGE__->psgi_app;
