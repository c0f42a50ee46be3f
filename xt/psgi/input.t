use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Digest::MD5 qw(md5_hex);
use Sirius::Test;

# psgi.input: seekable, exactly the body, then EOF. Empty, in memory, and in a file

my $server = start_server( <<'APP', qw(--workers 1 --body-memory 1000) );
use Digest::MD5 qw(md5_hex);
my %how = (
    read => sub {
        my ( $fh, $body ) = ( shift, '' );
        1 while $fh->read( $body, 777, length $body );
        return $body;
    },
    builtin => sub {
        my ( $fh, $body ) = ( shift, '' );
        1 while read $fh, $body, 777, length $body;
        return $body;
    },
    getline => sub {
        my ( $fh, $body ) = ( shift, '' );
        while ( defined( my $line = $fh->getline ) ) { $body .= $line }
        return $body;
    },
    angle => sub {
        my ( $fh, $body ) = ( shift, '' );
        while ( my $line = <$fh> ) { $body .= $line }
        return $body;
    },
    slurp => sub { my $fh = shift; local $/; my $body = <$fh>; return defined $body ? $body : '' },
    list  => sub { my $fh = shift; return join '', <$fh> },
    eof   => sub {
        my ( $fh, $body ) = ( shift, '' );
        until ( eof $fh ) { read $fh, $body, 100, length $body }
        return $body;
    },
    twice => sub {
        my ( $fh, $one, $two ) = ( shift, '', '' );
        1 while $fh->read( $one, 333, length $one );
        $fh->seek( 0, 0 );
        1 while $fh->read( $two, 1000, length $two );
        return $one eq $two ? $two : "differs: $one, $two";
    },
    tail => sub {
        my ( $fh, $body ) = ( shift, '' );
        $fh->seek( 5, 0 );
        1 while $fh->read( $body, 1000, length $body );
        return $body;
    },
    partly => sub { my $fh = shift; $fh->read( my $body, 3 ); return $body },
    none   => sub { return '' },
    after  => sub {
        my $fh = shift;
        1 while $fh->read( my $body, 1000 );
        return join ',', map { my $n = $fh->read( my $more, 10 ); defined $n ? $n : 'undef' } 1 .. 3;
    },
    layers => sub { my $fh = shift; binmode $fh, ':encoding(UTF-16)'; binmode $fh, ':crlf'; eval { readline $fh }; return 'layers' },
    close  => sub { my $fh = shift; close $fh; return 'closed' },
    undef  => sub { undef *{ $_[0] }; return 'undefined' },
    reopen => sub { my $fh = shift; open $fh, '<', '/etc/passwd' or die $!; readline $fh; return 'reopened' },
    write  => sub { my $fh = shift; no warnings; print {$fh} 'garbage'; syswrite $fh, 'garbage' if ( fileno($fh) || -1 ) > 2; return 'written' },
);
sub {
    my $env  = shift;
    my $body = $how{ substr $env->{PATH_INFO}, 1 }->( $env->{'psgi.input'} );
    return [ 200, [], [ $body eq '' || length $body > 40 ? length($body) . ' ' . md5_hex($body) : $body ] ];
}
APP

my %BODY = (
    empty  => '',
    memory => "one\ntwo\n\nthree",
    edge   => 'x' x 1000,
    over   => 'y' x 1001,
    file   => join( '', map {"line $_ \x00\xff\r\n"} 1 .. 20_000 ),
);

sub seen {
    my $body = shift;
    return $body eq '' || length $body > 40 ? length($body) . ' ' . md5_hex($body) : $body;
}

sub answer {
    my ( $client, $how, $body ) = @_;
    return $client->ask( "POST /$how", \$body )->body;
}

for my $size ( sort keys %BODY ) {
    my $body = $BODY{$size};
    subtest "$size: " . length($body) . ' bytes' => sub {
        my $client = $server->connect;
        is answer( $client, $_, $body ), seen($body), $_
            for qw(read builtin getline angle slurp list eof twice);
        is answer( $client, 'tail', $body ), seen( length $body > 5 ? substr $body, 5 : '' ),
            'from an offset';
        is answer( $client, 'partly', $body ), seen( substr $body, 0, 3 ), 'a part';
        is answer( $client, 'after',  $body ), '0,0,0',                    'nothing behind the end';
        is answer( $client, 'none',   $body ), seen(''),                   'not read at all';
    };
    subtest "$size: what follows it is no part of it" => sub {
        my $client = $server->connect;
        $client->send(
            request( 'POST /read', \$body ) . request( 'POST /slurp', \'second' ) . request('GET /slurp') );
        is join( '|', map { $_->body } $client->responses(3) ), join( '|', seen($body), 'second', seen('') ),
            'each its own';
    };
}

subtest 'a handle that an application damages is its own' => sub {
    for my $damage (qw(layers close undef reopen write)) {
        for my $size ( 'empty', 'memory', 'file' ) {
            my $client = $server->connect;
            is $client->ask( "POST /$damage", \$BODY{$size} )->status, 200, "$damage, $size";
            is answer( $client, 'slurp', '' ),    seen(''),                 'the next empty one is empty';
            is answer( $client, 'slurp', 'abc' ), 'abc',                    'the next is itself';
            is $client->ask('GET /read')->body,   seen(''),                 'one without a body as well';
        }
    }
};

subtest 'files of bodies are gone' => sub {
    my @pids = ( $server->owners, $server->workers );
    my $open = sub {
        scalar( () = map { Sirius::Test::Server->descriptors($_) } @pids );
    };
    my $count = $open->();
    $server->ask( 'POST /read', \$BODY{file} ) for 1 .. 20;
    ok until_true( 3, sub { $count >= $open->() } ), 'no descriptor is left';
};

$server->stop;
done_testing;
