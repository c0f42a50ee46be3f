use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Sirius::Test;

# What an application prints to STDOUT, when that is no terminal: it is there when the request is over

my $APP = <<'APP';
print "loaded in $$\n";
sub {
    my $path = $_[0]{PATH_INFO};
    print "printed for $path\n";
    { local $\ = "\n"; local $, = ' '; print STDOUT 'in', 'pieces', $path }
    return [ 200, [], ['ok'] ];
}
APP

for my $args ( [qw(--workers 2)], [qw(--workers 0)], [qw(--workers 1 -L Delayed)],
    [qw(--workers 1 --reload)] )
{
    my $server = start_server( $APP, @$args );
    for my $path (qw(/a /b)) {
        is $server->ask("GET $path")->body, 'ok', "@$args: GET $path";
        ok until_true( 5, sub { $server->output =~ /^printed for \Q$path\E\nin pieces \Q$path\E$/m } ),
            'what it has printed';
    }
    my @loaded = $server->output =~ /^(loaded in .*)$/mg;
    my %times;
    $times{$_}++ for @loaded;
    is_deeply [ grep { $times{$_} > 1 } sort keys %times ], [],
        'what was printed while it was loaded is there once';
    $server->stop;
}

done_testing;
