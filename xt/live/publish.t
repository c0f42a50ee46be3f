use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use IO::Socket::UNIX;
use JSON::PP ();
use POSIX    ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Channel;
use Sirius::Control::HTTP;
use Sirius::Test;

# What workers, their children and other processes publish reaches all edges, or its publisher is told why not

my $APP = <<'APP';
use POSIX ();
use Sirius::Channel;

sub publish {
    my @args = @_;
    return eval { Sirius::Channel->publish(@args) } ? 'published' : "failed: $@";
}

sub {
    my $env = shift;
    my ( undef, $what, $bytes, $number ) = split m{/}, $env->{PATH_INFO};
    my $content = 'x' x ( $bytes || 1 );
    if ( $what eq 'fork' ) {
        pipe my $read, my $write or die $!;
        my $pid = fork // die $!;
        if ( !$pid ) {
            syswrite $write, publish( a => $content );
            POSIX::_exit(0);
        }
        close $write;
        waitpid $pid, 0;
        return [ 200, [], [<$read>] ];
    }
    if ( $what eq 'around' ) {
        return sub {
            my $writer = shift->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
            for ( 1 .. $number ) {
                publish( a => $content );
                $writer->write("$_\n");
            }
            publish( a => $content );
            $writer->close;
            publish( a => $content );
        };
    }
    if ( $what eq 'handler' ) {
        local $SIG{ALRM} = sub { publish( a => $content ) };
        alarm 1;
        publish( a => $content ) for 1 .. $number;
        select undef, undef, undef, 1.1;
        return [ 200, [], ['done'] ];
    }
    if ( $what eq 'for-ever' ) {
        publish( a => $content ) while 1;
    }
    my %said;
    $said{ publish( a => $content ) }++ for 1 .. $number || 1;
    return [ 200, [], [ sort keys %said ] ];
}
APP

my $root = $Sirius::Test::Server::ROOT;
my $dir  = File::Temp->newdir( 'sirius-publish-XXXXXX', TMPDIR => 1 );
chmod 0755, "$dir" or die $!;
my $path = "$dir/control";
delete $ENV{SIRIUS_CONTROL};

sub server { return start_server( $APP, '--hold', '--control' => $path, @_ ) }

sub counts {
    my $server = shift;
    return join q( ), @{ $server->board->{totals} }{qw(published unpublished)};
}

sub reaches {
    my ( $server, $number, $name ) = @_;
    until_true( 20, sub { counts($server) eq "$number 0" } );
    return is counts($server), "$number 0", $name;
}

sub error {
    my ( $code, @args ) = @_;
    return eval { $code->(@args); 1 } ? 'none' : $@ =~ s/ at \S+ line \d+\.?\n\z//r;
}

sub publish { return Sirius::Channel->publish(@_) }

sub ctl {
    my ( $text, @args ) = @_;
    spew( "$dir/in", $text );
    local $ENV{PERL5LIB} = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
    my $said = qx($^X $root/bin/sirius ctl --control $path publish @args <$dir/in 2>&1);
    return ( $? >> 8 ) . " $said";
}

subtest 'From a worker' => sub {
    my $server = server(qw(--workers 2 --edges 2));
    my $sum    = 0;
    for my $case ( [ 1, 1 ], [ 16_000, 20 ], [ 17_000, 20 ], [ 100_000, 30 ], [ 1_048_575, 5 ] ) {
        my ( $bytes, $number ) = @$case;
        is $server->ask("GET /many/$bytes/$number")->body, 'published', "$number of $bytes bytes";
        reaches( $server, 2 * ( $sum += $number ), 'both edges have them' );
    }
    like $server->ask('GET /one/1048576')->body,
        qr/\Afailed: Sirius::Channel->publish: the item has 1048577 bytes, the maximum is 1048576 at /,
        'too large';
    is $server->ask('GET /around/100/50')->body, join( '', map {"$_\n"} 1 .. 50 ), 'within a response';
    reaches( $server, 2 * ( $sum += 52 ), 'before, between and after its parts' );
    is $server->ask('GET /handler/200000/40')->body, 'done', 'in the handler of a signal as well';
    reaches( $server, 2 * ( $sum += 41 ), 'each whole' );
    is $server->ask('GET /fork/100')->body, 'published', 'a child of the application';
    reaches( $server, 2 * ++$sum, 'uses the control socket' );
};

subtest 'From another process' => sub {
    my $server = server(qw(--workers 1 --edges 2));
    local $ENV{SIRIUS_CONTROL} = $path;
    ok publish( a => 'x' ),                                                      'Perl';
    ok publish( a => 'x' x 1_048_573, id => 2, prev_id => 1 ),                   'a large one';
    ok publish( a => 'x', close => 1 ),                                          'two: content, and its end';
    ok publish( a => undef, close => 1 ),                                        'one: the end';
    ok publish( a => undef, formats => { 'http-response' => { body => 'x' } } ), 'other formats';
    reaches( $server, 12, 'both edges have them' );
    is ctl( 'x', 'news' ), "0 published\n", 'sirius ctl';
    is ctl( 'x' x 2**20, 'n' ),
        "2 sirius ctl: publish: the item has 1048577 bytes, the maximum is 1048576\n", 'too large';
    is ctl( "\xff", '--format ws-message news' ),                       "0 published\n", 'a binary message';
    is ctl( 'x',    '--format http-response --id 2 --prev-id 1 news' ), "0 published\n", 'a response';
    is ctl( 'x',    '--sender bob news' ),                              "0 published\n", 'of a user';
    is ctl( '',     '--close news' ),                                   "0 published\n", 'the end alone';
    is ctl( 'x',    '--close news' ), "0 published\n",                     'content and the end';
    is ctl( 'x',    '--json news' ),  qq(0 {"ok":1,"text":"published"}\n), '--json';
    reaches( $server, 28, 'both edges have them' );
    is ctl( 'x', '--format x news' ),
        "2 sirius ctl: --format: 'x' is unknown: use http-stream, http-response or ws-message\n", 'no format';
    is ctl( 'x', '' ),    "2 sirius ctl: publish: the channel is missing\n",                'no channel';
    is ctl( 'x', 'a b' ), "2 sirius ctl: unexpected argument 'b'; see sirius ctl --help\n", 'two of them';
SKIP: {
        my $curl = program('curl') or skip 'curl is not installed', 4;
        my $post = sub {
            spew( "$dir/in", shift );
            return
                qx($curl -s -w '%{http_code}' --unix-socket $path http://localhost/publish/ --data-binary \@$dir/in);
        };
        my $item = { channel => 'a', 'http-stream' => { content => 'x' } };
        is $post->( JSON::PP->new->encode( { items => [ $item, $item ] } ) ), "Published\n200", 'curl';
        is $post->('{"items":[{"channel":"a"}]}'),
            "Invalid format: no formats specified: 'http-stream', 'http-response' or 'ws-message'\n400",
            'an error';
        is $post->( 'x' x 3e6 ), "The body has 3000000 bytes, the maximum is 2097152.\n413", 'too large';
        reaches( $server, 32, 'both edges have the two' );
    }
    $ENV{SIRIUS_CONTROL} = "$dir/none";
    like error( \&publish, a => 'x' ),
        qr{\ASirius::Channel->publish: no server is listening on \Q$dir\E/none: }, 'nobody';
    my @wrong = (
        [ [ '', 'x' ]                 => 'the channel is missing' ],
        [ [ a => undef ]              => 'there is nothing to publish' ],
        [ [ a => 'x', colour => 1 ]   => q(unknown argument 'colour') ],
        [ [ a => 'x', formats => {} ] => 'either the content or formats, not both' ],
        [ [ a => {} ]                 => 'the content is not text' ],
        [   [ a => "\x{263a}" ] =>
                q('http-stream' content contains a character above 0xff: encode it, as with Encode::encode_utf8)
        ],
    );
    is error( \&publish, @{ $_->[0] } ), "Sirius::Channel->publish: $_->[1]", $_->[1] for @wrong;
};

subtest 'Another server of the same user' => sub {
    mkdir "$dir/run", oct 700;
    mkdir "$dir/own", oct 700;
    my $other = do {
        local $ENV{XDG_RUNTIME_DIR} = "$dir/run";
        start_server( $APP, qw(--hold --workers 1) );
    };
    my $say     = 'print eval { Sirius::Channel->publish( a => 1 ) } ? "published" : $@';
    my $program = "$^X -I$root/blib/lib -I$root/blib/arch -MSirius::Channel -e '$say'";
    my $app     = <<"APP";
use Sirius::Channel;
my \$loading = eval { Sirius::Channel->publish( a => 1 ) } ? 'published' : \$@;
my \$program = <<'PROGRAM';
$program
PROGRAM
sub { [ 200, [], [ shift->{PATH_INFO} eq '/loading' ? \$loading : scalar qx(\$program) ] ] }
APP
    local $ENV{XDG_RUNTIME_DIR} = "$dir/own";
    my $none  = qr/its server has no control socket/;
    my @cases = (
        [ [ '--control' => $path ],  qr/no server is listening/, qr/\Apublished\z/, 4 ],
        [ [ '--control' => 'none' ], $none,                      $none,             0 ],
        [ [], qr/no server found/, qr/\Apublished\z/, 4 ],
    );
    for my $case (@cases) {
        my ( $options, $loading, $later, $count ) = @$case;
        my $server = start_server( $app, qw(--hold --workers 1 --edges 2),
            @$options, '--beside' => "job=$program; sleep 100" );
        like $server->ask('GET /loading')->body, $loading, "while the application loads (@$options)";
        like $server->ask('GET /')->body,        $later,   'a program that it runs';
        ok $server->wait_log(qr/^job\[\d+\]: .*${\ ( $count ? 'published' : $none ) }/m), '--beside'
            if !$count;
        reaches( $server, $count, 'a program that it runs, and --beside' );
        $server->stop;
    }
    {
        local $ENV{SIRIUS_CONTROL} = 'none';
        local $ENV{PERL5LIB}       = join ':', "$root/blib/lib", "$root/blib/arch", $ENV{PERL5LIB} || ();
        like qx(echo 1 | $^X $root/bin/sirius ctl publish a 2>&1), qr/publish: SIRIUS_CONTROL is none/,
            'sirius ctl of a server without a socket';
    }
    is counts($other), '0 0', 'the other one gets nothing';
};

subtest 'Who may publish' => sub {
    plan skip_all => 'only root can become somebody else' if $>;
    my $server = server(qw(--workers 1));
    my $said   = in_child( sub {
        POSIX::setgid(65_534);
        POSIX::setuid(65_534);
        return error( \&publish, a => 'x', control => $path );
    } );
    like $said, qr{\ASirius::Channel->publish: cannot use the socket \Q$path\E: Permission denied},
        'not another user';
    reaches( $server, 0, 'nothing was published' );
    $server->stop;
    $server = server(qw(--workers 1 --user nobody));
    my $nobody = getpwnam 'nobody';
    $said = in_child( sub {
        POSIX::setgid(65_534);
        POSIX::setuid($nobody);
        my $can = publish( a => 'x', control => $path );
        return "$can " . `$^X -Mblib=$root $root/bin/sirius ctl --control $path stop 2>&1`;
    } );
    is $said, "1 sirius ctl: user $nobody may only publish\n", 'the user of the workers, but nothing else';
    is $server->ask('GET /fork/1')->body, 'published',         'so may children of the application';
    reaches( $server, 2, 'both are there' );
};

subtest 'Without --hold' => sub {
    my $server = start_server( $APP, '--control' => $path, '--workers' => 1 );
    my $why    = 'Sirius::Channel->publish: the server holds no connections: start it with --hold';
    is error( \&publish, a => 'x', control => $path ), $why, 'nobody holds a connection';
    $server->stop;
    local $ENV{SIRIUS_CONTROL} = $path;
    $server = start_server( $APP, '--workers' => 1 );
    like $server->ask('GET /one')->body, qr/\Afailed: \Q$why\E /, 'a worker is told as well';
};

subtest 'A server that becomes a new program' => sub {
    my $listen = IO::Socket::UNIX->new( Local => "$dir/renewed", Listen => 1 ) or die $!;
    my $pid    = fork // die $!;
    if ( !$pid ) {
        for my $answers ( 0, 0, 1, 0, 0, 0 ) {
            my $client = $listen->accept or last;
            sysread $client, my $request, 65_536;
            syswrite $client, Sirius::Control::HTTP->answer( { ok => 1, text => 'Published' } ) if $answers;
        }
        POSIX::_exit(0);
    }
    ok publish( a => 'x', control => "$dir/renewed" ), 'a request that was dropped is sent again';
    is error( \&publish, a => 'x', control => "$dir/renewed" ),
        "Sirius::Channel->publish: the server at $dir/renewed closed the connection without an answer",
        'not for ever';
    waitpid $pid, 0;
};

subtest 'Publishers that are killed' => sub {
    my $server = server(qw(--workers 2 --edges 2));
    for my $bytes ( 1000, 1_000_000 ) {
        for ( 1 .. 5 ) {
            my $client = $server->connect;
            my $before = counts($server);
            $client->send("GET /for-ever/$bytes HTTP/1.1\r\nHost: a\r\n\r\n");
            until_true( 20, sub { counts($server) ne $before } );
            $server->kill_busy;
            is $client->response( patience => 60 )->status, 502, "a worker within one of $bytes bytes";
        }
    }
    for my $end ( 10, 1000, 1_000_000 ) {
        socket my $fh, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0 or die $!;
        connect $fh, Socket::pack_sockaddr_un($path) or die $!;
        my $request = Sirius::Control::HTTP->request( Sirius::Channel::Item->packed(
            { channel => 'a', 'http-stream' => { content => 'x' x 1_000_000 } }
        ) );
        $fh->blocking(0);
        syswrite $fh, $request, $end;
        close $fh;
    }
    my ($now) = split q( ), counts($server);
    ok publish( a => 'x', control => $path ), 'the control socket goes on';
    reaches( $server, $now += 2, 'to both edges' );
    is $server->ask('GET /many/100000/10')->body, 'published', 'and the next worker in that place';
    reaches( $server, $now + 20, 'whose items are whole' );
    unlike $server->log, qr/invalid message/, 'no worker broke a rule';
};

subtest 'Edges that come and go' => sub {
    my $config = spew( "$dir/sirius.conf", "max-body = 1000\n" );
    my $server = server( qw(--workers 2 --edges 2 --config), $config );
    my $pid    = fork // die $!;
    if ( !$pid ) {
        my $failed = 0;
        for ( 1 .. 300 ) { $failed++ if error( \&publish, a => 'x', control => $path ) ne 'none'; sleep 0.01 }
        POSIX::_exit($failed);
    }
    my %said;
    for my $most ( 1001 .. 1003 ) {
        my @before = $server->edges;
        spew( $config, "max-body = $most\n" );
        $server->signal('HUP');
        my %was = map { $_ => 1 } @before;
        until_true(
            30,
            sub {
                $said{ $server->ask('GET /many/20000/10')->body }++;
                return $server->edges == 2 && !grep { $was{$_} } $server->edges;
            }
        );
    }
    is_deeply [ keys %said ], ['published'], 'workers, while edges are replaced';
    waitpid $pid, 0;
    is $? >> 8, 0, 'and another process';
    my ( $edge, $other ) = $server->edges;
    kill STOP => $edge;
    ok publish( a => 'x', control => $path ), 'an edge that is stopped delays nobody';
    kill CONT => $edge;
    kill KILL => $other;
    is $server->ask('GET /many/20000/10')->body, 'published', 'nor one that is killed';
    my ( undef, $dropped ) = split q( ), counts($server);
    is $dropped, 0, 'nothing was dropped';
};

done_testing;
