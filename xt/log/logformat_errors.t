# What is wrong in a format or in a call is told in a way that helps.
use strict;
use warnings;
use Test::More;
use Sirius::LogFormat;

local $SIG{__WARN__} = sub { fail "warns: @_" };

sub error_of {
    my @args = @_;
    ok !eval { Sirius::LogFormat->new(@args) }, "dies: $args[0]";
    return $@;
}

subtest 'the place in the format' => sub {
    is error_of('%h %l %u %Z'), <<'TEXT', 'an unknown item';
access log format: unknown item %Z at character 10
  %h %l %u %Z
           ^
TEXT
    is error_of('%h %{a}-%{b}i'), <<'TEXT', 'a name that does not end';
access log format: } without a letter after it at character 7
  %h %{a}-%{b}i
        ^
TEXT
    is error_of('%{%d/%b %Q}t'), <<'TEXT', 'a conversion of a time';
access log format: unknown time conversion: %Q at character 9
  %{%d/%b %Q}t
          ^
TEXT
    my $bytes = "\xc3\xa9 %Z";
    is error_of($bytes), <<"TEXT", 'characters are counted, not bytes';
access log format: unknown item %Z at character 3
  $bytes
    ^
TEXT
    utf8::decode( my $characters = $bytes );
    is error_of($characters), <<"TEXT", 'also when they are characters';
access log format: unknown item %Z at character 3
  $bytes
    ^
TEXT
    is error_of( 'x' x 200 . '%Z' ), "access log format: unknown item %Z at character 201\n",
        'no caret under a line that is too long';
    is error_of("a\tb %Z"), "access log format: unknown item %Z at character 5\n", 'or has a tab';
};

subtest 'handlers' => sub {
    is error_of( '%z', char_handlers => { z => 'name' } ),
        "access log format: char_handlers: z is not a sub\n",
        'no code';
    is error_of( '%h', block_handlers => { Z => undef } ),
        "access log format: block_handlers: Z is not a sub\n",
        'nothing';
    like error_of( '%{a}z', char_handlers => { z => sub { } } ),
        qr/unknown item %\{\.\.\.\}z at character 1$/m,
        'one for a char is none for a block';
    like error_of( '%z', block_handlers => { z => sub { } } ), qr/unknown item %z at character 1$/m,
        'and the other way round';
};

subtest 'calls' => sub {
    my $log = Sirius::LogFormat->new('%h %s %b %D %{A}o');
    for my $env ( undef, 'text', [] ) {
        ok !eval { $log->log_line( $env, [ 200, [] ] ) }, 'no %env';
        like $@, qr/\ASirius::LogFormat: log_line needs %env, a reference to a hash at /, 'told';
    }
    for my $res ( undef, 'text', {}, [], [ undef, undef ], [ 'x', 'y' ], [ undef, [ undef, 1, 'A' ] ] ) {
        is $log->log_line( {}, $res ), "- - - - -\n", 'a response that is none';
    }
    is $log->log_line( {}, [ 200, [ a => 1 ] ], -1, 1e300 ), "- 200 - - 1\n", 'numbers that are none';
    is $log->log_line( {}, [ 200, [] ], 2**53, 2**40 ), "- 200 9007199254740992 1099511627776 -\n",
        'large ones';
    is +Sirius::LogFormat->new('%t')->log_line( {}, [], undef, undef, 1e18 ), "-\n",
        'a time that never comes';
};

subtest 'handlers that do strange things' => sub {
    my ( $log, $depth ) = ( undef, 0 );
    my %handlers = (
        d => sub { die "no value\n" },
        r => sub { my $env = shift; return $depth++ > 2 ? "end" : '<' . $log->log_line( $env, [] ) . '>' },
        u => sub { undef $log;      return 'gone' },
        e => sub {
            eval { die "inside\n" };
            return "caught $@";
        },
        x => sub { $_[0]{REMOTE_ADDR} = 'changed' },
    );
    $log = Sirius::LogFormat->new( '%h %d', char_handlers => \%handlers );
    for ( 1 .. 3 ) {
        ok !eval { $log->log_line( { REMOTE_ADDR => 'a' x 1000 }, [] ) }, 'dies';
        is $@, "no value\n", 'the error';
    }
    $log = Sirius::LogFormat->new( '%h %R %m', char_handlers => { R => $handlers{r} } );
    is $log->log_line( { REMOTE_ADDR => 'x' }, [] ), 'x <x <x <x end -\x0a> -\x0a> -\x0a> -' . "\n",
        'lines inside of a line';
    $log = Sirius::LogFormat->new( '%h %U %h', char_handlers => { U => $handlers{u} } );
    is $log->log_line( { REMOTE_ADDR => 'x', PATH_INFO => '/' }, [] ), "x / x\n",
        'one for a letter of the language is not asked';
    $log = Sirius::LogFormat->new( '%h %g %h', char_handlers => { g => $handlers{u} } );
    is $log->log_line( { REMOTE_ADDR => 'x' }, [] ), "x gone x\n", 'the format goes away meanwhile';
    $log = Sirius::LogFormat->new( '%e%x %h', char_handlers => \%handlers );
    is $log->log_line( { REMOTE_ADDR => 'x' }, [] ), 'caught inside\x0achanged changed' . "\n",
        'it dies inside, and changes %env';
};

subtest 'values that are no plain strings' => sub {
    {

        package Tied;
        sub TIEHASH { bless {} }
        sub FETCH   {"<$_[1]>"}
        sub EXISTS  {1}
    }
    {

        package Text;
        use overload '""' => sub { 'te' . "\nxt" }
    }
    tie my %env, 'Tied';
    is +Sirius::LogFormat->new('%h "%r" %{A-b}i')->log_line( \%env, [] ),
        qq{<REMOTE_ADDR> "<REQUEST_METHOD> <REQUEST_URI> <SERVER_PROTOCOL>" <HTTP_A_B>\n}, 'a tied %env';
    my $text = bless [], 'Text';
    is +Sirius::LogFormat->new('%h %r %{A}o')
        ->log_line( { REMOTE_ADDR => $text, REQUEST_URI => $text }, [ 1, [ A => $text ] ] ),
        'te\x0axt  te\x0axt  te\x0axt' . "\n", 'an object';
    utf8::upgrade( my $up = "/\xe9" );
    is +Sirius::LogFormat->new('%r|%U')->log_line(
        { REQUEST_METHOD => $up, REQUEST_URI => $up, SERVER_PROTOCOL => "\x{20ac}", PATH_INFO => $up }, []
        ),
        '/\xe9 /\xe9 \xe2\x82\xac|/\xe9' . "\n", 'characters';
};

subtest 'a JSON line is JSON, whatever it holds' => sub {
    eval { require JSON::PP } or plan skip_all => 'no JSON::PP';
    my $log   = Sirius::LogFormat->new('json');
    my $bytes = join '', map {chr} 0 .. 255;
    for my $value ( '', '"', '\\', "\n", $bytes, "\xe2\x82", "\xc3\xa9", "\xed\xa0\x80", undef ) {
        my $line = $log->log_line(
            { REQUEST_URI => $value, HTTP_USER_AGENT => $value, REMOTE_USER => $value },
            [ 404, [] ],
            3, 5_000_000
        );
        is $line =~ tr/\n//, 1, 'one line';
        my $data = eval { JSON::PP->new->utf8->decode($line) } || {};
        is_deeply [ @{$data}{qw(status size reqtime_microsec user)} ],
            [ 404, 3, 5_000_000, $data->{uri} ], defined $value ? 'decoded' : 'null';
    }
    my $data = JSON::PP->new->utf8->decode( $log->log_line( { REQUEST_URI => "\xc3\xa9\xff" }, [] ) );
    is $data->{uri}, "\x{e9}\\xff", 'UTF-8 stays, a byte that is none is told';
};

done_testing;
