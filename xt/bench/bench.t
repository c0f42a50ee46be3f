use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::Bin/../../bench/lib", "$FindBin::Bin/../../t/lib", "$FindBin::Bin/../fair";
use Test::More;
use Bench::Metric qw(idle_of value worst_of);
use Bench::Own    qw(overtaking);
use Bench::Peer;
use Bench::Report;
use Bench::Server;
use Bench::Statistics qw(median ratios spread);
use Bench::Target;
use File::Temp;
use Cwd      ();
use JSON::PP ();
use Sirius::Test::Server;

# dev/bench: its arithmetic, what it says of made-up figures, and a short run with its report

my $ROOT = "$FindBin::Bin/../..";
my $dir  = File::Temp->newdir;

# A test: every element that is opened is closed, in order, and nothing is fetched from elsewhere
sub page_ok {
    my ( $html, $name ) = @_;
    my ( @open, @wrong );
    my $text = $html =~ s{<style>.*?</style>}{}gsr;
    while ( $text =~ m{<(/?)([a-zA-Z][\w:]*)((?:"[^"]*"|'[^']*'|[^'">])*)>}g ) {
        my ( $end, $tag, $rest ) = ( $1, $2, $3 );
        next if $tag eq 'meta' || $rest =~ m{/\z};
        if ( !$end ) { push @open, $tag; next }
        my $last = pop @open // 'nothing';
        push @wrong, "</$tag> closes $last" if $last ne $tag;
    }
    is "@wrong @open", ' ', "$name: its elements are nested well";
    unlike $html, qr{(?:src|href)=["'](?!#)|url\((?!#)|\@import|<script|<link}, "$name: it stands alone";
    return;
}

sub throughput {
    my %us = @_;
    return {
        kind        => 'throughput',
        title       => 'T',
        client      => 'wrk',
        connections => 16,
        servers     => {
            map {
                $_ => {
                    us       => $us{$_},
                    rate     => [ map { 1e6 / $_ } @{ $us{$_} } ],
                    requests => [1],
                    failed   => [0]
                }
                }
                keys %us
        }
    };
}

sub waited {
    my $p99 = shift;
    return { map( { $_ => [1] } qw(p50 max least requests failed waiting reconnects) ), p99 => [$p99] };
}

sub server {
    my ( $name, $kind ) = @_;
    return {
        name    => $name,
        label   => ucfirst $name,
        kind    => $kind || 'psgi',
        keeps   => $name eq 'twiggy'  ? 0 : 1,
        at_once => $name eq 'starman' ? 1 : 16,
        command => "$name <app> & co"
    };
}

subtest 'arithmetic' => sub {
    is median( 3, 1, 2 ),    2,     'the median of three';
    is median( 4, 1, 2, 3 ), 2.5,   'of four';
    is median(),             undef, 'of none';
    is_deeply [ ratios( [ 10, 30, 50 ], [ 5, 10 ] ) ], [ 2, 3 ], 'ratios, round by round';
    is_deeply [ ratios( [1],            undef ) ],     [],       'of what was not measured';
    is spread( '%.1f', 3, 1, 2 ), '1.0-3.0', 'the spread';
    is idle_of( { own => { usable => 0 }, 75 => { usable => 2 } } )->{usable}, 2,
        'the better of two time limits';
    is value( memory   => { worker  => 7 } ),                  7,     'the first metric of a kind';
    is value( fairness => { p99     => [ 1, 9, 5 ] }, 'p99' ), 5,     'a metric by its name';
    is value( fairness => { skipped => 'so' } ),               undef, 'of a server that was left out';
};

subtest 'the order of arrival' => sub {
    is_deeply [ overtaking() ], [ 0, 0 ], 'of nothing';
    is_deeply [ overtaking( [ 2, 20 ], [ 1, 10 ], [ 3, 30 ] ) ], [ 0, 0 ],
        'begun in order, told in another one';
    is_deeply [ overtaking( [ 1, 10 ], [ 3, 20 ], [ 2, 30 ] ) ], [ 1, 1 ], 'two neighbours';
    is_deeply [ overtaking( [ 2, 10 ], [ 3, 20 ], [ 4, 30 ], [ 1, 40 ], [ 5, 50 ] ) ], [ 3, 1 ],
        'one by three, and none of the three';
    is_deeply [ overtaking( [ 4, 10 ], [ 3, 20 ], [ 2, 30 ], [ 1, 40 ] ) ], [ 3, 3 ], 'the other way round';
    is_deeply [ overtaking( [ 1, 20 ], [ 1, 10 ] ) ], [ 0, 0 ],
        'of two that came together, either may be first';
};

subtest 'names of servers' => sub {
    my $with = Bench::Server->new( name => 'feersum:16', workers => 2 );
    is $with->{workers}, 16, 'the number in the name wins over that of the case';
    is( Bench::Peer::workers('sirius'),                  undef, 'which counts without one' );
    is( Bench::Peer::workers('sirius@/x:16'),            16,    'so many' );
    is( Bench::Peer::label( 'sirius@/x:16', '0.01' ),    'Sirius in /x 0.01, 16 workers', 'the label tells' );
    is( Bench::Peer::label( 'sirius:1', '0.01' ),        'Sirius 0.01, 1 worker',         'of one too' );
    is( Bench::Peer::tree("sirius\@$ROOT:4"),            Cwd::abs_path($ROOT),            'the folder' );
    is( Bench::Peer::peer('feersum-system:16')->{label}, 'Feersum',                       'and the peer' );
};

# All alike but for one in which all are slower, so that the greatest p99 is not that of the first or the last
# case
my %fairness = map {
    my $factor = $_ eq 'fair-headers' ? 3 : 1;
    $_ => {
        kind    => 'fairness',
        title   => 'F',
        short   => $_,
        servers => {
            sirius  => waited( 2 * $factor ),
            feersum => waited( 21 * $factor ),
            twiggy  => waited( 4 * $factor ),
            starman => { error => 'it <fell>' },
        }
    }
} qw(fairness fairness-close fair-think fair-long fair-silent fair-headers fair-bodies fair-readers);

my $made = {
    schema      => 'sirius-bench-1',
    command     => 'dev/bench made up',
    environment => [ [ date => 'today' ], [ commit => 'none' ], [ CPU => 'some' ] ],
    servers => [ server( 'floor', 'limit' ), map { server($_) } qw(sirius feersum starlet starman twiggy) ],
    order   => [ qw(ok hello-c16),           sort( keys %fairness ), 'idle' ],
    cases   => {
        ok => throughput(
            floor   => [ 5,  6,  5 ],
            sirius  => [ 10, 10, 12 ],
            feersum => [ 20, 21, 22 ],
            starlet => [ 50, 60, 60 ],
            starman => [ 49, 40, 48 ]
        ),
        'hello-c16'        => throughput( sirius => [10], feersum => [8], floor => [7] ),
        'hello-16-workers' => throughput( sirius => [ 10, 15, 12.5 ], 'sirius:1' => [ 10, 10, 10 ] ),
        %fairness,
        'fair-saturated' => {
            kind    => 'fairness',
            title   => 'S',
            servers => {
                sirius  => { p99 => [20], least => [99] },
                feersum => { p99 => [30], least => [49] },
                starlet => { p99 => [40], least => [60] },
            }
        },
        idle => {
            kind    => 'idle',
            title   => 'I',
            count   => 1000,
            pause   => 10,
            servers => {
                sirius => {
                    own => { usable => 1000, opened => 1000, new_ms => 2, new_failed => 0, new_clients => 9 }
                },
                starman =>
                    { 75 => { usable => 2, opened => 2, new_ms => 0, new_failed => 9, new_clients => 9 } }
            }
        }
    }
};

subtest 'aims and losses' => sub {
    my %met = map { $_->[0] => "$_->[1]: $_->[3]" } Bench::Target->rows($made);
    my $ok  = 'OK, keep-alive: CPU of';
    is $met{"$ok Starlet, against Sirius"}, '5.0 times: yes', 'an aim that is met exactly';
    is $met{"$ok Starman, against Sirius"}, '4.0 times: no',  'one that is not';
    is $met{"$ok the next PSGI server, against Sirius"},          '2.1 times (Feersum): yes', 'the next one';
    is $met{'Hello, keep-alive: CPU of Starlet, against Sirius'}, ': not measured',           'one unknown';
    my $hello = 'Hello, keep-alive (wrk -c 16): CPU, against';
    is $met{"$hello Feersum"}, '1.25: no',  'a limit that is not kept';
    is $met{"$hello Floor"},   '1.43: yes', 'one that is';
    my ($more) = map { $met{$_} } grep {/CPU of 16 workers/} keys %met;
    is $more, '1.25: yes', 'many workers beside one';
    my ($full) = map { $met{$_} } grep {/^Saturated/} keys %met;
    is $full, '2.0 times (Starlet): yes', 'saturated: the best one that starves none';
    my ($fair) = map { $met{$_} } grep {/^Fairness/} keys %met;
    is $fair, '10.5 times (Feersum): yes', 'fairness, against those that keep connections';
    is worst_of( $made, 'feersum' ), 63,   'the greatest p99';
    my %less = ( %$made, cases => { %{ $made->{cases} }, 'fair-long' => undef } );
    is worst_of( \%less, 'feersum' ), undef, 'of a run that left out a case, none';
    my ($idle) = map { $met{$_} } grep {/^Idle/} keys %met;
    is $idle, '500 times (1000, 2): yes', 'idle connections';
    my @losses = Bench::Target->losses($made);
    is_deeply [ map {"$_->[0], $_->[1]: $_->[4][0][0]"} @losses ],
        [ 'T (wrk -c 16), CPU: Feersum', 'T (wrk -c 16), requests/s: Feersum' ], 'where another one is ahead';
};

subtest 'a report of made-up figures' => sub {
    my @files = Bench::Report->new($made)->write("$dir/made");
    my ( $html, $text, $figures )
        = map { Bench::Machine::read_file("$dir/made/$_") } qw(report.html BENCHMARKS.md FIGURES.md);
    utf8::decode($_) for $html, $text, $figures;
    page_ok( $html, 'the page' );
    like $html,    qr/failed: it &lt;fell&gt;/, 'a server that fails is shown, and its words are only words';
    like $figures, qr/^\| Twiggy † \| 1\.00 \| 4\.00 /m, 'one that closes connections is marked';
    like $text, qr/^\| Feersum \| 21\.0 \|.* 63\.0 \| 21\.0 \|.* 63\.0 \|$/m,
        'the p99 of all cases, and the greatest';
    like $figures, qr/^\| Starman ‡ \| 48\.00 \| 40\.00-49\.00 \| 4\.00 /m,
        'so is one that serves one at a time, in the table with all figures';
    unlike $figures, qr/case by case/,               'which has none of the tables of the page';
    like $text,      qr/\[FIGURES\]\(FIGURES\.md\)/, 'and the page leads to them';
    like "$text$figures",
        qr/ahead of Sirius\n\n.*\n\n- T \(wrk -c 16\): CPU, .*^\| T \(wrk -c 16\), CPU \| Feersum 8 us/ms,
        'where another one is ahead, it says so';
    is eval { Bench::Report->new( {} ) }, undef, 'other files are refused';
};

subtest 'bench/fair' => sub {
    Sirius::Test::Server::program('cc') or plan skip_all => 'cc is not installed';
    my $out = `cd $ROOT && timeout 100 $^X bench/fair --part 0.05 --json $dir/fair.json c 2>&1`;
    is $?, 0, 'it ends well';
    unlike $out, qr/FAILED/, 'and its case is measured' or diag $out;
    my %got = map { $_->{name} => $_->{got} }
        @{ JSON::PP->new->utf8->decode( Bench::Machine::read_file("$dir/fair.json") || '[]' ) };
    is $got{'c: errors, and connections closed'}, '0, 0', 'no request fails, no connection ends';
    is $got{'c: failures'},                       0,      'nor do those that tell the order';
    cmp_ok $got{'c: requests of which the order is known'}, '>', 100, 'which are some';
};

subtest 'a short run' => sub {
    Sirius::Test::Server::program($_) or plan skip_all => "$_ is not installed" for qw(wrk ab cc taskset);
    my $quick = "--quick --built --servers floor,sirius --idle 50 --json $dir/run.json --into $dir/run";
    my $out
        = `cd $ROOT && timeout 100 $^X dev/bench $quick hello-c16 close-c8 fairness fair-headers start 2>&1`;
    is $?, 0, 'it ends well' or diag $out;
    like $out, qr/^5 cases, 2 servers, about \d+ minutes/m, 'it says how long it will take';
    my $result = JSON::PP->new->utf8->decode( Bench::Machine::read_file("$dir/run.json") || '{}' );
    is_deeply [ map { $_->{name} } @{ $result->{servers} } ], [qw(floor sirius)], 'the servers';
    my $sirius = $result->{cases}{'hello-c16'}{servers}{sirius};
    cmp_ok $sirius->{us}[0],                      '>', 0,     'CPU of a request';
    cmp_ok $sirius->{rate}[0] * $sirius->{us}[0], '<', 1.5e6, 'it is not more than there is';
    is $sirius->{failed}[0], 0, 'no request has failed';
    cmp_ok $result->{cases}{'close-c8'}{servers}{floor}{requests}[0], '>=', 100, 'ab has counted too';
    is $result->{cases}{fairness}{servers}{sirius}{served}[0], 16, 'all clients were served';
    is $result->{cases}{'fair-headers'}{servers}{sirius}{failed}[0], 0,
        'those beside slow clients without a failure';
    my $html = Bench::Machine::read_file("$dir/run/report.html");
    page_ok( $html, 'the page' );
    my @titles = $html =~ m{<h2>(.*?)</h2>}g;
    my @want   = (
        'Aims',
        'What was measured',
        'CPU for each request',
        'By number of connections',
        'All other cases of throughput',
        'Fairness',
        'Start and reload',
        'Where others are ahead of Sirius',
        'Method, and its limits'
    );
    is_deeply \@titles, \@want, 'its parts';
    my $again = `cd $ROOT && $^X dev/bench --report $dir/run.json --into $dir/again 2>&1`;
    is Bench::Machine::read_file("$dir/again/report.html"), $html, 'the page can be made again'
        or diag $again;
    Sirius::Test::Server::program('gnuplot') or plan skip_all => 'gnuplot is not installed';
    my @svg = $html =~ /<svg\b/g;
    is scalar @svg, 3, 'the plots are in it';
    unlike $html, qr/xmlns|\bNaN\b/, 'without what only a file needs';
};

subtest 'a short run over TLS' => sub {
    Sirius::Test::Server::program($_)
        or plan skip_all => "$_ is not installed"
        for qw(h2load wrk cc taskset openssl);
    my @cases = qw(tls-hello h2-hello tls-handshake tls-resume tls-idle tls-flood);
    my $quick = "--quick --built --servers floor,sirius --idle 50 --json $dir/tls.json --into $dir/tls";
    my ( $out, $result, %got );

    # Once more where the machine was too busy for a figure
    for ( 1 .. 2 ) {
        $out = `cd $ROOT && timeout 100 $^X dev/bench $quick @cases 2>&1`;
        last if $?;
        $result = JSON::PP->new->utf8->decode( Bench::Machine::read_file("$dir/tls.json") || '{}' );
        %got    = map { $_ => $result->{cases}{$_}{servers}{sirius} } @cases;
        last if !grep { !defined $got{$_}{us}[0] } @cases[ 0 .. 3 ];
        diag "a case has no figure: $out";
    }
    is $?, 0, 'it ends well' or diag $out;
    is_deeply [ map { sort keys %{ $_->{servers} } } values %{ $result->{cases} } ], [ ('sirius') x @cases ],
        'only those that speak TLS are measured';

    for my $case ( @cases[ 0 .. 3 ] ) {
        cmp_ok $got{$case}{us}[0],       '>', 0, "$case: CPU";
        cmp_ok $got{$case}{requests}[0], '>', 0, 'of some';
        is $got{$case}{failed}[0], 0, 'none has failed';
    }
    is "@{ $got{'tls-idle'} }{qw(opened usable failed)}", '50 50 0',
        'idle connections, and new clients beside them';
    my $flood = $got{'tls-flood'};
    cmp_ok $flood->{rate}, '>', 0, 'a flood';
    is "$flood->{flood}{errors} $flood->{new_flood}{failed}", '0 0', 'and the clients beside it';
    like Bench::Machine::read_file("$dir/tls/FIGURES.md"),
        qr/^### A flood of handshakes over TLS 1\.3\n\n\|.*\n\|.*\n\| Sirius 0\.01 \| [\d.]+ \|/m,
        'the report';
};

done_testing;
