use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Shop;

BEGIN { skip_without('Catalyst') }

# A Catalyst application, end to end. Its responses are always delayed, with a writer once it writes

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 64k), listeners() );
BEGIN { $ENV{CATALYST_HOME} = File::Spec->tmpdir }
package Shop::Controller::Root;
BEGIN { $INC{'Shop/Controller/Root.pm'} = __FILE__ }
use Moose;
use Digest::MD5;
use File::Spec;
use JSON::PP;
BEGIN { extends 'Catalyst::Controller' }
__PACKAGE__->config( namespace => '' );
sub fields { my $in = shift; join ';', map { my $k = $_; map {"$k=$_"} ref $in->{$k} ? @{ $in->{$k} } : $in->{$k} } sort keys %$in }
sub index : Path Args(0) { $_[1]->res->content_type('text/plain; charset=utf-8'); $_[1]->res->body("Hello \x{263A}") }
sub default : Path { $_[1]->res->status(404); $_[1]->res->body('no such page') }
sub query : Local { $_[1]->res->body( fields( $_[1]->req->query_params ) ) }
sub form : Local POST { $_[1]->res->body( fields( $_[1]->req->body_params ) ) }
sub json : Local POST Consumes(JSON) {
    my ( undef, $c ) = @_;
    my $in = $c->req->body_data;
    $c->res->content_type('application/json');
    $c->res->body( JSON::PP->new->encode( { sum => $in->{a} + $in->{b} } ) );
}
sub upload : Local POST {
    my ( undef, $c ) = @_;
    my $file = $c->req->upload('file');
    $c->res->body( join ' ', $file->filename, $file->type, $file->size, Digest::MD5::md5_hex( $file->slurp ), $c->req->params->{note} );
}
sub count : Local {
    my ( undef, $c ) = @_;
    my $n = 1 + ( $c->req->cookies->{n} ? $c->req->cookies->{n}->value : 0 );
    $c->res->cookies->{n} = { value => $n };
    $c->res->body($n);
}
sub go : Local { $_[1]->res->redirect( $_[1]->uri_for( '/query', { a => 1 } ) ) }
sub empty : Local { $_[1]->res->status(204) }
sub die : Local { die "on purpose\n" }
sub self : Local {
    open my $in, '<', __FILE__ or die "$!";
    $_[1]->res->content_type('text/plain');
    $_[1]->res->body($in);
}
sub later : Local { $_[1]->res->write("part $_\n") for 1 .. 3 }
sub writer : Local { my $w = $_[1]->res->write_fh; $w->write("part $_\n") for 1 .. 3; $w->close }
sub thing : Local Args(1) { local $/; my $in = $_[1]->req->body; $_[1]->res->body( "$_[2]=" . readline $in ) }

package Shop;
use Moose;
use Catalyst;
__PACKAGE__->config( name => 'Shop', encoding => 'UTF-8' );
__PACKAGE__->setup;
Shop->psgi_app;
APP
shop($server);

subtest 'cookies' => sub {
    my $cookie = '';
    for ( 1 .. 3 ) {
        my $answer = $server->ask( 'GET /count', $cookie || () );
        is $answer->body, $_, "request $_";
        $cookie = 'Cookie: ' . ( $answer->header('Set-Cookie') =~ /\A([^;]+)/ )[0];
    }
};

subtest 'responses that are more than a string' => sub {
    my $client = $server->connect;
    my $text   = Sirius::Test::Server::slurp( $server->dir . '/app.psgi' );
    for ( [ later => 'written' ], [ writer => 'written to a handle' ] ) {
        my $answer = $client->ask("GET /$_->[0]");
        is $answer->body,                        "part 1\npart 2\npart 3\n", $_->[1];
        is $answer->header('Transfer-Encoding'), 'chunked', 'chunked: the length was not known';
    }
    is $client->ask('GET /self')->body, $text, 'a file';
};

# Catalyst gives STDERR a layer with a buffer, so its lines may come late
$server->stop;
like $server->log, qr/on purpose/, 'the exception was logged';
done_testing;
