use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use File::Temp;
use JSON::PP qw(decode_json);
use Sirius::Test;

# The alerts, the metric that Kubernetes scales by and the dashboard of Grafana speak of metrics that there
# are

my $DEPLOY   = "$Sirius::Test::Server::ROOT/deploy";
my $dir      = File::Temp->newdir;
my $promtool = program('promtool');

sub deployed { return Sirius::Test::Server::slurp("$DEPLOY/$_[0]") }

sub metrics {
    my $server = start_server( "sub { [ 200, [], ['x'] ] }\n", qw(--workers 1 --admin 127.0.0.1:0) );
    $server->ask('GET /');
    my ($admin) = $server->log =~ m{admin on http://([^/\s]+)/};
    my $text = $server->connect( to => $admin )->ask('GET /metrics')->body;
    $server->stop;
    return map { $_ => 1 } $text =~ /^(\w+)/mg;
}

sub expressions {
    my ( $node, @found ) = @_;
    return map { expressions($_) } @$node if ref $node eq 'ARRAY';
    return ()                             if ref $node ne 'HASH';
    return ( grep( {defined} $node->{expr} ), map { expressions($_) } values %$node );
}

my %there     = metrics();
my $dashboard = decode_json( deployed('grafana/sirius.json') );
my @shown     = expressions($dashboard);
my %text      = (
    dashboard => join( "\n", @shown ),
    alerts    => deployed('prometheus/sirius.rules.yml'),
    adapter   => deployed('prometheus/adapter.yml') =~ s/\bas: \w+//r,
);

for my $name ( sort keys %text ) {
    my %named = map { $_ => 1 } $text{$name} =~ /\b(sirius_\w+)/g;
    ok scalar keys %named, "$name: it names some";
    is_deeply [ grep { !$there{$_} } sort keys %named ], [], "$name: and they are there";
}

my ($adapted) = deployed('prometheus/adapter.yml') =~ /\bas: (\w+)/;
like deployed('kubernetes/hpa.yaml'), qr/name: \Q$adapted\E\b/, 'Kubernetes scales by what the adapter makes';

SKIP: {
    skip 'promtool is not installed', 2 if !$promtool;
    my ($query) = deployed('prometheus/adapter.yml') =~ /metricsQuery: \|\n(.*)/s;
    $query =~ s/<<\.GroupBy>>/pod/g;
    $query =~ s/<<\.LabelMatchers>>/pod="shop"/g;
    my $rules = "groups:\n  - name: dashboard\n    rules:\n";
    for my $query ( @shown, $query ) {
        $query =~ s/\$__rate_interval/5m/g;
        $query =~ s/\s+/ /g;
        $rules .= "      - record: it\n        expr: '$query'\n";
    }
    for my $file ( spew( "$dir/dashboard.yml", $rules ), "$DEPLOY/prometheus/sirius.rules.yml" ) {
        my $said = `$promtool check rules --lint=none $file 2>&1`;
        is $?, 0, "promtool: $file" or diag $said;
    }
}

done_testing;
