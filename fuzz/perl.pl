# For fuzz/perl.c: reads an input as requests and as what an application does with them, and is that
# application.
#
# An input is a list of requests. Each: a byte for the number of fields and what else it is, three bytes for
# each field (its name, the case of its letters, its value), a byte for the number of deeds, one byte for
# each. A first byte of 0xf0 and above: so many raw bytes follow as the next byte says.
use strict;
use warnings;
no warnings qw(uninitialized redefine recursion);    ## no critic (NoWarnings)

use Hash::Util   ();
use IO::Handle   ();
use Scalar::Util qw(blessed dualvar reftype weaken);
use Socket       ();
use Tie::Hash    ();
use Sirius;

our ( $app, $engine );
my ( @request, @wrong, @KEEP, %GLOBAL, $weak );

# Applications are not written as this project is
## no critic (MultiplePackages RequireFinalReturn FilenameMatchesPackage OneArgBless ArgUnpacking UTF8Layer OneArgSelect BriefOpen)
package Tied {
    sub TIESCALAR { return bless [] }
    sub FETCH     { return 'tied' }
    sub STORE     { }
}

package Dies {
    sub TIESCALAR { return bless [] }
    sub FETCH     { die "FETCH\n" }
    sub STORE     { die "STORE\n" }
}

package Array {
    sub TIEARRAY  { return bless [] }
    sub FETCHSIZE { return 2 }
    sub FETCH     { return $_[1] ? 'one' : 'X-Tied' }
}

package Bad {
    sub TIEARRAY  { return bless [] }
    sub FETCHSIZE { die "FETCHSIZE\n" }
    sub FETCH     { die "FETCH\n" }
}

package Hash { our @ISA = 'Tie::StdHash' }

package Text {
    use overload
        '""'     => sub { $_[0][0]->() if ref $_[0] eq __PACKAGE__ && ref $_[0][0] eq 'CODE'; return 'text' },
        'bool'   => sub {0},
        fallback => 1;
}

package Die {
    use overload map( { $_ => sub { die "overload\n" } } qw("" bool 0+ @{} &{} %{}) ), fallback => 0;
}

package Guard {
    sub new { my ( $class, $do ) = @_; return bless { do => $do }, $class }
    sub DESTROY { my $do = $_[0]{do} or return; $do->(); return }
}

package Lines {
    our @ISA = 'Guard';
    sub getline { return $_[0]{n}++ < 3 ? "line\n" : undef }
    sub close   { return 1 }
}

package Path {
    our @ISA = 'Lines';
    sub path { return 'fuzz/perl.pl' }
}

package main;

# Names that are one key, that have one place in the engine's cache (X-Foo and X-afaf), and that are too long
# for it
my @NAME = (
    'X-Foo',         'X-afaf',          'Cookie',        'Accept',
    'User-Agent',    'X-A',             'Te',            'A',
    'If-None-Match', 'X-Forwarded-For', 'X-' . 'l' x 38, 'X-' . 'l' x 39,
    'X-' . 'm' x 60, 'Content-Typo',    'Http-Host',     'Referer'
);

my $in = sub { return *{ $_[0]{'psgi.input'} } };

# What an application may do; each gets %env as $_[0] itself. What is returned is the response, if it is a
# reference
my @DEED = (
    sub { my %copy = %{ $_[0] };               return },
    sub { push @KEEP, { %{ $_[0] } };          return },
    sub { my @x = ( 1, values %{ $_[0] }, 2 ); return },
    sub {
        my @x = sort { $a cmp $b } map {"$_"} values %{ $_[0] };
        return;
    },
    sub { $_ = 'evil' for values %{ $_[0] }; return },
    sub { push @KEEP, $_[0]{'psgix.io'};  return },
    sub { push @KEEP, $_[0];              return },
    sub { push @KEEP, \$_[0];             return },
    sub { push @KEEP, \$_[0]{HTTP_X_FOO}; return },
    sub { $_[0]{HTTP_X_FOO} = 'evil';           return },
    sub { $_[0]{HTTP_X_FOO} .= 'e' x 500;       return },
    sub { delete $_[0]{HTTP_X_FOO};             return },
    sub { delete $_[0]{HTTP_COOKIE};            $_[0]{HTTP_COOKIE} = 'evil'; return },
    sub { delete @{ $_[0] }{ keys %{ $_[0] } }; return },
    sub { %{ $_[0] } = ();                      return },
    sub { undef %{ $_[0] };                     return },
    sub { $_[0]{"k$_"}      = $_ for 1 .. 100; return },
    sub { $_[0]{"k$_"}      = $_ for 1 .. 100; delete $_[0]{"k$_"} for 1 .. 100; return },
    sub { $_[0]{"\x{263a}"} = 1; return },
    sub { utf8::upgrade( $_[0]{HTTP_X_FOO} ) if exists $_[0]{HTTP_X_FOO}; return },
    sub { my $n = 0 + $_[0]{HTTP_X_FOO}; return },
    sub { pos( $_[0]{PATH_INFO} ) = 1; return },
    sub { push @KEEP, \substr $_[0]{PATH_INFO}, 0, 1; ${ $KEEP[-1] } = 'evil'; return },
    sub { tie $_[0]{HTTP_X_FOO}, 'Tied'; return },
    sub { tie $_[0]{PATH_INFO},  'Dies'; return },
    sub { tie %{ $_[0] }, 'Hash'; return },
    sub { tie %{ $_[0] }, 'Hash'; untie %{ $_[0] }; return },
    sub { Hash::Util::lock_keys( %{ $_[0] } );            return },
    sub { Hash::Util::lock_hash( %{ $_[0] } );            return },
    sub { Internals::SvREADONLY( $_[0]{REQUEST_URI}, 1 ); return },
    sub { bless $_[0], 'Guard'; return },
    sub { bless \$_[0], 'Odd'; return },
    sub { bless \$_[0]{HTTP_X_FOO}, 'Odd'; return },
    sub { weaken( $weak = $_[0] ); return },
    sub { weaken $_[0]; return },
    sub {
        weaken( $GLOBAL{$_} = $_[0]{$_} ) for qw(psgi.input psgi.version psgix.io psgix.cleanup.handlers);
        return;
    },
    sub { weaken( $GLOBAL{io} = *{ $_[0]{'psgi.input'} }{IO} ); return },
    sub {
        @{ $GLOBAL{$_} } = ( 7, 8, 9 ) for grep { $GLOBAL{$_} } qw(psgi.version psgix.cleanup.handlers);
        return;
    },
    sub {
        close $GLOBAL{'psgi.input'} if $GLOBAL{'psgi.input'};
        bless $GLOBAL{io}, 'Odd' if $GLOBAL{io};
        return;
    },
    sub {
        my $env = $_[0];
        weaken $env;
        $_[0]{SCRIPT_NAME} = Guard->new( sub {
            close $env->{'psgi.input'};
            $env->{REQUEST_METHOD} = \1;
            push @{ $env->{'psgi.version'} }, 7;
        } );
        return;
    },
    sub {
        my $in  = $_[0]{'psgi.input'};
        my $env = $_[0];
        weaken $env;
        weaken $in;
        $_[0]{'psgix.cleanup'} = Guard->new( sub { close $in; tie $env->{HTTP_HOST}, 'Tied' } );
        return;
    },
    sub { $_[0] = {}; return },
    sub { $_[0]{'psgi.version'}[0] = 9; return },
    sub { push @{ $_[0]{'psgi.version'} }, 9; return },
    sub { bless $_[0]{'psgi.version'}, 'Odd'; return },
    sub { tie @{ $_[0]{'psgi.version'} }, 'Bad'; return },
    sub { $_[0]{'psgi.url_scheme'} = 'evil';   $_[0]{SCRIPT_NAME} = 'evil'; return },
    sub { $_[0]{'psgi.errors'}     = \*STDOUT; return },
    sub { read $_[0]{'psgi.input'}, my $some, 3;    return },
    sub { my @lines = readline $_[0]{'psgi.input'}; return },
    sub { binmode $_[0]{'psgi.input'}, ':utf8';     return },
    sub { $_[0]{'psgi.input'}->ungetc(65);          return },
    sub { close $_[0]{'psgi.input'};                return },
    sub { bless $in->(@_){IO}, 'Odd'; return },
    sub { bless $_[0]{'psgi.input'}, 'Odd'; return },
    sub { push @KEEP, $_[0]{'psgi.input'}; return },
    sub { ${ $in->(@_) } = 'evil';                     @{ $in->(@_) } = 'evil'; return },
    sub { my $old        = select $_[0]{'psgi.input'}; $~ = 'ODD'; $^ = 'ODD'; $| = 1; select $old; return },
    sub { my $n          = fileno $_[0]{'psgix.io'};   return },
    sub { syswrite $_[0]{'psgix.io'}, 'raw';      return },
    sub { print { $_[0]{'psgix.io'} } 'printed';  return },
    sub { read $_[0]{'psgix.io'}, my $some, 7;    return },
    sub { my @lines = readline $_[0]{'psgix.io'}; return },
    sub { sysread $_[0]{'psgix.io'}, my $some, 7; return },
    sub { close $_[0]{'psgix.io'};                return },
    sub { open my $copy, '+<&', $_[0]{'psgix.io'} or return; push @KEEP, $copy; return },
    sub { open my $copy, '+<&=', $_[0]{'psgix.io'} or return; close $copy; return },
    sub {
        my $io = $_[0]{'psgix.io'};
        binmode $io, ':utf8';
        print {$io} 'x';
        return;
    },
    sub { bless $_[0]{'psgix.io'}, 'Guard'; return },
    sub { bless *{ $_[0]{'psgix.io'} }{IO}, 'Odd'; return },
    sub { local @{ $_[0] }{qw(psgix.io psgix.informational)} = ( 1, 2 ); return },
    sub { local $_[0]{'psgix.informational'}; my $x = $_[0]{'psgix.informational'}; return },
    sub { tie $_[0]{'psgix.io'}, 'Tied'; return },
    sub { $_[0]{'psgix.informational'}->( 103, [ Link => 'a', 'X-B' => 'b' ] ); return },
    sub { $_[0]{'psgix.informational'}->( 100 + $_, [] ) for 0 .. 3; return },
    sub {
        my ( $env, @h ) = $_[0];
        @h = ( Link => bless [ sub { @h = (); %$env = () } ], 'Text' );
        $env->{'psgix.informational'}->( 103, \@h );
        return;
    },
    sub { push @KEEP, $_[0]{'psgix.informational'}; return },
    sub {
        $_->( 103, [ Link => 'late' ] ) for grep { ref eq 'CODE' } @KEEP;
        return;
    },
    sub {
        my @of = map { fileno $_ } grep { ref =~ /IO::/ } @KEEP;
        return;
    },
    sub {
        %{$_} = () for grep { ref && reftype($_) eq 'HASH' } @KEEP;
        return;
    },
    sub {
        my $env = $_[0];
        $env->{guard} = Guard->new( sub { %$env = ( HTTP_EVIL => 1 ) } );
        weaken $env;
        return;
    },
    sub {
        $_[0]{guard} = Guard->new( sub { die "DESTROY\n" } );
        return;
    },
    sub {
        $_[0]{HTTP_X_FOO} = Guard->new( sub { push @KEEP, 1; $GLOBAL{n}++ } );
        return;
    },
    sub {
        my $env = $_[0];
        $_[0]{guard} = Guard->new( sub { push @KEEP, $env } );
        return;
    },
    sub {
        push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { $_[0]{HTTP_X_FOO} = 'evil' };
        return;
    },
    sub {
        push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { my %x = %{ $_[0] }; push @KEEP, \%x }, undef,
            'no code';
        return;
    },
    sub {
        push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { %{ $_[0] } = (); die "handler\n" };
        return;
    },
    sub {
        push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { tie %{ $_[0] }, 'Hash' };
        return;
    },
    sub { $_[0]{'psgix.cleanup.handlers'} = bless [], 'Die'; return },
    sub { tie @{ $_[0]{'psgix.cleanup.handlers'} }, 'Bad'; return },
    sub { $_[0]{'psgix.harakiri.commit'} = bless [], 'Die'; return },
    sub { $_[0]{'psgix.harakiri.commit'} = 1; return },
    sub { tie $_[0]{'psgix.harakiri.commit'}, 'Dies'; return },
    sub {
        $SIG{USR2} = sub { die "signal\n" };
        kill USR2 => $$;
        return;
    },
    sub {
        local $SIG{__DIE__}  = sub { %GLOBAL = () };
        local $SIG{__WARN__} = sub { push @KEEP, @_ };
        warn 'x';
        return;
    },
    sub { local $@ = bless [], 'Die'; return },
    sub { die "die\n" },
    sub { die bless [], 'Die' },
    sub { die bless [], 'Text' },
    sub { return [ 200, [ 'Content-Type' => 'text/plain' ],   [ 'a', 'bb', undef, 'c' ] ] },
    sub { return [ 200, [],                                   [ 'x' x 5000 ] ] },
    sub { return [ 204, [],                                   [] ] },
    sub { return [ 304, [ 'Content-Length' => 5 ],            ['body'] ] },
    sub { return [ 200, [ 'Content-Length' => 3 ],            [ 'more', 'than', 'that' ] ] },
    sub { return [ 200, [ 'Content-Length' => 300 ],          ['less'] ] },
    sub { return [ 200, [ 'Transfer-Encoding' => 'chunked' ], [ "2\r\nab\r\n", "0\r\n\r\n" ] ] },
    sub { return [ 200, [ 'Transfer-Encoding' => 'chunked' ], [ "2\r\nab\r\n", "\x{263a}" ] ] },
    sub { return [ 200, [],                                   ["\x{263a}"] ] },
    sub {
        return [
            200,
            [ "X\x{e9}" => "\x{e9}" ],
            [   "\x{e9}",
                do { my $x = "\x{e9}"; utf8::upgrade($x); $x }
            ]
        ];
    },
    sub { return [ 200,                 [ 'X-Error' => "text\n" ],        ['x'] ] },
    sub { return [ 200,                 ['odd'],                          [] ] },
    sub { return [ bless( [], 'Text' ), [],                               [] ] },
    sub { return [ 200,                 [ 'X-A' => bless( [], 'Text' ) ], [ bless [], 'Text' ] ] },
    sub {
        my $r;
        $r = [ 200, [ 'X-A' => bless [ sub { @$r = () } ], 'Text' ], ['x'] ];
        return $r;
    },
    sub {
        my @b;
        @b = ( 'a', bless( [ sub { @b = () } ], 'Text' ), 'b' );
        return [ 200, [], \@b ];
    },
    sub { tie my @a, 'Array'; return [ 200, \@a, \@a ] },
    sub { tie my @a, 'Bad';   return [ 200, [], \@a ] },
    sub { tie my $x, 'Tied';  return [ 200, [ 'X-A' => $x ], [ $x, $x ] ] },
    sub { my @b = ('x'); tie $b[0], 'Dies'; return [ 200, [], \@b ] },
    sub { return bless [ 200, [], ['x'] ], 'Odd' },
    sub { return [ 200, [], bless { n => 0 }, 'Lines' ] },
    sub {
        return [ 200, [], Lines->new( sub { die "DESTROY\n" } ) ];
    },
    sub { return [ 200, [], bless {}, 'Path' ] },
    sub { open my $f, '<', 'fuzz/perl.pl' or die; return [ 200, [], $f ] },
    sub {
        open my $f, '<', 'fuzz/perl.pl'
            or die;
        readline $f;
        return [ 200, [ 'Content-Length' => 9 ], $f ];
    },
    sub { open my $f, '<', \"in memory\n" or die; return [ 200, [], $f ] },
    sub { return [ 200, [], $_[0]{'psgi.input'} ] },
    sub { return [ 200, [], $_[0]{'psgix.io'} ] },
    sub { return [ 200, [], \*STDERR ] },
    sub { return $_[0] },
    sub {
        return sub { }
    },
    sub {
        return sub { die bless [], 'Die' }
    },
    sub {
        return sub { $_[0]->( [ 200, [], ['later'] ] ) }
    },
    sub {
        return sub { $_[0]->( [ 200, [], ['later'] ] ); $_[0]->( [ 200, [], ['twice'] ] ) }
    },
    sub {
        return sub { push @KEEP, $_[0]; return }
    },
    sub {
        return
            sub { my $w = $_[0]->( [ 200, [] ] ); $w->write("p$_") for 1 .. 3; $w->close; $w->write('late') }
    },
    sub {
        return sub {
            my $w = $_[0]->( [ 200, [ 'Content-Length' => 2 ] ] );
            $w->write('long');
            die "in a stream\n";
        }
    },
    sub {
        return sub {
            my $w = $_[0]->( [ 200, [] ] );
            $w->write( bless [ sub { $w->close } ], 'Text' );
            push @KEEP, $w;
        }
    },
    sub {
        return sub {
            my $w = $_[0]->( [ 200, [ 'Transfer-Encoding' => 'chunked' ] ] );
            $w->write("1\r\nx\r\n");
            $w->write('z');
            $w->close;
        }
    },
    sub {
        my $env = $_[0];
        return sub {
            my $w = $_[0]->( [ 200, [] ] );
            my %x = %$env;
            $w->write('x');
            my $fd = fileno $env->{'psgix.io'};
            $w->close;
        }
    },
    sub {
        my $io = $_[0]{'psgix.io'};
        return sub { print {$io} "HTTP/1.1 101 X\r\n\r\n"; my @rest = readline $io; push @KEEP, $io }
    },
    sub {
        my $env = $_[0];
        return sub { my $io = $env->{'psgix.io'}; %$env = (); syswrite $io, 'x'; close $io }
    },
    sub {
        my $w;
        return sub {
            $w = $_[0]->( [ 200, [] ] );
            my $g = Guard->new( sub { $w->write('from DESTROY'); $w->close } );
        }
    },
    sub { @KEEP = (); return },
    sub { my $id = $_[0]{'psgix.request_id'}; $_[0]{HTTP_X_REQUEST_ID} .= $id; return },
    sub { push @KEEP, \$_[0]{HTTP_X_REQUEST_ID}; return },
    sub {
        push @KEEP, \delete $_[0]{'psgix.request_id'};
        $_[0]{'psgix.request_id'} = 'evil';
        return;
    },
    sub {
        my @kept = map {$$_} grep { ref eq 'SCALAR' } @KEEP;
        return;
    },
    sub { tie $_[0]{HTTP_X_REQUEST_ID}, 'Tied'; return },
    sub {
        push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { push @KEEP, "$_[0]{'psgix.request_id'}" };
        return;
    },
);

# What is the same in each environment, and what is there
my %FIXED = (
    SCRIPT_NAME       => '',
    'psgi.url_scheme' => 'http',
    SERVER_NAME       => 'fuzz',
    SERVER_PORT       => '80',
    QUERY_STRING      => '',
    HTTP_HOST         => 'a',
);
my %NUMBER = (
    'psgi.multithread' => 0,
    'psgi.nonblocking' => 0,
    'psgi.streaming'   => 1,
    'psgix.harakiri'   => 1,
    'psgix.cleanup'    => 1
);
my @KEY = (
    keys %FIXED, keys %NUMBER, qw(
        REQUEST_METHOD REQUEST_URI PATH_INFO SERVER_PROTOCOL REMOTE_ADDR REMOTE_HOST REMOTE_PORT psgix.request_start psgi.input
        psgix.io psgix.queue_time psgix.request_id HTTP_X_REQUEST_ID
        psgix.informational psgi.version psgix.cleanup.handlers psgi.errors psgi.multiprocess psgi.run_once
        psgix.input.buffered)
);

# Fails the input: what does this request see that is not its own? Without walking over the hash, which then
# would not serve again
sub look {
    my ( $env, $request ) = @_;
    my %want  = ( %FIXED, %{ $request->{want} } );
    my $count = @KEY + keys( %{ $request->{want} } ) + ( length $request->{body} ? 1 : 0 );
    push @wrong, "no $_"                               for grep { !exists $env->{$_} } @KEY;
    push @wrong, "$_ is '$env->{$_}', not '$want{$_}'" for grep { $env->{$_} ne $want{$_} } keys %want;
    push @wrong, scalar( %{$env} ) . " keys, not $count: @{[ %{$env} ]}" if scalar( %{$env} ) != $count;
    push @wrong, "$_ is $env->{$_}"
        for grep { $env->{$_} != $NUMBER{$_} } keys %NUMBER;    # a string would be a change
    my $version = $env->{'psgi.version'};
    push @wrong, 'psgi.version'
        if @{$version} != 2
        || $version->[0] != 1
        || $version->[1] != 1
        || ref $env->{'psgi.version'} ne 'ARRAY';
    push @wrong, 'psgix.cleanup.handlers' if @{ $env->{'psgix.cleanup.handlers'} };
    my $body = join '', readline $env->{'psgi.input'};
    push @wrong, "body '$body'" if $body ne $request->{body};
    push @wrong, 'psgi.input'
        if ref $env->{'psgi.input'} ne 'GLOB' || ref *{ $env->{'psgi.input'} }{IO} ne 'IO::File';
    seek $env->{'psgi.input'}, 0, 0;
    return;
}

$app = sub {
    my ($number) = $_[0]{PATH_INFO} =~ m{\A/(\d+)\z};
    my $request = defined $number && $number < 100 && $request[$number] || return [ 404, [], [] ];
    look( $_[0], $request ) if !$request->{seen}++;
    my $answer;
    for my $deed ( @{ $request->{deeds} } ) {
        my $got;
        if ( $request->{dies} ) { $got = $DEED[ $deed % @DEED ]->( $_[0] ) }
        else {
            eval { $got = $DEED[ $deed % @DEED ]->( $_[0] ); 1 } or next;
        }
        $answer = $got if ref $got;
    }
    return $answer || [ 200, [], ['ok'] ];
};

# The bytes of the conversation
sub begin {
    my $data = shift;
    my ( $at, $wire, @byte ) = ( 0, '', unpack 'C*', $data );
    my $next = sub { return $at < @byte ? $byte[ $at++ ] : 0 };
    @request = @wrong = ();
    while ( $at < @byte && @request < 8 ) {
        my $first = $next->();
        if ( $first >= 0xf0 ) {
            my $raw = substr $data, $at + 1, $byte[$at];
            $at += 1 + length $raw;
            $wire .= $raw;
            next;
        }
        my ( %want, @line );
        for ( 1 .. $first & 15 ) {
            my ( $name, $case, $value ) = map { $next->() } 1 .. 3;
            $name = $NAME[ $name % @NAME ];
            my $n = 0;
            $name =~ s{([A-Za-z])}{ $case >> ( $n++ % 8 ) & 1 ? uc $1 : lc $1 }ge;
            $value = chr( 97 + $value % 26 ) x ( $value > 250 ? 400 : $value >> 3 );
            push @line, "$name: $value";
            ( my $key = 'HTTP_' . uc $name ) =~ tr/-/_/;
            $want{$key}
                = exists $want{$key}
                ? join $key eq 'HTTP_COOKIE' ? '; ' : ', ', $want{$key}, $value
                : $value;
        }
        my $body = $first & 16 ? 'b' x ( 1 + $next->() ) : '';
        push @line, 'Content-Length: ' . length $body if length $body;
        my $method = length $body ? 'POST' : $first & 32 ? 'HEAD' : 'GET';
        my @deeds  = map { $next->() } 1 .. $next->() & 7;

        # HTTP/1.0 with keep-alive now and then
        my $version = $first & 64 ? "HTTP/1.0\r\nConnection: keep-alive" : 'HTTP/1.1';
        $want{HTTP_CONNECTION} = 'keep-alive' if $first & 64;
        $wire .= join "\r\n", "$method /" . @request . " $version", 'Host: a', @line, '', $body;
        push @request, { want => \%want, body => $body, deeds => \@deeds, dies => $first & 128 };
    }
    return $wire;
}

# What was wrong with it; and nothing of it stays
sub wrong {
    @KEEP = %GLOBAL = ();
    undef $weak;
    delete $SIG{USR2};
    return join "\n", @wrong;
}

$engine = Sirius::Worker::RequestLoop->new( {
    ( map { $_ => 0 } qw(generation max_requests max_rss multiprocess row soon_requests) ),
    edge       => -1,                                         # this process has started none
    listeners  => [ [ Socket::AF_UNIX(), 'fuzz', 80, 0 ] ],
    scoreboard => Sirius::Scoreboard->new(1),
    sleepers   => $ARGV[0],
} );
$SIG{PIPE} = 'IGNORE';
close STDERR;
1;
