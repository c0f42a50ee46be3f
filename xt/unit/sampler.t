# The stack of a process that was not forked for it, and neither helps nor notices (xs/sampler.c)
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Errno      qw(ESRCH);
use File::Copy ();
use File::Temp ();
use List::Util ();
use POSIX      ();
use Sirius::OS::Sampler;
use Sirius::Test;
use Sirius::Test::Confine;
use Sirius::Test::Program;
use Test::More;
use Time::HiRes qw(clock_gettime sleep time);

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
chmod 0755, "$dir" or die $!;

#<<< each: a program that stops at a call of sleep, and the labels of its stack
my @CASES = (
    [ 'subs, blocks, loops and eval' => <<'CODE', 'Shop::outer s:3', 'Shop::__ANON__[s:4] s:4', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop;
for (1) { outer() }
sub outer { for my $x (1) { eval { my $code = anon(); $code->() } } }
sub anon { return sub { if ($_[0] || 1) { my $n = sleep 300; 1 } } }
CODE
    [ 'string eval, require' => <<'CODE', 'Shop::outer s:3', '(require) Late.pm:2', '(eval) (eval):2', 'Shop::inner s:4', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; outer();
sub outer { my $t = qq{#line 2 "Late.pm"\npackage Late;eval "1;\nShop::inner()";\n1};
    local @INC = ( sub { my @l = split /^/, $t; sub { $_ = shift @l; defined } } ); require Late }
sub inner { my $n = sleep 300; 1 }
CODE
    [ 'a block and a sub of sort' => <<'CODE', 'Shop::outer s:2', '(sort block) s:2', 'Shop::by s:3', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; outer();
sub outer { my @s = sort { my @t = sort by 2, 1; 0 } 2, 1; 1 }
sub by { my $n = sleep 300; 1 }
CODE
    [ 'tie, overload, DESTROY' => <<'CODE', 'Shop::outer s:2', '(tie)', 'Shop::FETCH s:3', '(overload)', 'Shop::text s:4', '(destroy)', 'Shop::DESTROY s:5', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; use overload '""' => 'text'; outer();
sub outer { tie my $t, 'Shop'; my $v = $t; 1 } sub TIESCALAR { bless [] }
sub FETCH { my $v = "$_[0]"; 1 }
sub text { my $o = bless {}; undef $o; 'x' }
sub DESTROY { my $n = sleep 300; 1 }
CODE
    [ 'code in a pattern' => <<'CODE', 'Shop::outer s:2', '(regex code) s:2', 'Shop::found s:3', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; outer();
sub outer { my $c = 0; 'aaa' =~ /^(?:a(?{ $c++; found() if $c == 2 }))*$/; 1 }
sub found { my $n = sleep 300; 1 }
CODE
    [ 'a format' => <<'CODE', 'Shop::outer s:2', '(format) s:6', 'Shop::text s:3', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; outer();
sub outer { open STDOUT, '>', '/dev/null'; write; 1 }
sub text { my $n = sleep 300; 'x' }
format STDOUT =
@<<< @<<<
text(), 1
.
CODE
    [ 'a signal handler, a handler of warnings' => <<'CODE', 'Shop::outer s:2', '(signal handler)', 'Shop::handler s:3', '(warn handler)', 'Shop::warned s:4', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; $SIG{USR1} = \&handler; $SIG{__WARN__} = \&warned; outer();
sub outer { kill USR1 => $$; my $n = 0; $n++ while $n < 1e9 }
sub handler { warn "x\n"; 1 }
sub warned { my $n = sleep 300; 1 }
CODE
    [ 'recursion' => <<'CODE', ('Shop::deep s:2') x 4, 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; deep(3);
sub deep { my $n = shift; $n ? deep($n - 1) : sleep 300 }
CODE
    [ 'subs in C: by name, by method' => <<'CODE', 'Shop::outer s:2', 'Time::HiRes::usleep (XS)' ],
#line 1 "s"
package Shop; use Time::HiRes; outer();
sub outer { Time::HiRes::usleep(300e6); 1 }
CODE
    [ 'a method in C' => <<'CODE', 'Shop::outer s:2', 'Time::HiRes::usleep (XS)' ],
#line 1 "s"
package Shop; use Time::HiRes; @Num::ISA = 'Time::HiRes'; outer();
sub outer { my $o = bless [], 'Num'; $o->usleep; 1 }
CODE
    [ 'a method in C of a base class' => <<'CODE', 'Shop::outer s:2', 'Time::HiRes::usleep (XS)' ],
#line 1 "s"
package Shop; use Time::HiRes; our @ISA = 'Time::HiRes'; outer();
sub outer { my $o = bless []; $o->SUPER::usleep; 1 }
CODE
    [ 'a method in C of a named class' => <<'CODE', 'Shop::outer s:2', 'Time::HiRes::usleep (XS)' ],
#line 1 "s"
package Shop; use Time::HiRes; outer();
sub outer { my $o = bless []; $o->Time::HiRes::usleep; 1 }
CODE
    [ 'a sub in C that calls back' => <<'CODE', 'Shop::outer s:2', 'Shop::__ANON__[s:2] s:2', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; use List::Util 'first'; outer();
sub outer { my $f = first { my $n = sleep 300; 1 } 1, 2; 1 }
CODE
    [ 'subs without a name' => <<'CODE', 'Shop::outer /a b/My app.pm:2', 'Shop::__ANON__[My app.pm:2] /a b/My app.pm:2', 'Shop::__ANON__[(eval):2] (eval):2', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; my $in = eval qq{\nsub { my \$n = sleep 300; 1 }}; outer();
#line 2 "/a b/My app.pm"
sub outer { my $f = sub { my $n = $in->(); 1 }; $f->(); 1 }
CODE
    [ 'a name with spaces, as Try::Tiny gives' => <<'CODE', 'Shop::try\x20{...}\x20 s:2', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; use Sub::Util; my $named = Sub::Util::set_subname( "Shop::try {...} ",
    sub { my $n = sleep 300; 1 } ); $named->();
CODE
    [ 'names of any bytes' => <<'CODE', 'Shop::a\x0ab,\xe2\x98\xba s:2', 'CORE::sleep (C)' ],
#line 1 "s"
package Shop; use Sub::Util; my $named = Sub::Util::set_subname( "Shop::a\nb,\x{263a}",
    sub { my $n = sleep 300; 1 } ); $named->();
CODE
);
#>>>

for my $case (@CASES) {
    my ( $name, $code, @want ) = @$case;
    my $sampler = sampler_of( my $pid = perl_of($code) );
    my ( $labels, $state, $moved );
    until_true(
        20,
        sub {
            ( $labels, $state, $moved ) = $sampler->stack or return;
            return $state eq 'S' && $labels->[-1] eq $want[-1] && !$moved;
        }
    );
    like shift @$labels, qr/\A\(main program\) s:\d+\z/, "$name: the program";
    is_deeply $labels, \@want, $name or diag explain $labels;
    my ($below) = $sampler->stack( $want[0] =~ /\A(\S+)/ );
    is_deeply $below, [ @want[ 1 .. $#want ] ], 'what one has called' if $name !~ /recursion/ && @want > 2;
    my ($first) = sampler_of($pid)->stack( $want[0] =~ /\A(\S+)/ );
    is_deeply $first, $below, 'also if nothing was known before' if $want[-1] =~ /sleep \(C\)/;
    is_deeply [ $sampler->stack('Shop::no') ], [ [], 'S', '' ], 'a sub that does not run';
    ended($pid);
}

subtest 'deep recursion' => sub {
    my $sampler = sampler_of(
        my $pid = perl_of(
            qq{#line 1 "s"\npackage Shop; no warnings; deep(5000);\nsub deep { my \$n = shift; \$n ? deep(\$n - 1) : sleep 300 }}
        )
    );
    my $labels;
    until_true( 20, sub { ($labels) = $sampler->stack; $labels && $labels->[-1] eq 'CORE::sleep (C)' } );
    is shift @$labels, '...', 'what is further out is left out';
    pop @$labels;
    is_deeply $labels, [ ('Shop::deep s:2') x 400 ], 'the inner 400 are there';
    ended($pid);
};

# The sub is not found any more where it was called from: what it called is there.
subtest 'a method in C that has called back' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Encode (); my $latin1 = Encode::find_encoding('latin1');
my $text = "\x{263a}" . 'a' x 10_000_000; outer() while 1;
sub outer { my $bytes = $latin1->encode( $text, \&missing ); quick(); Shop->quick; 1 }
sub missing { my $n = 0; $n += $_ for 1 .. 100; '' }
sub quick { my $n = 0; $n += $_ for 1 .. 100; $n }
CODE
    my ( $called, %seen ) = 0;
    my $until = time + 150;
    while ( $called < 300 && time < $until ) {
        sleep 0.0005 + rand 0.001;
        my ( $labels, undef, $moved ) = $sampler->stack or next;
        next if ( $labels->[1] // '' ) ne 'Shop::outer s:3' || $moved;    # it begins
        my $name = $labels->[2] // '';
        $seen{$name}++;
        $called++ if $name =~ /encode/;
    }
    ended($pid);
    cmp_ok $called, '>=', 300, 'has the name of the method, or of the sub if that was seen before it called';
    my @other
        = grep { !/\A(?:->encode \(method\)|Encode::XS::encode \(XS\)|Shop::(?:missing s:4|quick s:5)|)\z/ }
        sort keys %seen;
    is_deeply \@other, [], 'and no other sub has it' or diag explain \%seen;
};

# Samples until a thousand are in a sub in_*, and what was seen within the first two frames
sub until_called {
    my ( $sampler, $pid )  = @_;
    my ( $called,  %seen ) = 0;
    my $until = time + 150;
    while ( $called < 1000 && time < $until ) {
        sleep 0.0005 + rand 0.001;
        my ($labels) = $sampler->stack or next;
        $seen{ join '>', map {s/ s:\d+\z//r} @$labels[ 2 .. $#$labels ] }++;
        $called++ if $labels->[-1] =~ /::in_/;
    }
    ended($pid);
    return ( $called, %seen );
}

# Each of these subs has that share of so many samples with one that matches
sub seen_at_least {
    my ( $share, $subs, $sampler, $pid, $samples, $matches ) = @_;
    my ( %seen, $all );
    my $until = time + 150;
    do {    # a minute may be a bad one
        ( $all, %seen ) = 0;
        while ( $all < $samples && time < $until ) {
            sleep 0.0003 + rand 0.0004;
            my ($labels) = $sampler->stack or next;
            $seen{$1}++, $all++ if "@$labels" =~ $matches;
        }
    } while ( time < $until && grep { ( $seen{$_} // 0 ) < $share * $all } @$subs );
    ended($pid);
    cmp_ok $seen{$_} // 0, '>=', $share * $all, "$_, of $all" for @$subs;
    return;
}

# What it was given is freed with it: the next one has its address, its glob and the memory of its name
subtest 'closures of the same code with names in turn' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util; my $n = 0; outer() while ++$n;
sub outer { my $to = $n % 2 ? 'one' : 'two'; my $code = named($to); $code->(); 1 }
sub named { my $to = shift; return Sub::Util::set_subname( "Shop::$to", sub { no strict 'refs'; &{"in_$to"}(); 1 } ) }
sub in_one { my $n = 0; $n += $_ for 1 .. 3000; $n }
sub in_two { my $n = 0; $n += $_ for 1 .. 3000; $n }
CODE
    my ( $called, %seen ) = until_called( $sampler, $pid );
    cmp_ok $called, '>=', 1000, 'many are whole';
    is_deeply [ grep {/::one>.*two|::two>.*one/} keys %seen ], [], 'none has the name of another';
    ok $seen{"Shop::__ANON__[s:3]>Shop::in_$_"}, "what has called $_ is named by its code" for qw(one two);
};

# The same where an address is used for a while only
subtest 'names in turn at ever new addresses' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util; my ( $n, @kept ) = 0; outer() while ++$n;
sub outer { my $to = $n % 2 ? 'one' : 'two'; my $code = named($to); $code->(); @kept = () if @kept > 500; push @kept, $code if $n % 40 == 0; 1 }
sub named { my $to = shift; return Sub::Util::set_subname( "Shop::$to", sub { no strict 'refs'; &{"in_$to"}(); 1 } ) }
sub in_one { my $n = 0; $n += $_ for 1 .. 300; $n }
sub in_two { my $n = 0; $n += $_ for 1 .. 300; $n }
CODE
    my ( $called, %seen ) = until_called( $sampler, $pid );
    cmp_ok $called, '>=', 1000, 'many are whole';
    is_deeply [ grep {/::one>.*two|::two>.*one/} keys %seen ], [], 'none has the name of another'
        or diag explain \%seen;
};

# Nothing is made anew there: it is one sub that captures nothing
subtest 'a sub with names in turn' => sub {
    for my $n ( 60, 1500 ) {
        my $sampler = sampler_of( my $pid = perl_of( <<"CODE") );
#line 1 "s"
package Shop; use Sub::Util; our \$to; my \$code = sub { no strict 'refs'; &{"in_\$to"}(); 1 }; outer() while 1;
sub outer { for my \$name (qw(one two)) { \$to = \$name; Sub::Util::set_subname( "Shop::\$name", \$code ); \$code->() } }
sub in_one { my \$n = 0; \$n += \$_ for 1 .. $n; \$n }
sub in_two { my \$n = 0; \$n += \$_ for 1 .. $n; \$n }
CODE
        my ( $called, %seen ) = until_called( $sampler, $pid );
        cmp_ok $called, '>=', 1000, "loops of $n: many are whole";
        is_deeply [ grep {/::one>.*two|::two>.*one/} keys %seen ], [], 'none has its other name'
            or diag explain \%seen;
    }
};

# Each was called by the name that all had before, until the other one had been seen often
subtest 'closures of a code that get another name from some time on' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util; use Time::HiRes; my $to = 'one'; $SIG{USR1} = sub { $to = 'two' };
while (1) { no strict 'refs'; my $is = $to; &{"is_$is"}( named($is) ) }
sub named { my $name = shift; my $n = 1; return Sub::Util::set_subname( "Shop::$name", sub { Time::HiRes::sleep( shift ); $n++ } ) }
sub is_one { shift->(0.001); 1 }
sub is_two { shift->(0.05); 1 }
CODE
    my %seen;
    for my $to (qw(one two)) {
        my ( $n, $until ) = ( 0, time + 60 );
        kill USR1 => $pid if $to eq 'two';
        while ( $n < 300 && time < $until ) {
            sleep 0.003 + rand 0.01;
            my ($labels) = $sampler->stack or next;
            $n++ if $labels->[-1] =~ /sleep/;
            $seen{ join '>', map {s/ .*//r} @$labels[ 1 .. $#$labels ] }++;
        }
    }
    ended($pid);
    for my $to (qw(one two)) {
        ok List::Util::any( sub {/is_$to>.*sleep/}, keys %seen ), "$to is seen";
    }
    is_deeply [ grep {/one.*two|two.*one/} keys %seen ], [], 'none has its other name' or diag explain \%seen;
};

# Each at an address where one of the old name has been: that one was right, so its name counted though it was
# gone
subtest 'closures with another name where those with the old one were' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util; use Time::HiRes; no strict 'refs'; my $make = sub { my $n = 1; sub { Time::HiRes::sleep(0.002); $n++ } };
for my $to (qw(one two)) { my @made = map { Sub::Util::set_subname( "Shop::$to", $make->() ) } 1 .. 20; for ( 1 .. 15 ) { &{"is_$to"}($_) for @made } }
sub is_one { shift->(); 1 }
sub is_two { shift->(); 1 }
CODE
    sleep 0.1;    # nothing else is known of their addresses
    my ( %seen, $labels );
    my $until = time + 60;
    while ( time < $until && ( ($labels) = $sampler->stack ) ) {
        $seen{ join '>', map {s/ .*//r} @$labels[ 1 .. $#$labels ] }++;
        sleep 0.0005 + rand 0.001;
    }
    ended($pid);
    for my $to (qw(one two)) {
        ok List::Util::any( sub {/is_$to>.*sleep/}, keys %seen ), "$to is seen";
    }
    is_deeply [ grep {/one.*two|two.*one/} keys %seen ], [], 'none has its other name' or diag explain \%seen;
};

# Its state is that of one who sleeps before and after a sample, and it has run meanwhile
subtest 'a sub with names in turn that sleeps shortly' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util; my $code = sub { select undef, undef, undef, 1e-6; 1 };
if ( open my $slack, '>', '/proc/self/timerslack_ns' ) { print $slack 1 }
while (1) { Sub::Util::set_subname( 'Shop::one', $code ); is_one(); Sub::Util::set_subname( 'Shop::two', $code ); is_two() }
sub is_one { $code->(); 1 }
sub is_two { $code->(); 1 }
CODE
    my ( $n, %seen ) = 0;
    my $until = time + 60;
    while ( $n < 15_000 && time < $until ) {
        sleep 0.0002 + rand 0.0003;
        my ($labels) = $sampler->stack or next;
        $n++;
        $seen{ join '>', map {s/ s:.*//r} @$labels[ 1 .. $#$labels ] }++;
    }
    ended($pid);
    cmp_ok $seen{"Shop::is_$_>Shop::__ANON__[s:1]>CORE::sselect (C)"} // 0, '>', $n / 10, "$_ is seen"
        for qw(one two);
    is_deeply [ grep {/one.*two|two.*one/} keys %seen ], [], 'none has its other name' or diag explain \%seen;
};

# They were cut until their names had been seen often, which took 16 samples each.
subtest 'closures that are named for each call, of many codes' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util;
eval "sub outer$_ { my \$x = $_; try( sub { \$x++; inner(); 1 } ); 1 } 1" or die for 1 .. 100;
while (1) { no strict 'refs'; &{ 'outer' . int 1 + rand 100 }() }
sub try { my $code = shift; Sub::Util::set_subname( 'Shop::try {...} ', $code ); eval { $code->(); 1 } }
sub inner { my $n = 0; $n += $_ for 1 .. 20_000; $n }
CODE
    my ( $all, %seen ) = 0;
    my $until = time + 60;
    while ( $all < 1000 && time < $until ) {
        sleep 0.0005 + rand 0.001;
        my ( $labels, undef, $moved ) = $sampler->stack or next;
        next if @$labels < 4 || $labels->[2] !~ /\AShop::try/ || $labels->[3] =~ /\ASub::Util/;
        $all++;
        $seen{ $moved ? 'cut' : $labels->[3] =~ s/ .*//r }++;
    }
    ended($pid);
    cmp_ok $seen{cut} // 0, '<', 0.3 * $all, 'few are cut' or diag explain \%seen;
    is_deeply [ grep { !/\A(?:cut|Shop::__ANON__\[\(eval\):1\]|Shop::try\\x20\{...\}\\x20)\z/ } keys %seen ],
        [], 'they are called by their code, or by name';
};

subtest 'a sub that is renamed' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util; use Time::HiRes; my $n = 0;
my $code = sub { Time::HiRes::sleep(0.02); 1 };
while (1) { for my $name ( "one$n", "two$n", "three$n" ) { Sub::Util::set_subname( "Shop::$name", $code ); last if rand() < 0.4 } Shop->can("is$n") || eval "sub is$n { \$code->(); 1 } 1" or die; &{"is$n"}(); $n = ( $n + 1 ) % 5 }
CODE
    my ( %seen, %wrong );
    my $until = time + 60;
    while ( ( $seen{all} // 0 ) < 300 && time < $until ) {
        sleep 0.011;
        my ( $labels, undef, $moved ) = $sampler->stack or next;
        my ( $is, $name ) = map {/::(\w+)/} grep {defined} @$labels[ 1, 2 ];
        next if $moved || !defined $name || $labels->[-1] !~ /sleep/;
        $seen{all}++;
        $wrong{"$name in $is"}++ if $name ne '__ANON__' && substr( $name, -1 ) ne substr $is, -1;
    }
    ended($pid);
    cmp_ok $seen{all} // 0, '>=', 300, 'it is seen';
    is_deeply \%wrong, {}, 'it never has an earlier name' or diag explain \%wrong;
};

subtest 'a closure that is made and named for each call, as by Try::Tiny' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use Sub::Util; my $n = 0; outer() while ++$n;
sub outer { my $x = $n; try( sub { $x++; inner(); 1 } ); 1 }
sub try { my $code = shift; Sub::Util::set_subname( 'Shop::try {...} ', $code ); eval { $code->(); 1 } }
sub inner { my $n = 0; $n += $_ for 1 .. 3000; $n }
CODE
    my ( %seen, $known );
    my $until = time + 150;
    my $want  = 'Shop::outer s:2>Shop::try s:3>Shop::try\x20{...}\x20 s:2>Shop::inner s:4';
    while ( ( $seen{$want} // 0 ) < 500 && time < $until ) {
        sleep 0.0005 + rand 0.001;
        my ($labels) = $sampler->stack or next;
        $seen{ join '>', @$labels[ 1 .. $#$labels ] }++;
        %seen = () if ( $seen{$want} // 0 ) == 100 && !$known++;    # its name is known by now
    }
    ended($pid);
    my $all = List::Util::sum0( values %seen );
    cmp_ok $seen{$want} // 0, '>=', 0.6 * $all, "most of $all samples have its name" or diag explain \%seen;
};

# What has called a sub was copied too early where the stack had been deeper, and the line that runs is read
# after all of it
subtest 'lines of calls in turn' => sub {
    my %once = (
        'from the start'     => '1',
        'behind a recursion' =>
            'sub deep { my $n = shift; $n ? deep( $n - 1 ) : Time::HiRes::sleep(0.5) } deep(1500)',
        'behind sorts' => 'my @s = sort { my @t = sort { Time::HiRes::sleep(0.5); 0 } 1, 2; 0 } 1, 2',
    );
    for my $name ( sort keys %once ) {
        my $sampler = sampler_of( my $pid = perl_of( <<"CODE") );
#line 1 "s"
package Shop; use Time::HiRes; no warnings; $once{$name}; running();
sub running { while (1) { one(); two() } }
sub one { within(1); 1 }
sub two { within(2); 1 }
sub within { my \$to = shift; if ( \$to == 1 ) {
#line 101 "s"
my \$n = 0; \$n += \$_ for 1 .. 200; } else {
#line 102 "s"
my \$n = 0; \$n += \$_ for 1 .. 200; }
#line 103 "s"
1 }
CODE
        my ( $n, %seen ) = 0;
        my $until = time + 60;
        while ( $n < 5000 && time < $until ) {
            sleep 0.0003 + rand 0.0004;
            my ($labels) = $sampler->stack or next;
            $n++ if "@$labels" =~ /::within/;
            $seen{ join '>', grep {/one|two|within/} @$labels }++;
        }
        ended($pid);
        cmp_ok $seen{"Shop::one s:3>Shop::within s:101"} // 0, '>', $n / 20, "$name: it is seen";
        is_deeply [ grep {/one.*s:102|two.*s:101/} keys %seen ], [], 'no line is that of another call'
            or diag explain \%seen;
    }
};

subtest 'sort blocks of calls in turn' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; my $w; while (1) { one(); two() }
sub one { $w = 1; within(); 1 }
sub two { $w = 2; within(); 1 }
sub within { my @s = sort { $w == 1 ? in_one() : in_two(); 1 } 1, 2; 1 }
sub in_one { my $n = 0; $n += $_ for 1 .. 2000; $n }
sub in_two { my $n = 0; $n += $_ for 1 .. 2000; $n }
CODE
    my %seen;
    my $until = time + 150;
    while ( List::Util::sum0( values %seen ) < 5000 && time < $until ) {
        sleep 0.0003 + rand 0.0004;
        my ($labels) = $sampler->stack or next;
        $seen{ join '>', map {/::(\w+)/} @$labels }++;
    }
    ended($pid);
    cmp_ok $seen{"$_>within>in_$_"}, '>=', 300, "$_ is seen" for qw(one two);
    is_deeply [ grep {/one.*two|two.*one/} keys %seen ], [], 'none is outside of the block of another'
        or diag explain \%seen;
};

# A sub on the outer level was seen half as often as the others
subtest 'subs and levels that take as long are seen as often' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use overload '""' => sub { my $n = 0; $n += $_ for 1 .. 500; 'x' }, fallback => 1; my $o = bless []; while (1) { a_text(); a_method(); a_sort() }
sub a_text { my $t = "$o"; 1 }
sub a_method { $o->method; 1 }
sub a_sort { my @s = sort { quick(); 1 } 2, 1; 1 }
sub method { my $n = 0; $n += $_ for 1 .. 500; $n }
sub quick { my $n = 0; $n += $_ for 1 .. 500; $n }
CODE
    seen_at_least( 0.23, [qw(a_text a_method a_sort)], $sampler, $pid, 5000, qr/::(a_\w+)/ );
};

# What is outside of that sub need not be certain
subtest 'subs in turn, of which one is left out with all outside of it' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; my $n = 0; outer() while ++$n;
sub outer { $n % 2 ? one() : two(); 1 }
sub one { within('one'); 1 }
sub two { within('two'); 1 }
sub within { my ($to) = @_; $to eq 'one' ? in_one() : in_two(); 1 }
sub in_one { my $n = 0; $n += $_ for 1 .. 3000; $n }
sub in_two { my $n = 0; $n += $_ for 1 .. 3000; $n }
CODE
    my %seen;
    my $until = time + 150;
    my $want  = 'Shop::within s:5>Shop::in_one s:6';
    while ( ( $seen{$want} // 0 ) < 300 && time < $until ) {
        sleep 0.0005 + rand 0.001;
        my ($labels) = $sampler->stack('Shop::one') or next;
        $seen{ join '>', @$labels }++;
    }
    ended($pid);
    cmp_ok $seen{$want} // 0, '>=', 300, 'what it calls is there';
    ok $seen{''}, 'stacks without it have no labels';
    is_deeply [ grep {/two|outer|one\b.*one\b|main/} keys %seen ], [], 'and nothing else'
        or diag explain \%seen;
};

# The line that is compiled changes while the stack is read
subtest 'code that is compiled' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use strict; my $text = join "\n", map {"my \$n$_ = $_;"} 1 .. 2000; outer() while 1;
sub outer { eval $text; 1 }
CODE
    my %seen;
    my $until = time + 150;
    while ( ( $seen{all} // 0 ) < 1000 && time < $until ) {
        sleep 0.0005 + rand 0.001;
        my ( $labels, undef, $moved ) = $sampler->stack or next;
        $seen{all}++;
        $seen{ $moved ? @$labels == 1 ? 'nothing' : 'moved' : "@$labels[ 1 .. $#$labels ]" }++;
    }
    ended($pid);
    cmp_ok $seen{'Shop::outer s:2 (eval)'} // 0, '>=', 800, 'is that of an eval' or diag explain \%seen;
};

# Code of a string is gone before all of its stack is known; what runs then was seen nearly twice as often as
# it does.
subtest 'code that runs once is seen as often as other code' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; use strict; outer() while 1;
sub outer { once(); often(); 1 }
sub once { eval 'in_it(); 1'; 1 }
sub often { in_it(); 1 }
sub in_it { my $n = 0; $n += $_ for 1 .. 1500; $n }
CODE
    seen_at_least( 0.45, ['once'], $sampler, $pid, 2000, qr/Shop::(once|often)/ );
};

# At the address of one is the other when the scope has ended: which of them ran was decided by what ran when
# it was read again.
subtest 'two closures that take as long, in one scope' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; outer() while 1;
sub outer { my $n = 1; my $one = sub { $n++; in_one(); 1 }; $one->(); my $two = sub { $n++; in_two(); 1 }; $two->(); 1 }
sub in_one { my $n = 0; $n += $_ for 1 .. 500; $n }
sub in_two { my $n = 0; $n += $_ for 1 .. 500; $n }
CODE
    my ( $called, %seen ) = until_called( $sampler, $pid );
    my ( $one, $two, $cut ) = map {
        my $of = $_;
        List::Util::sum0( map { $seen{$_} } grep {/$of\z/} keys %seen )
    } qw(in_one in_two [(]moved[)]);
    cmp_ok $one, '<', 0.6 * ( $one + $two + $cut ), "$one and $two, $cut cut";
};

# The statement that runs is the one of the caller when an eval begins and when it ends.
subtest 'an eval has no line of its caller' => sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; my $t = '1'; while (1) {
    eval $t;
    eval $t;
}
CODE
    my ( %seen, $n );
    my $until = time + 60;
    while ( ( $n // 0 ) < 3000 && time < $until ) {
        sleep 0.0002 + rand 0.0005;
        my ($labels) = $sampler->stack or next;
        $n++;
        $seen{ $labels->[1] // '' }++;
    }
    ended($pid);
    ok $seen{'(eval)'}, 'it is seen';
    is_deeply [ grep {/\(eval\) s:/} keys %seen ], [], 'and has no line of its caller' or diag explain \%seen;
};

subtest 'a stopped process' => sub {
    my $sampler = sampler_of( my $pid = perl_of('1 while 1') );
    ok until_true( 20, sub { ( ( $sampler->stack )[1] // '' ) eq 'R' } ), 'it runs';
    kill STOP => $pid;
    ok until_true( 20, sub { ( $sampler->stack )[1] eq 'T' } ), 'it is stopped';
    ended($pid);
    is_deeply [ $sampler->stack ], [], 'it has ended';
    is 0 + $!, ESRCH, 'and that is why';
};

subtest 'a program that runs: each frame was called by the one outside of it' => sub {
    my $code = <<'CODE';
#line 1 "s"
package Shop; use overload '""' => 'text', '+' => 'plus';
sub quick { my $x = shift; $x * 2 }
sub sorts { my @s = sort { quick($a); $a <=> $b } 3, 1, 2; @s = sort by_number 3, 1, 2; 1 }
sub by_number { $a <=> $b }
sub evals { eval 'my $n = 1; evaled($n)'; eval { evaled(2) }; 1 }
sub evaled { my $n = 0; $n += $_ for 1 .. 30; $n }
sub regex { my $c = 0; ( 'a' x 20 ) =~ /^(?:a(?{ $c++; in_regex() if $c % 5 == 0 }))*$/; 1 }
sub in_regex { my $n = 0; $n += $_ for 1 .. 30; $n }
sub recur { my $n = shift; $n < 2 ? 1 : recur( $n - 1 ) + recur( $n - 2 ) }
sub handled { my $n = 0; $n += $_ for 1 .. 30; $n }
sub signals { kill USR1 => $$; 1 }
sub objects { tie my $t, 'Shop'; my $v = $t; my $o = Shop->make; $v = "$o"; $v = $o + 1; undef $o; $o = Shop->make; 1 }
sub TIESCALAR { bless [], shift }
sub FETCH { my $n = 0; $n += $_ for 1 .. 20; $n }
sub make { bless {}, shift }
sub text { my $n = 0; $n += $_ for 1 .. 20; $n }
sub plus { my $n = 0; $n += $_ for 1 .. 20; $n }
sub DESTROY { my $n = 0; $n += $_ for 1 .. 20; $n }
sub closures { for my $x ( 1 .. 5 ) { maker($x)->() } 1 }
sub maker { my $x = shift; sub { my $n = $x; $n += $_ for 1 .. 20; quick($n) } }
sub deep { no warnings; my $n = shift; $n ? deep( $n - 1 ) : quick($n) }
$SIG{USR1} = \&handled;
sub all { sorts(); evals(); regex(); recur(8); signals(); objects(); closures(); deep(30); quick(1) }
all() while 1;
CODE
    my %at    = ( 'Shop::__ANON__[s:20]' => 20 );    # the line of each sub
    my @lines = split /\n/, $code;
    for my $line ( 1 .. $#lines ) {
        $at{"Shop::$1"} = $line if $lines[$line] =~ /^sub (\w+)/;
    }
    my %calls;                                       # line => what can be called there
    for my $line ( 2 .. $#lines ) {
        my $text = $lines[$line] =~ s/^sub \w+//r;
        $calls{$line}{"Shop::$_"} = 1 for $text =~ /\b(\w+)/g;
    }
    $calls{12}{"Shop::$_"}             = 1 for qw(DESTROY FETCH text plus TIESCALAR make);
    $calls{18}{'Shop::DESTROY'}        = 1;
    $calls{11}{'Shop::handled'}        = 1;
    $calls{19}{'Shop::__ANON__[s:20]'} = 1;
    my @others  = crowded();
    my $sampler = sampler_of( my $pid = perl_of($code) );
    my ( %seen, @wrong, $moved, $n );
    my $until = time + ( $ENV{SIRIUS_TEST_SECONDS} || 6 );

    my $unseen = sub {
        return
            grep { !$seen{$_} }
            qw(Shop::quick Shop::by_number Shop::evaled Shop::in_regex Shop::recur Shop::deep
            Shop::handled Shop::FETCH Shop::text Shop::DESTROY Shop::__ANON__[s:20]);
    };
    while ( time < $until || ( $unseen->() && time < $until + 40 ) ) {
        my ( $labels, $state, $cut ) = $sampler->stack or next;
        next if $labels->[0] =~ /\(main program\)(?! s:24)/;    # it begins
        $n++;
        $moved++ if $cut;
        my $line = 24;
        for my $label ( @{$labels}[ 1 .. $#$labels ] ) {
            my ( $name, $place ) = $label =~ /\A(\(.*?\)|\S+)(?: s:(\d+))?/;
            if ( $name =~ /\AShop/ ) {
                $seen{$name}++;
                my $handler = $name eq 'Shop::handled';    # wherever the signal comes
                push @wrong, "$name called at line $line" if !$calls{$line}{$name} && !$handler;
                push @wrong, "$name at line $place"       if defined $place        && $place != $at{$name};
                $line = $at{$name};
            } elsif ( $name eq '(eval)' ) {
                $line = 5;
            } elsif ( $name eq '(unknown)' ) {
                push @wrong, $label;
            }
        }
        sleep 0.0002 + rand 0.001;
    }
    ended(@others);
    ended($pid);
    my %count;
    $count{$_}++ for @wrong;
    is_deeply \%count, {}, "all of $n samples" or diag explain \%count;
    cmp_ok $n, '>', 100, 'there are many';
    cmp_ok $moved // 0, '<', $n / 10, ( $moved // 0 ) . ' were cut';
    is join( q( ), $unseen->() ), '', 'all kinds of calls were seen' or diag explain \%seen;
};

subtest
    'closures that are made for each call, at any address, are seen as often as a sub that takes as long' =>
    sub {
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; my @kept; all() while 1;
sub all { same(); made( 0 )->(); 1 }
sub same { my $n = 0; $n += $_ for 1 .. 800; return $n }
sub made { my $n = shift;
    my $code = sub { my $i = $n; $i += $_ for 1 .. 700; return $i };
    for ( 1 .. 20 ) { my $inner = $code; $code = sub { my $i = $inner->(); return $i } }
    $kept[ rand 300 ] = $code }
CODE
    my ( %seen,  $n );
    my ( $until, $ran ) = ( time + 60, 0 );
    while ( ( $n // 0 ) < 3000 && time < $until ) {
        sleep 0.0003 + rand 0.001;
        my $used = clock_gettime( ( ~$pid << 3 ) | 2 );    # CPU time of that process
        next if $used - $ran < 20e-6;                      # it has not run since
        $ran = $used;
        my ($labels) = $sampler->stack or next;
        $n++;
        $seen{ $labels->[2] // 'main' }++;
    }
    ended($pid);
    my ( $same, $made ) = map {
        my $name = $_;
        List::Util::sum0( map { $seen{$_} } grep {/\A\Q$name\E/} keys %seen )
    } 'Shop::same', 'Shop::__ANON__';
    cmp_ok abs( $made / ( $same + $made ) - 0.5 ), '<', 0.1, "$same times, $made times"
        or diag explain \%seen;
    };

subtest 'a closure that is freed before its name is wanted' => sub {
    my @others  = crowded();
    my $sampler = sampler_of( my $pid = perl_of(<<'CODE') );
#line 1 "s"
package Shop; all() while 1;
sub all { made(1)->(); 1 }
sub quick { my $x = shift; $x * 2 }
sub made { my $n = shift; sub { my $i = $n; quick($i) } }
CODE
    my ( %seen,  %whole );
    my ( $until, $n ) = ( time + 40, 0 );
    while ( $n < 5000 && time < $until ) {
        sleep rand 0.0005;
        my ( $labels, undef, $moved ) = $sampler->stack or next;
        next if $labels->[0] !~ /\A\(main program\) s:1\z/;    # it begins
        $n++;
        $seen{s/ s:\d+\z//r}++ for @$labels;
        $whole{ join '>', map {s/ s:\d+\z//r} @$labels }++ if !$moved;
    }
    ended(@others);
    ended($pid);
    is $seen{'(unknown)'}, undef, "has one in each of $n samples" or diag explain \%whole;
    cmp_ok $seen{'Shop::__ANON__[s:4]'} // 0, '>', 0, 'it was seen';
    my @wrong
        = grep { !/\A\(main program\)(?:>Shop::all(?:>Shop::(?:made|__ANON__\[s:4\](?:>Shop::quick)?))?)?\z/ }
        sort keys %whole;
    is_deeply \@wrong, [], 'in its place';
};

sub refused {
    my $pid = shift;
    ok !eval { Sirius::OS::Sampler->new($pid); 1 }, 'it is refused';
    return $@;
}

subtest 'no such process' => sub {
    my $pid = fork // die;
    POSIX::_exit(0) if !$pid;
    waitpid $pid, 0;
    is refused($pid), "there is no process $pid\n", 'with a line';
};

subtest 'another program' => sub {
    my $pid = fork // die;
    exec 'sleep', '300' or POSIX::_exit(1) if !$pid;
    ends_with_test($pid);
    until_true( 10, sub { readlink("/proc/$pid/exe") ne readlink '/proc/self/exe' } );
    like refused($pid), qr{\Aprocess $pid does not run perl, but /\S+\n\z}, 'with its name';
    ended($pid);
};

subtest 'another perl' => sub {
    my $copy = "$dir/perl-other";
    File::Copy::copy( readlink '/proc/self/exe', $copy ) or die $!;
    chmod 0755, $copy or die $!;
    open my $out, '+<', $copy or die $!;
    seek $out, 15, 0;    # a byte of padding in the head of an ELF file
    print {$out} "\1" or die $!;
    close $out        or die $!;
    my $pid = perl_of( 'sleep 300', $copy );
    plan skip_all => 'perl is in a library'
        if !until_true( 5, sub { ( readlink "/proc/$pid/exe" // '' ) eq $copy } );
    until_true( 20, sub { Sirius::Test::Server::slurp("/proc/$pid/maps") =~ / r-xp .*\Q$copy\E\n/ } );
    like refused($pid),
        qr{\Aprocess $pid runs another perl than this command: \Q$copy\E, not the one of \S+; run },
        'with its path';
    ended($pid);
};

subtest 'a process of another user' => sub {
    plan skip_all => 'needs root' if $>;
    my $pid = perl_of('sleep 300');
    sampler_of($pid);
    pipe my $in, my $out or die $!;
    my $child = fork // die;
    if ( !$child ) {
        POSIX::setgid(65_534);
        POSIX::setuid(65_534);
        syswrite $out, eval { Sirius::OS::Sampler->new($pid) } ? 'possible' : $@;
        POSIX::_exit(0);
    }
    waitpid $child, 0;
    sysread $in, my $said, 4096;
    is $said,
        "cannot read the memory of process $pid: Permission denied; it runs as user 0: run this command as that "
        . "user or as root\n", 'with what to do';
    ended($pid);
};

subtest 'a kernel that has no such call' => sub {
    my $pid     = perl_of('sleep 300');
    my $confine = Sirius::Test::Confine->without( ENOSYS => 'process_vm_readv' );
    plan skip_all => 'there are no filters of system calls here' if !$confine;
    sampler_of($pid);
    open my $in, q(-|), $confine->path, $^X, ( map {"-I$_"} @INC ),
        '-MSirius::OS::Sampler', '-e', 'eval { Sirius::OS::Sampler->new(shift) }; print $@', $pid
        or die "$!";
    is do { local $/; <$in> },
        "cannot read the memory of process $pid: Function not implemented; this kernel has no process_vm_readv "
        . "(CONFIG_CROSS_MEMORY_ATTACH), or this is an emulator such as qemu-user\n",
        'says so, and nothing about rights';
    ended($pid);
};

done_testing;
