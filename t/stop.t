use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# TERM: what was begun is answered, then all processes are gone

my $dir = File::Temp->newdir;
for my $args ( [qw(--workers 2)], [qw(--workers 0)] ) {
    unlink "$dir/go";
    my $server = start_server(
        "my \$go = '$dir/go';\n"
            . 'sub { if ( $_[0]{PATH_INFO} eq "/wait" ) { select undef, undef, undef, 0.01 while !-e $go } [ 200, [], ["done"] ] }',
        @$args
    );
    my $idle = $server->connect;
    is $idle->ask('GET /')->body, 'done', "@$args: it serves";
    my $client = $server->connect;
    $client->send( request('GET /wait') );
    ok $server->wait_busy( 1, qr{/wait} ), 'a request is under way';
    $server->signal('TERM');
    ok $server->wait_log(qr/stopping: TERM/), 'TERM';
    spew( "$dir/go", '' );
    my $answer = $client->response;
    is $answer->body, 'done', 'it is answered';
    ok $answer->closes, 'and told that this is the end';
    is $server->wait_exit(30), 'exit 0', 'exit status 0';
    $server->stop;
}
done_testing;
