use strict;
use warnings;
use Test::More;
use File::Temp;
use Sirius::Config::Options;
use Sirius::Config::Values;

# Generated options, environments and files: each is taken, with values inside of their limits, or refused in
# one line that an operator can read. SEED=n and ROUNDS=n in the environment look elsewhere and longer.

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };
my $seed = $ENV{SEED} || 20_250_101;
srand $seed;

# What is code would be compiled, and what is hidden comes from programs
my @row    = grep { $_->{type} ne 'code' && !$_->{hidden} } Sirius::Config::Options->rows;
my @values = (
    qw(0 1 2 10 65535 65536 99999999999999999999 -1 1e9 0x10 010 1_000 .5 5. 1.2.3 nan inf +3 0777 0888),
    qw(1k 10M 2g 5kb k 500ms 2m 1h 7d 1y ms yes no on off true maybe auto 2:4 4:2 1:auto :auto auto:2 0:1),
    qw(:5000 *:80 [::1]:80 [::1] ::1 127.0.0.1:0 localhost a:b :65536 :0 @abstract fd:3 fd:x systemd:a unix:/x),
    'daemon,root',
    qw(/nonexistent/x /tmp . root nobody no-such-user 0 common json %h %{X}i %{ %! token),
    ' ',
    '',
    "\t",
    'two words',
    "line\nbreak",
    "nul\0",
    "nul\0within",
    "\e[31m",
    "\x{e9}",
    "\xe2\x98\xba",
    'x' x 5000,
    '"',
    q('),
    '\\',
    '$x',
    ',',
    ',,',
);

sub any { return $_[ rand @_ ] }

sub value {
    my $value = any(@values);
    substr $value, rand 1 + length $value, rand 3, any( @values, map {chr} 33 .. 126 )
        for 1 .. any( 0, 0, 0, 1, 2 );
    return $value;
}

sub name {
    my $row  = any(@row);
    my $name = any( $row->{name}, @{ $row->{alias} || [] } );
    $name = any(qw(no- enable- disable- ssl- net-server-)) . $name if rand() < 0.1;
    $name =~ tr/-/_/ if rand() < 0.3;
    substr $name, rand length $name, 1, any( 'a' .. 'z', '-', '_', '' ) if rand() < 0.1;
    return $name;
}

my ( %fault, @warning );
my %count = ( taken => 0, refused => 0 );
local $SIG{__WARN__} = sub { push @warning, @_ };

# Runs the code and notes what is wrong with how it ends
sub judge {
    my ( $what, $code ) = @_;
    local $@;
    my $conf = eval { $code->() };
    if ($conf) {
        $count{taken}++;
        for my $row ( grep { defined $_->{max} } @row ) {
            my $got = $conf->{ Sirius::Config::Options->key( $row->{name} ) };
            $fault{"$row->{name} is $got"} = $what
                if defined $got
                && !ref $got
                && ( $got !~ /\A[\d.]+\z/ || $got > $row->{max} || $got < ( $row->{min} || 0 ) );
        }
    } else {
        $count{refused}++;
        $fault{ 'status ' . ( $! + 0 ) } = $what if $! != 2;
        $fault{"refused with: $@"} = $what
            if $@ !~ /\Asirius: [^\n]+\n\z/ || $@ =~ /[\0-\x09\x0b-\x1f\x7f]| at \S+ line \d/;
    }
    $fault{"warned: $_"} = $what for splice @warning;
    return;
}

my $file = File::Temp->new;
for my $round ( 1 .. $ENV{ROUNDS} || 400 ) {
    my %raw  = map { name() => value() } 1 .. any( 1, 1, 2, 5 );
    my $what = join ', ', map {"$_ => '$raw{$_}'"} sort keys %raw;
    judge( "given $what", sub { Sirius::Config::Values->parse( \%raw ) } );
    my %env = map { 'SIRIUS_' . uc( $_ =~ tr/-/_/r ) => $raw{$_} } keys %raw;
    judge(
        "environment $what",
        sub {
            Sirius::Config::Values->parse(
                { sources => Sirius::Config::Sources->read( env => \%env, command => 1 ) } );
        }
    );
    open my $out, '>:utf8', "$file" or die "$file: $!";
    print {$out}
        map { any( '', ' ', '# ', "\xef\xbb\xbf" ) . $_ . any( ' = ', '=', ' ', ' == ' ) . "$raw{$_}\n" }
        sort keys %raw;
    close $out or die "$file: $!";
    judge(
        "file with $what",
        sub {
            Sirius::Config::Values->parse(
                { sources => Sirius::Config::Sources->read( env => {}, file => "$file", command => 1 ) } );
        }
    );
}
ok !%fault, "all are taken or refused as they should (seed $seed)"
    or diag map {"$_\n  $fault{$_}\n"}
    ( sort keys %fault )[ 0 .. ( keys %fault > 9 ? 9 : keys(%fault) - 1 ) ];
cmp_ok $count{$_}, '>', 50, "$count{$_} were $_" for sort keys %count;
done_testing;
