use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Every method, status, framing, body and version, then a second request on the same connection: the strict
# reader sees each byte that is too many or too few. 205 has no content, like 204 and 304 (RFC 9110 15.3.6).

my $server = start_server( <<'APP', qw(--workers 1) );
my $two = __FILE__ . '.two';
open my $out, '>', $two or die "$two: $!";
print {$out} 'ab';
close $out;
my %body = (
    none   => sub { [] },
    empty  => sub { [''] },
    zero   => sub { ['0'] },
    pieces => sub { [ 'a', '', 'b' ] },
    memory => sub { my $ab = 'ab'; open my $fh, '<', \$ab or die $!; $fh },
    file   => sub { open my $fh, '<', $two or die "$two: $!"; $fh },
);
my %length = ( none => 0, empty => 0, zero => 1, pieces => 2, memory => 2, file => 2, writer => 2, silent => 0 );
sub {
    my ( undef, $status, $framing, $kind ) = split m{/}, $_[0]{PATH_INFO};
    return [ 200, [ 'X-Path' => $_[0]{PATH_INFO} ], ['after'] ] if !defined $kind;
    my @header = ( 'X-Kind' => $kind );
    push @header, 'Content-Length'    => $length{$kind} if $framing eq 'length';
    push @header, 'Transfer-Encoding' => 'chunked'      if $framing eq 'chunked';
    return [ $status, \@header, $body{$kind}->() ] if $body{$kind};
    return sub {
        my $writer = shift->( [ $status, \@header ] );
        if ( $kind eq 'writer' ) { $writer->write($_) for 'a', 'b' }
        $writer->close;
    };
}
APP

my %BODY = (
    none   => '',
    empty  => '',
    zero   => '0',
    pieces => 'ab',
    memory => 'ab',
    file   => 'ab',
    writer => 'ab',
    silent => ''
);
my @job;
for my $version ( http1( 'each case', 'HTTP/1.0' ) ? '1.0' : (), '1.1' ) {
    for my $method (qw(GET HEAD POST)) {
        for my $status (qw(200 205 204 304 404)) {
            for my $framing (qw(plain length chunked)) {
                for my $kind ( sort keys %BODY ) {
                    my $line = "$method /$status/$framing/$kind HTTP/$version";
                    my @more = $version eq '1.0' ? 'Connection: keep-alive' : ();
                    push @job,
                        {
                        line   => $line,
                        pieces => [ request( $line, @more, $method eq 'POST' ? \'data' : () ) ],
                        head   => $method eq 'HEAD',
                        body   => $method eq 'HEAD' || $status =~ /204|205|304/ ? '' : $BODY{$kind},
                        want   => $status,
                        };
                }
            }
        }
    }
}
Sirius::Test::Swarm->run( $server->address, \@job );

for my $status (qw(200 205 204 304 404)) {
    subtest "status $status" => sub {
        my @mine = grep { $_->{want} == $status } @job;
        my @lost = grep { $_->{result} !~ /\A$status (?:after|closed)\z/ } @mine;
        is scalar @lost, 0, 'answered, and the connection is kept or closed cleanly';
        diag map {"$_->{line}: $_->{result}\n"} @lost > 5 ? @lost[ 0 .. 4 ] : @lost;
        my @wrong = grep { $_->{responses}[0] && $_->{responses}[0]->body ne $_->{body} } @mine;
        is scalar @wrong, 0, 'with the right body';
        diag map { "$_->{line}: '" . $_->{responses}[0]->body . "'\n" }
            @wrong > 5 ? @wrong[ 0 .. 4 ] : @wrong;
        my @closed = grep { $_->{line} =~ /1\.1/ && $_->{result} =~ /closed/ } @mine;
        is scalar @closed, 0, 'HTTP/1.1 is always kept';
        diag map {"$_->{line}\n"} @closed > 5 ? @closed[ 0 .. 4 ] : @closed;
    };
}

subtest 'HEAD says the length that GET has' => sub {
    for my $kind (qw(zero pieces file)) {
        my ( $get, $head ) = map { $server->ask("$_ /200/plain/$kind") } qw(GET HEAD);
        is $head->header('Content-Length'), $get->header('Content-Length'), $kind;
    }
    is $server->ask('HEAD /200/plain/none')->header('Content-Length'), undef,
        'but nothing of an empty body: the application may have left it out because of HEAD';
    is $server->ask('HEAD /200/length/pieces')->header('Content-Length'), 2, 'what the application says';
};

$server->stop;
done_testing;
