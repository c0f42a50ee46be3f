# Notifications in a Dancer2 application: an event stream that the server holds, for each user one channel.
#
# The route answers at once, with the fields that tell the server what to do with the connection. The worker
# is free then.
package News;
use Dancer2;
use Encode qw(encode_utf8);
use Sirius::Channel;

set charset => 'UTF-8';
set logger  => 'console';

get '/' => sub {
    return <<'HTML';
<!DOCTYPE html>
<title>News</title>
<ul></ul>
<script>
new EventSource('/events?user=ann').onmessage = event => {
    const item = document.createElement('li');
    item.textContent = event.data;
    document.querySelector('ul').prepend(item);
};
</script>
HTML
};

get '/events' => sub {
    my $user = query_parameters->get('user') || '';
    send_error( 'who are you?', 400 ) if $user !~ /\A[a-z]{1,20}\z/;    # yours comes from a session
    response_headers
        'Content-Type'      => 'text/event-stream',
        'Cache-Control'     => 'no-cache',
        'X-Accel-Buffering' => 'no',
        'Grip-Hold'         => 'stream',
        'Grip-Channel'      => "user-$user",
        'Grip-Keep-Alive'   => ':\n\n; format=cstring; timeout=30';
    return "retry: 1000\n\n";
};

# curl -d text=hello localhost:5000/tell/ann
post '/tell/:user' => sub {
    my $text = encode_utf8( body_parameters->get('text') ) =~ s/[\r\n]+/ /gr;
    Sirius::Channel->publish( 'user-' . route_parameters->get('user') => "data: $text\n\n" );
    return "told\n";
};

News->to_app;
