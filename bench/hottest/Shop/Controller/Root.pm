package Shop::Controller::Root;
use Moose;
BEGIN { extends 'Catalyst::Controller' }

__PACKAGE__->config( namespace => q() );

sub index : Path : Args(0) {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $c ) = @_;
    my $rows = $c->db->selectall_arrayref( 'select * from item order by amount, name', { Slice => {} } );
    $c->db->selectall_arrayref( 'select * from item limit 1200', { Slice => {} } );
    Work::all();
    $c->res->body( join "\n", map { join q(,), @$_{qw(id name amount date)} } @$rows[ 0 .. 199 ] );
    return;
}

1;
