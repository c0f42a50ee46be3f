use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Digest::MD5;
use Sirius::Test;

# Files: sent whole from where they stand, never more than there was said, and the worker is free meanwhile

my $server = start_server( <<'APP', qw(--workers 1) );
my $dir = __FILE__ . '.d';
mkdir $dir;
sub make {
    my ( $name, $size ) = @_;
    open my $out, '>:raw', "$dir/$name" or die "$dir/$name: $!";
    my $block = join '', map { chr( $_ * 7 % 251 ) } 1 .. 1_000_000;
    my $left  = $size;
    while ( $left > 0 ) { print {$out} $left >= length $block ? $block : substr $block, 0, $left; $left -= length $block }
    close $out or die "$dir/$name: $!";
    return;
}
make( big => 100_000_000 );
make( small => 10 );
make( empty => 0 );
make( shrinks => 20_000_000 );
package WithPath { sub new { bless { path => $_[1], fh => $_[2] } } sub path { $_[0]{path} } sub getline { readline $_[0]{fh} } sub close { close $_[0]{fh} } }
package main;
sub {
    my ( undef, $name, $how ) = split m{/}, $_[0]{PATH_INFO};
    return [ 200, [], ['ok'] ] if !$name;
    open my $fh, '<:raw', "$dir/$name" or return [ 404, [], [] ];
    $how ||= '';
    seek $fh, 4, 0 if $how eq 'seek';
    readline $fh if $how eq 'line';
    if ( $how eq 'read' ) { read $fh, my $four, 4 }
    if ( $how eq 'sysread' ) { sysread $fh, my $four, 4 }
    my @header = $how =~ /length(\d+)/ ? ( 'Content-Length' => $1 ) : ();
    truncate "$dir/$name", 1000 if $how eq 'truncate';
    return [ 200, \@header, WithPath->new( "$dir/$name", $fh ) ] if $how eq 'object';
    return [ 200, \@header, $fh ];
}
APP

my $block = join '', map { chr( $_ * 7 % 251 ) } 1 .. 1_000_000;
my $small = substr $block, 0, 10;

subtest 'a file of 100 MB' => sub {
    my $client = $server->connect;
    $client->send( request('GET /big') );
    my $in = '';
    $in .= $client->some( 1, 5 ) while $in !~ /\r\n\r\n/;
    my ( $head, $rest ) = split /(?<=\r\n)\r\n/, $in, 2;
    like $head, qr/^Content-Length: 100000000\r$/m, 'the length is told';
    my ( $md5, $got ) = ( Digest::MD5->new, 0 );
    $rest = $client->some( 1, 5 ) if !length $rest;    # the head may come alone

    while ( length $rest ) {
        $md5->add($rest);
        $got += length $rest;
        last if $got >= 100_000_000;
        $rest = $client->some( 1, 5 );
    }
    my $want = Digest::MD5->new;
    $want->add($block) for 1 .. 100;
    is $got,                        100_000_000,      'all bytes';
    is $md5->hexdigest,             $want->hexdigest, 'the right ones';
    is $client->ask('GET /')->body, 'ok',             'and the connection goes on';
};

subtest 'the worker is free while a slow client reads' => sub {
    my @slow = map { $server->connect( rcvbuf => 8192 ) } 1 .. 5;
    $_->send( request('GET /big') ) for @slow;
    is $server->ask('GET /')->body, 'ok', 'another is served';
    is_deeply [ map { length $_->some( 1, 0 ) > 50_000_000 ? 'whole' : 'open' } @slow ], [ ('open') x 5 ],
        'while the others are read';
};

subtest 'HEAD' => sub {
    my $client = $server->connect;
    is $client->ask('HEAD /big')->header('Content-Length'), 100_000_000, 'the length';
    is $client->ask('GET /')->body,                         'ok',        'no byte of the body';
};

subtest 'from where the handle stands' => sub {
    is $server->ask('GET /small')->body,         $small,                 'the start';
    is $server->ask("GET /small/$_")->body,      substr( $small, 4 ),    "after $_" for qw(seek read sysread);
    is $server->ask('GET /small/line')->body,    '',                     'at its end';
    is $server->ask('GET /empty')->body,         '',                     'an empty file';
    is $server->ask('GET /small/object')->body,  $small,                 'an object with path and getline';
    is $server->ask('GET /small/length5')->body, substr( $small, 0, 5 ), 'no more than the application says';
    is $server->ask('GET /small/length20')->status, 'cut', 'less than it says: the client sees it';
};

subtest 'a file that is cut meanwhile' => sub {
    my $client   = $server->connect( rcvbuf => 8192 );
    my $answered = $server->board->{totals}{requests} + 1;
    $client->send( request('GET /shrinks') );
    $server->wait_board( sub {
        my $board = shift;
        $board->{totals}{requests} == $answered && !grep { $_->{state} eq 'busy' } @{ $board->{workers} };
    } );
    is $server->ask('HEAD /shrinks/truncate')->status, 200, 'truncated';
    is length $client->response->body, 20_000_000, 'the client gets all that there was when it was answered';
    is $server->ask('GET /')->body,    'ok',       'the server goes on';
};

# A worker does not wait until its last file is on its way
subtest 'many files, one behind the other' => sub {
    my ( %got, @client );
    for ( 1 .. 10 ) {
        @client = map { $server->connect } 1 .. 8;
        for my $round ( 1 .. 10 ) {
            $_->send( join '', map { request("GET /small/$_") } qw(whole seek) x 5 ) for @client;
            for my $client (@client) {
                my @bodies = map { $client->response->body } 1 .. 10;
                $got{
                    join ' ',
                    map {
                              !defined                  ? '-'
                            : $_ eq $small              ? 'whole'
                            : $_ eq substr( $small, 4 ) ? 'seek'
                            : 'wrong'
                    } @bodies
                }++;
            }
        }
    }
    is_deeply \%got, { join( ' ', qw(whole seek) x 5 ) => 800 }, '8000 requests, and each gets its own file'
        or diag $server->log;
};

subtest 'the client goes away in the middle' => sub {
    my @pids = ( $server->owners, $server->workers );
    my $open = sub {
        scalar( () = map { Sirius::Test::Server->descriptors($_) } @pids );
    };
    my $before = $open->();
    for ( 1 .. 20 ) {
        my $client = $server->connect;
        $client->send( request('GET /big') );
        $client->some( 1, 5 );
        $client->abort;
    }
    my $after;
    ok until_true( 5, sub { $after = $open->(); $after <= $before } ), 'no descriptor is left open'
        or diag "$before before, $after after";
};

$server->stop;
done_testing;
