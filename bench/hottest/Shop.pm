package Shop;
use Moose;
use Catalyst;
extends 'Catalyst';
use DBI;
use Work;

my $db;

sub db {
    return $db if $db;
    $db = DBI->connect( 'dbi:SQLite:dbname=:memory:', q(), q(), { RaiseError => 1 } );
    $db->do('create table item (id integer, amount integer, name text, date text)');
    my $insert = $db->prepare('insert into item values (?, ?, ?, ?)');
    $db->begin_work;
    $insert->execute( @$_{qw(id amount name date)} ) for @{ Work::parse() };
    $db->commit;
    return $db;
}

__PACKAGE__->config( name => 'Shop', disable_component_resolution_regex_fallback => 1 );
__PACKAGE__->log( Catalyst::Log->new('fatal') );
__PACKAGE__->setup;

1;
