use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# Cases S01 to S53 of the framing corpus, xt/corpus/framing.pl, and those that need time or a server of their
# own. The answers of a server to odd applications, R01 to R06, are in xt/http/corpus_response.t.

my $H        = "Host: a\r\n";
my $POST     = "POST /smuggled HTTP/1.1\r\n$H";
my $TE       = "Transfer-Encoding: chunked\r\n\r\n";
my $smuggled = File::Temp->new;
my $app      = corpus_file('echo.psgi');

# Over TLS each byte may be a record, which the harness makes in Perl, for two hundred connections at a time.
# It makes frames, too
my @patience
    = $ENV{SIRIUS_TEST_TLS} || $ENV{SIRIUS_TEST_H2} ? qw(--header-timeout 300 --body-timeout 300) : ();
my $server = Sirius::Test::Server->start(
    app  => $app,
    args => [ qw(--workers 1), @patience ],
    env  => { SMUGGLED => "$smuggled" }
);

# All cases in all deliveries, in one go
my @case = map {
    my ( $name, $bytes, $want, %more ) = @$_;
    $want = outcome($want);
    my @job
        = map { { head => $more{head}, answers => $more{answers}, delivery => $_->[0], pieces => $_->[1] } }
        Sirius::Test::Swarm->deliveries($bytes);
    { name => $name, want => $want, more => \%more, jobs => \@job };
} grep {
    !left_out( $_->[0], $_->[1] )
        && ( $_->[0] !~ m{trailer that would frame} || http1( $_->[0], 'all trailers are dropped unread' ) )
} do( corpus_file('framing.pl') );
cmp_ok scalar @case, '>', $ENV{SIRIUS_TEST_H2} ? 50 : 150, 'the corpus is there';
Sirius::Test::Swarm->run( $server->address, [ map { @{ $_->{jobs} } } @case ] );

my %case_of;
for my $case (@case) {
    my ( %wrong, %result );
    for my $job ( @{ $case->{jobs} } ) {
        $case_of{ $job->{port} }{ $case->{name} } = 1;

        # Who sends on after "Connection: close" may be reset for it: what counts is the one answer before
        $job->{result} =~ s/reset\z/closed/                 if $case->{more}{broken_word};
        $job->{result} =~ s/\A([45]\d\d) closed\z/$1 after/ if $ENV{SIRIUS_TEST_H2};  # was the body complete?
        $result{ $job->{result} }++;
        my $why = fault( $case, $job );
        $wrong{$why} ||= $job->{delivery} if $why;
    }
    ok( !%wrong && keys %result == 1, $case->{name} )
        or diag "want $case->{want}; got ", join '; ',
        %wrong ? map( {"$_ ($wrong{$_})"} sort keys %wrong ) : sort keys %result;
}
my @reached = split /\n/, Sirius::Test::Server::slurp("$smuggled");
is @reached, 0, 'no hidden request reached the application'
    or diag map { "port $_: " . join( ' or ', keys %{ $case_of{$_} || {} } ) . "\n" } @reached;

sub fault {
    my ( $case, $job )  = @_;
    my ( $want, $more ) = @{$case}{qw(want more)};
    return $job->{result} if ref $want ? $job->{result} !~ $want : $job->{result} ne $want;
    my @body = map { $_->body } @{ $job->{responses} };
    for my $body ( @{ $more->{bodies} || [] } ) {
        my $got = shift @body;
        return "application saw $got" if $got ne $body;
    }
    my $host = @{ $job->{responses} } ? $job->{responses}[0]->header('X-Host') : undef;
    return "host $host" if defined $more->{host} && $host ne $more->{host};
    my @fields = map { $_->header('X-Fields') } @{ $job->{responses} };
    return "fields $fields[0]" if defined $more->{fields}      && $fields[0] ne $more->{fields};
    return "fields $fields[1]" if defined $more->{last_fields} && $fields[1] ne $more->{last_fields};
    return '';
}

my $strict = Sirius::Test::Server->start(
    app  => $app,
    args => [qw(--workers 1 --header-timeout 1 --body-timeout 1 --max-body 100000)],
    env  => { SMUGGLED => "$smuggled" }
);

subtest 'S30 bodies without an end are cut off at the limit' => sub {
    my %endless = (
        'chunks of one byte'        => [ "1\r\na\r\n" x 200_000,        qr/\A413 closed\z/ ],
        'one huge chunk'            => [ "7fffffff\r\n" . 'x' x 10_000, qr/\A413 closed\z/ ],
        'an extension of 10 MB'     => [ '1;a=' . 'b' x 10_000_000,     qr/\A4(?:00|31) closed\z/ ],
        'long extensions, one byte' =>
            [ join( '', ( '1;a=' . 'b' x 1000 . "\r\nx\r\n" ) x 10_000 ), qr/\A4(?:00|13|31) closed\z/ ],
        'trailers' => [ "0\r\n" . "X: y\r\n" x 100_000, qr/\A4(?:00|31) closed\z/ ],
    );
    for my $name ( sort keys %endless ) {
        my ( $body, $want ) = @{ $endless{$name} };
        next if $name =~ /huge|of one byte|trailers/ && !http1( $name, 'there are no chunks' );
        next if left_out( $name, "$POST$TE$body" );
        $want = outcome($want);
        my @job = map { { pieces => [ "$POST$TE", $body ] } } 1 .. 5;
        Sirius::Test::Swarm->run( $strict->address, \@job );
        is scalar( grep { $_->{result} !~ $want } @job ), 0, $name or diag $job[0]{result};
    }
};

subtest 'S31 a body that ends too early never reaches the application' => sub {
    for my $bytes ( "${POST}${TE}5\r\nhel", "$POST${TE}5\r\nhello\r\n",
        "${POST}Content-Length: 10\r\n\r\nabcd" )
    {
        every_delivery(
            $strict, 'half-closed', $bytes, qr/\A(?:40[08] )?closed\z/,
            finish => 1,
            follow => 0
        );
    }
};

subtest 'S34 empty lines' => sub {
    every_delivery( $server, '10,000 of them',                        "\r\n" x 10_000, qr/\A400 closed\z/ );
    every_delivery( $strict, 'two and nothing more: 408 in its time', "\r\n\r\n",      '408 closed' );
};

subtest 'S45 S46 paths that climb or end in a slash are not served as files' => sub {
    my $files = start_server( <<'APP', qw(--workers 1) );
use Plack::App::File;
Plack::App::File->new(root => 'xt/corpus')->to_app;
APP
    is $files->ask('GET /README')->status, 200, 'a file';
    for my $path (qw(/%2f..%2f..%2fetc/passwd /..%5c..%5cREADME /%252e%252e/README /../lib /README/)) {
        like $files->ask("GET $path")->status, qr/\A40[034]\z/, $path;
    }
    $files->stop;
};

subtest 'S52 a refused expectation is not told to go on' => sub {
    my $client = $strict->connect;
    my $answer = $client->ask( 'POST /', 'Expect: 100-continue', 'Content-Length: 100001' );
    is $answer->status,            413, 'status 413';
    is scalar( $answer->interim ), 0,   'no 100';
};

subtest 'S53 who sends a byte now and then is sent away in time' => sub {
    my %part = (
        'request line' => 'GET /aaaaaaaaaaaaaaaaaaaaaaaa',
        'fields'       => "GET / HTTP/1.1\r\n${H}X: aaaaaaaaaaaaaaaaaa",
        'body'         => "${POST}Content-Length: 5000\r\n\r\n" . 'a' x 40,
        'chunk size'   => "$POST${TE}1;a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        'trailer'      => "$POST${TE}0\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    );
    my @job = map {
        my $slow = substr $part{$_}, -12, 12, '';
        { name => $_, pieces => [ $part{$_}, split //, $slow ], patience => 5 }
    } grep { !left_out( $_, $part{$_} ) } sort keys %part;
    my $before = $strict->board->{totals}{refusals};
    Sirius::Test::Swarm->run( $strict->address, \@job, pause => 0.3 );
    is $_->{result}, '408 closed', "in the $_->{name}" for @job;
    my %limit = ( 'header-timeout' => 2, 'body-timeout' => 3 );
    %limit = ( 'header-timeout' => 0, 'body-timeout' => 1 ) if $ENV{SIRIUS_TEST_H2};
    ok $strict->wait_board( sub {
        my $now = $_[0]{totals}{refusals};
        return !grep { $now->{$_} != $before->{$_} + $limit{$_} } keys %limit;
        } ),
        'by the limit of each';
    is $strict->ask('GET /')->status, 200, 'others are served';
};

is -s "$smuggled", 0, 'still no hidden request';
$_->stop for $server, $strict;
done_testing;
