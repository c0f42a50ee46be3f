# A progress bar in a Mojolicious application under PSGI: an event stream that the server holds.
#
# The action answers at once: no timer, no promise, no event loop. The worker is free then.
use Mojolicious::Lite;
use Sirius::Channel;

app->secrets( [ $ENV{SECRET} || 'say something else' ] );
app->log->level('warn');

my $PAGE = <<'HTML';
<!DOCTYPE html>
<title>Progress</title>
<progress max="100" value="0"></progress>
<script>
const events = new EventSource('/progress/17');
events.onmessage = event => {
    document.querySelector('progress').value = event.data;
    if (event.data === '100') events.close();
};
</script>
HTML

get '/' => sub { shift->render( data => $PAGE, format => 'html' ) };

get '/progress/:job' => [ job => qr/[a-z0-9]{1,20}/ ] => sub {
    my $c       = shift;
    my $headers = $c->res->headers;
    $headers->content_type('text/event-stream');
    $headers->cache_control('no-cache');
    $headers->header( 'X-Accel-Buffering' => 'no' );
    $headers->header( 'Grip-Hold'         => 'stream' );
    $headers->header( 'Grip-Channel'      => 'job-' . $c->param('job') );
    $headers->header( 'Grip-Keep-Alive'   => ':\n\n; format=cstring; timeout=30' );
    $c->render( data => "retry: 1000\ndata: 0\n\n" );
};

# The job says how far it is: curl -d percent=50 localhost:5000/progress/17
post '/progress/:job' => [ job => qr/[a-z0-9]{1,20}/ ] => sub {
    my $c       = shift;
    my $percent = $c->param('percent') // '';
    return $c->render( text => "a number\n", status => 400 ) if $percent !~ /\A(?:100|[0-9]{1,2})\z/;
    my @end = $percent == 100 ? ( close => 1 ) : ();
    Sirius::Channel->publish( 'job-' . $c->param('job') => "data: $percent\n\n", @end );
    $c->render( text => "told\n" );
};

app->start;
