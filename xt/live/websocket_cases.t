# The cases of Autobahn's fuzzing client that are about RFC 6455 without extensions: 1 to 7, 9 and 10, against
# an application that echoes, over HTTP/1.1, TLS and HTTP/2. The sizes of 9 are smaller here:
# SIRIUS_TEST_LONG=1 takes those of the original.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Certificates;
use Sirius::Test::WebSocket;

my $APP = <<'APP';
use Sirius::WebSocket;
Sirius::WebSocket->new(
    on_open    => sub { shift->accept },
    on_message => sub { my ( $ws, $bytes, $is_binary ) = @_; $is_binary ? $ws->send_binary($bytes) : $ws->send($bytes) },
)->to_app;
APP

my $MAX = $ENV{SIRIUS_TEST_LONG} ? 16 << 20 : 1 << 20;
my $TEXT
    = 'Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!' =~ s/\\x(..)/chr hex $1/ger;
my ( $BAD, $WRONG, $FINE ) = ( 'close 1002', 'close 1007', 'close 1000' );

# [ name, [ frames: [ kind, bytes, options ], or bytes ], what comes back, without "eof" behind it ]
my @case;
my @BYE = ( [ close => pack 'n', 1000 ] );

sub case {
    my ( $name, $frames, $want ) = @_;
    push @case, [ $name, $frames, $want ];
    return;
}

# A message that comes back
sub echoes {
    my ( $name, $frames, @back ) = @_;
    case ( $name, [ @$frames, @BYE ], join ', ', @back, $FINE );
    return;
}

sub broken {
    my ( $name, $frames, @back ) = @_;
    my $code = $back[-1] && $back[-1] =~ /\Aclose/ ? pop @back : $BAD;
    case ( $name, $frames, join ', ', @back, $code );
    return;
}

# 1: framing
for my $kind (qw(text binary)) {
    my $n   = $kind eq 'text' ? 1 : 2;
    my @len = ( 0, 125, 126, 127, 128, 65_535, 65_536 );
    echoes( "1.$n." . ( $_ + 1 ), [ [ $kind => '*' x $len[$_] ] ], "$kind " . '*' x $len[$_] ) for 0 .. $#len;
    case (
        "1.$n.8",
        [ { step => 997, frame => [ $kind => '*' x 65_536 ] }, @BYE ],
        "$kind " . '*' x 65_536 . ", $FINE"
    );
}

# 2: pings and pongs
echoes( '2.1', [ ['ping'] ], 'pong ' );
echoes( '2.2', [ [ ping => 'Hello, world!' ] ],                    'pong Hello, world!' );
echoes( '2.3', [ [ ping => "\x00\xff\xfe\xfd\xfc\xfb\x00\xff" ] ], "pong \x00\xff\xfe\xfd\xfc\xfb\x00\xff" );
echoes( '2.4', [ [ ping => "\xfe" x 125 ] ],                       'pong ' . "\xfe" x 125 );
broken( '2.5', [ [ ping => "\xfe" x 126 ] ] );
case ( '2.6', [ { step => 1, frame => [ ping => "\xfe" x 125 ] }, @BYE ],
    'pong ' . "\xfe" x 125 . ", $FINE" );
echoes( '2.7',  [ ['pong'] ] );
echoes( '2.8',  [ [ pong => 'unsolicited' ] ] );
echoes( '2.9',  [ [ pong => 'unsolicited' ], [ ping => 'ping' ] ], 'pong ping' );
echoes( '2.10', [ map { [ ping => "payload-$_" ] } 0 .. 9 ], map {"pong payload-$_"} 0 .. 9 );
echoes(
    '2.11, more than are taken in one turn',
    [ { together => [ ( [ ping => 'p' ] ) x 10_000 ] }, [ text => 'x' ] ],
    ('pong p') x 10_000,
    'text x'
);

# 3: reserved bits
my @small = ( [ text => $TEXT ] );
broken( '3.1', [ [ text => $TEXT, rsv => 1 ] ] );
broken( '3.2', [ @small, [ text => $TEXT, rsv => 2 ], ['ping'] ], "text $TEXT" );
broken( '3.3', [ @small, [ text => $TEXT, rsv => 3 ], ['ping'] ], "text $TEXT" );
broken( '3.4', [ @small, { step => 1, frame => [ text => $TEXT, rsv => 4 ] } ], "text $TEXT" );
broken( '3.5', [ [ binary => "\x00\xff", rsv => 5 ] ] );
broken( '3.6', [ [ ping   => $TEXT, rsv => 6 ] ] );
broken( '3.7', [ [ close  => pack( 'n', 1000 ), rsv => 7 ] ] );

# 4: opcodes
my $n = 0;
for my $code ( 3 .. 7 ) {
    $n++;
    broken(
        "4.1.$n",
        $n < 3
        ? [ [ $code => $n == 2 ? 'reserved' : '' ] ]
        : [ @small, [ $code => '' ], ['ping'] ],
        $n < 3 ? () : "text $TEXT"
    );
}
$n = 0;
for my $code ( 11 .. 15 ) {
    $n++;
    broken(
        "4.2.$n",
        $n < 3
        ? [ [ $code => $n == 2 ? 'reserved' : '' ] ]
        : [ @small, [ $code => '' ], ['ping'] ],
        $n < 3 ? () : "text $TEXT"
    );
}

# 5: fragments
my ( $one, $two ) = ( [ text => 'fragment1', fin => 0 ], [ more => 'fragment2' ] );
broken( '5.1', [ [ ping => 'fragment1', fin => 0 ], $two ] );
broken( '5.2', [ [ pong => 'fragment1', fin => 0 ], $two ] );
echoes( '5.3', [ $one, $two ], 'text fragment1fragment2' );
case ( '5.4', [ { together => [ $one, $two ] }, @BYE ], "text fragment1fragment2, $FINE" );
case (
    '5.5',
    [ { step => 1, frame => $one }, { step => 1, frame => $two }, @BYE ],
    "text fragment1fragment2, $FINE"
);
echoes( '5.6', [ $one, [ ping => 'ping' ], $two ], 'pong ping', 'text fragment1fragment2' );
case (
    '5.7',
    [ { together => [ $one, [ ping => 'ping' ], $two ] }, @BYE ],
    "pong ping, text fragment1fragment2, $FINE"
);
case (
    '5.8',
    [ map( { { step => 1, frame => $_ } } $one, [ ping => 'ping' ], $two ), @BYE ],
    "pong ping, text fragment1fragment2, $FINE"
);
broken( '5.9',  [ [ more => 'non-continuation', fin => 1 ], [ text => 'Hello' ] ] );
broken( '5.10', [ { together => [ [ more => 'non-continuation' ], [ text => 'Hello' ] ] } ] );
broken( '5.11', [ { step     => 1, frame => [ more => 'non-continuation' ] } ] );
broken( '5.12', [ [ more => 'non-continuation', fin => 0 ], [ text => 'Hello' ] ] );
broken( '5.13', [ { together => [ [ more => 'non-continuation', fin => 0 ], [ text => 'Hello' ] ] } ] );
broken( '5.14', [ { step     => 1, frame => [ more => 'non-continuation', fin => 0 ] } ] );
broken(
    '5.15',
    [ $one, $two, [ more => 'fragment3', fin => 0 ], [ text => 'fragment4' ] ],
    'text fragment1fragment2'
);
broken( '5.16', [ [ more => 'fragment1', fin => 0 ], $one, $two ] );
broken( '5.17', [ [ more => 'fragment1' ], $one, $two ] );
broken( '5.18', [ $one, [ text => 'fragment2' ] ] );
my @five = (
    map( { [ $_ == 1 ? 'text' : 'more', "fragment$_", fin => 0 ] } 1 .. 2 ),
    [ ping => 'one' ],
    map( { [ more => "fragment$_", fin => 0 ] } 3 .. 4 ),
    [ ping => 'two' ],
    [ more => 'fragment5' ]
);
my $five = 'text fragment1fragment2fragment3fragment4fragment5';
echoes( '5.19', [@five], 'pong one', 'pong two', $five );
case ( '5.20', [ map( { { step => 1, frame => $_ } } @five ), @BYE ], "pong one, pong two, $five, $FINE" );

# 6: UTF-8
my $greek  = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5";
my $edited = "$greek\xed\xa0\x80edited";
echoes( '6.1.1', [ [ text => '' ] ], 'text ' );
echoes( '6.1.2', [ [ text => '', fin => 0 ], [ more => '', fin => 0 ], [ more => '' ] ], 'text ' );
echoes( '6.1.3', [ [ text => '', fin => 0 ], [ more => 'middle', fin => 0 ], [ more => '' ] ],
    'text middle' );
echoes( '6.2.1', [ [ text => $TEXT ] ], "text $TEXT" );
echoes( '6.2.2', [ [ text => substr( $TEXT, 0, 12 ), fin => 0 ], [ more => substr $TEXT, 12 ] ],
    "text $TEXT" );

for my $of ( [ '6.2.3', $TEXT ], [ '6.2.4', $greek ] ) {
    my ( $name, $text ) = @$of;
    my @part = map { [ more => $_, fin => 0 ] } split //, $text;
    $part[0][0]  = 'text';
    $part[-1][3] = 1;
    echoes( $name, \@part, "text $text" );
}
broken( '6.3.1', [ [ text => $edited ] ], $WRONG );
broken( '6.3.2',
    [ map { [ ( $_ ? 'more' : 'text' ), substr( $edited, $_, 1 ), fin => 0 ] } 0 .. length($edited) - 1 ],
    $WRONG );

# fails at once: no more than this is sent
broken( '6.4.1', [ [ text => $greek, fin => 0 ], [ more => "\xf4\x90\x80\x80", fin => 0 ] ], $WRONG );
broken( '6.4.2', [ [ text => "$greek\xf4", fin => 0 ], [ more => "\x90", fin => 0 ] ], $WRONG );
broken( '6.4.3', [ { part => [ text => "$greek\xf4\x90\x80\x80edited" ], upto => 6 + length($greek) + 4 } ],
    $WRONG );
broken( '6.4.4', [ { part => [ text => "$greek\xf4\x90\x80\x80edited" ], upto => 6 + length($greek) + 2 } ],
    $WRONG );
sub valid { my ( $name, $text ) = @_; return echoes( $name, [ [ text => $text ] ], "text $text" ) }
sub wrong { my ( $name, $text ) = @_; return broken( $name, [ [ text => $text ] ], $WRONG ) }
valid( '6.5.' . $_->[0], $_->[1] )
    for [ 1, $greek ], [ 2, "$greek$greek" ], [ 3, "\xe1\xbd\xb9" ], [ 4, $greek . "\x7f" ], [ 5, "\x00" ];
my @prefix = map { substr $greek, 0, $_ } 1 .. length $greek;

for ( 1 .. @prefix ) {
    my $text  = $prefix[ $_ - 1 ];
    my $whole = utf8::decode( my $copy = $text );
    $whole ? valid( "6.6.$_", $text ) : wrong( "6.6.$_", $text );
}
my @first = ( "\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80" );
valid( '6.7.' . ( $_ + 1 ), $first[$_] ) for 0 .. $#first;
wrong( '6.8.1', "\xf8\x88\x80\x80\x80" );
wrong( '6.8.2', "\xfc\x84\x80\x80\x80\x80" );
my @last = ( "\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf" );
valid( '6.9.' . ( $_ + 1 ), $last[$_] ) for 0 .. $#last;
my @beyond = ( "\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf" );
wrong( '6.10.' . ( $_ + 1 ), $beyond[$_] ) for 0 .. $#beyond;
my @others = ( "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf" );
valid( '6.11.' . ( $_ + 1 ), $others[$_] ) for 0 .. $#others;
wrong( '6.11.5', "\xf4\x90\x80\x80" );
my @alone = ( "\x80", "\xbf", map { "\x80\xbf" x $_ . ( $_ % 2 ? "\x80" : '' ) } 1 .. 5 );
push @alone, join '', map {chr} 0x80 .. 0xbf;
wrong( '6.12.' . ( $_ + 1 ), $alone[$_] ) for 0 .. $#alone;
my @lonely = map {
    my ( $from, $to ) = @$_;
    join '', map { chr($_) . ' ' } $from .. $to
} [ 0xc0, 0xdf ], [ 0xe0, 0xef ], [ 0xf0, 0xf7 ], [ 0xf8, 0xfb ], [ 0xfc, 0xfd ];
wrong( '6.13.' . ( $_ + 1 ), $lonely[$_] ) for 0 .. $#lonely;
my @cut = (
    "\xc0",                 "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80",
    "\xfc\x80\x80\x80\x80", "\xdf",     "\xef\xbf",     "\xf7\xbf\xbf",
    "\xfb\xbf\xbf\xbf",     "\xfd\xbf\xbf\xbf\xbf"
);
wrong( '6.14.' . ( $_ + 1 ), $cut[$_] ) for 0 .. $#cut;
wrong( '6.15.1', join '', @cut );
wrong( '6.16.' . ( $_ + 1 ), ( "\xfe", "\xff", "\xfe\xfe\xff\xff" )[$_] ) for 0 .. 2;
my @overlong
    = ( "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf" );
wrong( '6.17.' . ( $_ + 1 ), $overlong[$_] ) for 0 .. $#overlong;
my @longest
    = ( "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf" );
wrong( '6.18.' . ( $_ + 1 ), $longest[$_] ) for 0 .. $#longest;
my @zero
    = ( "\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80" );
wrong( '6.19.' . ( $_ + 1 ), $zero[$_] ) for 0 .. $#zero;
my @half = (
    "\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf",
    "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf"
);
wrong( '6.20.' . ( $_ + 1 ), $half[$_] ) for 0 .. $#half;
my @pair = map {
    my $high = $_;
    map {"$high$_"} "\xed\xb0\x80", "\xed\xbf\xbf"
} @half[ 0 .. 3 ];
wrong( '6.21.' . ( $_ + 1 ), $pair[$_] ) for 0 .. $#pair;
my @nothing = map {
    my $plane = $_;
    map { my $c = chr( $plane << 16 | $_ ); utf8::encode($c); $c } 0xfffe, 0xffff
} 0 .. 16;
valid( '6.22.' . ( $_ + 1 ), $nothing[$_] ) for 0 .. $#nothing;
my @special = map { my $c = chr $_; utf8::encode($c); $c } 0xfff9 .. 0xffff;
valid( '6.23.' . ( $_ + 1 ), $special[$_] ) for 0 .. $#special;

# 7: closes
echoes( '7.1.1', [ [ text => 'Hello' ] ], 'text Hello' );
case ( '7.1.2', [ @BYE, @BYE ],                $FINE );
case ( '7.1.3', [ @BYE, ['ping'] ],            $FINE );
case ( '7.1.4', [ @BYE, [ text => 'Hello' ] ], $FINE );
case ( '7.1.5', [ $one, @BYE, $two ], $FINE );
case (
    '7.1.6',
    [ [ text => '*' x 262_144 ], [ text => 'Hello' ], @BYE, ['ping'] ],
    'text ' . '*' x 262_144 . ", text Hello, $FINE"
);
case ( '7.3.1', [ ['close'] ], 'close' );
broken( '7.3.2', [ [ close => 'a' ] ] );
case ( '7.3.3', [@BYE], $FINE );
case ( '7.3.4', [ [ close => pack 'n a*', 1000, 'Hello World!' ] ], $FINE );
case ( '7.3.5', [ [ close => pack 'n a*', 1000, '*' x 123 ] ],      $FINE );
broken( '7.3.6', [ [ close => pack 'n a*', 1000, '*' x 124 ] ] );
broken( '7.5.1', [ [ close => pack 'n a*', 1000, $edited ] ], $WRONG );
my @codes = ( 1000, 1001, 1002, 1003, 1007 .. 1011, 3000, 3999, 4000, 4999 );
case ( '7.7.' . ( $_ + 1 ), [ [ close => pack 'n', $codes[$_] ] ], "close $codes[$_]" ) for 0 .. $#codes;
my @not = ( 0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999 );
broken( '7.9.' . ( $_ + 1 ),  [ [ close => pack 'n', $not[$_] ] ] )             for 0 .. $#not;
broken( '7.13.' . ( $_ + 1 ), [ [ close => pack 'n', ( 5000, 65_535 )[$_] ] ] ) for 0 .. 1;

# 9: sizes
for my $kind (qw(text binary)) {
    my $of = $kind eq 'text' ? 1 : 2;
    $n = 0;
    for ( my $len = 65_536; $len <= $MAX; $len *= 4 ) {
        $n++;
        echoes( "9.$of.$n", [ [ $kind => '*' x $len ] ], "$kind " . '*' x $len );
    }
    $n = 0;
    my $len = $MAX < 4 << 20 ? 1 << 18 : 4 << 20;
    for my $part ( 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1 << 20, 4 << 20 ) {
        next if $part > $len;
        my $count = $len / $part;
        my @part  = map { [ more => '*' x $part, fin => 0 ] } 1 .. $count;
        $part[0][0]  = $kind;
        $part[-1][3] = 1;
        echoes( '9.' . ( $of + 2 ) . '.' . ++$n, [ { together => \@part } ], "$kind " . '*' x $len );
    }
    $n = 0;
    for my $step ( 64, 128, 256, 512, 1024, 2048 ) {
        case (
            '9.' . ( $of + 4 ) . '.' . ++$n,
            [ { step => $step, frame => [ $kind => '*' x ( 1 << 18 ) ] }, @BYE ],
            "$kind " . '*' x ( 1 << 18 ) . ", $FINE"
        );
    }
    $n = 0;
    for my $size ( 0, 16, 64, 256, 1024, 4096 ) {
        my $count = $MAX < 4 << 20 ? 100 : 1000;
        echoes(
            '9.' . ( $of + 6 ) . '.' . ++$n,
            [ map { [ $kind => '*' x $size ] } 1 .. $count ],
            ( "$kind " . '*' x $size ) x $count
        );
    }
}

# 10: frames that TCP cuts
case (
    '10.1.1',
    [ { step => 1300, frame => [ text => '*' x 65_536 ] }, @BYE ],
    'text ' . '*' x 65_536 . ", $FINE"
);

sub run_case {
    my ( $ws, $frames ) = @_;
    for my $f (@$frames) {
        if    ( ref $f eq 'ARRAY' ) { $ws->send(@$f) }
        elsif ( $f->{together} ) {
            $ws->put( join '', map { $ws->frame(@$_) } @{ $f->{together} } );
        } elsif ( $f->{part} ) {
            $ws->put( substr $ws->frame( @{ $f->{part} } ), 0, $f->{upto} );
        } else {
            my $bytes = $ws->frame( @{ $f->{frame} } );
            $ws->put( substr $bytes, 0, $f->{step}, '' ) while length $bytes;
        }
    }
    my $end = $ws->all;
    return ( $end, $ws->end );
}

# What is long is not shown
sub short {
    return join ', ', map { length > 60 ? substr( $_, 0, 40 ) . '... ' . length : $_ } split /, /,
        shift // 'nothing';
}

sub all_cases {
    my ( $name, $address, %how ) = @_;
    subtest $name => sub {
        for my $case (@case) {
            my ( $number, $frames, $want ) = @$case;
            my $ws = Sirius::Test::WebSocket->new( $address, %how );
            my ( $got, $end ) = run_case( $ws, $frames );
            $got =~ s/\A(close 100[27]|.*, close 100[27])\b[^,]*/$1/s if $want =~ /close 100[27]\z/;
            ok $got eq $want && $end eq 'eof', "$number"
                or diag short($got) . ' then ' . short($end) . ', not ' . short($want);
        }
    };
    return;
}

my @options = ( qw(--hold --workers 2 --websocket-max-message), $MAX );
push @options, map { ( '--listen', "127.0.0.1:0$_" ) } q(), ',h2c', ',tls';
my $server = start_server( $APP, @options, '--tls-self-signed' );
my ( $plain, $h2c, $tls ) = $server->listeners;
all_cases( 'HTTP/1.1',        $plain );
all_cases( 'HTTP/2',          $h2c, h2  => 1 );
all_cases( 'TLS',             $tls, tls => 1 );
all_cases( 'HTTP/2 over TLS', $tls, tls => 1, h2 => 1 );
$server->stop;
done_testing;
