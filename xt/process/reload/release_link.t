use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use File::Temp;
use Sirius::Test;

# Releases in folders of their own, and a link to the newest: a reload after the switch of the link serves
# that one

my $dir  = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $root = $Sirius::Test::Server::ROOT;
for my $number ( 1, 2, 3 ) {
    mkdir "$dir/$_" or die "$_: $!" for "release$number", "release$number/lib";
    spew( "$dir/release$number/lib/MyRelease.pm", "package MyRelease;\nsub number {$number}\n1;\n" );
    spew( "$dir/release$number/app.psgi",         <<'APP' );
use MyRelease;
sub { [ 200, [], [ MyRelease::number() ] ] };
APP
}

# In one step
sub switch {
    my $number = shift;
    symlink "release$number", "$dir/next" or die "symlink: $!";
    return rename "$dir/next", "$dir/current";
}

sub serves {
    my ( $server, $number ) = @_;
    return until_true( 30, sub { $server->ask('GET /')->body eq $number } );
}

my %how = (
    'in the folder of the link' => [ 'cd "$0/current" && exec "$@"', qw(-I lib app.psgi) ],
    'by absolute names'         => [
        'cd "$0" && exec "$@"', '-I', "$dir/current/lib", '--chdir',
        "$dir/current",         "$dir/current/app.psgi"
    ],
);

for my $name ( sort keys %how ) {
    subtest $name => sub {
        my ( $shell, @args ) = @{ $how{$name} };
        switch (1);
        my $server = Sirius::Test::Server->start(
            command => [ 'sh', '-c', $shell, "$dir", $^X, "$root/bin/sirius", '-E', 'deployment' ],
            args    => [ qw(--workers 1), @args ],
        );
        is $server->ask('GET /')->body, 1, 'the first';
        for my $number ( 2, 3 ) {
            switch ($number);
            $server->signal('HUP');
            ok serves( $server, $number ), "release $number after the switch and HUP" or diag $server->log;
        }
        $server->stop;
    };
}

# What the supervisor has to know as a new program is more than one variable can have
subtest 'a large environment' => sub {
    switch (1);
    my $server = Sirius::Test::Server->start(
        app  => "$dir/current/app.psgi",
        args => [ '--workers', 1, '-I', "$dir/current/lib" ],
        env  => { map { ( "LARGE_$_" => "\xc3\xa9" x 20_000 ) } 1 .. 3 },
    );
    for my $number ( 2, 3 ) {
        my $before = () = $server->log =~ /runs the installed code/g;
        switch ($number);
        $server->signal('HUP');
        ok until_true( 20, sub { $before < ( () = $server->log =~ /runs the installed code/g ) } ),
            "release $number, and the supervisor is a new program"
            or diag $server->log;
        is $server->ask('GET /')->body, $number, 'served';
    }
    $server->stop;
};

done_testing;
