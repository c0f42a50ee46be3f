use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# Who copies, dumps or walks over %env looks at psgix.io and at psgix.informational. Perl is in the middle of
# something then: a list half made, a sort, a call whose arguments stand on the stack. And nothing else comes
# of it: no descriptor, and the connection stays with the server, which serves what is behind the request.

my %WAY = (
    'a copy'                     => 'my %copy = %$env',
    'a new hash of it'           => 'my $sub = { %$env, PATH_INFO => "/" }',
    'its values'                 => 'my @values = values %$env',
    'a walk over the values'     => 'for my $value ( values %$env ) { my $copy = $value }',
    'a walk by each'             => 'while ( my ( $key, $value ) = each %$env ) { my $copy = $value }',
    'a map'                      => 'my $x = join ",", map { defined $_ ? $_ : "" } values %$env',
    'a grep that asks for a ref' => 'my @refs = grep { ref } values %$env',
    'sorted values'              => 'no warnings; my @sorted = sort values %$env',
    'sorted by a sub'            => 'no warnings; my @s = sort { "$a" cmp "$b" } @$env{ sort keys %$env }',
    'a slice'                    => 'my ( $io, $x ) = @{$env}{ "psgix.io", "PATH_INFO" }',
    'a hash slice'               => 'my %some = map { $_ => $env->{$_} } qw(PATH_INFO psgix.io psgi.input)',
    'an argument'                => 'main::take( 1, $env->{"psgix.io"}, 2 )',
    'all as arguments'           => 'main::take( 1, %$env, 2 )',
    'a local'                    => 'local $env->{"psgix.io"} = $env->{"psgix.io"}; main::take(1)',
    'a string'                   => 'my $x = "1 $env->{q(psgix.io)} 2 $env->{q(psgix.informational)}"',
    'a key of a hash'            => 'my %x = ( 1, 2, $env->{"psgix.io"}, 3, $env->{"psgix.io"}, 4 )',
    'a returned list'            => 'my @x = sub { ( 1, @{$env}{qw(psgix.io psgix.informational)}, 2 ) }->()',
    'deleted'                    => 'my $x = delete $env->{"psgix.io"}; my @x = ( $x, $x )',
    'Data::Dumper'       => 'require Data::Dumper; my $x = Data::Dumper->new( [$env] )->Useperl(1)->Dump',
    'Data::Dumper in C'  => 'require Data::Dumper; my $x = Data::Dumper->new( [$env] )->Useperl(0)->Dump',
    'a copy in the body' => 'return [ 200, [], [ "ok", map { "" } %$env ] ]',
    'a deep stack'       => 'my @x = ( ( 1 .. 500 ), %$env, ( 1 .. 500 ), %$env )',
);

my $app = <<'APP';
use POSIX ();
sub main::take { my @args = @_; return scalar @args }
# Descriptors of this process that are one socket
sub twice { my %seen; scalar grep { /^socket/ && $seen{$_}++ } map { readlink || '' } glob "/proc/$$/fd/*" }
my $before;
my %way = (
APP
$app .= "    '$_' => sub { my \$env = shift; $WAY{$_}; return },\n" for sort keys %WAY;
$app .= <<'APP';
);
sub {
    my $env = shift;
    $before = twice() if !defined $before;
    return [ 200, [], [ twice() - $before ] ] if $env->{PATH_INFO} eq '/next';
    ( my $way = $env->{QUERY_STRING} ) =~ tr/+/ /;
    $env->{CLASS} = $env->{HTTP_X_UNIX} ? 'UNIX' : 'INET';
    my $answer = $way{$way}->($env);
    return twice() == $before ? $answer || [ 200, [], ['ok'] ] : [ 200, [], ['a second descriptor'] ];
}
APP

my $dir = File::Temp->newdir;

# A server for each: perl's stack never shrinks, and where it is long enough already nothing has to move
for my $way ( sort keys %WAY ) {
    ( my $query = $way ) =~ tr/ /+/;
    my $server = start_server( $app, qw(--workers 1 --listen 127.0.0.1:0 --listen), "unix:$dir/sock" );
    my ($worker) = $server->workers;
    my @wrong;
    for my $to ( $server->listeners ) {
        my $client = $server->connect( to => $to );
        for my $more ( 400, 42, 3_000, 40_000 ) {
            my @unix = $to =~ /\Aunix/ ? 'X-Unix: 1' : ();
            $client->send(
                request( "GET /?$query", @unix ) . request( 'GET /next', 'X-Long: ' . 'y' x $more ) );
            my @got = map { $_->status eq '200' ? $_->body : $_->status } $client->responses(2);
            push @wrong, "$to, $more bytes behind it: @got" if "@got" ne 'ok 0';
        }
        $client->send( request("GET /?$query") . 'GET' );
        push @wrong, "$to: half a request behind it" if $client->response->body ne 'ok';
        $client->send(" /next HTTP/1.1\r\nHost: a\r\n\r\n");
        my $last = $client->response;
        push @wrong, "$to: the rest of it: " . $last->status if $last->status ne '200' || $last->closes;
    }
    push @wrong, $server->crashes, grep { $_ != $worker } $server->workers;
    is_deeply \@wrong, [], $way;
    $server->stop;
}

done_testing;
