# The stack of a child, as the slow log has it: the child neither helps nor notices
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Errno qw(ESRCH);
use Test::More;
use Sirius::Process::SlowLog;
use Sirius::Test;
use Time::HiRes ();

my $FOREVER = 300;

# PID of a child that runs the code
sub child_of {
    my $code = shift;
    my $pid  = fork;
    die "fork: $!" if !defined $pid;
    return $pid    if $pid;
    $SIG{TERM} = 'DEFAULT';
    eval { $code->() };
    print {*STDERR} "# $@" if $@;
    POSIX::_exit(0);
}

sub ended {
    my $pid = shift;
    kill KILL => $pid;
    waitpid $pid, 0;
    return;
}

# The stack of a child that runs the code, once its innermost frame is that; without those of this file
# further out
sub stack_of {
    my ( $code, $innermost ) = @_;
    my $pid = child_of($code);
    my $frames;
    until_true(
        20,
        sub {
            $frames = Sirius::Process::SlowLog->frames($pid);
            return $frames && @$frames && $frames->[0] =~ $innermost;
        }
    );
    ended($pid);
    return [ grep { !/ at \S*slow_log\.t line / } @{ $frames || [] } ];
}

sub rest { return sleep $FOREVER }

## no critic (StringyEval)
sub code {
    my $text = shift;
    return eval "package Shop; no strict; no warnings;\n$text" || die $@;
}

my @CASE = (
    [   'subs of a package' =>
            <<'CODE', 'Shop::inner at lib/Shop.pm line 11', 'Shop::outer at lib/Shop.pm line 21', 'Shop::__ANON__ at lib/Shop.pm line 32' ],
#line 10 "lib/Shop.pm"
sub inner {
    sleep 300;
}
#line 20 "lib/Shop.pm"
sub outer {
    my $x = inner(1, 2);
}
#line 30 "lib/Shop.pm"
sub {
    my $y = 1;
    outer();
};
CODE
    [   'blocks, loops and eval do not count' =>
            <<'CODE', 'Shop::blocks at blocks line 4', 'Shop::__ANON__ at blocks line 9' ],
#line 1 "blocks"
sub blocks {
    for my $x (1 .. 3) {
        if ($x) { { eval {
            sleep 300;
        } } }
    }
}
sub {
    eval { eval { blocks() } };
};
CODE
    [   'string eval and require' =>
            <<'CODE', 'Shop::found at evals line 1', '(eval) at (eval) line 1', 'require at lib/Late.pm line 3', 'Shop::__ANON__ at evals line 3' ],
#line 1 "evals"
sub found { sleep 300 }
local @INC = ( sub { my $t = "#line 1 \"lib/Late.pm\"\n\npackage Late;\neval 'Shop::found()';\n1"; open my $in, '<', \$t; $in } );
sub { local @INC = ( sub { my $t = "#line 1 \"lib/Late.pm\"\npackage Late;\n\neval 'Shop::found()';\n1"; open my $in, '<', \$t; $in } ); require Late };
CODE
    [   'a method of another package, by name' =>
            <<'CODE', 'Other::Class::method at other line 1', 'Shop::__ANON__ at other line 2' ],
#line 1 "other"
sub Other::Class::method { sleep 300 }
sub { my $m = 'method'; Other::Class->$m };
CODE
    [   'sort, overload, tie and DESTROY begin a new level' =>
            <<'CODE', 'Shop::DESTROY at levels line 1', 'Shop::FETCH at levels line 2', 'Shop::text at levels line 3', 'Shop::by at levels line 5', 'Shop::__ANON__ at levels line 6' ],
#line 1 "levels"
sub DESTROY { sleep 300 }
sub TIESCALAR { bless [] } sub FETCH { my $x = bless {}; undef $x; 1 }
sub text { tie my $t, 'Shop'; my $v = "$t"; 'x' }
package Text { use overload '""' => \&Shop::text }
sub by { my $t = bless [], 'Text'; my $l = "$t"; 0 }
sub { my @s = sort by 2, 1; 1 };
CODE
    [   'a name of any bytes is printable' =>
            <<'CODE', 'Shop::a\x0ab\xe2\x98\xba at names line 3', 'Shop::__ANON__ at odd\x1b[31mfile line 4' ],
#line 1 "names"
require Sub::Util;
my $named = Sub::Util::set_subname( "Shop::a\nb\x{263a}", sub {
    sleep 300 } );
eval qq{#line 4 "odd\e[31mfile"\nsub { \$named->() }};
CODE
    [ 'a lexical sub' => <<'CODE', 'my_own at lexical line 2', 'Shop::__ANON__ at lexical line 3' ],
#line 1 "lexical"
use feature 'lexical_subs'; no warnings; use feature 'state';
my sub my_own { sleep 300 }
sub { my_own() };
CODE
);

for my $case (@CASE) {
    my ( $name, $text, @want ) = @$case;
    my $code = code($text);
    my $got  = stack_of( $code, qr/\Q$want[0]\E/ );
    s/\A(?:Shop|main)::(?=my_own)// for @$got;
    is_deeply $got, \@want, $name or diag explain $got;
}

subtest 'a deep recursion: the inner ones' => sub {
    my $code
        = code(
        qq{#line 1 "deep"\nsub deep { my \$n = shift;\n\$n ? deep(\$n - 1) : sleep 300 }\nsub { no warnings; deep(5000) }}
        );
    my $got = stack_of( $code, qr/deep line 2/ );
    is scalar @$got, 51,    '50, and that there are more';
    is $got->[-1],   '...', 'the last line';
    is_deeply [ grep { $_ ne 'Shop::deep at deep line 2' } @{$got}[ 0 .. 49 ] ], [], 'all of them alike';
};

subtest 'long names' => sub {
    my ( $sub, $file ) = ( 's' x 251, 'f' x 900 );
    my $code = code(qq{#line 1 "$file"\nsub $sub { sleep 300 }\nsub { $sub() }});
    my $got  = stack_of( $code, qr/sss/ );
    is $got->[0], 'Shop::' . 's' x 200 . '... at ...' . 'f' x 200 . ' line 1', 'are cut';
};

subtest 'a package and a sub that were deleted while they run' => sub {
    my $code
        = code(
        qq{#line 1 "gone"\nsub Gone::Away::here { undef &here; delete \$Gone::Away::{here}; undef \%Gone::Away::; sleep 300 }\nsub { \\&Gone::Away::here }->()}
        );
    my $got = stack_of( $code, qr/gone line 1/ );
    like $got->[0], qr/\A[\x20-\x7e]+ at gone line 1\z/, "something: $got->[0]";
};

subtest 'a worker that runs' => sub {
    my $code = code(<<'CODE');
#line 1 "runs"
sub quick { my $x = shift; $x * 2 }
sub busy {
    my $i = 0;
    while (1) { $i += quick($i) % 7; $i = 0 if $i > 1000 }
}
sub { busy() };
CODE
    my $pid = child_of($code);
    my %seen;
    until_true(
        20,
        sub {
            my $frames = Sirius::Process::SlowLog->frames($pid) || [];
            my ($at) = grep { $frames->[$_] =~ /busy/ } 0 .. $#$frames;
            return if !defined $at;
            $seen{ join ', ', map {s/ at .*//r} @{$frames}[ 0 .. $at ] }++;
            $seen{wrong}++
                if $frames->[$at] !~ /\AShop::busy(?: at runs line [34])?\z/;
            $seen{further}++ if $frames->[ $at + 1 ] ne 'Shop::__ANON__ at runs line 6';
            return $seen{'Shop::busy'} && $seen{'Shop::quick, Shop::busy'} && ++$seen{times} > 300;
        }
    );
    ended($pid);
    ok $seen{'Shop::busy'},              'between two calls';
    ok $seen{'Shop::quick, Shop::busy'}, 'in one';
    is $seen{further}, undef, 'what is further out is always the same' or diag explain \%seen;
    is $seen{wrong},   undef, 'and so is the line of the loop'         or diag explain \%seen;
    delete @seen{qw(times further wrong)};
    is_deeply [ sort grep { !/\A(?:(?:Shop::quick|\(calls that come and go\)), )?Shop::busy\z/ } keys %seen ],
        [], 'and nothing else'
        or diag explain \%seen;
};

subtest 'no such process' => sub {
    my $pid = child_of( sub { } );
    waitpid $pid, 0;
    $! = 0;
    is scalar Sirius::Process::SlowLog->frames($pid), undef, 'no stack';
    is 0 + $!,                                        ESRCH, 'and why';
};

subtest 'another program' => sub {
    my $pid = child_of( sub { exec 'sleep', '300' } );
    until_true( 10, sub { readlink("/proc/$pid/exe") ne readlink '/proc/self/exe' } );
    my $frames = Sirius::Process::SlowLog->frames($pid);
    is $frames, undef, 'no stack' or diag explain $frames;
    ended($pid);
};

done_testing;
