use strict;
use warnings;
use Fcntl      qw(FD_CLOEXEC F_GETFD F_GETFL O_NONBLOCK);
use File::Temp qw(tempdir);
use IO::Socket::UNIX;
use JSON::PP ();
use POSIX    ();
use Socket   qw(SOL_SOCKET SO_RCVBUF SO_SNDBUF);
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Control::Server;
use Sirius::OS::Loop;

# The control socket: requests in any form and pace, peers that are slow, gone or strangers

my $dir  = tempdir( CLEANUP => 1 );
my $json = JSON::PP->new->utf8->canonical;
my $last = 0;

my $ASK  = qq({"command":"status"}\n);
my $TOLD = qq({"ok":1,"request":{"command":"status","wait":0}}\n);

sub try_new {
    my $control = eval { Sirius::Control::Server->new(@_) };
    return $control || "$@";
}

sub new_path { return "$dir/" . ++$last }

sub client {
    my $path   = shift;
    my $socket = IO::Socket::UNIX->new( Peer => $path ) or die "$path: $!";
    $socket->blocking(0);
    return $socket;
}

# The same, and something is said
sub asker {
    my ( $path, $text ) = @_;
    my $socket = client($path);
    syswrite $socket, defined $text ? $text : $ASK;
    return $socket;
}

# What has come so far, and whether that is all
sub answer {
    my $socket = shift;
    my ( $text, $got ) = ('');
    1 while $got = sysread $socket, $text, 65_536, length $text;
    return $text . ( defined $got ? '' : '...' );
}

sub echo {
    my ( $request, $reply ) = @_;
    $reply->( { ok => 1, request => $request } );
}

sub ask {
    my ( $control, $path, $text ) = @_;
    my $socket = asker( $path, $text );
    $control->serve( \&echo );
    return answer($socket);
}

# The PIDs' exit statuses; the sub runs in a child
sub in_child {
    my $code = shift;
    my $pid  = fork;
    die "fork: $!"                 if !defined $pid;
    POSIX::_exit( $code->() || 0 ) if !$pid;
    waitpid $pid, 0;
    return $? >> 8;
}

subtest 'Its file' => sub {
    my $path    = new_path();
    my $mask    = umask 0;
    my $control = try_new($path);
    is umask($mask), 0, 'the umask is as it was';
    ok -S $path, 'a socket';
    is sprintf( '%04o', ( stat _ )[2] & 07777 ), '0600', 'for its owner alone, whatever the umask';
    is_deeply [ glob "$path*" ], [$path], 'nothing else is left';
    ok fcntl( $control->handle, F_GETFL, 0 ) & O_NONBLOCK, 'non-blocking';
    ok fcntl( $control->handle, F_GETFD, 0 ) & FD_CLOEXEC, 'closed on exec';

    is try_new($path), "sirius: --control $path: already in use by this server: it is given twice\n",
        'one that is alive is not replaced';
    is in_child( sub { undef $control; 0 } ), 0, 'a child destroys its copy';
    ok -S $path, 'the file stays';
    is ask( $control, $path, $ASK ), $TOLD, 'and works';

    rename $path, "$path.old" or die $!;
    my $other = try_new($path);
    $control->close;
    ok -S $path, 'the file of another is not removed';
    $other->close;
    ok !-e $path, 'its own is';
};

subtest 'In the way' => sub {
    my $path  = new_path();
    my $stale = IO::Socket::UNIX->new( Local => $path, Listen => 1 ) or die $!;
    close $stale;
    ok -S $path, 'a socket that was left behind';
    isa_ok try_new($path), 'Sirius::Control::Server', 'is replaced';
    ok !-e $path, 'removed with the object';
    open my $file, '>', $path or die $!;
    close $file;
    is try_new($path), "sirius: --control $path: the path exists and is not a socket\n",
        'a file is not touched';
    ok -f $path, 'it is there still';
    my $removed = in_child( sub {
        chdir $dir or die $!;
        my $relative = try_new('relative');
        chdir '/' or die $!;
        return 2 if !-S "$dir/relative";
        $relative->close;
        return -e "$dir/relative" ? 1 : 0;
    } );
    is $removed, 0, 'a relative path is found again after chdir';
    like try_new("$dir/none/x"), qr{\Asirius: --control \Q$dir\E/none/x: No such file}, 'no such directory';
    like try_new('@name'), qr/\Asirius: --control \@name: an abstract socket has no permissions/, 'abstract';
    my $long = "$dir/" . 'x' x 100;
    like try_new($long), qr/\Asirius: --control \Q$long\E: the path has \d+ bytes, the maximum is 99/,
        'too long';
};

my $path    = new_path();
my $control = try_new($path);

subtest 'Requests' => sub {
    my %case = (
        '{"command":"status"}'                          => '{"command":"status","wait":0}',
        '{"command":"reload","wait":true}'              => '{"command":"reload","wait":1}',
        '{"command":"stop","wait":false}'               => '{"command":"stop","wait":0}',
        '{"command":"workers","workers":12}'            => '{"command":"workers","wait":0,"workers":12}',
        '{"command":"workers","workers":"3","wait":1}'  => '{"command":"workers","wait":1,"workers":3}',
        " { \"command\" : \"status\",\t\"more\":[] }\r" => '{"command":"status","wait":0}',
    );
    for my $text ( sort keys %case ) {
        is ask( $control, $path, "$text\n" ), qq({"ok":1,"request":$case{$text}}\n), $text;
    }
    is ask( $control, $path, qq({"command":"status"}\n{"command":"stop"}\n) ),
        $TOLD, 'one for each connection';
};

subtest 'Bad requests' => sub {
    my $large = '{"command":"status","x":"' . 'x' x 65_510 . '"}';
    my @case  = (
        [ '',                                      'the request is not a JSON object' ],
        [ 'status',                                'the request is not a JSON object' ],
        [ '["status"]',                            'the request is not a JSON object' ],
        [ '{"command":"status"',                   'the request is not a JSON object' ],
        [ '[' x 60_000,                            'the request is not a JSON object' ],
        [ "\xff\xfe",                              'the request is not a JSON object' ],
        [ '{}',                                    'the request has no command' ],
        [ '{"command":{"status":1}}',              'the request has no command' ],
        [ '{"command":"fly"}',                     q(unknown command 'fly') ],
        [ '{"command":"workers"}',                 'workers is not a whole number above 0' ],
        [ '{"command":"workers","workers":0}',     'workers is not a whole number above 0' ],
        [ '{"command":"workers","workers":1.5}',   'workers is not a whole number above 0' ],
        [ '{"command":"workers","workers":"1\n"}', 'workers is not a whole number above 0' ],
        [ $large,                                  'the request has more than 65536 bytes' ],
        [ 'x' x 70_000,                            'the request has more than 65536 bytes' ],
    );
    for my $case (@case) {
        my ( $text, $error ) = @$case;
        my $name = length $text > 50 ? length($text) . ' bytes' : "'$text'";
        my $got  = ask( $control, $path, "$text\n" );
        is_deeply eval { $json->decode($got) } || $got, { ok => 0, error => $error }, $name;
    }
    chop( my $fits = $large );
    substr $fits, -2, 2, '"}';
    like ask( $control, $path, "$fits\n" ), qr/"ok":1/, length($fits) . ' bytes are allowed';
};

subtest 'In pieces' => sub {
    my $socket = client($path);
    my $calls  = 0;
    for my $byte ( split //, $ASK ) {
        is $calls, 0, 'not yet' if $byte eq "\n";
        syswrite $socket, $byte;
        $control->serve( sub { $calls++; echo(@_) } );
    }
    is $calls, 1, 'one call';
    like answer($socket), qr/\A\{"ok":1.*\}\n\z/, 'one answer';
};

subtest 'Several at once, answered in any order, once' => sub {
    my @socket = map { client($path) } 1 .. 3;
    my @reply;
    syswrite $socket[ $_ - 1 ], sprintf qq({"command":"workers","workers":%d}\n), $_ for 1 .. 3;
    $control->serve( sub { my ( $request, $reply ) = @_; $reply[ $request->{workers} ] = $reply } );
    $control->serve( sub { fail 'no second call' } );
    is_deeply [ map { answer($_) } @socket ], [ ('...') x 3 ], 'they wait';
    $reply[$_]->( { ok => 1, number => $_ } )      for 3, 1, 2;
    $reply[$_]->( { ok => 0, error  => 'twice' } ) for 3, 1, 2;
    is_deeply [ map { answer($_) } @socket ], [ map {qq({"number":$_,"ok":1}\n)} 1 .. 3 ], 'each has its own';
    is_deeply $control->{clients}, {}, 'nobody is left';
};

subtest 'A peer that is slow to read delays nobody' => sub {
    my $socket = asker($path);
    my $big    = 'x' x 3_000_000;
    $control->serve( sub { $_[1]->( { ok => 1, big => $big } ) } );
    is ask( $control, $path, $ASK ), $TOLD, 'another one is served meanwhile';
    my ( $text, $rounds ) = ( '', 0 );
    while ( $text !~ /\n\z/ && $rounds++ < 10_000 ) {
        my $got = answer($socket);
        $text .= $got =~ s/\.\.\.\z//r;
        $control->serve( sub { fail 'no second call' } );
    }
    is length $text, length(qq({"big":"$big","ok":1}\n)), 'it gets all of it';
    cmp_ok $rounds, '>', 1, 'in several pieces';
};

subtest 'A peer that has gone is forgotten' => sub {
    local $SIG{PIPE} = sub { fail 'no SIGPIPE' };
    my $late;
    my $mine = new_path();
    my $own  = try_new($mine);
    my $loop = Sirius::OS::Loop->new('TERM');
    $own->watch($loop);
    for my $case ( [ 'silent', '' ], [ 'in the middle', '{"comm' ] ) {
        my $socket = asker( $mine, $case->[1] );
        $own->serve( \&echo );
        is scalar( keys %{ $own->{clients} } ), 1, "$case->[0]: known";
        close $socket;
        $own->serve( \&echo );
        is scalar( keys %{ $own->{clients} } ), 0, "$case->[0]: forgotten";
    }
    my $socket = asker( $mine, qq({"command":"reload","wait":true}\n) );
    $own->serve( sub { $late = $_[1] } );
    close $socket;
    $own->serve( \&echo );
    is scalar( keys %{ $own->{clients} } ), 0, 'waiting: forgotten';
    $late->( { ok => 1 } );
    $socket = asker( $mine, qq({"command":"reload","wait":true}\n) );
    $own->serve( sub { $late = $_[1] } );
    close $socket;
    $late->( { ok => 1 } );
    is scalar( keys %{ $own->{clients} } ), 0, 'nor is a reply written that comes before its end was noticed';
    is_deeply [ keys %{ $loop->{watched} } ], [ fileno $own->handle ], 'each was unwatched';

    undef $own;
    ok !-e $mine, 'who keeps a reply does not keep the socket';
    $late->( { ok => 1 } );
    $loop->release;
};

subtest 'Who has closed only the own direction still gets the answer' => sub {
    my $late;
    my $socket = asker( $path, qq({"command":"reload","wait":true}\n) );
    shutdown $socket, 1;
    $control->serve( sub { $late = $_[1] } );
    $control->serve( \&echo );
    $late->( { ok => 1 } );
    is answer($socket), qq({"ok":1}\n), 'here it is';
};

subtest 'Silent connections do not lock others out' => sub {
    my @silent;
    for ( 1 .. 4 ) {
        push @silent, map { client($path) } 1 .. 25;
        $control->serve( \&echo );
    }
    is scalar( keys %{ $control->{clients} } ), 64, 'a bound';
    like ask( $control, $path, $ASK ), qr/"ok":1/, 'who asks is served';
    is answer( $silent[0] ),  '',    'the oldest was dropped';
    is answer( $silent[99] ), '...', 'the youngest was not';
    close $_ for @silent;
    $control->serve( \&echo );
};

subtest 'What the answer may be' => sub {
    my %case = (
        "caf\xc3\xa9" => "caf\xe9",
        "caf\xe9"     => "caf\xe9",
        "\x{263a}"    => "\x{263a}",
        "a\nb\e[1m"   => "a\nb\e[1m",
    );
    for my $text ( sort keys %case ) {
        my $socket = asker($path);
        $control->serve( sub { $_[1]->( { ok => 1, text => $text, object => $control } ) } );
        my $line = answer($socket);
        is $line =~ tr/\n//, 1, 'one line';
        is eval { $json->decode($line)->{text} }, $case{$text}, sprintf 'UTF-8 of %vx', $text;
    }
    my $socket = asker($path);
    local $SIG{__DIE__} = sub { fail 'the handler of the application is not called' };
    $control->serve( sub { die "no luck\n" } );
    is answer($socket), qq({"error":"no luck","ok":0}\n), 'an exception';
};

subtest 'Other users are refused, even when the file is open to them' => sub {
    plan skip_all => 'needs root' if $>;
    my $nobody = getpwnam 'nobody';
    plan skip_all => 'there is no nobody' if !$nobody;
    my $open = tempdir( CLEANUP => 1 );
    chmod 0755, $open;
    my $mine = "$open/sock";
    my $own  = try_new($mine);
    is in_child(
        sub { ( $<, $> ) = ( $nobody, $nobody ); return IO::Socket::UNIX->new( Peer => $mine ) ? 1 : 0 } ),
        0, 'the file keeps them out';
    chmod 0666, $mine;
    my $pid = fork;

    if ( !$pid ) {
        ( $<, $> ) = ( $nobody, $nobody );
        my $socket = IO::Socket::UNIX->new( Peer => $mine ) or POSIX::_exit(2);
        syswrite $socket, qq({"command":"stop"}\n);
        my $line = readline $socket;
        POSIX::_exit( $line ne qq({"error":"user $nobody may not control this server","ok":0}\n) );
    }
    my $until = time + 20;
    while ( !waitpid $pid, POSIX::WNOHANG() ) {
        $own->serve( sub { fail 'not called' } );
        sleep 0.01;
        last if time > $until;
    }
    is $?, 0, 'and so does the server';
};

subtest 'Publications' => sub {
    my $path    = new_path();
    my $control = try_new($path);
    my $item    = q({"channel":"a","http-stream":{"content":"x"}});
    my $post    = sub {
        my ( $body, @more ) = @_;
        my $length = length $body;
        return join "\r\n", 'POST /publish/ HTTP/1.1', "Content-Length: $length", @more, '', $body;
    };
    my @items;
    my $publish = sub {
        my ( $request, $reply ) = @_;
        push @items, @{ $request->{items} };
        return $reply->( { ok => 1, text => $request->{command} } );
    };
    my $socket = asker( $path, $post->(qq({"items":[$item,$item]})) );
    $control->serve($publish);
    like answer($socket), qr{\AHTTP/1[.]1 200 OK\r\n.*\r\n\r\npublish\n\z}s, 'an answer of HTTP';
    is @items, 2, 'both items';

    $socket = asker( $path, $post->( '', 'Expect: 100-continue' ) =~ s/Content-Length: \K0/20/r );
    $control->serve($publish) for 1 .. 2;
    is answer($socket), "HTTP/1.1 100 Continue\r\n\r\n...", 'who waits is told once to go on';
    syswrite $socket, q({"items":[);
    $control->serve($publish);
    syswrite $socket, ']}' . q( ) x 8;
    $control->serve($publish);
    like answer($socket), qr{\AHTTP/1[.]1 200 OK\r\n}, 'then the rest comes';

    $socket = asker( $path, $post->('x') );
    $control->serve($publish);
    like answer($socket), qr{\AHTTP/1[.]1 400 .*\nBody is not valid JSON[.]\n\z}s, 'an error';
    $socket = asker( $path, $post->('{"items":[]}') );
    $control->serve( sub { die "no luck\n" } );
    like answer($socket), qr{\AHTTP/1[.]1 500 .*\nno luck\n\z}s, 'an exception';
    @items  = ();
    $socket = asker( $path, $post->(qq({"items":[$item]})) );
    close $socket;
    $control->serve($publish);
    is @items, 1, 'who does not wait for the answer has published';
    $socket = asker( $path, substr $post->(qq({"items":[$item]})), 0, -1 );
    close $socket;
    $control->serve($publish);
    is @items, 1, 'but not who has not sent all';
};

subtest 'The user of the application may publish, and nothing else' => sub {
    plan skip_all => 'needs root' if $>;
    my $nobody = getpwnam 'nobody';
    plan skip_all => 'there is no nobody' if !$nobody;
    my $open = tempdir( CLEANUP => 1 );
    chmod 0755, $open;
    my $control = try_new( "$open/sock", $nobody );
    is sprintf( '%o', ( stat "$open/sock" )[2] & oct 777 ), '600', 'the mode is the same';
    my $pid = fork;

    if ( !$pid ) {
        ( $<, $> ) = ( $nobody, $nobody );
        my @said;
        for my $text ( $ASK, "POST /publish/ HTTP/1.1\r\nContent-Length: 12\r\n\r\n{\"items\":[]}" ) {
            my $socket = IO::Socket::UNIX->new( Peer => "$open/sock" ) or POSIX::_exit(2);
            syswrite $socket, $text;
            push @said, readline $socket;
        }
        POSIX::_exit( $said[0] ne qq({"error":"user $nobody may only publish","ok":0}\n)
                || $said[1] ne "HTTP/1.1 200 OK\r\n" );
    }
    my ( $until, $commands ) = ( time + 20, '' );
    while ( !waitpid $pid, POSIX::WNOHANG() ) {
        $control->serve( sub { $commands .= $_[0]{command}; $_[1]->( { ok => 1, text => 'x' } ) } );
        sleep 0.01;
        last if time > $until;
    }
    is $?,        0,         'the answers';
    is $commands, 'publish', 'and what was done';
};

subtest 'With Sirius::OS::Loop nothing is polled' => sub {
    my $mine = new_path();
    my $loop = Sirius::OS::Loop->new('TERM');
    my $own  = try_new($mine);
    $own->watch($loop);
    my $big = 'x' x 2_000_000;
    pipe my $read, my $write or die $!;
    pipe my $turn, my $next  or die $!;
    my $pid = fork;

    if ( !$pid ) {
        close $read;
        $loop->hand_over( {} );
        my $socket = IO::Socket::UNIX->new( Peer => $mine ) or POSIX::_exit(1);
        for my $piece ( '{"command":', qq("status"}\n), '' ) {
            sysread $turn, my $woken, 1;
            syswrite $socket, $piece;
        }
        my $text = '';
        sleep 0.001 while sysread $socket, $text, 65_536, length $text;
        POSIX::_exit( length $text == length(qq({"big":"$big","ok":1}\n)) ? 0 : 2 );
    }
    close $write;
    my ( $woken, $done, $until ) = ( 0, 0, time + 30 );
    while ( !$done && time < $until ) {
        $loop->wait(30);
        $woken++;
        $own->serve( sub { $_[1]->( { ok => 1, big => $big } ) } );
        syswrite $next, 'x';
        $done = 1 if $woken > 3 && !%{ $own->{clients} };
    }
    ok $done, 'woken for the connection, each piece of the request, and room for the answer';
    waitpid $pid, 0;
    is $?, 0, 'the answer is whole';
    cmp_ok $woken, '<', 10_000, 'and not without an end';
    is_deeply [ keys %{ $loop->{watched} } ], [ fileno $own->handle ], 'only the listener is watched';
    $loop->release;
};

subtest 'Across an exec' => sub {
    my $mine = new_path();
    my $text = qq({"command":"status","x":"caf\xc3\xa9"}\n);
    pipe my $read, my $write or die $!;
    my $pid = fork;
    if ( !$pid ) {
        alarm 30;
        my $own = Sirius::Control::Server->new($mine);
        syswrite $write, "listens\n";
        while ( 2 > keys %{ $own->{clients} } || !grep { length $_->{in} } values %{ $own->{clients} } ) {
            $own->serve( \&echo );
        }
        my $state = $own->state;
        $ENV{STATE} = Sirius::OS::Inherit->give( $state, $state->{fd} );
        syswrite $write, "state\n";
        exec $^X, ( map {"-I$_"} @INC ), '-e', <<'NEXT' or POSIX::_exit(1);
use Sirius::Control::Server;
use Sirius::OS::Loop;
my $loop = Sirius::OS::Loop->new('TERM');
my $own  = Sirius::Control::Server->restore( Sirius::OS::Inherit->take('STATE') );
$own->watch($loop);
my $watched = keys %{ $loop->{watched} };
while ( %{ $own->{clients} } ) {
    $loop->wait(30);
    $own->serve( sub { $_[1]->( { ok => 1, x => $watched } ) } );
}
NEXT
    }
    readline $read;
    my @socket = map { client($mine) } 1 .. 2;
    syswrite $socket[1], substr $text, 0, 30;
    readline $read;
    syswrite $socket[0], $text;
    syswrite $socket[1], substr $text, 30;
    waitpid $pid, 0;
    is $?,         0,                    'the next program goes on';
    is answer($_), qq({"ok":1,"x":3}\n), 'and serves who was there already' for @socket;
    ok !-e $mine, 'the file is removed by it';
};

$control->close;
ok !-e $path, 'the file is removed';

done_testing;
