use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;
use Sirius::Test;
use Sirius::Title;

my @before = ( $0, @ARGV );

sub content { return Sirius::Test::Server::slurp(shift) =~ s/[\s\0]+\z//r }

sub name { return content("/proc/$$/comm") }

subtest 'The short name' => sub {
    for my $case (
        [ 'supervisor',         'sirius' ],
        [ 'generation 2',       'sirius: gen 2' ],
        [ 'generation 1234567', 'sirius: gen 123' ],
        [ 'worker',             'sirius: worker' ],
        )
    {
        my ( $role, $want ) = @$case;
        is in_child( sub { Sirius::Title->set( {},                 $role ); name() } ), $want, $role;
        is in_child( sub { Sirius::Title->set( { proctitle => 1 }, $role ); name() } ), $want, 'with a title';
    }
};

# Pain 40
subtest '$0 and @ARGV stay as they are without --enable-proctitle' => sub {
    for my $conf ( {}, { proctitle => 0 } ) {
        my $words = sub { Sirius::Title->set( $conf, 'worker' ); return join ' ', $0, @ARGV };
        is in_child($words), "@before", 'the same';
        my $line = content("/proc/$$/cmdline");
        is in_child( sub { Sirius::Title->set( $conf, 'worker' ); content("/proc/$$/cmdline") } ), $line,
            'for ps as well';
    }
};

subtest 'A title' => sub {
    my $conf = { app => 'my.psgi', proctitle => 1 };
    my $line = sub { Sirius::Title->set( $conf, 'worker' ); content("/proc/$$/cmdline") };
    like in_child($line), qr/\Asirius: worker \(my\.psgi/, 'for ps';
    is in_child( sub { Sirius::Title->set( $conf, 'worker' ); $0 } ), 'sirius: worker (my.psgi)', 'in $0';
    my $twice = sub { Sirius::Title->set( { proctitle => 1 }, $_ ) for qw(supervisor worker); $0 };
    is in_child($twice), 'sirius: worker (title.t)', 'the name of the program without one of the application';
};

done_testing;
