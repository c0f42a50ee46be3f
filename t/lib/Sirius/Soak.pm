package Sirius::Soak;

# What dev/soak and its short forms in xt/process have in common: a server with all its features in use, a
# crowd of clients, and what must be true at the end. Each finding is a test of Test::More.

use strict;
use warnings;
use File::Temp ();
use JSON::PP   ();
use List::Util qw(sum);
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Soak::App;
use Sirius::Soak::Crowd;
use Sirius::Soak::Log;
use Sirius::Soak::Watch;
use Sirius::Test ();    # its signal handlers stop servers
use Sirius::Test::Client;
use Sirius::Test::Server;

use constant FILE_SIZE => 300_000;

# Options: args (of the server), clients, log_dir (a directory for the access log and temporary files),
# may_crash, preload (a library), seed
sub new {
    my ( $class, %option ) = @_;
    my $dir  = File::Temp->newdir( 'sirius-soak-XXXXXX', TMPDIR => 1 );
    my $self = bless { clients => 8, crowds => [], dir => $dir, log_dir => "$dir", seed => 1, %option },
        $class;
    for my $name (qw(answered tmp)) {
        my $parent = $name eq 'tmp' ? $self->{log_dir} : $dir;
        mkdir "$parent/$name" or die "$parent/$name: $!\n";
    }
    Sirius::Test::Server::spew( "$dir/file", substr Sirius::Soak::App->block, 0, FILE_SIZE );
    return $self;
}

# All processes and what they hold
sub look  { return shift->{watch}->look }
sub roles { return shift->{watch}->roles }

sub server { return shift->{server} }

sub start {
    my $self   = shift;
    my ($dir)  = $self->{dir};
    my $server = Sirius::Test::Server->start(
        app =>
            "use lib '$Sirius::Test::Server::ROOT/t/lib';\nuse Sirius::Soak::App;\nSirius::Soak::App->app('$dir/file');\n",
        env => {
            $self->{preload} ? ( LD_PRELOAD => $self->{preload} ) : (),

            # otherwise what glibc keeps for later varies by megabytes
            MALLOC_MMAP_THRESHOLD_ => 131_072,
            MALLOC_TRIM_THRESHOLD_ => 131_072,
        },
        may_crash => $self->{may_crash},
        args      => [
            qw(--listen 127.0.0.1:0 --max-body 10m), '--listen',
            "unix:$dir/socket",                      '--admin',
            "unix:$dir/admin",                       '--tmpdir',
            "$self->{log_dir}/tmp",                  '--access-log',
            "$self->{log_dir}/access",               '--access-log-format',
            Sirius::Soak::Log->FORMAT,               @{ $self->{args} },
        ],
    );
    $self->{server}    = $server;
    $self->{addresses} = [ $server->listeners ];
    $self->{watch}     = Sirius::Soak::Watch->new($server);
    return $server;
}

# Clients with all kinds of requests
sub crowd {
    my ( $self, %option ) = @_;
    my $tcp   = $self->{addresses}[0];
    my $crowd = Sirius::Soak::Crowd->start(
        addresses => [ ($tcp) x 3, $self->{addresses}[1] ],
        clients   => $self->{clients},
        dir       => "$self->{dir}/answered",
        file_size => FILE_SIZE,
        first     => 1 + $self->{clients} * @{ $self->{crowds} },
        seed      => $self->{seed},
        %option,
    );
    push @{ $self->{crowds} }, $crowd;
    return $crowd;
}

# What has gone wrong so far, for all clients
sub failures {
    return map { $_->failures } @{ shift->{crowds} };
}

# Enough of a list to see what is wrong
sub some {
    my ( $self, @all ) = @_;
    return @all > 10 ? ( @all[ 0 .. 9 ], '...' ) : @all;
}

# What the server reports of itself
sub status {
    my $self = shift;
    my $answer
        = Sirius::Test::Client->new("unix:$self->{dir}/admin")->ask( 'GET /status.json', 'Host: localhost' );
    die 'the admin port answers ' . $answer->status . "\n" if $answer->status ne '200';
    return JSON::PP::decode_json( $answer->body );
}

# True once no client is left, and the workers are those that should run
sub quiet {
    my $self   = shift;
    my $status = eval { $self->status } or return 0;
    my @roles  = values %{ { $self->{watch}->roles } };
    return 0 if $status->{connections}{open} || $status->{queued};
    return 0 if grep { $_->{state} ne 'idle' } @{ $status->{workers} };
    return 0 if @{ $status->{workers} } != $status->{wanted};
    return 1 == ( grep { $_ eq 'generation' } @roles ) && $status->{wanted} == grep { $_ eq 'worker' } @roles;
}

# A test: the server becomes quiet
sub wait_quiet {
    my $self = shift;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return 1
        if ok(
        Sirius::Test::Server::until_true( 60, sub { $self->quiet } ),
        'all connections are closed, no worker is missing'
        );
    diag explain eval { $self->status };
    return 0;
}

# Tests: the log agrees with the counters of the server, and nothing is left after the stop. %explained: PIDs
# of workers that were killed, whose last lines may be missing, and lines that the server could not write
sub stop {
    my ( $self, %explained ) = @_;
    my $totals = $self->status->{totals};
    my @left   = ( map { @{ $_->{deleted} } } values %{ $self->look } );
    is "@left", '', 'no temporary file is open';
    opendir my $tmp, "$self->{log_dir}/tmp" or die "$self->{log_dir}/tmp: $!\n";
    is join( q( ), grep { !/\A[.]/ } readdir $tmp ), '', 'none has a name';
    ok( Sirius::Test::Server::until_true( 20, sub { !$self->{watch}->zombies } ), 'no zombie' );
    $self->server->stop;
    return $self->_judge_log( $totals, %explained );
}

# A table of the kinds
sub table {
    my $self = shift;
    my %sum;
    for my $crowd ( @{ $self->{crowds} } ) {
        my %kind = $crowd->kinds;
        for my $kind ( keys %kind ) { $sum{$kind}[$_] += $kind{$kind}[$_] for 0, 1 }
    }
    $sum{$_}[2] = $sum{$_}[0] - $sum{$_}[1] for keys %sum;
    my @rows = map { [ $_, @{ $sum{$_} } ] } sort keys %sum;
    push @rows, [
        'all',
        map {
            my $column = $_;
            sum map { $_->[$column] } @rows
        } 1 .. 3
    ];
    note sprintf '%-32s %9s %9s %9s', 'kind', 'requests', 'right', 'failed';
    note sprintf '%-32s %9d %9d %9d', @$_ for @rows;
    return;
}

# If workers were killed or a disk was full, lines are missing; each of them must be explained
sub _judge_log {
    my ( $self, $totals, %killed ) = @_;
    my $log       = Sirius::Soak::Log->new->read( glob "$self->{log_dir}/access*" );
    my $responses = sum @{ $totals->{responses} }{ 2 .. 5 };
    my ( $missing, $unexplained ) = ( 0, 0 );
    for my $crowd ( @{ $self->{crowds} } ) {
        for my $number ( $crowd->numbers ) {
            my %missing = $log->missing( $number, $crowd->answered($number) );
            for my $pid ( keys %missing ) {
                $missing     += $missing{$pid};
                $unexplained += $missing{$pid} if !$killed{$pid};
            }
        }
    }
    note $log->lines
        . ' lines, '
        . $log->responses
        . " of them with a status; $responses responses, "
        . "$totals->{log_lost} lines lost; $missing answered requests without a line";
    cmp_ok scalar( my @odd = $log->odd ), '<=', $totals->{log_lost},
        'every line is one, but those that were lost half-way'
        or diag $self->some( $log->odd );
    is join( q( ), $self->some( $log->twice ) ), '', 'no request was answered twice';
    cmp_ok $unexplained, '<=', $totals->{log_lost},
        'a line for each answered request' . ( %killed ? ', but of workers that were killed' : '' );
    cmp_ok $log->responses, '<=', $responses, 'not more lines than the server has counted responses';
    return if %killed;
    return cmp_ok $log->responses, '>=', $responses - $totals->{log_lost},
        'and not less, but those that are lost';
}

1;
