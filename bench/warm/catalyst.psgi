# Catalyst with Template Toolkit, by hand: a page, a list, JSON, a thing with a cookie, a form
use strict;
use warnings;

package Shop::Controller::Root;
BEGIN { $INC{'Shop/Controller/Root.pm'} = __FILE__ }
use Moose;
use JSON::MaybeXS ();
use Template;
BEGIN { extends 'Catalyst::Controller' }

__PACKAGE__->config( namespace => '' );

my $dir      = __FILE__ =~ s{[^/]+\z}{}r;
my $template = Template->new( INCLUDE_PATH => "${dir}views", WRAPPER => 'layouts/main.tt' );
my @goods    = map { { name => "thing $_", price => 3 * $_, tags => [ 'red', "no$_" ] } } 1 .. 40;

sub render {
    my ( $c, $name, %values ) = @_;
    $template->process( "$name.tt", \%values, \my $text ) or die $template->error;
    $c->response->content_type('text/html; charset=utf-8');
    $c->response->body($text);
    return;
}

sub index : Path Args(0) {
    my ( $self, $c ) = @_;
    return render( $c, 'index', title => 'Shop', goods => [ @goods[ 0 .. 9 ] ] );
}

sub list : Local Args(0) {
    my ( $self, $c ) = @_;
    return render( $c, 'list', title => 'List', goods => \@goods, from => $c->request->query_params->{from} );
}

sub json : Local Args(0) {
    my ( $self, $c ) = @_;
    $c->response->content_type('application/json');
    $c->response->body( JSON::MaybeXS::encode_json( { goods => \@goods } ) );
    return;
}

sub thing : Local Args(1) {
    my ( $self, $c, $id ) = @_;
    my $thing = $goods[$id];
    $c->response->cookies->{seen} = { value => $thing->{name} };
    return render( $c, 'thing', title => $thing->{name}, thing => $thing );
}

sub search : Local Args(0) {
    my ( $self, $c ) = @_;
    my $word = $c->request->body_params->{word} // '';
    return render( $c, 'list', title => $word, goods => [ grep { $_->{name} =~ /\Q$word/ } @goods ] );
}

sub default : Path {
    my ( $self, $c ) = @_;
    $c->response->status(404);
    $c->response->body('none');
    return;
}

package Shop;    ## no critic (MultiplePackages)
use Catalyst;

__PACKAGE__->config( 'Plugin::ConfigLoader' => {} );
__PACKAGE__->setup;
__PACKAGE__->psgi_app;
