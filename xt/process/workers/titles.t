use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::Test;

# What ps shows of each process

my $APP     = "sub { [ 200, [], ['ok'] ] }\n";
my $plackup = program('plackup');
my $ps      = program('ps');
my %way     = ( 'sirius' => {} );
$way{'plackup -s Sirius'} = { command => [ $^X, $plackup, qw(-s Sirius -E deployment) ] } if $plackup;

sub words {
    my $pid = shift;
    return `$ps -ww -o args= -p $pid` =~ s/\s+\z//r if $ps;
    return Sirius::Test::Server::slurp("/proc/$pid/cmdline") =~ s/\0+\z//r =~ tr/\0/ /r;
}

# "name: words" of the supervisor, the generation, each worker
sub shown {
    my $server = shift;
    return [
        map { Sirius::Test::Server::comm($_) . ': ' . words($_) } $server->pid, $server->generations,
        $server->workers
    ];
}

# A test: that is shown, sooner or later
sub shows {
    my ( $server, $name, @want ) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $like = sub {
        my $shown = shown($server);
        return @$shown == @want && !grep { $shown->[$_] !~ $want[$_] } 0 .. $#want;
    };
    return ok( until_true( 15, $like ), $name ) || diag explain shown($server);
}

sub reload {
    my $server  = shift;
    my ($old)   = $server->generations;
    my $program = Sirius::Test::Server::slurp( '/proc/' . $server->pid . '/auxv' );
    $server->signal('HUP');
    my $done = until_true( 30,
        sub { my @now = $server->generations; @now == 1 && $now[0] != $old && $server->workers == 2 } );
    return $done
        && until_true( 20,
        sub { Sirius::Test::Server::slurp( '/proc/' . $server->pid . '/auxv' ) ne $program } );
}

for my $way ( sort keys %way ) {
    subtest "$way: each process says what it is and what it serves" => sub {
        my $server = Sirius::Test::Server->start(
            app => $APP,
            %{ $way{$way} }, args => [qw(--workers 2)]
        );
        for my $generation ( 1, 2 ) {
            shows(
                $server,
                "generation $generation",
                qr/\Asirius: sirius: supervisor app\.psgi\z/,
                qr/\Asirius: gen $generation: sirius: generation $generation app\.psgi\z/,
                (qr/\Asirius: worker: sirius: worker app\.psgi\z/) x 2
            );
            reload($server) or fail('reload') if $generation == 1;
        }
        $server->stop;
    };

    subtest "$way --disable-proctitle: only the short names tell" => sub {
        linux_only('names of processes');
        my $server = Sirius::Test::Server->start(
            app => $APP,
            %{ $way{$way} }, args => [qw(--workers 2 --disable-proctitle)]
        );
        my $program = qr{(?:.* )?\S+/(?:sirius|plackup)\b};
        for my $generation ( 1, 2 ) {
            shows(
                $server,
                "generation $generation, and the program that was started",
                qr/\Asirius: $program/,
                qr/\Asirius: gen $generation: $program/,
                (qr/\Asirius: worker: $program/) x 2
            );
            reload($server) or fail('reload') if $generation == 1;
        }
        $server->stop;
    };
}

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

# An application that waits while it loads, after it has said who it is
my $WAITS = <<"APP";
if ( -e '$dir/hang' ) {
    open my \$out, '>', '$dir/new';
    print {\$out} \$\$;
    close \$out;
    rename '$dir/new', '$dir/loads';
    select undef, undef, undef, 0.05 while -e '$dir/hang';
}
APP

sub loading {
    my $pid;
    until_true( 20, sub { $pid = -e "$dir/loads" && Sirius::Test::Server::slurp("$dir/loads") } );
    my $shown = $pid ? Sirius::Test::Server::comm($pid) . ': ' . words($pid) : 'nothing loads';
    unlink "$dir/loads", "$dir/hang";
    return $shown;
}

subtest 'While the application loads' => sub {
    for my $case ( [ 'loading', 'loading' ], [ 'worker', 'worker', qw(-L Delayed) ] ) {
        my ( $name, $title, @args ) = @$case;
        spew("$dir/hang");
        my $server = Sirius::Test::Server->spawn( app => "$WAITS$APP", args => [ '--workers', 1, @args ] );
        is loading(), "sirius: $name: sirius: $title app.psgi", "@args at the start";
        ok $server->wait_log( qr/1 worker is serving$/m, 20 ), 'it serves' or diag $server->log;
        spew("$dir/hang");
        $server->signal('HUP');
        is loading(), "sirius: $name: sirius: $title app.psgi", "@args by a reload";
        ok $server->wait_log( qr/generation 2 is serving$/m, 20 ), 'it serves' or diag $server->log;
        $server->stop;
    }
};

subtest 'What is served' => sub {
    mkdir "$dir/here";
    spew( "$dir/here/app.psgi", $APP );
    spew( "$dir/here/conf",     "app = app.psgi\n" );
    my @run  = ( $^X, ( map {"-I$Sirius::Test::Server::ROOT/blib/$_"} qw(lib arch) ) );
    my @bin  = ( @run, "$Sirius::Test::Server::ROOT/bin/sirius" );
    my %case = (
        'no argument'      => [ 'app.psgi', @bin ],
        'a file of config' => [ 'app.psgi', @bin, '--config',  'conf' ],
        '-e'               => [ '-e',       @bin, '-e',        $APP ],
        '-a'               => [ 'app.psgi', @bin, '-a',        './app.psgi' ],
        '--workers 0'      => [ 'app.psgi', @bin, '--workers', 0 ],
    );
    $case{'plackup without an argument'} = [ 'app.psgi', @run, $plackup, qw(-s Sirius -E deployment) ]
        if $plackup;
    for my $name ( sort keys %case ) {
        my ( $want, @command ) = @{ $case{$name} };
        push @command, qw(--workers 1) if $name ne '--workers 0';
        my $pid = fork;
        if ( !$pid ) {
            chdir "$dir/here" or die $!;
            open STDERR, '>>', "$dir/log" or die $!;
            exec @command, qw(--listen), "$dir/here/sock";
        }
        my $role = $name eq '--workers 0' ? 'server' : 'supervisor';
        my $shown;
        ok until_true( 20, sub { $shown = words($pid); $shown eq "sirius: $role $want" } ),
            "$name: $role $want"
            or diag $shown, Sirius::Test::Server::slurp("$dir/log");
        kill TERM => $pid;
        waitpid $pid, 0;
    }
};

subtest q($0 is the application's) => sub {
    my $server = Sirius::Test::Server->start(
        app =>
            q(my $loaded = $0; sub { $0 = 'mine' if $_[0]{PATH_INFO} eq '/set'; [ 200, [], ["$loaded $0"] ] };),
        args => [ '--workers', 1 ],
    );
    my $program = qr{\S+/bin/sirius};
    for my $generation ( 1, 2 ) {
        like $server->ask('GET /')->body, qr{\A/\S+/app\.psgi $program\z},
            'its value, while it loads and later';
        my ($worker) = $server->workers;
        is words($worker), 'sirius: worker app.psgi', 'beside the title';
        like $server->ask('GET /set')->body, qr{ mine\z}, 'what it assigns';
        is words($worker), 'mine', 'is shown';
        reload_one($server) or fail('reload') if $generation == 1;
    }
    $server->stop;
};

sub reload_one {
    my $server = shift;
    $server->signal('HUP');
    return $server->wait_log( qr/generation 2 is serving$/m, 20 )
        && until_true( 20, sub { $server->generations == 1 && $server->workers == 1 } );
}

subtest 'The admin process' => sub {
    my $server = Sirius::Test::Server->start(
        app  => $APP,
        args => [ qw(--workers 1 --admin), "$dir/admin" ]
    );
    my $find = sub {
        grep { words($_) eq 'sirius: admin' } map { $_->{pid} }
            grep { $_->{group} == $server->pid } Sirius::Test::Server::all_processes();
    };
    ok until_true( 20, sub { $find->() == 1 } ), 'says so';
    $server->stop;
};

done_testing;
