use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Every row of xt/corpus/http11probe.tsv in three deliveries. A status that only warns does not pass; neither
# does a close without a status, except after no bytes at all. Every kept connection must answer one more
# request.

# Rows whose bytes the table shortens
my $HEAD = "Host: localhost:8080\r\n";
my %LONG = (
    'COMP-LONG-URL-OK'            => 'GET /' . 'a' x 7900,
    'SMUG-CL-LEADING-ZEROS-OCTAL' => "POST / HTTP/1.1\r\n${HEAD}Content-Length: 0200\r\n\r\n" . 'A' x 200,
    'MAL-BINARY-GARBAGE'          => undef,
    'MAL-LONG-URL'                => 'GET /' . 'A' x 100_000,
    'MAL-LONG-HEADER-VALUE'       => "GET / HTTP/1.1\r\n${HEAD}X-Big: " . 'B' x 100_000 . "\r\n\r\n",
    'MAL-MANY-HEADERS'            => "GET / HTTP/1.1\r\n$HEAD"
        . join( '', map {"X-H-$_: value\r\n"} 0 .. 9999 ) . "\r\n",
    'MAL-LONG-HEADER-NAME' => "GET / HTTP/1.1\r\n$HEAD" . 'A' x 100_000 . ": val\r\n\r\n",
    'MAL-LONG-METHOD'      => 'A' x 100_000,
    'MAL-CHUNK-EXT-64K'    => "POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5;ext="
        . 'a' x 65_536,
    'MAL-RANGE-OVERLAPPING' => "GET / HTTP/1.1\r\n${HEAD}Range: bytes="
        . join( ',', ('0-') x 1000 )
        . "\r\n\r\n",
    'COOK-OVERSIZED'  => "GET /echo HTTP/1.1\r\n${HEAD}Cookie: big=" . 'A' x 65_536 . "\r\n\r\n",
    'COOK-MANY-PAIRS' => "GET /echo HTTP/1.1\r\n${HEAD}Cookie: "
        . join( '; ', map {"k$_=v$_"} 0 .. 999 )
        . "\r\n\r\n",
);
my %TAIL = (
    'COMP-LONG-URL-OK'  => " HTTP/1.1\r\n$HEAD\r\n",
    'MAL-LONG-URL'      => " HTTP/1.1\r\n$HEAD\r\n",
    'MAL-LONG-METHOD'   => " / HTTP/1.1\r\n$HEAD\r\n",
    'MAL-CHUNK-EXT-64K' => "\r\nhello\r\n0\r\n\r\n",
);

# Rows that we answer on purpose in another way; the table counts the five of %COUNTED
my %DIFFERENT = (
    'COMP-GET-WITH-CL-BODY' => '200',    # any method may have content: it is read exactly, RFC 9110 9.3.1
    'SMUG-HEAD-CL-BODY'     => '200',
    'SMUG-OPTIONS-CL-BODY'  => '204',
    'SMUG-EXPECT-100-CL'    => '200',    # Expect: 100-continue is a feature, RFC 9110 10.1.1
    'COMP-HTTP10-NO-HOST'   => '200',    # HTTP/1.0 needs no Host, health checks send none
    'COMP-HTTP12-VERSION'   => '200',    # a higher minor version is answered as 1.1, RFC 9110 2.5
    'MAL-RANGE-OVERLAPPING' => '200',    # Range may be ignored, RFC 9110 14.2

    # The authority of the target replaces Host, RFC 9112 3.2.2
    'SMUG-ABSOLUTE-URI-HOST-MISMATCH' => '200',
);

# Optional white space is no part of a value, in any amount: RFC 9110 5.5, RFC 9112 5.1. Of bytes above 0x7f
# in a target no RFC says more than SHOULD, and clients send them
my %COUNTED = (
    'MAL-CL-TAB-BEFORE-VALUE'  => '200',
    'MAL-NON-ASCII-URL'        => '404',
    'MAL-URL-OVERLONG-UTF8'    => '404',
    'SMUG-CL-EXTRA-LEADING-SP' => '200',
    'SMUG-CL-TRAILING-SPACE'   => '200',
);
%DIFFERENT = ( %DIFFERENT, %COUNTED );

# Rows that the table leaves open, or of which it asks more than a status
my %MEANING = (
    'COMP-HEAD-NO-BODY'  => sub { $_->status == 200 && $_->body eq '' && $_->header('Content-Length') == 2 },
    'COMP-405-ALLOW'     => sub { $_->status == 405 && $_->header('Allow') =~ /\bGET\b/ },
    'COMP-NO-CL-IN-204'  => sub { $_->status == 204 && !$_->headers('Content-Length') },
    'COMP-OPTIONS-ALLOW' => sub { $_->status == 204 && $_->header('Allow') =~ /\bGET\b/ },
    'COMP-ACCEPT-NONSENSE'     => sub { $_->status == 406 },
    'COMP-CONTENT-TYPE'        => sub { $_->header('Content-Type') eq 'text/plain' },
    'COMP-UPGRADE-INVALID-VER' => sub { $_->status == 426 && $_->header('Sec-WebSocket-Version') eq '13' },
    (   map {
            $_ => sub { $_->body eq 'hello' }
        } grep {/-CL-/} sort keys %COUNTED
    ),
    'MAL-NON-ASCII-URL'          => sub { $_->header('X-Path') eq "/caf\xc3\xa9" },
    'MAL-URL-OVERLONG-UTF8'      => sub { $_->header('X-Path') eq "/\xc0\xaf" },
    'COMP-POST-CL-BODY'          => sub { $_->body eq 'hello' },
    'COMP-CHUNKED-BODY'          => sub { $_->body eq 'hello' },
    'COMP-CHUNKED-MULTI'         => sub { $_->body eq 'hello world' },
    'COMP-CHUNKED-EXTENSION'     => sub { $_->body eq 'hello' },
    'COMP-CHUNKED-TRAILER-VALID' => sub { $_->body eq 'hello' },
    'COMP-CHUNKED-HEX-UPPERCASE' => sub { $_->body eq 'helloworld' },
    'COMP-RANGE-POST'            => sub { $_->body eq 'hello' },
    'COOK-ECHO'                  => sub { $_->body =~ /^Cookie: foo=bar$/m },
    'COOK-MULTI-HEADER'          => sub { $_->body =~ /^Cookie: a=1; b=2$/m },
    'COOK-PARSED-BASIC'          => sub { $_->body eq "foo=bar\n" },
    'COOK-PARSED-MULTI'          => sub { $_->body eq "a=1\nb=2\nc=3\n" },
    'COOK-PARSED-EMPTY-VAL'      => sub { $_->body eq "foo=\n" },
    'COOK-PARSED-SPECIAL'        => sub { $_->body eq "a=hello world\nb=x=y\n" },
);

# Rows whose request never becomes whole. The server says 408 when its time is over; the table calls it
# "timeout".
my %WAITS = map { $_ => 1 }
    qw(COMP-POST-CL-UNDERSEND COMP-CHUNKED-NO-FINAL MAL-INCOMPLETE-REQUEST MAL-POST-CL-HUGE-NO-BODY);

sub rows {
    open my $in, '<:raw', corpus_file('http11probe.tsv') or die "http11probe.tsv: $!";
    return map {
        chomp;
        my ( $name, $scored, undef, undef, $pass, undef, $bytes ) = split /\t/, $_, -1;
        $bytes = '' if !defined $bytes;
        { name => $name, scored => $scored, pass => $pass, bytes => bytes_of( $name, $bytes ) };
    } readline $in;
}

sub bytes_of {
    my ( $name, $bytes ) = @_;
    my $length = $bytes =~ s/\.\.\.\[(\d+) bytes\]\z// ? $1 : undef;
    my %escape = ( r => "\r", n => "\n", t => "\t", '\\' => '\\' );
    $bytes =~ s/\\(?:x([0-9a-f]{2})|([rnt\\]))/defined $1 ? chr hex $1 : $escape{$2}/ge;
    return $bytes if !defined $length;
    my $whole = defined $LONG{$name}          ? $LONG{$name} : $bytes;
    my $tail  = defined $TAIL{$name}          ? $TAIL{$name} : '';
    my $fill  = $name eq 'MAL-BINARY-GARBAGE' ? "\xb7"       : substr $whole, -1;
    $whole .= $fill x ( $length - length($whole) - length $tail );
    $whole = substr( $whole, 0, $length - length $tail ) . $tail;
    die "$name: made of other bytes"
        if substr( $whole, 0, length $bytes ) ne $bytes || length $whole != $length;
    return $whole;
}

# Why the outcome of one delivery is wrong, '' when it is right
sub fault {
    my ( $row, $job ) = @_;
    my $name     = $row->{name};
    my $response = $job->{responses}[0];
    return $job->{result} =~ /\A(?:408 closed|timeout|closed)\z/ ? '' : $job->{result} if $row->{bytes} eq '';
    return $job->{result} =~ /\A(?:408 closed|timeout)\z/        ? '' : $job->{result} if $WAITS{$name};
    return ''             if $ENV{SIRIUS_TEST_H2} && $job->{result} eq 'closed' && $row->{pass} =~ /\b400\b/;
    return $job->{result} if !$response || $job->{result} !~ /\A\d+ (?:after|closed)\z/;
    my $status = $response->status;
    my %pass
        = map { $_ => 1 } defined $DIFFERENT{$name} ? $DIFFERENT{$name} : $row->{pass} =~ /\b(\d\d\d)\b/g;
    return "status $status"                 if %pass  && !$pass{$status};
    return "status $status without a check" if !%pass && !$MEANING{$name};
    return 'kept'
        if $row->{pass} =~ /\+close/ && $job->{result} !~ / closed\z/ && !$ENV{SIRIUS_TEST_H2};
    return 'interim response' if $job->{interim} && $row->{bytes} =~ m{\A[^\r]* HTTP/1\.0\r};
    local $_ = $response;
    return 'wrong in meaning' if $MEANING{$name} && !$MEANING{$name}->();
    return '';
}

my @row = rows();
is @row, 183, 'the table is whole';
is join( ' ', sort grep { $DIFFERENT{$_} } map { $_->{scored} eq 'scored' ? $_->{name} : () } @row ),
    join( ' ', sort keys %COUNTED ), 'of the rows that count only these are answered in another way';

# In HTTP/2 Host may repeat :authority (RFC 9113 8.3.1), and all trailers are dropped unread
if ( $ENV{SIRIUS_TEST_H2} ) {
    $DIFFERENT{$_} = '200' for 'COMP-DUPLICATE-HOST-SAME', map {"SMUG-TRAILER-$_"} qw(AUTH CONTENT-TYPE HOST);
}
@row = grep { !left_out( $_->{name}, $_->{bytes} ) } @row;

# Over TLS each byte may be a record, which the harness makes in Perl, for two hundred connections at a time.
# It makes frames, too
my @patience
    = $ENV{SIRIUS_TEST_TLS} || $ENV{SIRIUS_TEST_H2} ? qw(--header-timeout 300 --body-timeout 300) : ();
my $patient = start_server( corpus_file('conformance.psgi'), qw(--workers 1), @patience );
my $impatient
    = start_server( corpus_file('conformance.psgi'), qw(--workers 1 --header-timeout 1 --body-timeout 1) );
my @job;
for my $row (@row) {
    my $head = $row->{bytes} =~ /\AHEAD /;
    push @{ $row->{jobs} },
        map { { row => $row, delivery => $_->[0], pieces => $_->[1], head => $head } }
        Sirius::Test::Swarm->deliveries( $row->{bytes} );
    push @job, @{ $row->{jobs} };
}
my @slow = grep { $WAITS{ $_->{row}{name} } || $_->{row}{bytes} eq '' } @job;
my @fast = grep { !$WAITS{ $_->{row}{name} } && $_->{row}{bytes} ne '' } @job;
$_->{patience} = 5 for @slow;
Sirius::Test::Swarm->run( $patient->address, \@fast );
Sirius::Test::Swarm->run( $impatient->address, \@slow, at_once => 400 );

for my $row (@row) {
    my ( %fault, %result );
    for my $job ( @{ $row->{jobs} } ) {
        $job->{result} =~ s/\A([45]\d\d)(?<!408) closed\z/$1 after/
            if $ENV{SIRIUS_TEST_H2};    # was the body complete?
        $result{ $job->{result} }++;
        my $fault = fault( $row, $job );
        push @{ $fault{$fault} }, $job->{delivery} if $fault;
    }
    ok( !%fault && keys %result == 1, "$row->{name}: " . join ', ', sort keys %result )
        or diag "$row->{pass}; got ", join '; ',
        map { "$_ ($fault{$_}[0], " . @{ $fault{$_} } . ' in all)' } keys %fault;
}
note scalar @job, ' connections';

$_->stop for $patient, $impatient;
done_testing;
