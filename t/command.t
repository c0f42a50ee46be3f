use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use POSIX      ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# The command: help, version, wrong options

# Exit status, STDOUT and STDERR
sub sirius {
    my @args = @_;
    my $dir  = File::Temp->newdir;
    my $pid  = fork;
    die "fork: $!" if !defined $pid;
    if ( !$pid ) {
        my $root = $Sirius::Test::Server::ROOT;
        open STDOUT, '>', "$dir/out" or POSIX::_exit(126);
        open STDERR, '>', "$dir/err" or POSIX::_exit(126);
        { exec $^X, "-Mblib=$root/blib", "$root/bin/sirius", @args }
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    return ( $? >> 8, map { Sirius::Test::Server::slurp("$dir/$_") } qw(out err) );
}

my ( $status, $out, $err ) = sirius('--help');
is $status, 0, '--help';
like $out, qr/^ +--workers\b/m, 'lists the options';
( $status, $out, $err ) = sirius('--version');
is $status, 0, '--version';
like "$out$err", qr/^Sirius \d+\.\d+ /m, 'says it';

for my $case (
    [ qr/unknown option --wrokers/, '--wrokers',      2 ],
    [ qr/--workers: 'many' is not/, '--workers',      'many' ],
    [ qr/--body-timeout: 'x'/,      '--body-timeout', 'x' ],
    [ qr/--listen: /,               '--listen',       'localhost:port' ],
    [ qr/no_such\.psgi/,            qw(--port 0),     'no_such.psgi' ],
    )
{
    my ( $message, @args ) = @$case;
    ( $status, $out, $err ) = sirius(@args);
    isnt $status, 0, "@args: refused";
    like $err, $message, 'with the reason';
}
( $status, $out, $err ) = sirius( qw(check --port 0 -e), 'sub { [ 200, [], [] ] }' );
is $status, 0, 'sirius check' or diag "$out$err";
( $status, $out, $err ) = sirius( qw(check --port 0 -e), 'sub { [ 200, [], [] ' );
isnt $status, 0, 'of an application that does not compile';
done_testing;
