# A guestbook in SQLite, with one database connection for each worker: see dbi.conf
package Guestbook;
use strict;
use warnings;
use DBI;
use Plack::Request;

my $SOURCE = $ENV{GUESTBOOK} || 'dbi:SQLite:dbname=guestbook.db';

# Called by --after-fork: no request pays for the connection. Called by each request: connect_cached gives the
# same connection while it lives, and a new one when it was lost.
sub database {
    return DBI->connect_cached( $SOURCE, '', '',
        { RaiseError => 1, PrintError => 0, AutoInactiveDestroy => 1 } );
}

# What is to be done once is done here, before the fork, with a connection that is closed again: all workers
# would share it, and read each other's answers. The server warns of one that is left open.
my $once = DBI->connect( $SOURCE, '', '', { RaiseError => 1, PrintError => 0 } );
$once->do('CREATE TABLE IF NOT EXISTS guest (name TEXT NOT NULL)');
$once->disconnect;

sub {
    my $request = Plack::Request->new(shift);
    my $name    = $request->body_parameters->{name};
    if ( $request->method eq 'POST' && defined $name ) {
        database()->do( 'INSERT INTO guest VALUES (?)', undef, $name );
        return [ 303, [ Location => '/' ], [] ];
    }
    my $names = database()->selectcol_arrayref('SELECT name FROM guest ORDER BY rowid DESC LIMIT 100');
    return [ 200, [ 'Content-Type' => 'text/plain; charset=utf-8' ], [ map {"$_\n"} @{$names} ] ];
};
