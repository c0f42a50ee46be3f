use strict;
use warnings;
use Test::More;
use POSIX qw(SIGABRT SIGKILL SIGSEGV SIGTERM SIGUSR1);
use Sirius::OS::ExitStatus;

# How a process ended, in words and for counting

is( Sirius::OS::ExitStatus->words( SIGSEGV, '' ),        'was killed by signal 11 (SEGV)',       'a signal' );
is( Sirius::OS::ExitStatus->words( 3 << 8,  '' ),        'exited with status 3',                 'a status' );
is( Sirius::OS::ExitStatus->words( 0,       'drained' ), 'exited: drained',                      'a reason' );
is( Sirius::OS::ExitStatus->words( 0,       '' ), 'exited with status 0 inside the application', 'exit(0)' );

#<<< a table: the cause, then wait status, reason, the generation stops, it was killed then
for my $case (
    [ 'crash'            => SIGSEGV,       '' ],
    [ 'crash'            => SIGABRT | 128, '' ],
    [ 'crash'            => SIGSEGV,       'drained', 1 ],
    [ 'killed'           => SIGKILL,       '' ],
    [ 'killed'           => SIGKILL,       'max-lifetime (3600 s)' ],
    [ 'killed'           => SIGKILL,       '', 1 ],
    [ 'killed'           => SIGUSR1,       '' ],
    [ 'killed'           => SIGTERM,       '' ],
    [ 'graceful-timeout' => SIGKILL,       '', 1, 1 ],
    [ 'out-of-memory'    => SIGKILL,       '', 0, 0, 1 ],
    [ 'out-of-memory'    => SIGKILL,       'max-rss (310 MiB)', 1, 1, 1 ],
    [ 'crash'            => SIGSEGV,       '', 0, 0, 1 ],
    [ 'request-timeout'  => SIGKILL,       'its request ran for too long' ],
    [ 'request-timeout'  => 0,             'timeout' ],
    [ 'load-timeout'     => SIGKILL,       '--child-exit ran for more than 2 s (--load-timeout)' ],
    [ 'load-timeout'     => SIGKILL,       'it was not ready within 2 s (--load-timeout)', 1 ],
    [ 'stop'             => SIGTERM,       '', 1 ],
    [ 'stop'             => 0,             'drained', 1 ],
    [ 'stop'             => 0,             'stopped' ],
    [ 'stop'             => 0,             '', 1 ],
    [ 'exit'             => 0,             '' ],
    [ 'exit'             => 7 << 8,        '' ],
    [ 'exit'             => 7 << 8,        '', 1 ],
    [ 'max-requests'     => 0,             'max-requests' ],
    [ 'max-requests'     => 0,             'max-requests (100 requests)' ],
    [ 'max-rss'          => 0,             'max-rss (310 MiB)' ],
    [ 'max-lifetime'     => 0,             'max-lifetime (3600 s)' ],
    [ 'max-lifetime'     => SIGTERM,       'max-lifetime (3600 s)' ],
    [ 'fewer-workers'    => 0,             'fewer workers are wanted' ],
    [ 'harakiri'         => 0,             'harakiri' ],
    )
#>>>
{
    my ( $want, @is ) = @$case;
    is( Sirius::OS::ExitStatus->kind(@is), $want, join ', ', map {"'$_'"} @is );
}

done_testing;
