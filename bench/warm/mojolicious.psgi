# Mojolicious with its own templates: a page with a layout, a list, JSON, a thing with a session in a cookie,
# a form
use Mojolicious::Lite;

app->secrets( ['bench'] );
app->log->level('fatal');
app->mode('production');

my @goods = map { { name => "thing $_", price => 3 * $_, tags => [ 'red', "no$_" ] } } 1 .. 40;

get '/' => sub { shift->render( 'index', title => 'Shop', goods => [ @goods[ 0 .. 9 ] ] ) };
get '/list' =>
    sub { my $c = shift; $c->render( 'list', title => 'List', goods => \@goods, from => $c->param('from') ) };
get '/json'      => sub { shift->render( json => { goods => \@goods } ) };
get '/thing/:id' => sub {
    my $c     = shift;
    my $thing = $goods[ $c->param('id') ] or return $c->reply->not_found;
    $c->session( seen => $thing->{name} );
    return $c->render( 'thing', title => $thing->{name}, thing => $thing );
};
post '/search' => sub {
    my $c    = shift;
    my $word = $c->param('word') // '';
    return $c->render(
        'list',
        title => $word,
        from  => 0,
        goods => [ grep { $_->{name} =~ /\Q$word/ } @goods ]
    );
};

app->start;

__DATA__

@@ layouts/main.html.ep
<!DOCTYPE html>
<html><head><title><%= title %></title></head>
<body>
% for my $entry (qw(list json thing/1)) {
%= link_to ucfirst $entry => "/$entry"
% }
<%= content %>
</body></html>

@@ index.html.ep
% layout 'main';
<h1><%= title %></h1>
<ul>
% for my $thing (@$goods) {
<li><%= $thing->{name} %>: <%= $thing->{price} %> (<%= join ', ', @{ $thing->{tags} } %>)</li>
% }
</ul>

@@ list.html.ep
% layout 'main';
<table>
% for my $thing (@$goods) {
<tr><td><%= $thing->{name} %></td><td><%= sprintf '%6.2f', $thing->{price} %></td></tr>
% }
</table>

@@ thing.html.ep
% layout 'main';
<h1><%= $thing->{name} %></h1>
<p><%= $thing->{price} * 1.19 %></p>
