use strict;
use warnings;
use Test::More;

# Functions that an application has replaced for all code that is compiled later

our @heard;

BEGIN {
    no warnings 'once';
    *CORE::GLOBAL::sleep   = sub { push @heard, 'sleep';   return 7 };
    *CORE::GLOBAL::getppid = sub { push @heard, 'getppid'; return 1 };
}

sub before { return sleep(0) }

use Sirius::App::Overrides;

sub ours { return ( sleep(0), getppid() ) }

no Sirius::App::Overrides;

sub after { return ( sleep(0), getppid() ) }

is before(), 7, 'compiled before: the function of the application';
@heard = ();
is_deeply [ ours() ],  [ 0, CORE::getppid() ], q(compiled between: perl's own);
is_deeply \@heard,     [],                     'and nobody else hears of it';
is_deeply [ after() ], [ 7, 1 ],               'compiled afterwards: those of the application again';
is_deeply \@heard,     [qw(sleep getppid)],    'all of them';

done_testing;
