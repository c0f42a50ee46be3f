use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;

# TERM, QUIT and INT, once and again, during a request

my $APP = <<'APP';
use Time::HiRes qw(sleep time);
sub {
    my $until = time + ( $_[0]{PATH_INFO} eq '/long' ? 600 : 0 );
    sleep 0.05 while time < $until && !-e "$ENV{STOP_DIR}/go";
    return [ 200, [], ['ok'] ];
};
APP

# One server for each case, all of them at once
my %END = (
    'TERM'           => [ 1, 'TERM' ],
    'QUIT'           => [ 1, 'QUIT' ],
    'TERM twice'     => [ 0, 'TERM', 'TERM' ],
    'QUIT twice'     => [ 0, 'QUIT', 'QUIT' ],
    'TERM and INT'   => [ 0, 'TERM', 'INT' ],
    'QUIT and TERM'  => [ 0, 'QUIT', 'TERM' ],
    'INT'            => [ 0, 'INT' ],
    'INT twice'      => [ 0, 'INT', 'INT' ],
    'four TERMs'     => [ 0, ('TERM') x 4 ],
    'HUP, then TERM' => [ 1, 'HUP', 'TERM' ],
);

sub spawn {
    my ( $name, $workers )  = @_;
    my ( $waits, @signals ) = @{ $END{$name} };
    my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $server = Sirius::Test::Server->spawn(
        app  => $APP,
        args => [ '--workers', $workers ],
        env  => { STOP_DIR => "$dir" }
    );
    return { server => $server, dir => $dir, signals => \@signals, waits => $waits };
}

sub begin {
    my $case   = shift;
    my $server = $case->{server};
    until_true( 30, sub { $server->address } ) or die 'not ready: ', $server->log;
    $case->{client} = $server->connect;
    $case->{client}->send( request('GET /long') );
    return;
}

for my $workers ( 0, 2 ) {
    subtest "--workers $workers: TERM and QUIT let a request finish, the second does not, nor does INT" =>
        sub {
        my %case = map { $_ => spawn( $_, $workers ) } keys %END;
        begin($_) for values %case;
        $_->{server}->wait_busy( 1, qr{/long} ) for values %case;
        for ( 1 .. 4 ) {
            for my $case ( values %case ) {
                my $name = shift @{ $case->{signals} } or next;
                $case->{server}->signal($name);
                $case->{stops} ||= $name ne 'HUP';
            }
            $_->{server}->wait_log(qr/stopping/) for grep { $_->{stops} } values %case;
        }
        spew( "$case{$_}{dir}/go", '' ) for grep { $case{$_}{waits} } keys %case;
        for my $name ( sort keys %case ) {
            my ( $server, $client, $waits ) = @{ $case{$name} }{qw(server client waits)};
            is $client->response->body, 'ok',     "$name: the answer is whole" if $waits;
            is $server->wait_exit,      'exit 0', "$name: exit 0";
            ok until_true( 10, sub { !$server->processes } ), 'no process is left';
            isnt $client->response->status, 200, 'before the request' if !$waits;
            is_deeply [ $server->crashes ], [], 'nothing crashed' if $waits;
            $server->kill_hard;
        }
        };
}

# A terminal signals all processes of the server, the supervisor its workers besides: some are on their way
# out by then
subtest 'signals to the whole group are no news' => sub {
    for my $signal ( qw(INT TERM QUIT) x 2 ) {
        my $server = start_server( $APP, qw(--workers 8) );
        is $server->ask('GET /')->status, 200, 'it serves';
        kill $signal => -$server->pid;
        my ($status) = $server->wait_exit(20);
        is $server->wait_exit, 'exit 0', "$signal: it ends";

        # After INT a worker has a second, which it may not get on a busy machine
        ( my $log = $server->log ) =~ s/^.*workers that did not finish in time were killed.*\n//mg;
        unlike $log, qr/\] (?:error|warn|info): |worker \d/, 'and no more is said than that it stops';
    }
};

done_testing;
