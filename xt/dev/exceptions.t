# sirius dev: exceptions of requests, for browsers, other programs and the terminal
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;

my $APP = <<'APP';
use FindBin;
use lib "$FindBin::Bin/lib";
use Shop;
sub {
    my $env  = shift;
    my $path = $env->{PATH_INFO};
    return sub { shift; Shop::find($path) } if $path =~ m{/delayed};
    if ( $path eq '/begun' ) {
        return sub { my $w = shift->( [ 200, [ 'Content-Type' => 'text/plain' ] ] ); $w->write('begun'); die "too late\n" };
    }
    return Shop::find($path);
};
APP

my $SHOP = <<'SHOP';
package Shop;
use strict;
use warnings;
use Carp;
use List::Util qw(first);

sub find {
    my $path = shift;
    eval { die "caught\n" };
    my $found = first { price($_) } $path;
    return [ 200, [ 'Content-Type' => 'text/plain' ], ["found $found"] ];
}

sub price {
    my $path = shift;
    confess 'confessed' if $path eq '/confess';
    die bless { price => [ 1, 2 ] }, 'Oops' if $path eq '/object';
    die bless { price => 3 }, 'Shop::Error' if $path eq '/text';
    die { price => 3 } if $path eq '/hash';
    die "<script>\e[31m\0\n" if $path eq '/hostile';
    if ( $path eq '/caught' ) { eval { die "first\n" }; eval { no_price() }; return 1 }
    no_price();
}

sub no_price { die 'no price' }

package Shop::Error;
use overload '""' => sub { "an error with $_[0]{price}" };
1;
SHOP

my $dev = Sirius::Test::Dev->start(
    $APP,
    { files => { 'lib/Shop.pm' => $SHOP }, env => { EDITOR => '/usr/bin/code -w', VISUAL => 'vi' } },
    qw(--workers 1)
);
my $folder = $dev->folder;

subtest 'a page' => sub {
    my $html = $dev->ask(
        'POST /x?q=%3Cb%3E&token=abc',
        'Accept: text/html',
        'Content-Type: application/x-www-form-urlencoded',
        'Cookie: sid=1',
        'X-Evil: <i>', \'name=%3Cu%3E&password=geheim'
    );
    is $html->status,                  500,                        'the status';
    is $html->header('Content-Type'),  'text/html; charset=utf-8', 'for a browser';
    is $html->header('Cache-Control'), 'no-store',                 'that is not kept';
    my $body = $html->body;
    like $body, qr/no price at \S+Shop\.pm line 25\./,          'what perl says';
    like $body, qr{<tr class="at"><td>25</td><td>sub no_price}, 'the line';
    like $body, qr/die &quot;&lt;script&gt;/,                   'those around, escaped';
    like $body,
        qr{href="vscode://file\Q$folder\E/lib/Shop\.pm:25">lib/Shop\.pm:25</a> <span class="soft">in Shop::no_price},
        'with a link to the editor';
    like $body,
        qr{lib/Shop\.pm:22</a> <span class="soft">in Shop::price.*app\.psgi:11</a> <span class="soft">in __ANON__}s,
        'and where that was called';
    like $body, qr{<summary>2 calls in Plack</summary>}, 'calls of others are folded';
    unlike $body =~ s{<pre>[^<]*</pre>}{}gr, qr/Sirius::|Plack::/, 'with none of the server';
    my @pages = $body =~ /<title/gi;
    is @pages, 1, 'once';
    like $body,   qr{<dt>q</dt><dd>&lt;b&gt;</dd>},      'what was asked for';
    like $body,   qr{<dt>name</dt><dd>&lt;u&gt;</dd>},   'the form';
    like $body,   qr{<dt>x-evil</dt><dd>&lt;i&gt;</dd>}, 'and the fields';
    unlike $body, qr/geheim|abc|sid=/,                   'without secrets';
    unlike $body, qr/<[bui]>/,                           'nothing of it is markup';
    ok $dev->wait_log(qr{^Exception in POST /x\?q=%3Cb%3E&token=\[hidden\]:\nno price at}m),
        'the terminal: the request'
        or diag $dev->log;
    like $dev->log, qr{^lib/Shop\.pm:25 in Shop::no_price\n(?: +\d+ .*\n)+>   25  sub no_price}m, 'the place';
    like $dev->log,   qr{^\(2 calls in Plack\)$}m, 'those of others folded';
    unlike $dev->log, qr/\e\[/,                    'without colours, as it is no terminal';
};

subtest 'what is thrown' => sub {
    for my $case (
        [ object  => qr/\AException of Oops in GET .*"price" => \[.*'Oops' \)/s ],
        [ text    => qr/\AException of Shop::Error .*\nan error with 3\n/ ],
        [ hash    => qr/\AException of HASH .*"price" => 3/s ],
        [ confess => qr/confessed at .*\n\tShop::price\(.*\n(?:.*\n)*?\t\(\d+ calls in code of others\)\n/ ],
        [ hostile => qr/\A.*:\n<script>\\x1b\[31m\\x00\n/ ],
        [ delayed => qr/no price.*\n\n(?:.*\n)*app\.psgi:7 in __ANON__/ ],
        )
    {
        my ( $path, $want ) = @$case;
        my $plain = $dev->ask("GET /$path");
        is $plain->status,                 500,                         "$path: the status";
        is $plain->header('Content-Type'), 'text/plain; charset=utf-8', 'as text';
        like $plain->body,   $want,             'what it is';
        unlike $plain->body, qr/^lib.*caught/m, 'not what was caught';
    }
    my $html = $dev->ask( 'GET /hostile', 'Accept: text/html' )->body;
    like $html, qr/&lt;script&gt;&#x241b;\[31m&#x2400;/, 'hostile text in a page';
    is $dev->ask('GET /caught')->status, 200, 'the application catches its own';
    unlike $dev->log,                     qr/GET \/caught:/, 'which is no news';
    unlike $dev->ask('GET /begun')->body, qr/too late/,      'too late for a page';
    ok $dev->wait_log(qr{^Exception in GET /begun:\ntoo late\n}m), 'the terminal has it';
};
$dev->stop;

subtest 'a framework that answers itself' => sub {
    my $own = Sirius::Test::Dev->start( <<'APP', '--workers', 1 );
sub first { die "in the model\n" }
sub { my $env = shift; eval { first() }; return [ $env->{PATH_INFO} eq '/' ? 500 : 404, [ 'Content-Type' => 'text/plain' ], ['its own page'] ] };
APP
    is $own->ask('GET /')->body, 'its own page', 'the response stays';
    ok $own->wait_log(
        qr{^Exception before the status 500 in GET /:\nin the model\n\napp\.psgi:1 in first\n}m),
        'the terminal has the place'
        or diag $own->log;
    $own->ask('GET /x');
    ok $own->wait_log(qr{/x 404}), 'another status';
    unlike $own->log, qr{GET /x:}, 'is no exception';
    $own->save( 'app.psgi', <<'APP' );
package Oops { use overload '""' => sub { $said++; 'never' }, fallback => 1; sub DESTROY { $gone++ } our ( $said, $gone ) }
sub first { die shift }
sub { eval { first( $_[0]{PATH_INFO} eq '/hash' ? { code => 1 } : bless {}, 'Oops' ) }; return [ 500, [ 'Content-Type' => 'text/plain' ], [ join q( ), map { $_ // 0 } $Oops::gone, $Oops::said ] ] };
APP
    ok $own->answers( '1 0', '/object' ), 'an object is neither kept nor asked for its text'
        or diag $own->log;
    $own->ask('GET /hash');

    for my $class (qw(HASH Oops)) {
        ok $own->wait_log(
            qr{^Exception of $class before the status 500 in GET /\w+:\nit was gone .*\n\napp\.psgi:2 in first\n}m
            ), "what is thrown is a $class: the terminal has the place"
            or diag $own->log;
    }
    $own->save( 'app.psgi',
        "use Plack::Builder;\nbuilder { enable 'StackTrace'; sub { die 'wrapped' } };\n" );
    ok $own->answers(qr/wrapped/), 'an application that has StackTrace already';
    my @pages = $own->ask( 'GET /', 'Accept: text/html' )->body =~ /<title/gi;
    is @pages, 1, 'one page';
    $own->stop;
};

subtest 'responses that are none' => sub {
    my $own = Sirius::Test::Dev->start( "sub { return }\n", '--workers', 1 );
    like $own->ask('GET /')->body,
        qr/\AThe response is wrong in GET \/:\nResponse should be array ref or code ref: undef\n\nThe application returns the response: its status, /,
        'what is wrong, and what a response is';
    $own->save( 'app.psgi',
        qq(use utf8; sub { [ 200, [ 'Content-Type' => 'text/plain' ], ["\xe2\x98\xba"] ] }\n) );
    ok $own->answers(qr/Text is encoded before it is sent: Encode::encode/), 'text that is not encoded';
    $own->save( 'app.psgi', "sub { [ 200, {}, ['Hello'] ] }\n" );
    ok $own->answers(qr/Header fields are a list of names and values/), 'another';
    $own->stop;
};

subtest 'a request that does not end' => sub {
    my $own = Sirius::Test::Dev->start( <<'APP', qw(--workers 1 --slow-log 0.3) );
sub wait_long { select undef, undef, undef, 2 }
sub { wait_long(); [ 200, [ 'Content-Type' => 'text/plain' ], ['at last'] ] };
APP
    is $own->ask('GET /')->body, 'at last', 'it ends after all';
    my $log = $own->log;
    plan skip_all => 'no stack can be read here' if $log =~ /no stack/;
    like $log,
        qr/slow request: GET \/ .*\n\t.*wait_long at \S+app\.psgi line 1\n\t.*app\.psgi line 2\n\t\(\d+ calls in Plack and Sirius\)\n/,
        'where it was, without the calls of others';
    $own->save( 'app.psgi',
        "sub down { \$_[0] ? down( \$_[0] - 1 ) : select undef, undef, undef, 1 }\nsub { down(20); [ 200, [], [] ] }\n"
    );
    ok $own->answers(''), 'a recursion';
    like $own->log, qr/line 1\n\t\(20 more of it\)\n\t.*line 2\n/, 'is counted, too';
    $own->stop;
};

subtest 'without the middleware' => sub {
    my $own = Sirius::Test::Dev->start( "sub { die 'in the request' }\n", '--no-default-middleware' );
    unlike $own->ask('GET /')->body, qr/in the request/, '--no-default-middleware: no';
    $own->stop;
};

done_testing;
