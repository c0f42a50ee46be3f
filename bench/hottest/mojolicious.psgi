# Mojolicious with its templates
use strict;
use warnings;

use lib $ENV{HOTTEST};
use Mojolicious::Lite;
use Work;

app->log->level('fatal');
get '/' => sub {
    my $c = shift;
    $c->stash( %{ Work::all() }, title => 'Report' );
    $c->render('report');
};
app->start('psgi');

__DATA__
@@ report.html.ep
<h1><%= $title %></h1>
<p><%= $distance %> <%= $lines %> <%= $sum %> <%= $primes %> <%= $escaped %></p>
<table>
% for my $row (@$rows) {
<tr><td><%= $row->{id} %></td><td><%= $row->{name} %></td><td><%= $row->{amount} %></td><td><%= $row->{date} %></td></tr>
% }
</table>
