use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../lib";
use Digest::SHA qw(sha256_base64);
use File::Temp  qw(tempdir);
use Test::More;
use Sirius::Base::Page;

# A page of several files becomes one document, with the policy that lets it run

my $dir  = tempdir( CLEANUP => 1 );
my %text = (
    'page.html' =>
        qq(<link rel="stylesheet" href="a.css">\n<script src="a.js"></script><script src="b.js"></script>\n),
    'a.css' => 'p { }',
    'a.js'  => "'\$1\\1'",
    'b.js'  => 'b',
);
for my $name ( keys %text ) {
    open my $out, '>', "$dir/$name" or die $!;
    print $out $text{$name};
    close $out or die $!;
}

my ( $html, $policy ) = Sirius::Base::Page->assemble( $dir, 'page.html' );
is $html, "<style>p { }</style>\n<script>'\$1\\1'</script><script>b</script>\n",
    'files stand in it, as they are';
my ( $css, $first, $second ) = map { q('sha256-) . sha256_base64( $text{$_} ) . q(=') } qw(a.css a.js b.js);
is $policy,
    "img-src data:; script-src $first $second; style-src $css; require-trusted-types-for 'script'; trusted-types 'none'",
    'only they may run';

unlink "$dir/b.js";
ok !eval { Sirius::Base::Page->assemble( $dir, 'page.html' ) }, 'a file is missing';
like $@, qr{\Asirius: \Q$dir\E/b\.js: No such file or directory\n\z}, 'which';

done_testing;
