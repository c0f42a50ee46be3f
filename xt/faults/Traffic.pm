package Traffic;

# What the tests of faults send: every kind of request, and answers that are known to the byte.
#
#   my $faults = Sirius::Test::Faults->new;
#   my $server = $faults->start( app => $APP, args => [...] );
#   is_deeply [ grep { $_ !~ /: whole\z/ } every_kind($server) ], [];
#
# A kind is sub ( client ): undef when all was right, else what was wrong: a status, "eof", "reset",
# "timeout", "cut", "garbage: ...", or "another body".

use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use Exporter    qw(import);
use Sirius::Test;
use Sirius::Test::Client;
use Sirius::Test::Load;

our @EXPORT = qw($APP every_kind is_whole traffic);

# /bytes/N: N bytes in an array; /stream/N: in pieces of 1,000; /file: 5 MB by sendfile; /hold/N: opens N
# files and keeps them; /taken: how many connections have moved; /serving: how many workers serve; /open:
# connections; POST: length and MD5 of the body
our $APP = <<'APP';
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use File::Temp;
use Sirius::Scoreboard;
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime sleep);
my $DATA = pack 'N*', 0 .. 1_310_719;
my $FILE = File::Temp->new;
print {$FILE} $DATA;
close $FILE;
my $caught = 0;
my @held;
$SIG{$_} = sub { $caught++ } for qw(URG WINCH);
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return [ 200, [], [$caught] ] if $path eq '/caught';
    return [ 200, [], [$$] ]      if $path eq '/pid';
    return [ 200, [], [ Sirius::Scoreboard->snapshot->{totals}{taken} ] ] if $path eq '/taken';
    return [ 200, [], [ Sirius::Scoreboard->snapshot->{connections}{open} ] ] if $path eq '/open';
    return [ 200, [], [ scalar grep { $_->{state} =~ /\A(?:idle|busy)\z/ } @{ Sirius::Scoreboard->snapshot->{workers} } ] ]
        if $path eq '/serving';
    if ( $path =~ m{\A/hold/(\d+)} ) {
        for ( 1 .. $1 ) { open my $fh, '<', '/dev/null' or last; push @held, $fh }
        return [ 200, [], [ scalar @held ] ];
    }
    if ( $path =~ m{\A/sleep/([\d.]+)} ) {
        my $until = clock_gettime(CLOCK_MONOTONIC) + $1;
        while ( ( my $left = $until - clock_gettime(CLOCK_MONOTONIC) ) > 0 ) { sleep $left }
    }
    if ( $path eq '/late' ) {    # it gives up a client that does not read
        return sub {
            my $writer = shift->( [ 200, [] ] );
            local $SIG{ALRM} = sub { $caught++; $writer->write('in between'); die "late\n" };
            alarm 1;
            $@ = 'mine';
            my $lived = eval { $writer->write( $DATA x 4 ); 1 };
            alarm 0;
            warn "was late\n" if !$lived && $@ eq "late\n" && !$writer->write('more');
            $writer->close;
        };
    }
    if ( $path eq '/file' ) {
        open my $file, '<:raw', "$FILE" or die "$FILE: $!";
        return [ 200, [ 'X-MD5' => md5_hex($DATA) ], $file ];
    }
    if ( $path =~ m{\A/stream/(\d+)} ) {
        my $bytes = substr $DATA, 0, $1;
        return sub {
            my $writer = shift->( [ 200, [ 'X-MD5' => md5_hex($bytes) ] ] );
            $writer->write($_) for unpack '(a1000)*', $bytes;
            $writer->close;
        };
    }
    my $body = '';
    1 while $env->{'psgi.input'}->read( $body, 65_536, length $body );
    my $answer = $path =~ m{\A/bytes/(\d+)} ? substr $DATA, 0, $1 : length($body) . ' ' . md5_hex($body);
    return [ 200, [ 'X-MD5' => md5_hex($answer) ], [$answer] ];
};
APP

my $POSTED = pack 'n*', map { $_ * 40_503 % 65_536 } 0 .. 149_999;

my %KIND = (
    'keep-alive' => sub {
        my $client = shift;
        my @wrong  = map { wrong( $client->ask("GET /bytes/$_") ) } 1, 100, 3000, 20_000;
        return $wrong[0];
    },
    pipelined => sub {
        my $client = shift;
        $client->send( join '', map { request("GET /bytes/$_") } 1 .. 20 );
        for my $number ( 1 .. 20 ) {
            my $answer = $client->response;
            my $wrong  = wrong($answer);
            return $wrong            if defined $wrong;
            return 'another request' if length $answer->body != $number;
        }
        return;
    },
    'small body'   => sub { return posted( shift, substr $POSTED, 0, 1000 ) },
    'spooled body' => sub { return posted( shift, $POSTED ) },
    'chunked body' => sub {
        my $client = shift;
        my $bytes  = join '', map { sprintf( "%x\r\n", length ) . "$_\r\n" } unpack '(a7919)*', $POSTED;
        $client->send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${bytes}0\r\n\r\n");
        return answer_to( $POSTED, $client->response );
    },
    'Expect: 100-continue' => sub {
        my $client = shift;
        $client->send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n");
        $client->some( 0, 0.05 );    # RFC 9110 10.1.1: a client does not wait for ever
        $client->send( substr $POSTED, 0, 5000 );
        return answer_to( substr( $POSTED, 0, 5000 ), $client->response );
    },
    array    => sub { return wrong( shift->ask('GET /bytes/1000000') ) },
    stream   => sub { return wrong( shift->ask('GET /stream/60000') ) },
    sendfile => sub { return wrong( shift->ask('GET /file') ) },
    HEAD     => sub {
        my $answer = shift->ask('HEAD /file');
        return $answer->status eq '200' ? undef : $answer->status;
    },
    'HTTP/1.0' => sub {
        my $client = shift;
        my $answer = $client->ask('GET /stream/60000 HTTP/1.0');
        return $client->end eq 'reset' ? 'reset' : wrong($answer);    # its end is its frame
    },
);

sub answer_to {
    my ( $body, $answer ) = @_;
    my $wrong = wrong($answer);
    return
          defined $wrong                                        ? $wrong
        : $answer->body eq length($body) . ' ' . md5_hex($body) ? undef
        :                                                         'another body';
}

# Each kind on a connection of its own: a list of "KIND: whole" or "KIND: what is wrong". All kinds, or those
# named
sub every_kind {
    my ( $server, @kind ) = @_;
    return map {
        my $wrong = $KIND{$_}->( $server->connect );
        "$_: " . ( defined $wrong ? $wrong : 'whole' )
    } @kind ? @kind : sort keys %KIND;
}

# A test: all of them are whole
sub is_whole {
    my ( $server, $name ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return Test::More::is_deeply( [ grep { !/: whole\z/ } every_kind($server) ], [], $name );
}

sub posted {
    my ( $client, $body ) = @_;
    return answer_to( $body, $client->ask( 'POST /', \$body ) );
}

# Clients in processes of their own, each with all kinds in turn; their results are "whole" and what was wrong
sub traffic {
    my ( $server, %option ) = @_;
    my @kind = sort keys %KIND;
    return Sirius::Test::Load->start(
        $server,
        ask => sub {
            my ( $client, $number ) = @_;
            my @ask = ( [ 'POST /', \$POSTED ], ['GET /bytes/300'], ['GET /stream/20000'],
                ['GET /bytes/100000'] );
            return @{ $ask[ ( $client + $number ) % @ask ] };
        },
        sign => sub { my $wrong = wrong(shift); return defined $wrong ? $wrong : 'whole' },
        %option,
    );
}

# undef: the answer is whole, by its length and its checksum
sub wrong {
    my $answer = shift;
    return $answer->status if $answer->status ne '200';
    my $md5 = $answer->header('X-MD5');
    return defined $md5 && $md5 eq md5_hex( $answer->body ) ? undef : 'another body';
}

1;
