# sirius dev: code that does not load is shown, and the next save brings the application back
use strict;
use warnings;
use Cwd ();
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;

my $GOOD   = "sub { [ 200, [ 'Content-Type', 'text/plain' ], ['good'] ] }\n";
my $BROKEN = <<'APP';
use strict;
# <b>"a" & 'b'</b>
my $app = sub { [ 200, [], ['never'] ] };
$undeclared = 1;
$app;
APP

subtest 'broken from the start' => sub {
    my $dev  = Sirius::Test::Dev->start($BROKEN);
    my $file = $dev->folder . '/app.psgi';
    my $html = $dev->ask( 'GET /some/path?x=1', 'Accept: text/html,application/xhtml+xml,*/*;q=0.8' );
    is $html->status,                  500,                        'a browser: the status';
    is $html->header('Content-Type'),  'text/html; charset=utf-8', 'a page';
    is $html->header('Cache-Control'), 'no-store',                 'that is not kept';
    like $html->body, qr/Global symbol &quot;\$undeclared&quot; requires explicit package name/,
        'what perl says';
    like $html->body,   qr/\Q$file\E, line 4/,                            'where';
    like $html->body,   qr/&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/, 'a line before it, escaped';
    like $html->body,   qr{<tr class="at"><td>4</td><td>\$undeclared = 1;</td></tr>}, 'the line itself';
    unlike $html->body, qr/<b>/, 'nothing of it is markup';
    my $plain = $dev->ask( 'GET /', 'Accept: */*' );
    is $plain->status,                 500,                         'curl: the status';
    is $plain->header('Content-Type'), 'text/plain; charset=utf-8', 'plain text';
    like $plain->body, qr/^Global symbol "\$undeclared"/m, 'what perl says';
    like $plain->body, qr/^>    4  \$undeclared = 1;$/m,   'the line';
    like $plain->body, qr/^     2  # <b>"a" & 'b'<\/b>$/m, 'and those around';
    is $dev->ask( 'GET /', 'Accept: text/html;q=0, text/plain' )->header('Content-Type'),
        'text/plain; charset=utf-8',
        'who refuses HTML gets none';
    is $dev->ask('HEAD /')->status,                       500, 'HEAD';
    is $dev->ask( 'POST /', \( 'x' x 100_000 ) )->status, 500, 'POST';
    like $dev->log, qr/^The application does not load:\nGlobal symbol "\$undeclared"/m,
        'the terminal: what perl says';
    like $dev->log,   qr/^>    4  \$undeclared = 1;$/m, 'and the line';
    unlike $dev->log, qr/\e\[/,                         'without colours, as it is no terminal';
    $dev->save( 'app.psgi', $GOOD );
    ok $dev->answers('good'), 'the next good save';
    $dev->stop;
};

subtest 'broken later, in a module, and in different ways' => sub {
    my $dev = Sirius::Test::Dev->start( $GOOD, { files => { 'lib/Shop.pm' => "package Shop;\n1;\n" } } );
    my $in  = sub {"use lib '@{[ $dev->folder ]}/lib';\nuse Shop;\n$GOOD"};
    $dev->save( 'app.psgi', $in->() );
    for my $case (
        [   'a missing module' => "package Shop;\nuse No::Such::Module;\n1;\n" =>
                qr/Can't locate No\/Such\/Module\.pm/,
            2
        ],
        [ 'a syntax error' => "package Shop;\nsub x {\n1;\n"             => qr/Missing right curly/ ],
        [ 'die'            => "package Shop;\n\n\ndie qq(no luck\\n);\n" => qr/no luck/ ],
        [ 'an object'      => "package Shop;\ndie bless {}, 'Oops';\n"   => qr/Oops=HASH/ ],
        [ 'no true value'  => "package Shop;\n0;\n"                      => qr/did not return a true value/ ],
        [ 'UTF-8'          => "package Shop;\ndie qq(Gr\xc3\xbc\xc3\x9fe\\n);\n" => qr/Gr\xc3\xbc\xc3\x9fe/ ],
        )
    {
        my ( $name, $text, $want, $line ) = @$case;
        $dev->save( 'lib/Shop.pm', $text );
        ok $dev->answers($want), $name or diag $dev->ask('GET /')->body;
        like $dev->ask('GET /')->body, qr/^>    $line  /m, 'with its line' if $line;
    }
    $dev->save( 'lib/Shop.pm',
        "package Shop;\nuse Plack::Util;\nPlack::Util::load_class('No::Other');\n1;\n" );
    ok $dev->answers(qr/No\/Other\.pm .* at \S+Util\.pm line/), 'an error that code of others finds';
    like $dev->ask('GET /')->body, qr{^\Q@{[ $dev->folder ]}\E/app\.psgi:\n(?:.*\n)*>    2  use Shop;$}m,
        'with the line of the application that the message names';
    unlike $dev->ask( 'GET /', 'Accept: text/html' )->body, qr{<h2>[^<]*Util\.pm}, 'on the page, too';
    $dev->save( 'lib/Shop.pm', "package Shop;\n1;\n" );
    ok $dev->answers('good'), 'and good again';
    $dev->save( 'app.psgi', "'not an application';\n" );
    ok $dev->answers(
        qr/is not a code reference but 'not an application': does its file end with the application/),
        'a file that ends with something else';
    unlike $dev->ask('GET /')->body, qr/Lint/, 'which is no fault of a module of Plack';
    $dev->save( 'app.psgi', qq(die "\\n";\n) );
    ok $dev->answers(qr/\n\nunknown error\n/), 'an exception without text';
    $dev->save( 'app.psgi', "print STDERR qq(last words\\n); exit 3;\n" );
    ok $dev->answers(qr/exit(?:ed)?\b.*\b3\b.*last words/s),
        'exit while it is loaded, and what it had printed';
    $dev->save( 'app.psgi', "exit 0;\n" );
    ok $dev->answers(qr/called exit while it was loaded/), 'exit 0';
    $dev->{may_crash} = 1;
    $dev->save( 'app.psgi', "kill KILL => \$\$; sleep 10;\n" );
    ok $dev->answers(qr/was killed by signal 9 \(KILL\)/), 'a signal';
    $dev->save( 'app.psgi', $GOOD );
    ok $dev->answers('good'), 'and good again';
    unlink $dev->folder . '/app.psgi';
    ok $dev->answers(qr/app\.psgi: No such file or directory/), 'the file is deleted';
    $dev->save( 'app.psgi', $GOOD );
    ok $dev->answers('good'), 'and there again';
    $dev->stop;
};

subtest 'what may be meant' => sub {
    my $dev = Sirius::Test::Dev->start( "use Shop;\n$GOOD",
        { files => { 'lib/Shop.pm' => "package Shop;\n1;\n" } } );
    like $dev->ask('GET /')->body,   qr/Can't locate Shop\.pm/, 'a module in lib is not found';
    unlike $dev->ask('GET /')->body, qr/is there/,              'nothing of a lib in another directory';
    $dev->stop;
    my $here = Cwd::getcwd();
    my $top  = $dev->folder;
    chdir $top or die $!;
    $dev = Sirius::Test::Dev->start( "use Shop;\n$GOOD", { folder => $dev->{folder} } );
    like $dev->ask('GET /')->body, qr/The file lib\/Shop\.pm is there: start sirius dev with -I lib/,
        'but in this one';
    $dev->stop;
    $dev = Sirius::Test::Dev->start( $GOOD,
        { folder => $dev->{folder}, files => { 'bin/app.psgi' => $GOOD } } );
    unlink "$top/app.psgi" or die $!;
    ok $dev->answers(
        qr{app\.psgi: No such file or directory; the application of this directory is bin/app\.psgi: sirius dev bin/app\.psgi}
        ),
        'another application is there';
    $dev->stop;
    chdir $here or die $!;
};

subtest 'a save after a long time has as long to load' => sub {
    my $dev = Sirius::Test::Dev->start( $GOOD, qw(--load-timeout 2) );
    sleep 4;
    $dev->save( 'app.psgi', $GOOD =~ s/good/better/r );
    ok $dev->answers('better'), 'it is loaded' or diag $dev->log;
    unlike $dev->log, qr/was not ready within/, 'in its time';
    $dev->stop;
};

subtest 'after --load-timeout' => sub {
    my $dev = Sirius::Test::Dev->start( $GOOD, qw(--load-timeout 0.5) );
    $dev->save( 'app.psgi', "sleep 100;\n" );
    ok $dev->answers(qr/was not ready within 0\.5 s/), 'what hangs is told' or diag $dev->log;
    $dev->save( 'app.psgi', $GOOD );
    ok $dev->answers('good'), 'and good again';
    $dev->stop;
};

done_testing;
