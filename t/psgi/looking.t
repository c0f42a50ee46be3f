use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# Who copies, dumps or walks over %env looks at psgix.io and at psgix.informational. Perl is in the middle of something then: a
# list half made, a sort, a call whose arguments stand on the stack.

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
sub main::take { my @args = @_; return scalar @args }
my %way = (
APP
$app .= "    '$_' => sub { my \$env = shift; $WAY{$_}; return },\n" for sort keys %WAY;
$app .= <<'APP';
);
sub {
    my $env = shift;
    return [ 200, [], ['next'] ] if $env->{PATH_INFO} eq '/next';
    ( my $way = $env->{QUERY_STRING} ) =~ tr/+/ /;
    return $way{$way}->($env) || [ 200, [], ['ok'] ];
}
APP

# A server for each: perl's stack never shrinks, and where it is long enough already nothing has to move
for my $way ( sort keys %WAY ) {
    ( my $query = $way ) =~ tr/ /+/;
    my $server = start_server( $app, qw(--workers 1) );
    my ($worker) = $server->workers;
    my @wrong;
    for my $more ( 400, 0, 1, 5, 42, 3_000, 40_000 ) {
        my $client = $server->connect;
        my $next   = $more < 40 ? 'x' x $more : request( 'GET /next', 'X-Long: ' . 'y' x ( $more - 40 ) );
        $client->send( request("GET /?$query") . $next );
        my $response = $client->response;
        push @wrong, "$more bytes behind it: " . $response->status if ( $response->body || '' ) ne 'ok';
        $client->close;
    }
    push @wrong, $server->crashes, grep { $_ != $worker } $server->workers;
    is_deeply \@wrong, [], $way;
    $server->stop;
}

done_testing;
