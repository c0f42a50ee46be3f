use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Sirius::OS::Title;
use Sirius::Test;

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
        is in_child( sub { Sirius::OS::Title->set( {}, $role ); name() } ), $want, $role;
        is in_child( sub { Sirius::OS::Title->set( { proctitle => 1 }, $role ); name() } ), $want,
            'with a title';
    }
};

subtest '$0 and @ARGV stay as they are' => sub {
    for my $conf ( {}, { proctitle => 0 }, { proctitle => 1 } ) {
        my $words = sub { Sirius::OS::Title->set( $conf, 'worker' ); return join ' ', $0, @ARGV };
        is in_child($words), "@before", 'the same';
        next if $conf->{proctitle};
        my $line = content("/proc/$$/cmdline");
        is in_child( sub { Sirius::OS::Title->set( $conf, 'worker' ); content("/proc/$$/cmdline") } ), $line,
            'for ps as well';
    }
};

sub shown { return content("/proc/$$/cmdline") . '; ' . name() }

subtest 'A title' => sub {
    my $conf = { app => 'my.psgi', proctitle => 1 };
    is in_child( sub { Sirius::OS::Title->set( $conf, 'worker' ); shown() } ),
        'sirius: worker my.psgi; sirius: worker', 'for ps';
    my $twice = sub { Sirius::OS::Title->set( { proctitle => 1 }, $_ ) for qw(supervisor worker); shown() };
    is in_child($twice), 'sirius: worker title.t; sirius: worker',
        'the name of the program without one of the application';
    my $long = sub { Sirius::OS::Title->set( { app => 'x' x 5000, proctitle => 1 }, 'worker' ); shown() };
    like in_child($long), qr/\Asirius: worker x{50,240}; sirius: worker\z/, 'a long one is cut';
    my $set = sub { Sirius::OS::Title->set( $conf, 'worker' ); $0 = 'mine'; shown() };
    is in_child($set), 'mine; mine', 'an assignment to $0 goes over it';
};

subtest 'A title while an application loads' => sub {
    my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
    my $psgi = spew( "$dir/app.psgi",
        'package main; our @seen; push @seen, main::shown(), $0; $0 = q(mine); push @seen, main::shown(); sub {}'
    );
    require Plack::Util;
    my $load = sub {
        my $conf = shift;
        Sirius::OS::Title->set( $conf, 'loading' );
        Sirius::OS::Title->load( sub { Plack::Util::load_psgi($psgi) } );
        no warnings 'once';
        return join ' | ', @main::seen, shown(), $0;
    };
    my $title = 'sirius: loading my.psgi; sirius: loading';
    is in_child( sub { $load->( { app => 'my.psgi', proctitle => 1 } ) } ),
        "$title | $psgi | mine; mine | $title | $0", 'all the time, but for what it assigns';
    is in_child( sub {
        eval {
            Sirius::OS::Title->load( sub { die "why\n" } );
        };
        $@;
        } ),
        "why\n", 'what it dies of';
};

done_testing;
