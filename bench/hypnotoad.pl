#!/usr/bin/env perl

# The jobs of the .psgi files beside this one, for a server that runs Mojolicious applications only.
# SIRIUS_BENCH_APP is the name of the job, SIRIUS_BENCH_HYPNOTOAD what the server is told, as "name=value
# ...".

use Mojolicious::Lite;
use Time::HiRes qw(sleep time);

my %body   = ( hello => 'Hello World', ok => 'OK', body8000 => 'x' x 8000 );
my $job    = $ENV{SIRIUS_BENCH_APP} || 'hello';
my $loaded = time;

my %server = map { split /=/, $_, 2 } split ' ', $ENV{SIRIUS_BENCH_HYPNOTOAD};
$server{listen} = [ $server{listen} ];
app->config( hypnotoad => \%server );
app->mode('production');
app->log->level('fatal');

get '/' => sub {
    my $c = shift;
    sleep 0.001 if $job eq 'fair';
    $c->render( text => $job eq 'reload' ? sprintf '%d %.6f', $$, $loaded : $body{$job} // "$$" );
};
get '/foo' => sub {
    my $c   = shift;
    my $foo = $c->param('foo');
    $c->render( text => "Hello World\n" );
};
get '/hello' => sub { shift->render( text => "$$" ) };
get '/sleep' => sub { sleep 0.1; shift->render( text => "$$" ) };
get '/slow'  => sub { sleep 0.5; shift->render( text => "$$" ) };
get '/long'  => sub { sleep 10;  shift->render( text => "$$" ) };
get '/big'   => sub { shift->render( text => 'x' x 1_000_000 ) };

app->start;
