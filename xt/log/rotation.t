use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);
use Sirius::Test;
use Sirius::Test::Load;

# --error-log: rotated under load, by the rename and the USR1 of any rotating program

my $dir   = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $STAMP = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;

# The path is the name of the request; what it writes comes in parts, from psgi.errors and from warn
my $APP = <<'APP';
sub {
    my $env = shift;
    my ( $name, $long ) = $env->{PATH_INFO} =~ m{\A/([^/]+)(/long)?};
    my $errors = $env->{'psgi.errors'};
    $errors->print("$name begins ");
    $errors->print( 'x' x 65_536 ) if $long;
    $errors->print("and ends\n");
    warn "$name has warned\n";
    return [ 200, [], [$$] ];
};
APP

sub rotate {
    my ( $server, $log, $number ) = @_;
    rename $log, "$log.$number" or die "rename: $!";
    $server->signal('USR1');
    return until_true( 20, sub { -e $log } );
}

# Where STDERR of its processes goes
sub logs {
    my $server = shift;
    my %file = map { my $to = readlink "/proc/$_/fd/2"; defined $to ? ( $to => 1 ) : () } $server->processes;
    return join ' ', sort keys %file;
}

# How often each line of the application is in those files; and what is no whole line
sub lines {
    my ( %seen, @wrong );
    for my $file (@_) {
        open my $in, '<', $file or die "$file: $!";
        while ( my $line = readline $in ) {
            my ( $level, $name, $x )
                = $line =~ /\A$STAMP \d+ (error|warn) (\d+-\d+) (?:begins (x*)and ends|has warned)\n\z/;
            if    ( $name && length( $x || '' ) =~ /\A(?:0|65536)\z/ ) { $seen{"$name $level"}++ }
            elsif ( $line !~ m{\A$STAMP \d+ (?:notice|info) [Ss]irius[:/] ?[^\n]+\n\z} ) {
                push @wrong, substr $line, 0, 200;
            }
        }
    }
    return ( \%seen, \@wrong );
}

for my $workers ( 4, 0 ) {
    subtest "--workers $workers, no line is lost or split while the log is rotated under load" => sub {
        my $log    = "$dir/log-$workers";
        my $server = Sirius::Test::Server->start(
            app       => $APP,
            args      => [ '--workers', $workers ],
            error_log => $log,
        );
        my $load = Sirius::Test::Load->start( $server,
            ask => sub { my ( $client, $n ) = @_; return "GET /$client-$n" . ( $n % 50 ? '' : '/long' ) }, );
        my ( $until, $rotations, $missing ) = ( time + 3, 0, 0 );
        while ( time < $until ) {
            rotate( $server, $log, ++$rotations ) or $missing++;
            $server->signal('HUP') if $workers && $rotations == 3;
            sleep 0.15;
        }
        is $missing, 0, "$rotations times a new log came";
        my $got = $load->stop;
        is_deeply [ keys %$got ], [200], "$got->{200} requests, all answered";
        until_true( 30, sub { $server->generations == 1 } ) if $workers;
        rotate( $server, $log, ++$rotations );
        ok until_true( 20, sub { logs($server) eq $log } ), 'no process has an old one' or diag logs($server);
        $server->stop;

        my ( $seen, $wrong ) = lines( glob "$log*" );
        is_deeply $wrong, [], 'none was split';
        is scalar( keys %$seen ), 2 * $got->{200}, 'none lost: each request has its two lines';
        is_deeply [ grep { $seen->{$_} != 1 } keys %$seen ], [], 'none twice';
    };
}

subtest 'without --error-log STDERR is the log, as it is' => sub {
    my $server = start_server( $APP, qw(--workers 2) );
    $server->ask('GET /1-1');
    ok $server->wait_log(qr/^1-1 begins and ends\n1-1 has warned$/m), 'nothing in front of a line';
    my $before = logs($server);
    $server->signal('USR1');
    is $server->ask('GET /2-2')->status, 200,     'USR1 does no harm';
    is logs($server),                    $before, 'it stays where it was';
    $server->stop;
};

subtest '--log-prefix puts time, process and level in front there as well' => sub {
    my $server = start_server( $APP, qw(--workers 1 --log-prefix) );
    my $worker = $server->ask('GET /1-1')->body;
    ok $server->wait_log(qr/^$STAMP $worker error 1-1 begins and ends\n$STAMP $worker warn 1-1 has warned$/m),
        'it does';
    $server->stop;
};

# A folder for the log; what is done to it before USR1, and the options beside it
my %GONE = ( 'the folder is gone' => [ sub { rename $_[0], "$_[0].gone" or die $! } ] );
$GONE{'only root may enter the folder'}
    = [ sub { chmod 0700, $_[0] or die $! }, '--user', 'nobody', '--control', "$dir/control" ]
    if !$>;
for my $option (qw(access-log error-log)) {
    for my $why ( sort keys %GONE ) {
        for my $workers ( 4, 0 ) {
            my ( $spoil, @args ) = @{ $GONE{$why} };
            next if @args && ( !$workers || $option eq 'access-log' );    # which root may open for an edge
            subtest "A --$option that cannot be opened anew, as $why: --workers $workers" => sub {
                chmod 0755, $dir;
                my $folder = "$dir/$option-$workers-" . scalar @args;
                mkdir $folder or die $!;
                my $server = Sirius::Test::Server->start(
                    app  => $APP,
                    args => [ '--workers', $workers, "--$option", "$folder/log", @args ],
                    $option eq 'error-log' ? ( ready => 0 ) : (),
                );
                my $log = sub {
                    join '', $server->log, map { Sirius::Test::Server::slurp("$_/log") } $folder,
                        "$folder.gone";
                };
                until_true( 20, sub { $log->() =~ /ready after \S+ s/ } );
                $spoil->($folder);
                for my $times ( 1, 2 ) {
                    $server->signal('USR1');
                    my $told = sub {
                        my @lines = $log->()
                            =~ /--$option \Q$folder\E\/log: [^;\n]*; logging continues in the file that was open before$/mg;
                        return scalar @lines;
                    };
                    ok until_true( 20, sub { $told->() >= $times } ), 'it is told';
                    sleep 0.5;
                    is $told->(), $times, 'once for each USR1' or diag $log->();
                }
                $server->stop;
            };
        }
    }
}

done_testing;
