use strict;
use warnings;
use Cwd        ();
use File::Temp ();
use Test::More;
use Sirius::Dev::Exception;
use Sirius::Dev::Files;

# What is shown of an exception and of the request, whatever these are

my $folder = Cwd::realpath( File::Temp->newdir( CLEANUP => 0 ) );
END { unlink "$folder/app.psgi"; rmdir $folder }
open my $out, '>', "$folder/app.psgi" or die $!;
print $out map {"line $_\n"} 1 .. 30;
close $out or die $!;
my $files = Sirius::Dev::Files->new( app => "$folder/app.psgi", libraries => [@INC] );

sub exception {
    my ( $error, %args ) = @_;
    my %env = ( REQUEST_METHOD => 'GET', REQUEST_URI => '/', PATH_INFO => '/', %{ delete $args{env} || {} } );
    return Sirius::Dev::Exception->new( env => \%env, error => $error, files => $files, %args );
}

subtest 'places' => sub {
    my @calls = (
        [ 'Other',             '/usr/share/perl5/Other.pm',           1,  'Trap::handler' ],
        [ 'main',              "$folder/app.psgi",                    10, 'Other::die' ],
        [ 'main',              "$folder/app.psgi",                    12, '(eval)' ],
        [ 'Plack::Sandbox::x', "$folder/app.psgi",                    20, 'Plack::Sandbox::x::inner' ],
        [ 'Plack::Component',  '/usr/share/perl5/Plack/Component.pm', 50, 'Plack::Sandbox::x::__ANON__' ],
        [ 'Gen',               '(eval 12)',                           3,  'Plack::Component::call' ],
    );
    my $text = exception( "oops\n", calls => \@calls )->plain;
    like $text, qr/\AException in GET \/:\noops\n\n\(1 call in Other\)\napp\.psgi:10 in inner\n/,
        'from the inside, without blocks of eval';
    like $text,
        qr/^>   10  line 10\n(?:.*\n)*app\.psgi:20 in __ANON__\n    18  line 18\n    19  line 19\n>   20  line 20\n/m,
        'fewer lines further out';
    like $text, qr/^\(2 calls in Plack, Gen\)\n\z/m, 'what called it';
    ok exception( "oops\n",  calls => \@calls )->has_place,       'in the application';
    ok !exception( "oops\n", calls => [ $calls[0] ] )->has_place, 'elsewhere';
    my $deep  = exception( "oops\n", calls => [ map { @calls[ 1, 3 ] } 1 .. 99 ] )->plain;
    my @shown = $deep =~ /^app\.psgi:/mg;
    is @shown, 20, 'a recursion is shortened';
    @shown = exception( "oops\n", calls => [ map { $calls[3] } 1 .. 199 ] )->plain =~ /^app\.psgi:/mg;
    is @shown, 1, 'one of a single line is one place';
};

subtest 'requests' => sub {
    my $html = exception(
        "oops\n",
        env => {
            REQUEST_URI        => '/a?x=1&my_api_key=2&p%61ssword=3',
            QUERY_STRING       => 'x=1&my_api_key=2&p%61ssword=3',
            HTTP_AUTHORIZATION => 'Basic x',
            HTTP_REFERER       => 'http://localhost/?token=4&y=5',
            HTTP_X_LONG        => 'y' x 5000
        }
    )->html;
    like $html, qr{<h2>GET /a\?x=1&amp;my_api_key=\[hidden\]&amp;p%61ssword=\[hidden\]</h2>},
        'the line, without secrets';
    like $html, qr{<dt>my_api_key</dt><dd>\[hidden\]</dd>},               'nor among the parameters';
    like $html, qr{<dt>authorization</dt><dd>\[hidden\]</dd>},            'and the fields';
    like $html, qr{<dd>http://localhost/\?token=\[hidden\]&amp;y=5</dd>}, 'also of the page before';
    like $html, qr{<dt>x-long</dt><dd>y{2000} \.\.\.</dd>},               'long ones are cut';
    my $body = sub {
        my ( $type, $text ) = @_;
        open my $in, '<', \$text or die $!;
        return exception(
            "oops\n",
            env => {
                CONTENT_TYPE           => $type,
                CONTENT_LENGTH         => length $text,
                'psgi.input'           => $in,
                'psgix.input.buffered' => 1,
                REQUEST_METHOD         => 'POST'
            }
        )->html;
    };
    like $body->( 'application/json', '{"a":"<b>"}' ),
        qr{<dt>application/json</dt><dd>\{&quot;a&quot;:&quot;&lt;b&gt;&quot;\}</dd>}, 'JSON as it is';
    like $body->( 'application/json',
        '{"user":{"x":1,"password":"a\"}b"},"tokens":["c","d"],"pwd":12,"y":3}' ),
        qr/&quot;x&quot;:1,&quot;password&quot;:&quot;\[hidden\]&quot;},&quot;tokens&quot;:&quot;\[hidden\]&quot;,&quot;pwd&quot;:&quot;\[hidden\]&quot;,&quot;y&quot;:3}/,
        'without secrets';
    like $body->( 'application/xml', '<a><password>x</password><b>y</b></a>' ),
        qr{&lt;password&gt;\[hidden\]&lt;/password&gt;&lt;b&gt;y&lt;}, 'nor of XML';
    like $body->( 'application/x-www-form-urlencoded', 'a=1&a=2' ),
        qr{<dt>a</dt><dd>1</dd>\s*<dt>a</dt><dd>2</dd>}, 'a form';
    like $body->( 'image/png',  "\x89PNG" ),    qr{<dt>image/png</dt><dd>4 bytes</dd>},      'no picture';
    like $body->( 'text/plain', 'x' x 70_000 ), qr{<dt>text/plain</dt><dd>70000 bytes</dd>}, 'nor much text';
};

subtest 'hostile exceptions' => sub {
    my $deep = {};
    $deep->{me} = $deep;
    like exception($deep)->plain,                     qr/\AException of HASH/,   'one that has itself';
    like exception( 'x' x 100_000 )->plain,           qr/x{16000}\n/,            'much text';
    like exception( 'x' . "\xc3\xa9" x 9000 )->plain, qr/x(?:\xc3\xa9){7999}\n/, 'cut between characters';
    like exception( bless { password => 'x', pin => 'y' }, 'Data' )->plain,
        qr/"password" => "\[hidden\]",\n.*"pin" => "y"/, 'one with a secret';
    like exception( bless [], 'No::Text' )->plain, qr/cannot be shown as text/, 'one that dies';
    like exception("\xc2\x9b2J \xc3\x9b")->terminal(0), qr/\\x9b2J \xc3\x9b\n/,
        'a control character of UTF-8';
    like exception("\e]0;title\a<")->terminal(1), qr/\\x1b\]0;title\\x07</,
        'one that would steer the terminal';
    unlike exception('<script>')->html, qr/<script/,           'one that would be markup';
    like exception( sub { } )->plain,   qr/Exception of CODE/, 'code';
};

package No::Text;
use overload '""' => sub { die 'no text' };

package main;
done_testing;
