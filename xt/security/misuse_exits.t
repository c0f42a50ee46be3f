use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;

# Every way out of application code, from every place where the server calls it: there is an answer, a cut or
# a closed connection, the next request is answered as itself, and only those that end the process end it.

my %WAY = (
    die      => 'die "with a string\n"',
    object   => 'die Death->new',
    overload => 'die StrDies->new',
    undef    => 'die undef',
    last     => 'last',
    next     => 'next',
    outside  => 'last OUTSIDE',
    goto     => 'goto NOWHERE',
    return   => 'return',
    alarm    => 'local $SIG{ALRM} = sub { die "alarm\n" }; kill ALRM => $$; 1 for 1 .. 100',
    handler  => 'local $SIG{__DIE__} = sub { die "handler: $_[0]" }; die "x\n"',
    evaled   => 'eval { die "caught\n" }; local $@ = "left over"; 1',
    fork     => 'my $pid = fork; die "child\n" if !$pid; waitpid $pid, 0; 1',
    child    =>
        'my $pid = fork; if ( !$pid ) { eval { $main::responder->( [ 200, [], ["child"] ] ) }; exit } waitpid $pid, 0; 1',
    again  => 'eval { $main::responder->( [ 200, [], ["again"] ] ) }; 1',
    writes => 'eval { $main::writer->write("more") }; eval { $main::writer->close }; 1',
    hints  =>
        'eval { $main::env->{"psgix.informational"}->( 103, [ Link => Shrinks->new( $main::env ) ] ) }; 1',
    scrub => 'undef %$main::env; 1',
    exit  => 'exit 3',
);

my %PLACE = (
    app       => 'WAY; [ 200, [], ["x"] ]',
    streaming => 'sub { my $r = our $responder = shift; WAY; $r->( [ 200, [], ["x"] ] ) }',
    answered  => 'sub { my $r = our $responder = shift; $r->( [ 200, [], ["x"] ] ); WAY; 1 }',
    writing   =>
        'sub { my $r = our $responder = shift; my $w = our $writer = $r->( [ 200, [] ] ); $w->write("x"); WAY; $w->close }',
    closed =>
        'sub { my $r = our $responder = shift; my $w = our $writer = $r->( [ 200, [] ] ); $w->close; WAY; 1 }',
    status => 'sub { our $responder = $_[0]; $_[0]->( [ Calls->new( sub { WAY; 200 } ), [], ["x"] ] ) }',
    header =>
        'sub { our $responder = $_[0]; $_[0]->( [ 200, [ X => Calls->new( sub { WAY; 1 } ) ], ["x"] ] ) }',
    element =>
        'sub { our $responder = $_[0]; $_[0]->( [ 200, [], [ "a", Calls->new( sub { WAY; 1 } ) ] ] ) }',
    fetch =>
        'tie my $t, "Fetches", sub { WAY; 1 }; sub { our $responder = $_[0]; $_[0]->( [ 200, [ X => $t ], ["x"] ] ) }',
    getline      => 'my $n = 0; [ 200, [], Reads->new( sub { return if $n++; WAY; "x" }, sub { } ) ]',
    close        => 'my $n = 0; [ 200, [], Reads->new( sub { $n++ ? undef : "x" }, sub { WAY; 1 } ) ]',
    destroy      => '$env->{"x.guard"} = Guard->new( sub { WAY; 1 } ); [ 200, [], ["x"] ]',
    body_destroy => '[ 200, [], Reads->new( sub { undef }, sub { } , Guard->new( sub { WAY; 1 } ) ) ]',
    cleanup      => 'push @{ $env->{"psgix.cleanup.handlers"} }, sub { WAY; 1 }; [ 200, [], ["x"] ]',
    sort         => 'my @x = sort { WAY; 0 } 1, 2; [ 200, [], ["x"] ]',
    warning      => 'local $SIG{__WARN__} = sub { WAY; 1 }; warn "x\n"; [ 200, [], ["x"] ]',
    signal       => 'local $SIG{USR2} = sub { WAY; 1 }; kill USR2 => $$; 1 for 1 .. 100; [ 200, [], ["x"] ]',
    write_tied   =>
        'sub { our $responder = $_[0]; my $w = our $writer = $_[0]->( [ 200, [] ] ); $w->write( Calls->new( sub { WAY; "x" } ) ); $w->close }',
);

my @case;
my $table = '';
for my $place ( sort keys %PLACE ) {
    for my $way ( sort keys %WAY ) {
        push @case, "$place/$way";
        $table .= "'/$place/$way' => sub { my \$env = shift; "
            . ( $PLACE{$place} =~ s/WAY/$WAY{$way}/r ) . " },\n";
    }
}

my $server = start_server( <<'APP' . "our %case = (\n$table);\n" . <<'END', qw(--workers 1) );
package Death    { sub new { bless {} } sub DESTROY { die "in DESTROY\n" } }
package StrDies  { use overload '""' => sub { die "stringify\n" }, fallback => 1; sub new { bless [] } }
package Shrinks  { use overload '""' => sub { %{ $_[0][0] } = (); 'gone' }, fallback => 1; sub new { bless [ $_[1] ] } }
package Calls    { use overload '""' => sub { $_[0][0]->() }, fallback => 1; sub new { bless [ $_[1] ] } }
package Fetches  { sub TIESCALAR { bless [ $_[1] ] } sub FETCH { $_[0][0]->() } sub STORE {} }
package Reads    { sub new { my $c = shift; bless [@_], $c } sub getline { $_[0][0]->() } sub close { $_[0][1]->() } }
package Guard    { sub new { bless [ $_[1] ] } sub DESTROY { local $@; $_[0][0]->() } }
package main;
use Scalar::Util ();
APP
sub {
    my $env = shift;
    Scalar::Util::weaken( our $env = $env );
    our ( $responder, $writer );
    return [ 200, [ 'X-Path' => '/after' ], ["after $$"] ] if $env->{PATH_INFO} eq '/after';
    ( $responder, $writer ) = ( sub { }, bless [], 'Nothing' );
    return $case{ $env->{PATH_INFO} }->($env);
}
END

# An exception in DESTROY whose text dies as well is the end of perl 5.16 itself
my $ends = $] < 5.018 ? qr{/exit\z|destroy/overload\z} : qr{/exit\z};

my ( $kept, $lost ) = ( 0, 0 );
for my $case (@case) {
    try( $case, $_ )
        for $case =~ $ends
        ? ( [], [ 'X-Twice: 1', 'X-Twice: 2' ] )
        : [];    # a field that comes twice makes another %env
}

sub try {
    my ( $case, $fields ) = @_;
    my $pid    = $server->ask('GET /after')->body;
    my $client = $server->connect;
    $client->send( request( "GET /$case", @$fields ) . request('GET /after') );
    my ( $answer, $next ) = $client->responses( 2, patience => 10 );
    my $got  = join ' ', $answer->status, $next->status;
    my $good = $got =~ /\A(?:[2-5]\d\d (?:200|eof|reset)|(?:cut|eof|reset) (?:eof|reset|cut))\z/;
    $good = 0 if $next->status eq '200' && $next->body !~ /\Aafter/;
    my $after = $server->ask('GET /after')->body;
    $good = 0 if $after !~ /\Aafter/ || ( $after ne $pid && $case !~ $ends );
    $after eq $pid ? $kept++ : $lost++;
    ok $good, join ' ', $case, @$fields or diag "$got, then '", $next->body, "'; '$pid', then '$after'";
    return;
}
is $server->crashes, 0, 'nothing crashed';
note "$kept went on in the same worker, $lost did not";
cmp_ok $lost, '>', 5, 'exit ends the worker';
$server->stop;

# What is freed on the way out, and what END blocks make then, has the memory of the temporaries of the
# request
subtest 'exit, and an END block of the application' => sub {
    my $ending = start_server( <<'APP', qw(--workers 1 --access-log - --access-log-format), '%m %U %>s' );
END { our @made = map { [ "b$_", { a => 1 } ] } 1 .. 5000 }
sub {
    my $env = shift;
    return [ 200, [], ['ok'] ] if $env->{PATH_INFO} eq '/';
    $env->{REQUEST_METHOD} = 'CHANGED';
    exit 3;
}
APP
    for my $fields ( [], [ 'X-Twice: 1', 'X-Twice: 2' ] ) {
        my $answer = $ending->ask( 'GET /exit', @$fields );
        is $answer->status, 500, join ' ', 'its client gets a 500', @$fields;
        ok until_true(
            10,
            sub {
                eval { $ending->connect->ask('GET /')->status eq '200' }
            }
            ),
            'another worker serves';
    }
    is scalar( () = $ending->log =~ /error: CHANGED \/exit .*: the application called exit/g ), 2,
        'the log says what it was';
    ok until_true( 5, sub { 2 == ( () = $ending->output =~ m{^CHANGED /exit 500$}mg ) } ),
        'so does the access log';
    is $ending->crashes, 0, 'nothing crashed';
    $ending->stop;
};
done_testing;
