use strict;
use warnings;
use File::Temp ();
use Test::More;
use Sirius::Dev::Source;

my $source = 'Sirius::Dev::Source';
my $file   = File::Temp->new;
print $file map {"line $_ <\e>\n"} 1 .. 20;
close $file or die $!;

my @lines = $source->lines( "$file", 3, 4 );
is_deeply [ map { $_->[0] } @lines ],          [ 1 .. 7 ], 'the lines around one';
is_deeply [ $source->lines( '/none', 1, 1 ) ], [],         'no file';
is $source->text( $source->painter(0), 3, @lines[ 2, 3 ] ),
    ">    3  line 3 <\\x1b>\n     4  line 4 <\\x1b>\n", 'for a terminal';
like $source->text( $source->painter(1), 3, @lines ), qr/^\e\[1;31m>    3  line 3 .*\e\[0m$/m, 'with colours';
is $source->html( 3, $lines[2] ),
    qq(<table>\n<tr class="at"><td>3</td><td>line 3 &lt;&#x241b;&gt;</td></tr>\n</table>\n), 'for a page';
is $source->escaped("\xfc\x7f"),           "\xc3\xbc&#x2421;", 'what is no UTF-8 is Latin-1';
is $source->bytes("\x{263a}"),             "\xe2\x98\xba",     'text becomes bytes';
is $source->bytes(''),                     'unknown error',    'nothing';
is $source->bytes( bless {}, 'No::Text' ), 'an exception that cannot be shown as text', 'an object that dies';
is $source->link( undef, '<a>', '/a', 1 ), '&lt;a&gt;',                                 'without an editor';
ok $source->wants_html('text/html,*/*;q=0.8'), 'a browser';
ok !$source->wants_html($_), 'not ' . ( $_ // 'nothing' )
    for undef, '*/*', 'text/html;q=0', 'application/json';

package No::Text;
use overload '""' => sub { die 'no text' };

package main;
done_testing;
