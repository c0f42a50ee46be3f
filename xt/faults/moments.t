use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;
use Sirius::Test::Server;

# A time limit is over, or slow clients do not read, at the moment at which a reply comes. A response is
# whole, or it is seen to be cut: never complete and wrong. And nobody else notices. xt/c/moments.c has the
# table of all such moments

my $APP = <<'APP';
use strict;
my $file = "$ENV{MOMENTS}/page";
{ open my $fh, '>', $file or die $!; print $fh 'f' x 3000 }

package Moments;
use Time::HiRes qw(sleep time);

# Until half a second from then, which is the limit, and so many ms
sub limit {
    my ( $since, $more ) = @_;
    my $left = $since + 0.5 + $more / 1000 - time;
    sleep $left if $left > 0;
}

package Lines {    # a body without a writer
    sub getline { my $self = shift; return $self->{n}++ < 300 ? "line $self->{n}\n" : undef }
    sub close { }
}

sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return [ 200, [], ['word'] ]     if $path eq '/word';
    return [ 200, [], [ 'z' x $1 ] ] if $path =~ m{^/big/(\d+)};
    if ( $path eq '/file' ) { open my $fh, '<', $file or die $!; return [ 200, [], $fh ] }
    return sub {
        my $w = shift->( [ 200, [] ] );
        1 while $w->write( 'z' x 16_000 );
    } if $path eq '/endless';
    return sub {
        my $respond = shift;
        my $since   = $env->{'psgix.request_start'};
        my $w;
        if ( $path eq '/going' ) {
            $w = $respond->( [ 200, [] ] );
            $w->write("line 1\n");
            $since = Time::HiRes::time();
        }
        Moments::limit( $since, $env->{QUERY_STRING} );
        return $respond->( [ 200, [], bless { n => 0 }, 'Lines' ] ) if $path eq '/getline';
        $w ||= $respond->( [ 200, [] ] );
        $w->write("line $_\n") for ( $path eq '/going' ? 2 : 1 ) .. 300;
        $w->close;
    };
};
APP
my $WHOLE = join '', map {"line $_\n"} 1 .. 300;

sub server {
    my ( $dir, @args ) = @_;
    local $ENV{MOMENTS} = "$dir";
    my $server = start_server( $APP, '--edges', 1, @args );
    $server->wait_log( qr/ready after /, 20 );
    return $server;
}

sub dir { return File::Temp->newdir( 'sirius-moments-XXXXXX', TMPDIR => 1 ) }

# What has come of a request
sub fate {
    my $answer = shift;
    return $answer->status if $answer->status ne '200';
    return $answer->body eq $WHOLE ? 'whole' : 'complete and wrong';
}

# A process that reads endless responses as fast as they come, so that the edge is busy
sub in_background {
    my $server = shift;
    my @client = map { $server->connect } 1 .. 2;
    defined( my $pid = fork ) or die "fork: $!";
    return $pid if $pid;
    $_->send( request('GET /endless') ) for @client;
    while (1) { $_->some( 1, 1 ) for @client }
}

# What the edge keeps for its clients in files
sub kept {
    my ($edge) = shift->edges;
    return
        scalar grep { ( readlink "/proc/$edge/fd/$_" // '' ) =~ m{\A(?!/memfd:).*\(deleted\)} }
        Sirius::Test::Server->descriptors($edge);
}

for my $case (
    [ 'a writer begins as --request-timeout is over',          '/writer',  '--request-timeout' ],
    [ 'a body of getline begins as --request-timeout is over', '/getline', '--request-timeout' ],
    [ 'a response goes on as --stream-timeout is over',        '/going',   '--stream-timeout' ],
    )
{
    my ( $name, $path, $limit ) = @$case;
    subtest $name => sub {
        my $dir    = dir();
        my $server = server( $dir, qw(--workers 16), $limit, 0.5 );
        my $reader = in_background($server);
        my %fates;
        for my $round ( 1 .. 12 ) {
            my @client = map { $server->connect } 1 .. 12;
            $_->send( request( sprintf 'GET %s?%.3f', $path, rand(2.5) - 1 ) ) for @client;
            $fates{ fate( $_->response( patience => 15 ) ) }++ for @client;
        }
        kill KILL => $reader;
        waitpid $reader, 0;
        my @wrong = grep { !/\A(?:whole|504|cut|eof|reset)\z/ } keys %fates;
        is_deeply \@wrong, [], 'each is whole, or late, or seen to be cut' or diag explain \%fates;
        ok $fates{whole}, 'some are whole';
        is $server->ask('GET /word')->body, 'word', 'the server goes on';
        unlike $server->log, qr/broken|invalid/, 'no worker is called broken';
        $server->{may_crash} = 1;
        $server->stop;
    };
}

# More waits for clients than the edge keeps in memory, so that even a head goes to a file
subtest 'slow clients with files do not hold up what their worker replies to others' => sub {
    my $dir = dir();
    my $server
        = server( $dir, qw(--workers 1 --max-keepalive-reqs 0 --listen 127.0.0.1:0 --listen), "$dir/socket" );
    my $slow = sub { $server->connect( to => "unix:$dir/socket" ) };
    my @page = map { $slow->() } 1 .. 340;
    $_->send( request('GET /big/440000') ) for @page;
    ok until_true( 20, sub { kept($server) } ), 'the edge keeps 64 MiB for them';
    is $server->ask('GET /word')->body, 'word', 'others are served';
    my $kept = kept($server);
    my @file = map { $slow->() } 1 .. 16;
    $_->send( request('GET /file') x 500 ) for @file;
    ok until_true( 20, sub { kept($server) > $kept } ), 'heads that are followed by a file are kept as well';
    my $words = grep { $server->connect->ask('GET /word')->body eq 'word' } 1 .. 10;
    is $words, 10, 'others are still served';
    my $files = grep { $_->body eq 'f' x 3000 } $file[0]->responses( 500, patience => 20 );
    is $files, 500, 'who reads gets all files';
    my $pages = grep { $_->response( patience => 20 )->body eq 'z' x 440_000 } @page[ 0 .. 19 ];
    is $pages, 20, 'and all pages';
    $_->close for @page, @file;
    $server->stop;
};

done_testing;
