use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Applications that do what PSGI forbids: the client gets an answer or a cut connection, the server goes on,
# and no worker dies by a signal. Each case is asked alone, with HEAD, over HTTP/1.0, and in front of a
# pipelined request.

my $server = start_server( <<'APP', qw(--workers 1) );
package Magic    { sub TIESCALAR { bless [] } sub FETCH {'tied'} sub STORE {} }
package TieArray { require Tie::Array; our @ISA = 'Tie::StdArray' }
package TieDies  { sub TIESCALAR { bless [] } sub FETCH { die "fetch\n" } sub STORE {} }
package Str      { use overload '""' => sub { $_[0][0] }, fallback => 1; sub new { bless [ $_[1] ] } }
package StrDies  { use overload '""' => sub { die "stringify\n" }, fallback => 1; sub new { bless [] } }
package Lines    { sub new { my $c = shift; bless [@_], $c } sub getline { shift @{ $_[0] } } sub close {} }
package Dies     { our @ISA = 'Lines'; sub getline { my $l = shift @{ $_[0] }; defined $l ? $l : die "getline\n" } }
package CloseDies { our @ISA = 'Lines'; sub close { die "close\n" } }
package Death    { sub new { bless {} } sub DESTROY { die "in DESTROY\n" } }
package main;
use utf8;
tie my $tied,  'Magic';
tie my $fatal, 'TieDies';
tie my @tied,  'TieArray';
@tied = ( 'ti', 'ed' );
my $wide = "\x{263a}";
sub streaming { my $code = shift; return sub { $code->( shift ) } }
our %case = (
    # what is returned
    ret_undef      => sub {undef},
    ret_empty      => sub { () },
    ret_list       => sub { ( 200, [], ['x'] ) },
    ret_string     => sub {'hello'},
    ret_number     => sub {42},
    ret_hash       => sub { {} },
    ret_array0     => sub { [] },
    ret_array1     => sub { [200] },
    ret_array2     => sub { [ 200, [] ] },
    ret_array4     => sub { [ 200, [], ['x'], 'more' ] },
    ret_object     => sub { Lines->new },
    ret_env        => sub { $_[0] },
    ret_code_code  => sub { sub { sub { } } },
    ret_blessed    => sub { bless [ 200, [], ['x'] ], 'Lines' },
    # status
    status_undef   => sub { [ undef, [], ['x'] ] },
    status_empty   => sub { [ '', [], ['x'] ] },
    status_word    => sub { [ 'abc', [], ['x'] ] },
    status_ref     => sub { [ [], [], ['x'] ] },
    status_100     => sub { [ 100, [], ['x'] ] },
    status_99      => sub { [ 99, [], ['x'] ] },
    status_negative => sub { [ -1, [], ['x'] ] },
    status_huge    => sub { [ '2' x 40, [], ['x'] ] },
    status_float   => sub { [ 200.7, [], ['x'] ] },
    status_line    => sub { [ "200 OK\r\nX: y", [], ['x'] ] },
    status_nan     => sub { [ 9**9**9 / 9**9**9, [], ['x'] ] },
    status_tied    => sub { [ $tied, [], ['x'] ] },
    status_fatal   => sub { [ $fatal, [], ['x'] ] },
    status_object  => sub { [ Str->new(200), [], ['x'] ] },
    status_wide    => sub { [ $wide, [], ['x'] ] },
    # headers
    headers_undef  => sub { [ 200, undef, ['x'] ] },
    headers_string => sub { [ 200, 'X: y', ['x'] ] },
    headers_hash   => sub { [ 200, { X => 'y' }, ['x'] ] },
    headers_odd    => sub { [ 200, ['X'], ['x'] ] },
    headers_odd3   => sub { [ 200, [ X => 1, 'Y' ], ['x'] ] },
    headers_code   => sub { [ 200, sub { }, ['x'] ] },
    headers_many   => sub { [ 200, [ map { ( "X-$_" => $_ ) } 1 .. 10_000 ], ['x'] ] },
    headers_large  => sub { [ 200, [ X => 'y' x 5_000_000 ], ['x'] ] },
    headers_tied   => sub { [ 200, \@tied, ['x'] ] },
    name_undef     => sub { [ 200, [ undef, 1 ], ['x'] ] },
    name_empty     => sub { [ 200, [ '' => 1 ], ['x'] ] },
    name_ref       => sub { [ 200, [ [] => 1 ], ['x'] ] },
    name_wide      => sub { [ 200, [ $wide => 1 ], ['x'] ] },
    name_crlf      => sub { [ 200, [ "X\r\nY" => 1 ], ['x'] ] },
    name_long      => sub { [ 200, [ 'X' x 100_000 => 1 ], ['x'] ] },
    value_undef    => sub { [ 200, [ X => undef ], ['x'] ] },
    value_ref      => sub { [ 200, [ X => [] ], ['x'] ] },
    value_code     => sub { [ 200, [ X => sub { } ], ['x'] ] },
    value_wide     => sub { [ 200, [ X => $wide ], ['x'] ] },
    value_cr       => sub { [ 200, [ X => "a\rb" ], ['x'] ] },
    value_lf       => sub { [ 200, [ X => "a\nb" ], ['x'] ] },
    value_nul      => sub { [ 200, [ X => "a\0b" ], ['x'] ] },
    value_tied     => sub { [ 200, [ X => $tied ], ['x'] ] },
    value_fatal    => sub { [ 200, [ X => $fatal ], ['x'] ] },
    value_object   => sub { [ 200, [ X => Str->new("a\r\nb") ], ['x'] ] },
    value_dies     => sub { [ 200, [ X => StrDies->new ], ['x'] ] },
    value_glob     => sub { [ 200, [ X => *STDOUT ], ['x'] ] },
    # body
    body_undef     => sub { [ 200, [], undef ] },
    body_string    => sub { [ 200, [], 'x' ] },
    body_number    => sub { [ 200, [], 5 ] },
    body_hash      => sub { [ 200, [], { a => 1 } ] },
    body_code      => sub { [ 200, [], sub { } ] },
    body_env       => sub { [ 200, [], $_[0] ] },
    body_self      => sub { my $r = [ 200, [], undef ]; $r->[2] = $r; $r },
    body_scalarref => sub { [ 200, [], \'x' ] },
    body_undefs    => sub { [ 200, [], [ undef, 'a', undef ] ] },
    body_refs      => sub { [ 200, [], [ [], {}, sub { } ] ] },
    body_wide      => sub { [ 200, [], [$wide] ] },
    body_tied      => sub { [ 200, [], [$tied] ] },
    body_tiedarray => sub { [ 200, [], \@tied ] },
    body_fatal     => sub { [ 200, [], [ 'a', $fatal ] ] },
    body_dies      => sub { [ 200, [], [ 'a', StrDies->new ] ] },
    body_object    => sub { [ 200, [], Death->new ] },
    body_class     => sub { [ 200, [], 'Lines' ] },
    body_closed    => sub { open my $fh, '<', '/dev/null'; close $fh; [ 200, [], $fh ] },
    body_write     => sub { open my $fh, '>', '/dev/null'; [ 200, [], $fh ] },
    body_dir       => sub { opendir my $dh, '/'; [ 200, [], $dh ] },
    body_dirfile   => sub { open my $fh, '<', '/'; [ 200, [], $fh ] },
    body_stdin     => sub { [ 200, [], \*STDIN ] },
    body_nohandle  => sub { [ 200, [], \*NEVER_OPENED ] },
    body_input     => sub { [ 200, [], $_[0]{'psgi.input'} ] },
    body_errors    => sub { [ 200, [], $_[0]{'psgi.errors'} ] },
    body_io        => sub { [ 200, [ 'Content-Length' => 0 ], $_[0]{'psgi.input'} ] },
    lines_die      => sub { [ 200, [], Dies->new ] },
    lines_die_late => sub { [ 200, [], Dies->new( 'a', 'b' ) ] },
    lines_close    => sub { [ 200, [], CloseDies->new('a') ] },
    lines_wide     => sub { [ 200, [], Lines->new( 'a', $wide ) ] },
    lines_refs     => sub { [ 200, [], Lines->new( [], {} ) ] },
    lines_tied     => sub { [ 200, [], Lines->new($tied) ] },
    lines_length   => sub { [ 200, [ 'Content-Length' => 3 ], Lines->new( 'a' x 10, 'b' x 10 ) ] },
    length_huge    => sub { [ 200, [ 'Content-Length' => '9' x 30 ], ['x'] ] },
    length_minus   => sub { [ 200, [ 'Content-Length' => -1 ], ['x'] ] },
    length_undef   => sub { [ 200, [ 'Content-Length' => undef ], ['x'] ] },
    # the responder
    twice          => sub { streaming( sub { $_[0]->( [ 200, [], ['a'] ] ); $_[0]->( [ 200, [], ['b'] ] ) } ) },
    twice_writer   => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $_[0]->( [ 200, [], ['b'] ] ); $w->write('a'); $w->close } ) },
    three_writers  => sub { streaming( sub { my @w = map { eval { $_[0]->( [ 200, [] ] ) } } 1 .. 3; $_ && eval { $_->write('x'); $_->close } for @w } ) },
    never          => sub { streaming( sub { } ) },
    no_args        => sub { streaming( sub { $_[0]->() } ) },
    args_undef     => sub { streaming( sub { $_[0]->(undef) } ) },
    args_string    => sub { streaming( sub { $_[0]->('x') } ) },
    args_list      => sub { streaming( sub { $_[0]->( 200, [], ['x'] ) } ) },
    args_env       => sub { my $env = shift; streaming( sub { $_[0]->($env) } ) },
    args_odd       => sub { streaming( sub { $_[0]->( [ 200, ['X'], ['x'] ] ) } ) },
    args_odd_eval  => sub { streaming( sub { eval { $_[0]->( [ 200, ['X'], ['x'] ] ) }; $_[0]->( [ 200, [], ['second try'] ] ) } ) },
    kept           => sub { streaming( sub { push our @kept, $_[0] } ) },
    kept_call      => sub { our @kept; eval { $_->( [ 200, [], ['late'] ] ) } for @kept; @kept = (); [ 200, [], ['x'] ] },
    kept_writer    => sub { streaming( sub { our $writer = $_[0]->( [ 200, [] ] ); $writer->write('a'); $writer->close } ) },
    kept_write     => sub { our $writer; eval { $writer->write('late'); $writer->close; $writer->close } if $writer; [ 200, [], ['x'] ] },
    write_closed   => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $w->close; $w->write('late'); $w->close } ) },
    write_undef    => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $w->write(undef); $w->write; $w->close } ) },
    write_ref      => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $w->write( [] ); $w->close } ) },
    write_wide     => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $w->write($wide); $w->close } ) },
    write_tied     => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $w->write($tied); $w->close } ) },
    write_fatal    => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $w->write($fatal); $w->close } ) },
    write_class    => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); eval { ref($w)->write('x') }; eval { ref($w)->can('write')->( bless( [], ref $w ), 'x' ) }; $w->close } ) },
    write_huge     => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); $w->write( 'x' x 10_000_000 ); $w->close } ) },
    writer_dies    => sub { streaming( sub { my $w = $_[0]->( [ 200, [] ] ); die "before a write\n" } ) },
    stream_dies    => sub { streaming( sub { die "in the stream\n" } ) },
    stream_recurse => sub { my $env = shift; streaming( sub { my $respond = shift; $respond->( sub { $_[0]->( [ 200, [], ['x'] ] ) } ) } ) },
    # ways out
    die_string     => sub { die "with a string\n" },
    die_object     => sub { die Death->new },
    die_ref        => sub { die { code => 5 } },
    die_overload   => sub { die StrDies->new },
    die_undef      => sub { die undef },
    die_empty      => sub { $@ = ''; die },
    die_wide       => sub { die "wide $wide\n" },
    die_lines      => sub { die join "\n", 1 .. 1000 },
    die_signal     => sub { local $SIG{__DIE__} = sub { die "in the handler: $_[0]" }; die "x\n" },
    last           => sub { no warnings; last },
    next           => sub { no warnings; next },
    redo           => sub { no warnings; last OUTSIDE },
    goto           => sub { no warnings; goto NOWHERE },
    recursion      => sub { no warnings; my $f; my $n = 0; $f = sub { $f->() if $n++ < 20_000 }; $f->(); [ 200, [], ['x'] ] },
    # the world around
    local_fs       => sub { $/ = undef; $\ = 'out'; $, = 'sep'; [ 200, [], [ 'a', 'b' ] ] },
    restore_fs     => sub { $/ = "\n"; $\ = undef; $, = undef; [ 200, [], ['x'] ] },
    select         => sub { select STDERR; $| = 1; [ 200, [], ['x'] ] },
    reset_env      => sub { undef %{ $_[0] }; [ 200, [], ['x'] ] },
    weird_env      => sub { $_[0] = undef; [ 200, [], ['x'] ] },
    env_keys       => sub { $_[0]{"key$_"} = [ $_[0] ] for 1 .. 1000; [ 200, [], ['x'] ] },
    delete_input   => sub { delete $_[0]{'psgi.input'}; delete $_[0]{'psgi.errors'}; [ 200, [], ['x'] ] },
    close_stdout   => sub { close STDOUT; open STDOUT, '>', '/dev/null'; [ 200, [], ['x'] ] },
    close_stdin    => sub { close STDIN; open STDIN, '<', '/dev/null'; [ 200, [], ['x'] ] },
    errors_print   => sub { $_[0]{'psgi.errors'}->print( "to the log\n", "$wide\n" ); [ 200, [], ['x'] ] },
    alarm          => sub { local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; eval { select undef, undef, undef, 3 }; alarm 0; [ 200, [], ['x'] ] },
    system         => sub { my $out = `echo sub`; my $s = system 'true'; [ 200, [], ["$out$s"] ] },
    fork           => sub { my $pid = fork; defined $pid or die; if ( !$pid ) { require POSIX; POSIX::_exit(0) } waitpid $pid, 0; [ 200, [], ["$?"] ] },
    sig            => sub { $SIG{PIPE} = 'DEFAULT'; $SIG{CHLD} = 'IGNORE'; $SIG{CHLD} = 'DEFAULT'; [ 200, [], ['x'] ] },
    chdir          => sub { chdir '/'; umask 0; [ 200, [], ['x'] ] },
    self_kill      => sub { $SIG{USR1} = sub { }; kill USR1 => $$; [ 200, [], ['x'] ] },
);
sub {
    my $env = shift;
    my $name = substr $env->{PATH_INFO}, 1;
    return [ 200, [ 'X-Path' => '/after' ], ['after'] ] if $name eq 'after';
    return [ 200, [], [ join ' ', sort keys %case ] ] if $name eq 'cases';
    return $case{$name}->($env);
}
APP

my @case = split / /, $server->ask('GET /cases')->body;
cmp_ok scalar @case, '>', 130, scalar(@case) . ' cases';

# What must be a 500, in any delivery
my %IS_500 = map { $_ => 1 }
    qw(ret_undef ret_empty ret_string ret_number ret_hash ret_array0 ret_array1 ret_object
    ret_env status_undef status_empty status_word status_ref status_100 status_99 status_negative status_huge
    status_line status_nan status_wide headers_undef headers_string headers_hash headers_odd headers_odd3
    headers_code name_undef name_empty name_ref name_wide name_crlf value_wide value_cr value_lf value_nul
    value_object value_dies value_fatal status_fatal body_undef body_string body_number body_hash body_code body_env
    body_wide body_dies body_fatal never no_args args_undef args_string args_env args_odd stream_dies die_string
    die_object die_ref die_overload die_undef die_empty die_wide die_lines die_signal last next redo goto
    length_huge length_minus);

# What a harmless oddity must not break
my %IS_200 = map { $_ => 1 } qw(status_object headers_many headers_large value_tied body_tied kept_call
    kept_write local_fs restore_fs select reset_env weird_env env_keys delete_input close_stdout close_stdin alarm
    system fork sig chdir self_kill recursion write_huge body_input);

for my $name (@case) {
    subtest $name => sub {
        my @got;
        for my $request (
            ["GET /$name"], ["HEAD /$name"],
            http1( 'each case', 'HTTP/1.0' ) ? ["GET /$name HTTP/1.0"] : (),
            [ "POST /$name", \'some content' ]
            )
        {
            my $answer = $server->ask(@$request);
            push @got, $answer->status;
            like $answer->status, qr/\A(?:\d\d\d|cut|eof|reset)\z/,
                "$request->[0]: an answer or a cut connection";
        }
        is "@got", join( ' ', (500) x @got ), 'is an error of the server' if $IS_500{$name};
        is "@got", join( ' ', (200) x @got ), 'is harmless'               if $IS_200{$name};
        my $client = $server->connect;
        $client->send( request("GET /$name") . request('GET /after') );
        my ( $first, $second ) = map { $_->status } $client->responses( 2, patience => 5 );
        my $kept = "$first $second";
        like $kept, qr/\A(?:\d\d\d (?:200|eof|reset)|(?:cut|eof|reset) \S+)\z/,
            'what is pipelined behind is itself or not there';
        is $server->ask('GET /after')->body, 'after', 'the server goes on';
    };
}

is scalar( $server->crashes ), 0, 'no worker died by a signal' or diag join "\n", $server->crashes;

subtest 'exit inside the application' => sub {
    my $exits = start_server( <<'APP', qw(--workers 1) );
sub {
    my $path = $_[0]{PATH_INFO};
    exit 0  if $path eq '/exit0';
    exit 3  if $path eq '/exit3';
    return sub { exit 0 } if $path eq '/stream';
    return sub { my $w = shift->( [ 200, [] ] ); $w->write('x'); exit 0 } if $path eq '/writer';
    return [ 200, [], [$$] ];
}
APP
    for my $path (qw(/exit0 /exit3 /stream)) {
        my $client = $exits->connect;
        my $pid    = $exits->ask('GET /')->body;
        is $client->ask("GET $path")->status, 500, "$path: 500";
        my $next = $exits->ask('GET /');
        is $next->status, 200,  'the next is served';
        isnt $next->body, $pid, 'by another worker';
    }
    is $exits->ask('GET /writer')->status, 'cut', 'in the middle of a body: cut';
    is $exits->ask('GET /')->status,       200,   'the next is served';
    like $exits->log, qr/exit/, 'it is logged';
    $exits->{may_crash} = 1;
    $exits->stop;
};

subtest 'An exception that is an object is logged as the text that it has' => sub {
    my $throws = start_server( <<'APP', qw(--workers 1) );
package Thrown { use overload '""' => sub { "no luck with $_[0][0]\n" }, fallback => 1 }
package Plain  { }
sub {
    my $path = $_[0]{PATH_INFO};
    die bless [$path], 'Thrown' if $path eq '/overloaded';
    die bless [], 'Plain' if $path eq '/plain';
    return sub { die bless [$path], 'Thrown' };
}
APP
    my %says = (
        '/overloaded' => qr{^no luck with /overloaded$},
        '/delayed'    => qr{^no luck with /delayed$},
        '/plain'      => qr{^Plain=ARRAY\(},
    );
    for my $path ( sort keys %says ) {
        is $throws->ask("GET $path")->status, 500, $path;
        my ($line) = $throws->log =~ /error: GET \Q$path\E from .*?: the application died: (.*)$/m;
        like $line || '', $says{$path}, 'what it says' or diag $throws->log;
    }
    $throws->stop;
};

$server->stop;
done_testing;
