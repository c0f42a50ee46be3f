use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Spec ();
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Server;

# HUP always means new code, and loses nothing

my $dir = File::Temp->newdir( q(sirius-XXXXXX), TMPDIR => 1 );

sub write_file {
    my ( $name, $text ) = @_;
    rename spew( "$dir/$name.new", $text ), "$dir/$name" or die "$dir/$name: $!";
    return "$dir/$name";
}

sub version {
    my $number = shift;
    mkdir "$dir/lib";
    write_file( 'lib/My.pm', "package My; our \$VERSION = $number; 1;\n" );
    return;
}

my $app = write_file( 'app.psgi', <<'APP' );
use My;
sub {
    my $env = shift;
    select undef, undef, undef, $1 if $env->{PATH_INFO} =~ m{\A/sleep/([\d.]+)};
    return [ 200, [ 'X-Worker' => $$ ], ["version $My::VERSION"] ];
}
APP

my @plackup = (
    $^X,
    "-I$Sirius::Test::Server::ROOT/blib/lib",
    "-I$Sirius::Test::Server::ROOT/blib/arch",
    program('plackup')
);

my %way = (
    'sirius'            => {},
    'plackup -s Sirius' => { command => [ @plackup, qw(-s Sirius -E deployment) ] },
    'sirius -L Delayed' => { args    => [qw(-L Delayed)] },
);

for my $name ( sort keys %way ) {
    subtest $name => sub {
        my %option = %{ $way{$name} };
        version(1);
        my $server = Sirius::Test::Server->start(
            app => $app,
            %option,
            args => [ '-I', "$dir/lib", '--workers', 2, @{ $option{args} || [] } ],
        );
        is $server->ask('GET /')->body, 'version 1', 'the code of the start';
        my ($old) = $server->generations;
        my $kept = $server->connect;
        is $kept->ask('GET /')->body, 'version 1', 'also on a connection that is kept';
        my $long = $server->connect;
        $server->board;    # its reader is there before the request
        $long->send( request('GET /sleep/1.5') );
        $server->wait_busy( 1, qr{/sleep/1.5} );
        version(2);
        $server->signal('HUP');
        ok until_true( 10, sub { $server->ask('GET /')->body eq 'version 2' } ), 'new code after HUP';
        ok until_true( 10, sub { $kept->ask('GET /')->body eq 'version 2' } ),
            'on the kept connection as well';
        ok !$kept->is_closed, 'which nobody closed' if $kept->can('is_closed');
        is $long->response->body, 'version 1', 'a request under way is finished by the old code';
        ok until_true(
            10,
            sub {
                !grep { $_ == $old } $server->generations;
            }
            ),
            'the old generation ends';
        ok until_true( 10, sub { $server->generations == 1 } ), 'one is left';
        ok until_true( 10, sub { $server->workers == 2 } ),     'with two workers';
        like $server->log, qr/generation 2 is serving$/m, 'the log says so';
        is( () = $server->log =~ /listening/g, 1, 'it listens as before' );
        $server->stop;
    };
}

subtest 'code that does not load' => sub {
    version(1);
    my $server = Sirius::Test::Server->start( app => $app, args => [ '-I', "$dir/lib", '--workers', 2 ] );
    my $kept   = $server->connect;
    is $kept->ask('GET /')->body, 'version 1', 'before';
    until_true( 20, sub { $server->workers == 2 } );
    my @before = ( $server->generations, $server->workers );
    write_file( 'lib/My.pm', "package My; our \$VERSION = ; 1;\n" );
    $server->signal('HUP');
    ok $server->wait_log(
        qr/reload failed: generation 2 exited with status \d+; generation 1 keeps serving$/m, 10
        ),
        'the log says that it failed, and who goes on';
    is( () = $server->log =~ /syntax error/g, 1, 'the error of perl is printed once' );
    is $kept->ask('GET /')->body, 'version 1', 'the old code serves on the same connection';
    is_deeply [ $server->generations, $server->workers ], \@before, 'by the same processes';
    version(3);
    $server->signal('HUP');
    ok until_true( 10, sub { $kept->ask('GET /')->body eq 'version 3' } ), 'the next reload is a new attempt';
    $server->stop;
};

subtest 'workers that never get ready' => sub {
    my $delayed
        = write_file( 'delayed.psgi', "do '$dir/part.pl' or die \$@ || \$!; sub { [ 200, [], ['ok'] ] }\n" );
    write_file( 'part.pl', "1;\n" );
    my $server = Sirius::Test::Server->start( app => $delayed, args => [qw(-L Delayed --workers 1)] );
    is $server->ask('GET /')->status, 200, 'before';
    write_file( 'part.pl', "die qq(no luck\\n);\n" );
    $server->signal('HUP');
    ok $server->wait_log( qr/reload failed: generation 2 .*generation 1 keeps serving$/m, 10 ),
        'the reload fails';
    is( () = $server->log =~ /never became ready/g, 1, 'after one attempt' );
    is $server->ask('GET /')->status, 200, 'the old generation serves';
    $server->stop;
};

subtest 'new code does not load, while one of two workers could not start either' => sub {
    my $once = write_file( 'once.psgi', <<"APP" );
open my \$in, '>>', '$dir/loads' or die \$!;
die "once is enough\\n" if -s '$dir/loads';
syswrite \$in, 'x';
sub { [ 200, [], ['ok'] ] };
APP
    my $server = Sirius::Test::Server->start( app => $once, args => [qw(-L Delayed --workers 2)] );
    ok $server->wait_log( qr/never became ready/, 20 ), 'one serves';
    $server->signal('HUP');
    ok $server->wait_log( qr/reload failed: generation 2 .*generation 1 keeps serving$/m, 20 ),
        'the reload fails'
        or diag $server->log;
    is $server->ask('GET /')->status, 200, 'it serves on';
    $server->stop;
};

subtest 'many reloads' => sub {
    version(1);
    my $server = Sirius::Test::Server->start( app => $app, args => [ '-I', "$dir/lib", '--workers', 2 ] );
    my $client = $server->connect;
    $client->ask('GET /');
    my $settled = sub {
        until_true(
            10,
            sub {
                my ($last)
                    = $server->log =~ /.*(reload started|reload completed|now runs the installed code)/s;
                $server->generations == 1 && $server->workers == 2 && ( $last // '' ) =~ /installed/;
            }
        );
    };
    my ( %status, $before );
    for my $number ( 2 .. 6 ) {
        version($number);
        $server->signal('HUP') for 1 .. 3;    # two come while one is under way: one more reload
        ok until_true(
            20,
            sub {
                my $got = $client->ask('GET /');
                $status{ $got->status }++;
                $got->body eq "version $number";
            }
            ),
            "version $number"
            or diag $server->log;
        $settled->();
        $before ||= () = $server->descriptors( $server->pid );
    }
    ok $settled->(), 'one generation, two workers';
    is_deeply [ keys %status ], [200], 'one connection served through all of them';
    ok until_true( 5, sub { my @now = $server->descriptors( $server->pid ); @now <= $before } ),
        'no descriptor is left over';
    $server->stop;
};

subtest 'the generation is killed' => sub {
    linux_only('who adopts orphans');
    version(1);
    my $server = Sirius::Test::Server->start( app => $app, args => [ '-I', "$dir/lib", '--workers', 2 ] );
    $server->{may_crash} = 1;
    my $kept = $server->connect;
    $kept->ask('GET /');
    my @workers = $server->workers;
    kill KILL => $server->generations;
    is $kept->ask('GET /')->status, 200, 'its workers serve on';
    ok until_true(
        10,
        sub {
            $server->workers == 2 && !grep { kill 0 => $_ } @workers;
        }
        ),
        'until there are others';
    is $kept->ask('GET /')->status, 200, 'the connection has moved to one of them';
    kill KILL => $server->generations, $server->workers;
    is $server->ask('GET /')->status, 200, 'all killed at once: who connects meanwhile is served by the next';
    ok until_true( 10, sub { $server->workers == 2 } ), 'two workers again';
    $server->stop;
};

subtest 'the supervisor becomes a new program' => sub {
    my $root = $Sirius::Test::Server::ROOT;
    version(1);
    my $server = Sirius::Test::Server->start(
        app     => write_file( 'xs.psgi', "use Opcode; do '$app'" ),
        command => [
            $^X, ( map { '-I' . File::Spec->abs2rel("$root/$_") } qw(blib/lib blib/arch) ),
            "$root/bin/sirius"
        ],
        env  => { PERL5LIB => join ':', grep { !m{\bblib/} } split /:/, $ENV{PERL5LIB} || '' },
        args => [ '-I', "$dir/lib", qw(--workers 1 --chdir /) ],
    );
    my $proc  = sub { Sirius::Test::Server::slurp( '/proc/' . $server->pid . '/' . shift ) };
    my $title = qr/\Asirius: supervisor xs\.psgi/;
    like $proc->('cmdline'), $title,          'its title';
    like $proc->('maps'),    qr{/Opcode\.so}, 'it has loaded the application';
    $server->signal('HUP');
    ok until_true( 20, sub { $proc->('maps')    !~ m{/Opcode\.so} } ), 'and is now a program without it';
    ok until_true( 20, sub { $proc->('cmdline') =~ $title } ),         'with the same title';
    unlike $server->log, qr/old code/, 'relative folders of modules are found in another directory';
    is $server->ask('GET /')->body, 'version 1', 'it serves';
    $server->stop;
};

done_testing;
