# Programs that tell by their lines which name is right: no sample has another one, however short or
# short-lived its subs are
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use List::Util ();
use Sirius::Test;
use Sirius::Test::Program;
use Test::More;
use Time::HiRes qw(sleep time);

crowded();

# A name that ends with the number of its file, or of the line where it was called
sub same_number {
    my ($labels) = @_;
    for my $label (@$labels) {
        return $label if $label =~ /::f(\d+) f(\d+):/        && $1 ne $2;
        return $label if $label =~ /\[f(\d+):1\] f(\d+):1\z/ && $1 ne $2;
    }
    return;
}

sub called_at {
    my ( $labels, $line_of ) = @_;
    for my $i ( 1 .. $#$labels ) {
        my ($line) = $labels->[ $i - 1 ] =~ / s:(\d+)\z/ or next;
        my ($name) = $line_of->( $labels->[$i] )         or next;
        return "$labels->[$i - 1] > $labels->[$i]" if $line ne $name;
    }
    return;
}

sub same_letter {
    my ($labels) = @_;
    return "@$labels" =~ /::pick_(\w)\b.*::is_(\w)\b/ && $1 ne $2 ? "pick_$1 > is_$2" : ();
}

# All lines are of the same ten
sub same_ten {
    my ($labels) = @_;
    my %tens = map { / s:(\d)\d\z/ ? ( $1 => 1 ) : () } @$labels;
    return keys %tens > 1 ? "@$labels" : ();
}

# The same, and what perl calls for
sub same_kind {
    my ($labels) = @_;
    return "@$labels" =~ /s:(\d)0 \((tie|overload)/ && ( $1 == 1 ) == ( $2 eq 'tie' )
        ? "@$labels"
        : same_ten($labels);
}

my $many  = q($o .= 'x'; ) x 2000;
my $work  = '$x++; ' x 140;
my $lines = join '', map {qq{#line $_ "s"\nf$_();\n}} 10 .. 29;
my $sort  = '@r = sort { $a->{n} <=> $b->{n} } @l;';
my ( $deep, $end ) = map { $_ x 50 } qw({ });
my $subs  = join '', map {"sub f$_ { 1 }\n"} 10 .. 29;
my $short = join '',
    map {qq(#line $_ "s"\n{ my \$k = rand; my \$c = sub { my \$y = \$k; \$y++; \$y }; \$c->() }\n)} 10, 20,
    30;

#<<< what it is; the program; the wrong label of a stack, if there is one; what must be seen at all
my @CASES = (
    [ 'subs that strings make, one after the other at the same address' => <<'CODE', \&same_number, qr/\AShop::f\d+ f\d+:1\z/ ],
package Shop; my $i = 0;
while (1) { $i = ( $i + 1 ) % 1000;
    eval qq{#line 1 "f$i"\nsub f$i { my \$n = 0; \$n += \$_ for 1 .. 300; \$n }\n1} or die;
    my $f = \&{"Shop::f$i"}; $f->(); undef &$f; delete $Shop::{"f$i"} }
CODE
    [ 'closures that strings make' => <<'CODE', \&same_number, qr/\AShop::__ANON__\[f\d+:1\] f\d+:1\z/ ],
package Shop; my $i = 0;
while (1) { $i = ( $i + 1 ) % 1000;
    my $f = eval qq{#line 1 "f$i"\nsub { my \$n = \$i; \$n += \$_ for 1 .. 300; \$n }} or die; $f->() }
CODE
    [ 'closures that are given a name' => <<'CODE', sub { called_at( $_[0], sub { $_[0] =~ /::of(\d+)/ } ) }, qr/::of\d+|__ANON__\[program\d+:2\]/ ],
package Shop; use Sub::Util 'set_subname';
sub made { my ( $name, $k ) = @_; set_subname( "Shop::$name", sub { my $n = $k; $n += $_ for 1 .. 20; $n } ) }
while (1) {
#line 10 "s"
made( 'of10', 1 )->();
#line 20 "s"
made( 'of20', 2 )->() }
CODE
    [ 'subs that each have a line of their own that calls them' => <<"CODE", sub { called_at( $_[0], sub { $_[0] =~ /::f(\d+)/ } ) }, qr/::f\d+/ ],
package Shop; $subs while (1) { $lines }
CODE
    [ 'the same, called by a sub in a sub' => <<"CODE", sub { called_at( $_[0], sub { $_[0] =~ /::f(\d+)/ } ) }, qr/::f\d+/ ],
package Shop; $subs sub inner { while (1) { $lines } } sub outer { inner() } outer();
CODE
    [ 'short closures of one line each' => <<"CODE", sub { called_at( $_[0], sub { $_[0] =~ /\[s:(\d+)\]/ } ) }, qr/\[s:\d+\]/ ],
package Shop; sub all { $short } all() while 1;
CODE
    [ 'methods in C of the same name' => <<'CODE', sub { called_at( $_[0], sub { { 'Digest::MD5::add (XS)' => 10, 'Digest::SHA::add (XS)' => 20 }->{ $_[0] } // () } ) }, qr/add \(/ ],
use Digest::MD5; use Digest::SHA; my $m = Digest::MD5->new; my $s = Digest::SHA->new(1); my $text = 'x' x 300;
while (1) {
#line 10 "s"
$m->add($text);
#line 20 "s"
$s->add($text) }
CODE
    [ 'a name that is of one sub and then of another' => <<'CODE', sub { called_at( $_[0], sub { { 'List::Util::sum (XS)' => 11, 'List::Util::max (XS)' => 21 }->{ $_[0] } // ( $_[0] =~ /in_perl/ ? 31 : () ) } ) }, qr/in_perl/ ],
use List::Util; no warnings; my @l = ( 1 .. 30 ); sub in_perl { my $n = 0; $n += $_ for 1 .. 20; $n }
while (1) {
*f = \&List::Util::sum;
#line 11 "s"
f(@l);
#line 20 "s"
*f = \&List::Util::max;
#line 21 "s"
f(@l);
#line 30 "s"
*f = \&in_perl;
#line 31 "s"
f(@l) }
CODE
    [ 'a sub in C with names in turn' => <<'CODE', sub { called_at( $_[0], sub { $_[0] =~ /::to(\d+)/ } ) }, qr/\A\(main program\) s:\d+\z/ ],
use Sub::Util 'set_subname'; use List::Util; *f = \&List::Util::sum; my @l = ( 1 .. 3000 );
while (1) { set_subname( 'Shop::to10', \&f );
#line 10 "s"
f(@l), f(@l), f(@l), f(@l), f(@l), f(@l), f(@l), f(@l);
set_subname( 'Shop::to20', \&f );
#line 20 "s"
f(@l), f(@l), f(@l), f(@l), f(@l), f(@l), f(@l), f(@l); }
CODE
    # All is as before where its name is kept, so what was read of another one meanwhile was believed
    [ 'a sub that has its name again' => <<'CODE', sub { "@{ $_[0] }" =~ /(Shop::other.*main::stable)/ ? $1 : () }, qr/main::stable/ ],
use Sub::Util 'set_subname'; use Time::HiRes 'time'; our ( $inner, @kept ); my $i = 0;
sub stable { my $until = time + 0.03; 1 while time < $until }
while ( $i++ < 1000 ) {
    my $me = eval "sub { my \$n = $i; \$main::inner->() }" or die; push @kept, $me; set_subname( 'Shop::real', $me );
    $inner = sub { my $until = time + 0.001;
        while ( time < $until ) { for ( 1 .. 400 ) { } set_subname( 'Shop::x', $me ); set_subname( 'Shop::other', $me ); for ( 1 .. 100 ) { }
            set_subname( 'Shop::y', $me ); set_subname( 'Shop::real', $me ) }
        stable() };
    $me->() }
CODE
    # Each call on an outer level is shorter than it takes to read all levels
    [ 'calls outside of sort blocks in turn' => <<"CODE", \&same_letter, qr/::pick_/ ],
package Shop; our \$f; sub is_a { my \$x = 0; $work } sub is_b { my \$x = 0; $work }
sub work { my \@x = sort { my \@y = sort { &\$f; 0 } 1, 2; 0 } 1, 2; 0 } sub pick_a { \$f = \\&is_a; work() } sub pick_b { \$f = \\&is_b; work() }
while (1) { pick_a(); pick_b() }
CODE
    [ 'a short call outside of a tie between long ones' => <<'CODE', \&same_letter, qr/::is_a / ],
package Shop; sub TIESCALAR { bless [ $_[1] ] } sub FETCH { $_[0][0]->() }
tie my $one, 'Shop', \&is_a; tie my $two, 'Shop', \&is_b;
sub is_a { my $n = 0; $n += $_ for 1 .. 800; $n } sub is_b { 1 }
sub reads { my $value = $_[0]; 1 } sub pick_a { reads($one) } sub pick_b { reads($two) }
while (1) { pick_a(); pick_b() }
CODE
    [ 'two sorts in turn' => <<"CODE", \&same_ten, qr/\A\(sort block\) s:/ ],
my \@r; my \@l = map { { n => \$_ % 17 } } 1 .. 40;
while (1) {
#line 10 "s"
$sort
#line 20 "s"
$sort }
CODE
    [ 'a long sort and a short one' => <<'CODE', \&same_ten, qr/\A\(sort block\) s:/ ],
my @r; my $n = 0;
while (1) {
#line 10 "s"
@r = sort { $n++ for 1 .. 40; 0 } 1, 2;
#line 20 "s"
@r = sort { 0 } 1, 2 }
CODE
    # Where the level of the sort has begun, and its block has not, the innermost sub is on another level than
    # the place
    ( map { my ( $name, $here ) = @$_; [ $name => <<"CODE", \&same_ten, qr/\Amain::within s:/ ] } [ 'calls of a sub that sorts' => '@r = sort { $n++ for 1 .. 800; 0 } 1, 2;' ], [ 'calls of a sub with a pattern that runs code' => q('ab' =~ m{a(?{ $n++ for 1 .. 100 })b};) ] ),
my \@r; my \$n = 0;
sub within {
#line 5 ""
    goto TWENTY if !\$_[0];
#line 10 "s"
    $here
#line 11 "s"
    return 1;
#line 20 "s"
    TWENTY: $here
#line 21 "s"
    return 2 }
sub one {
#line 12 "s"
    within(1);
#line 13 "s"
    1 }
sub two {
#line 22 "s"
    within(0);
#line 23 "s"
    1 }
while (1) {
#line 14 "s"
one();
#line 24 "s"
two() }
CODE
    # The outer contexts of a deep level are copied by themselves, long before the inner ones if other levels
    # have ended
    [ 'deep calls in turn beside levels that have ended' => <<"CODE", \&same_letter, qr/::is_a / ],
package Shop; our \$f; my ( \$n, \$k ) = ( 0, 0 ); sub quick { \$n++ }
sub is_a { \$n++ for 1 .. 6; 1 } sub is_b { \$n++ for 1 .. 6; 1 }
sub work { $deep my \$r = &\$f(); 1 $end } sub pick_a { \$f = \\&is_a; work() } sub pick_b { \$f = \\&is_b; work() }
sub levels { $deep my \@r = sort { my \@y = sort { quick() for 1 .. 400; 0 } 1, 2; 0 } 1, 2; $end }
while (1) { levels() if ++\$k % 400 == 0; pick_a(); pick_b() }
CODE
    # A context may stand with the place to go on of the last call as long as the process is off the CPU
    [ 'short subs in turn' => <<'CODE', sub { called_at( $_[0], sub { $_[0] =~ /::f(\d+)/ } ) }, qr/::f\d+/ ],
package Shop; our $x; sub f10 { $x++; $x++; $x++; 1 } sub f20 { $x++; $x++; $x++; 2 } sub f30 { $x++; $x++; $x++; 3 }
while (1) { 1;
#line 10 "s"
f10();
#line 20 "s"
f20();
#line 30 "s"
f30() }
CODE
    # What goto leaves for a sub in C keeps its context, behind those in use, until the next call
    [ 'a sub that was left by goto' => <<'CODE', sub { "@{ $_[0] }" =~ /(::work .*::left.*)/ ? $1 : () }, qr/CORE::join/ ],
package Shop; use List::Util (); our ( $x, @big ); @big = 1 .. 300; sub left { goto &List::Util::sum }
sub work { for (1) { for (1) { left(1) } } $x = join ',', @big for 1 .. 2000 } left(1); work() while 1;
CODE
    [ 'subs in turn, of which one leaves by goto' => <<'CODE', \&same_letter, qr/::is_a/ ],
package Shop; use List::Util (); sub is_a { my $s = 0; $s += $_ for 1 .. 60; goto &List::Util::sum }
sub is_b { my $s = 0; $s += $_ for 1 .. 60; $s }
sub work { if ( $_[0] ) { is_a(1) } else { is_b(2) } 1 } sub pick_a { work(1); 1 } sub pick_b { work(0); 1 }
while (1) { pick_a(); pick_b() }
CODE
    [ 'code in a pattern' => <<'CODE', sub { "@{ $_[0] }" =~ /(\(main program\) s:[12].*|\(regex code\) s:(?:1|\d+ CORE).*)/ ? $1 : () }, qr/\(regex code\) s:2/ ],
#line 10 "s"
package Shop; sub leaf { my $s = 0; $s += $_ for 1 .. 60; 1 }
#line 20 "s"
sub work { 'ab' =~ /a(?{ leaf(1) })b/; 1 }
#line 30 "s"
work() while 1;
CODE
    [ 'code of a substitution' => <<'CODE', sub { "@{ $_[0] }" =~ /(\(main program\) s:[12].*)/ ? $1 : () }, qr/::leaf/ ],
#line 10 "s"
package Shop; sub leaf { 1 }
#line 20 "s"
sub work { ( my $x = 'abcbcb' ) =~ s{b}{ my $y = leaf(1); my $z = leaf(2); $y }eg; 1 }
#line 30 "s"
work() while 1;
CODE
    [ 'a tie and an overload in turn' => <<'CODE', \&same_kind, qr/\(tie\)/ ],
package Shop; our ( $z, $t ); sub work { my $s = 0; $s += $_ for 1 .. 50; $s } my $o = bless [];
sub TIESCALAR { bless [] }
#line 11 "s"
sub text { work(); 'x' } use overload '""' => \&text;
#line 21 "s"
sub FETCH { work() }
tie $t, 'Shop'; while (1) { 1;
#line 10 "s"
$z = "$o";
#line 20 "s"
$z = $t; }
CODE
    [ 'a sort by a sub' => <<'CODE', sub { List::Util::first { /sort block/ } @{ $_[0] } }, qr/::by_it/ ],
package Shop; our @v = ( 2, 1 ); our @r; sub by_it { 0 } @r = sort by_it @v while 1;
CODE
    [ 'a string beside a sub' => <<'CODE', sub { List::Util::first { /require/ } @{ $_[0] } }, qr/\(eval\)/ ],
package Shop; our $z; sub leaf { my $x = $_[0]; $x } sub both { $z = eval '1'; leaf(1); } both() while 1;
CODE
    [ 'calls in a sub of the main program' => <<'CODE', sub { "@{ $_[0] }" =~ /(\(main program\) s:1.*|::both s:2.*)/ ? $1 : () }, qr/::both s:1/ ],
package Shop; our $z; sub leaf { 1 }
sub both {
#line 10 "s"
$z = 1; leaf(1);
#line 11 "s"
$z = 2; leaf(2) }
#line 20 "s"
while (1) { both(); { $z = 3; both() } }
CODE
    [ 'a format' => <<'CODE', sub { "@{ $_[0] }" =~ /(\(main program\) s:1.*)/ ? $1 : () }, qr/\(format\) s:1/ ],
package Shop; sub leaf { 1 } open STDOUT, '>', '/dev/null';
#line 10 "s"
format STDOUT =
@<<<< @<<<<
leaf(1), leaf(2)
.
#line 20 "s"
sub out { write; 1 } out() while 1;
CODE
    [ 'a sub of thousands of statements' => <<"CODE", sub { called_at( $_[0], sub { $_[0] =~ /::f(\d+)/ } ) }, qr/::f\d+/ ],
package Shop; our \$o; $subs sub large { for ( 1 .. 1000 ) { $lines } return if \$_[0]; $many } sub all { large(1) } all() while 1;
CODE
    [ 'where the handler of a signal has not begun yet' => <<'CODE', sub { "@{ $_[0] }" =~ /(\(signal handler\) CORE::kill.*)/ ? $1 : () }, qr/signal handler/ ],
use POSIX; my $n; my $handler = sub { $n++ }; my @all = map { SIGRTMIN() + $_ } 0 .. 29; my $set = POSIX::SigSet->new(@all);
for (@all) { my $how = POSIX::SigAction->new( $handler, $set, POSIX::SA_SIGINFO ); $how->safe(1); POSIX::sigaction( $_, $how ) }
sub work { POSIX::sigprocmask( SIG_BLOCK, $set ); kill $_ => $$ for @all; POSIX::sigprocmask( SIG_UNBLOCK, $set ), kill 0 => $$ } work() while 1;
CODE
);
#>>>

for my $case (@CASES) {
    my ( $name, $code, $wrong, $wanted ) = @$case;
    subtest $name => sub {
        my $sampler = sampler_of( my $pid = perl_of($code) );
        my ( $n, $cut, $seen, %wrong ) = ( 0, 0, 0 );
        my ( $until, $at_most ) = ( time + ( $ENV{SIRIUS_TEST_SECONDS} || 4 ), time + 60 );
        while ( time < $until || ( ( !$seen || $n < 1000 ) && time < $at_most ) ) {
            my ( $labels, undef, $moved ) = $sampler->stack or next;
            $n++;
            $cut++  if $moved;
            $seen++ if grep {/$wanted/} @$labels;
            my $label = $wrong->($labels);
            $wrong{$label}++ if defined $label;
            sleep rand 0.0003;
        }
        ended($pid);
        my $times = List::Util::sum0( values %wrong );

        # A copy of the stack may be torn in a way that makes sense, as when the CPU goes to another process
        # in the middle of it
        my $few = $n / 5000;
        cmp_ok $times, '<=', $few, "$times wrong ones of $n samples, $cut of them cut"
            or diag explain \%wrong;
        cmp_ok $seen, '>', 0,      'what it is about was seen';
        cmp_ok $cut,  '<', $n / 2, 'most are whole';
    };
}

done_testing;
