# Dancer2 with Template Toolkit: a page with a layout, a list, JSON, a form with a session in a cookie
package Shop;
use Dancer2;
use FindBin ();

my $dir = __FILE__ =~ s{[^/]+\z}{}r;
set charset  => 'UTF-8';
set views    => "${dir}views";
set template => 'template_toolkit';
set layout   => 'main';
set logger   => 'null';

my @goods = map { { name => "thing $_", price => 3 * $_, tags => [ 'red', "no$_" ] } } 1 .. 40;

get '/'     => sub { return template 'index', { title => 'Shop', goods => [ @goods[ 0 .. 9 ] ] } };
get '/list' => sub {
    return template 'list', { title => 'List', goods => \@goods, from => query_parameters->get('from') };
};
get '/json'      => sub { send_as JSON => { goods => \@goods } };
get '/thing/:id' => sub {
    my $thing = $goods[ route_parameters->get('id') ] or send_error 'no such thing', 404;
    cookie seen => $thing->{name};
    return template 'thing', { title => $thing->{name}, thing => $thing };
};
post '/search' => sub {
    my $word = body_parameters->get('word') // '';
    return template 'list', { title => $word, goods => [ grep { $_->{name} =~ /\Q$word/ } @goods ] };
};

Shop->to_app;
