use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;

# What ps shows of each process

my $APP     = "sub { [ 200, [], ['ok'] ] }\n";
my $plackup = program('plackup');
my $ps      = program('ps');
my %way     = ( 'sirius' => {} );
$way{'plackup -s Sirius'} = { command => [ $^X, $plackup, qw(-s Sirius -E deployment) ] } if $plackup;

sub name { return Sirius::Test::Server::slurp( '/proc/' . shift() . '/comm' ) =~ s/\n\z//r }

sub words {
    my $pid = shift;
    return `$ps -ww -o args= -p $pid` =~ s/\s+\z//r if $ps;
    return Sirius::Test::Server::slurp("/proc/$pid/cmdline") =~ s/\0+\z//r =~ tr/\0/ /r;
}

# "name: words" of the supervisor, the generation, each worker
sub shown {
    my $server = shift;
    return [ map { name($_) . ': ' . words($_) } $server->pid, $server->generations, $server->workers ];
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
    subtest "$way --enable-proctitle: each process says what it is and what it serves" => sub {
        my $server = Sirius::Test::Server->start(
            app => $APP,
            %{ $way{$way} }, args => [qw(--workers 2 --enable-proctitle)]
        );
        for my $generation ( 1, 2 ) {
            shows(
                $server,
                "generation $generation",
                qr/\Asirius: sirius: supervisor \(app\.psgi\)\z/,
                qr/\Asirius: gen $generation: sirius: generation $generation \(app\.psgi\)\z/,
                (qr/\Asirius: worker: sirius: worker \(app\.psgi\)\z/) x 2
            );
            reload($server) or fail('reload') if $generation == 1;
        }
        $server->stop;
    };

    subtest "$way: without it only the short names tell" => sub {
        my $server  = Sirius::Test::Server->start( app => $APP, %{ $way{$way} }, args => [qw(--workers 2)] );
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

done_testing;
