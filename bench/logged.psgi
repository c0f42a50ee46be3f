# hello with an access log; SIRIUS_BENCH_LOG says whose: a middleware, or nothing. Lines go nowhere, one write
# each.
use strict;
use warnings;

use IO::File ();

my $app  = do './bench/hello.psgi'           || die $@ || $!;
my $log  = $ENV{SIRIUS_BENCH_LOG}            || return $app;
my $null = IO::File->new( '/dev/null', 'w' ) || die $!;

require Plack::Util;
Plack::Util::load_class( $log, 'Plack::Middleware' )
    ->wrap( $app, format => 'combined', logger => sub { syswrite $null, shift } );
