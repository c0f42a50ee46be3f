# sirius dev: where the application has called exit, which works as it does elsewhere
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;

my $SHOP = <<'SHOP';
package Shop;
use strict;
use warnings FATAL => qw(void);
sub plain    { exit }
sub status   { exit 3 }
sub in_eval  { eval { exit( 4 ) }; die 'it came back' }
sub if_so    { exit if shift; 'no' }
sub minus    { exit -1 }
sub choice   { my $one = shift; return $one ? exit : exit 2 }
sub by_other { require Other; Other::leave() }
sub own      { require Own; Own::leave() }
sub at_end   { eval 'END { exit 6 if $$ == $Shop::pid }'; $Shop::pid = $$; exit 5 }
sub child {
    my $pid = fork // die "fork: $!";
    exit 7 if !$pid;
    waitpid $pid, 0;
    return $? >> 8;
}
1;
SHOP

my $APP = <<'APP';
use FindBin;
use lib "$FindBin::Bin/lib";
use Shop;
sub {
    my ($name) = shift->{PATH_INFO} =~ m{/(\w+)};
    my $said = $name ? Shop->can($name)->(1) : 'hello';
    [ 200, [ 'Content-Type' => 'text/plain' ], [$said] ];
}
APP

my %FILES = (
    'lib/Shop.pm'    => $SHOP,
    'perl5/Other.pm' => "package Other;\nsub leave { exit 8 }\n1;\n",
    'lib/Own.pm'     => "package Own;\nuse subs 'exit';\nsub exit { 'its own' }\nsub leave { exit 9 }\n1;\n",
);

subtest 'in a request' => sub {
    my $lib = File::Temp->newdir( 'sirius-lib-XXXXXX', TMPDIR => 1 );
    spew( "$lib/Other.pm", delete $FILES{'perl5/Other.pm'} );
    my $env = { PERL5LIB => join q(:), "$lib", $ENV{PERL5LIB} // () };
    my $dev = Sirius::Test::Dev->start( $APP, { env => $env, files => \%FILES }, qw(--workers 1) );
    $dev->{may_crash} = 1;
    for my $case (
        [ plain    => 'at lib/Shop.pm line 4',                                  0 ],
        [ status   => 'at lib/Shop.pm line 5',                                  3 ],
        [ in_eval  => 'at lib/Shop.pm line 6',                                  4 ],
        [ if_so    => 'at lib/Shop.pm line 7',                                  0 ],
        [ minus    => 'at lib/Shop.pm line 8',                                  255 ],
        [ choice   => 'at lib/Shop.pm line 9',                                  0 ],
        [ by_other => "at $lib/Other.pm line 2, called at lib/Shop.pm line 10", 8 ],
        [ at_end   => 'at lib/Shop.pm line 12',                                 6 ],
        )
    {
        my ( $name, $place, $status ) = @$case;
        my $before = length $dev->log;
        my $said   = sub { substr $dev->log, $before };
        is $dev->ask("GET /$name")->status, 500, "$name: the response";
        ok until_true( 20, sub { $said->() =~ /worker \d+ exited with status $status\b/ } ), "status $status"
            or diag $said->();
        my @places = $said->() =~ /sirius dev: exit was called (.*)$/mg;
        is "@places", $place, 'the place';
    }
    my $before = length $dev->log;
    is $dev->ask('GET /child')->body, 7,         'a child of the application ends with its status';
    is $dev->ask('GET /own')->body,   'its own', 'an override of the application is called';
    unlike substr( $dev->log, $before ), qr/exit/,      'without a line';
    unlike $dev->log,                    qr/ambiguous/, 'nor a warning of perl';
    $dev->save( 'app.psgi', "BEGIN { *CORE::GLOBAL::exit = sub { die qq(exit \@_\\n) } }\n$APP" );
    ok $dev->answers( qr/^exit 3$/m, '/status' ), 'one for all code as well';
    $dev->save( 'app.psgi',
        "BEGIN { \$SIG{__WARN__} = sub { die qq(its own: \@_) } }\nuse warnings;\nmy \$x = 1 + undef;\n$APP"
    );
    ok $dev->answers(qr/its own: Use of uninitialized value/), 'a handler of warnings, too';
    $dev->stop;
};

subtest 'while it is loaded' => sub {
    my $dev  = Sirius::Test::Dev->start( $APP, { files => \%FILES }, qw(--workers 1) );
    my $shop = $dev->folder . '/lib/Shop.pm';
    $dev->save( 'app.psgi', "use lib '@{[ $dev->folder ]}/lib';\nuse Shop;\nShop::status();\n" );
    ok $dev->answers(qr/^generation \d+ exited with status 3: exit was called at \Q$shop\E line 5$/m),
        'a status'
        or diag $dev->log;
    like $dev->ask('GET /')->body, qr/^>    5  sub status   \{ exit 3 \}$/m, 'with the line';
    $dev->save( 'app.psgi', "print STDERR qq(last words\\n); exit;\n" );
    ok $dev->answers(
        qr/^generation \d+ called exit while it was loaded, at \S+app\.psgi line 1\n(?:.*\n)*>    1  print STDERR.*\n(?:.*\n)*It printed:\nlast words$/m
        ),
        'none, and what it has printed';
    $dev->save( 'app.psgi', "fork || exit 4;\nwait;\n$APP" );
    ok $dev->answers('hello'), 'children' or diag $dev->log;
    unlike $dev->log, qr/exit was called at \S+app\.psgi/, 'without a line';
    $dev->stop;
};

done_testing;
