use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# A response is complete by its framing, whatever its application does then: dies, never closes its writer,
# writes more. A client that was not told of a close sends its next request at once, and must not meet one.

my $APP = <<'APP';
package Body {
    sub new { my ( $class, @pieces ) = @_; return bless [@pieces], $class }
    sub getline { my $next = shift @{ $_[0] }; die "in the body\n" if ref $next; return $next }
    sub close { }
}
sub {
    my $env = shift;
    my ( undef, $how, $then ) = split m{/}, $env->{PATH_INFO};
    return [ 200, [], ['next'] ] if !$how;
    my ( $status, @head ) = $how =~ /\A\d+\z/ ? $how : $how eq 'length' ? ( 200, 'Content-Length', 10 ) : 200;
    return [ $status, [@head], Body->new( '01234', '56789', \1 ) ] if $then eq 'object';
    return sub {
        my $w = shift->( [ $status, [@head] ] );
        die "before\n" if $then eq 'nothing';
        $w->write($_) for '01234', '56789';
        $w->write('more')   if $then eq 'more';
        die "behind\n"      if $then eq 'dies';
        exit 0              if $then eq 'exit';
        $w->close           if $then eq 'closes' || $then eq 'more';
        return;
    };
}
APP

my $server = start_server( $APP, qw(--workers 2) );
for my $case (
    map( {
            my $then = $_;
            map { [ $_, $then ] } 'HEAD /chunked', 'HEAD /length', 'GET /length', 'GET /204', 'GET /304',
                'HEAD /304'
    } qw(dies object unclosed more closes) ),
    [ 'HEAD /chunked', 'nothing' ],
    [ 'GET /204',      'nothing' ],
    map( { [ $_, 'exit' ] } 'HEAD /chunked', 'GET /length' ),
    )
{
    my ( $request, $then ) = @$case;
    for my $version ( '1.1', http1( 'each case', 'HTTP/1.0' ) ? '1.0' : () ) {
        my $client = $server->connect;
        my @field  = $version eq '1.0' ? 'Connection: keep-alive' : ();
        my $answer = $client->ask( "$request/$then HTTP/$version", @field );
        my $name   = "$request, $then, HTTP/$version";
        like $answer->status, qr/\A(?:200|204|304)\z/, $name;
        is $answer->body, '0123456789', 'its body' if $request eq 'GET /length';
        if ( $answer->closes ) { is $client->end(5), 'eof', 'it said that it closes, and does' }
        else { is $client->ask( "GET / HTTP/$version", @field )->body, 'next', 'the connection goes on' }
    }
}

for my $then (qw(dies unclosed)) {
    my $client = $server->connect;
    is $client->ask("GET /chunked/$then")->status, 'cut', "a chunked response that is not complete: $then";
    next if !http1( 'one that ends with its connection', 'HTTP/1.0' );
    $client = $server->connect;
    $client->send( request("GET /chunked/$then HTTP/1.0") );
    like $client->end(5), qr/reset|bytes/, 'and one that ends with its connection';
}
my $short = $server->connect;
is $short->ask('GET /length/nothing')->status, 'cut', 'fewer bytes than its Content-Length';
$server->stop;
$server->stop;

# A body of another length than its Content-Length is a mistake that nobody sees but the client
subtest 'another length than announced' => sub {
    http1_only('its requests are written by hand');
    my $dir = File::Temp->newdir;
    spew( "$dir/file", 'x' x 100_000 );
    my $lengths = start_server(
        <<"APP", qw(--workers 1 --access-log), "$dir/log", '--access-log-format', '%U %X %{cut-by}x %B' );
package Body { sub new { bless ['01234'] } sub getline { shift \@{ \$_[0] } } sub close { } }
sub {
    my ( undef, \$how, \$length ) = split m{/}, shift->{PATH_INFO};
    my \@head = ( 200, [ 'Content-Length', \$length ] );
    return [ \@head, ['01234'] ]   if \$how eq 'array';
    return [ \@head, Body->new ]   if \$how eq 'object';
    if ( \$how eq 'file' ) { open my \$fh, '<', '$dir/file'; return [ \@head, \$fh ] }
    return sub { my \$w = shift->( [\@head] ); \$w->write('01234'); \$w->close };
};
APP
    my %ends;
    for my $case (
        [ 'array/5',     undef ],
        [ 'array/9',     'the body ended 4 bytes before its Content-Length: the response is cut' ],
        [ 'array/2',     'the body is longer than its Content-Length, 2: the rest was not sent' ],
        [ 'object/9',    'the body ended 4 bytes before its Content-Length: the response is cut' ],
        [ 'object/2',    'the body is longer than its Content-Length, 2: the rest was not sent' ],
        [ 'writer/5',    undef ],
        [ 'writer/9',    'the body ended 4 bytes before its Content-Length: the response is cut' ],
        [ 'writer/2',    'the body is longer than its Content-Length, 2: the rest was not sent' ],
        [ 'file/100000', undef ],
        [ 'file/100009', 'the body ended 9 bytes before its Content-Length: the response is cut' ],
        [ 'file/99999',  'the body is longer than its Content-Length, 99999: the rest was not sent' ],
        )
    {
        my ( $path, $says ) = @$case;
        my $short = defined $says && $says =~ /ended/;
        for my $method (qw(GET HEAD)) {
            my $client = $lengths->connect;
            $client->send("$method /$path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            $client->end(10);
        }
        my ($how) = $short ? 'X server' : '- -';
        ok until_true(
            10,
            sub { Sirius::Test::Server::slurp("$dir/log") =~ m{^/\Q$path\E \Q$how\E \d+\n/\Q$path\E - - 0$}m }
            ),
            "$path: $how in the access log"
            or diag Sirius::Test::Server::slurp("$dir/log");
        my @lines = grep {m{ /\Q$path\E from }} split /\n/, $lengths->log;
        is scalar @lines, defined $says ? 1 : 0, 'lines in the error log, none for HEAD'
            or diag explain \@lines;
        like $lines[0], qr/: \Q$says\E\z/, $says if defined $says;
    }
    $lengths->stop;
};

done_testing;
