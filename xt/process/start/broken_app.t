use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;

# An application that does not load, or not in the workers: said once, no flood of forks

# Starts it and waits for its end: how, and what it said
sub run_once {
    my ( $app, @args ) = @_;
    my $server = Sirius::Test::Server->spawn( app => $app, args => [ @args, qw(--host 127.0.0.1 --port 0) ] );
    my $how    = $server->wait_exit(20) || 'still running';
    return ( $how, $server->log );
}

subtest 'what cannot be loaded' => sub {
    my %broken = (
        'a syntax error'             => [ "sub { [ 200, [], [ \n",           qr/syntax error|Missing right/ ],
        'a die at load'              => [ "die qq(broken on purpose\\n);\n", qr/broken on purpose/ ],
        'a module that is not there' => [ "use Not::There::At::All;\nsub { }\n", qr{Not/There/At/All\.pm} ],
        'no code reference'          => [ "42;\n",                               qr/app|code|42/i ],
        'a false value'              => [ "0;\n",                                qr/\S/ ],
    );
    for my $name ( sort keys %broken ) {
        my ( $app, $says ) = @{ $broken{$name} };
        for my $workers ( 0, 2 ) {
            my ( $how, $log ) = run_once( $app, '--workers', $workers );
            is $how, 'exit 1', "$name: exit status 1";
            unlike $log, qr/next attempt|starting another/, 'at the first attempt';
            like $log,   $says,                             'and says why';
            my $count = () = $log =~ /$says/g if $name ne 'no code reference';
            unlike $log, qr/listening on/, 'without having listened';
        }
    }
};

subtest 'the error is said once' => sub {
    my ( undef, $log ) = run_once( "die qq(broken on purpose\\n);\n", '--workers', 4 );
    is scalar( () = $log =~ /broken on purpose/g ), 1, 'one line' or diag $log;
};

subtest 'a file that is not there' => sub {
    my $server = Sirius::Test::Server->spawn(
        command => [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius", '/nowhere/app.psgi' ],
        args    => [qw(--port 0)]
    );
    is $server->wait_exit(10), 'exit 1', 'fails';
    like $server->log, qr{/nowhere/app\.psgi}, 'and is named';
};

subtest 'a word that is no command' => sub {
    my $dir = File::Temp->newdir;
    spew( "$dir/shop", "sub { [ 200, [], ['ok'] ] }\n" );
    my %case = (
        'chekc app.psgi' => [ 'exit 2', qr/^sirius: unexpected argument 'app[.]psgi'/ ],
        'chekc'          => [
            'exit 1',
            qr/^sirius: chekc is neither a command \(dev, check, ctl, top, profile\) nor a module \(did you mean sirius check\?\): /
        ],
        "--chdir $dir" =>
            [ 'exit 1', qr{^sirius: \S+/app[.]psgi does not exist: name the file of the application} ],
        'No::Such' => [ 'exit 1', qr{^sirius: No/Such[.]pm does not exist} ],
    );
    for my $words ( sort keys %case ) {
        my ( $status, $says ) = @{ $case{$words} };
        my $server = Sirius::Test::Server->spawn(
            command => [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius", '--port', 0, split ' ', $words ] );
        is $server->wait_exit(10), $status, $words;
        like $server->log, qr/$says/m, 'one line';
    }
    my $server = Sirius::Test::Server->start(
        command => [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius", "$dir/shop" ],
        args    => [qw(--host 127.0.0.1 --port 0 --workers 1)]
    );
    is $server->ask('GET /')->body, 'ok', 'a file without a suffix is served if its name has a slash';
    $server->stop;
};

subtest 'an application that dies in every worker' => sub {
    my $server = Sirius::Test::Server->spawn(
        app  => "warn qq(loaded\\n); die qq(not here\\n);\n",
        args => [qw(-L Delayed --workers 4 --host 127.0.0.1 --port 0)]
    );
    $server->wait_log( qr/next attempt in 4 s/, 30 );
    is join( q( ), $server->log =~ /(^loaded$|\bin \d+ s$)/mg ), 'loaded in 1 s loaded in 2 s loaded in 4 s',
        'one attempt at a time, each after twice the pause';
    like $server->log, qr/not here/, 'it says why';
    $server->signal('TERM');
    ok $server->wait_exit(5), 'and can be stopped';
};

subtest 'a worker that dies after it was ready' => sub {
    my $server
        = start_server( "sub { kill KILL => \$\$ if \$_[0]{PATH_INFO} eq '/die'; [ 200, [], ['ok'] ] }\n",
        qw(--workers 1) );
    $server->{may_crash} = 1;
    $server->ask('GET /die') for 1 .. 3;
    is $server->ask('GET /')->status, 200, 'is replaced each time';
    $server->stop;
};

done_testing;
