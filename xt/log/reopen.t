use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius::Test;

# USR1 at any moment of a worker's start: all its lines are in the new file of the error log. The access log
# is the edge's

my $dir = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );

sub slurp { return Sirius::Test::Server::slurp(@_) }

# A worker sends itself USR1 when it makes its request loop: before what the sub gets is used, or after what
# it returns is made
sub app {
    my ( $sub, $before ) = @_;
    my $rotate = join q( ), "rename '$dir/error', '$dir/error.1';", 'kill USR1 => $$;';
    return <<"APP";
    {
        no warnings 'redefine';
        my \$own = \\&Sirius::Worker::RequestLoop::$sub;
        my \$times = 0;
        *Sirius::Worker::RequestLoop::$sub = sub {
            my \$first = ( '$sub' eq 'new' || caller eq 'Sirius::Worker' )
                && Carp::longmess('') !~ /Sirius::Edge::Group/ && !\$times++;
            if ( \$first && $before ) { $rotate }
            my \@made = \$own->(\@_);
            if ( \$first && !$before ) { $rotate }
            return \$made[0];
        };
    }
    sub { warn "warned\\n"; [ 200, [], [\$\$] ] };
APP
}

my %MOMENT = (
    'the loop is not made yet'                => [ new => 1 ],
    'the loop is made, but nobody has it yet' => [ new => 0 ],
);

for my $name ( sort keys %MOMENT ) {
    subtest "USR1 when $name" => sub {
        unlink glob "$dir/*";
        my $server = Sirius::Test::Server->start(
            app       => app( @{ $MOMENT{$name} } ),
            args      => [ '--workers', 1, '--access-log', "$dir/access", '--access-log-format', '%U %p %P' ],
            error_log => "$dir/error",
            ready     => 0,
        );
        ok until_true( 20, sub { -e "$dir/error.1" && $server->workers == 1 } ), 'a worker has got it';
        my ($address) = until_true(
            20,
            sub {
                ( slurp("$dir/error.1") . slurp("$dir/error") ) =~ m{listening on http://([^/]+)/}
                    ? $1
                    : undef;
            }
        );
        my $client = Sirius::Test::Client->new($address);
        is $client->ask("GET /$_")->status, 200, "request $_" for 1 .. 3;
        is $server->crashes,                0,   'nothing crashed';
        ok until_true( 10, sub { 3 == ( () = slurp("$dir/access") =~ /^\S*\/\d/mg ) } ),
            'its lines are in the new file'
            or diag slurp("$dir/access"), 'old: ', slurp("$dir/access.1"), slurp("$dir/error");
        is slurp("$dir/access.1"), '', 'none in the old one';
        is( () = slurp("$dir/error") =~ /warned$/mg, 3, 'and those of the error log in that' );
        $server->stop;
    };
}

subtest 'USR1 while the workers of a reload start, many times' => sub {
    unlink glob "$dir/*";
    my $server = Sirius::Test::Server->start(
        app  => "select undef, undef, undef, 0.3;\nsub { [ 200, [], [\$\$] ] }\n",
        args => [ '--workers', 8, '--access-log', "$dir/access", '--control', "$dir/control" ],
    );
    my $tries = 3;
    my @wrong;
    for my $try ( 1 .. $tries ) {
        until_true( 20, sub { $server->workers == 8 && $server->generations == 1 } );
        my ($before) = $server->generations;
        $server->signal('HUP');
        sleep 0.2 + 0.05 * $try;
        rename "$dir/access", "$dir/access.$try";
        $server->signal('USR1');
        until_true( 20,
            sub { my @now = $server->generations; @now == 1 && $now[0] != $before && $server->workers == 8 }
        );
        until_true( 5, sub { -e "$dir/access" } );
        my $rotated = sub {
            grep { ( readlink || '' ) =~ m{\Q$dir\E/access\.} } map { glob "/proc/$_/fd/*" } $server->workers,
                $server->edges;
        };
        until_true( 5, sub { !$rotated->() } );
        push @wrong, map {"try $try: $_"} $rotated->();
        next if $>;    # nobody but root may look into an edge
        for my $worker ( $server->edges ) {
            push @wrong, "try $try: process $worker has not the log but no"
                if !grep { ( readlink || '' ) eq "$dir/access" } glob "/proc/$worker/fd/*";
        }
    }
    is_deeply \@wrong, [], "$tries times: who writes it has the new file and no old one";
    is $server->ask('GET /')->status, 200, 'it serves';
    $server->stop;
};

done_testing;
