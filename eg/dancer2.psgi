# A Dancer2 application.
#
# It is loaded once, before the workers are forked. Each worker has its own memory: so sessions belong into
# files, a database or cookies, not into the engine Simple, which another worker knows nothing of. Behind a
# proxy give --trust-proxy to the server instead of behind_proxy to the application.
package Notes;
use Dancer2;

set charset => 'UTF-8';
set logger  => 'console';    # STDERR: --error-log takes it

get '/' => sub {
    return 'Hello ' . ( query_parameters->get('name') || 'World' );
};

# A delayed response: it holds its worker until done
get '/count' => sub {
    delayed {
        flush;
        content "$_\n" for 1 .. 3;
        done;
    };
};

Notes->to_app;
