use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;
use Sirius::Test::Faults;

# The keys of session tickets turn over every twelve hours: a ticket lives through one turn, and what it was
# made with is forgotten after two

use constant HOUR => 3600;

my $faults = Sirius::Test::Faults->new;
my $server = $faults->start(
    app  => "sub { [ 200, [], ['ok'] ] }\n",
    args => [ qw(--workers 1 --tls-self-signed --listen), '127.0.0.1:0,tls' ],
);

# Of TLS 1.2, where a client has one ticket and may use it again. $file has the session, or will have it
sub connection {
    my $file    = shift;
    my @session = -s $file ? ( '-sess_in' => $file ) : ( '-sess_out' => $file );
    my $said    = in_child( sub {
        open STDIN, '<', '/dev/null' or die $!;
        my @words = ( qw(openssl s_client -tls1_2 -connect), $server->address, @session );
        open my $said, '-|', "exec @words 2>&1" or die $!;
        return join '', readline $said;
    } );
    return $said =~ /^(New|Reused), TLSv1\.2/m ? lc $1 : "none: $said";
}

# A new edge asks the keeper for keys, which then looks at the clock
sub hours {
    my $hours = shift;
    my ($before) = $server->edges;
    $faults->clock( $hours * HOUR );
    kill KILL => $before;
    return until_true(
        15,
        sub {
            my ($now) = $server->edges;
            $now && $now != $before && connection('/dev/null') eq 'new';
        }
    );
}

my $dir     = File::Temp->newdir;
my %session = map { $_ => "$dir/$_" } qw(11 24);
ok hours(11), 'after eleven hours';
is connection( $session{11} ), 'new',    'a session';
is connection( $session{11} ), 'reused', 'is resumed';
ok hours(13), 'two hours later the keys have turned over';
is connection( $session{11} ), 'reused', 'it is resumed with a key that makes no tickets any more';
ok hours(24.5), 'after another turn';
is connection( $session{24} ), 'new', 'a session';
ok hours(36.2), 'nearly twelve hours later';
is connection( $session{24} ), 'reused', 'is resumed: its key was one that came with the turn';
is connection( $session{11} ), 'new',    'an earlier one is not';
cmp_ok $faults->injected('clock'), '>', 0, 'the clock was wrong';

$faults->clear;
$server->{may_crash} = 1;
$server->stop;
done_testing;
