use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Config::Options;
use Sirius::Config::Type;
use Sirius::Test;

# The manifests: valid by themselves, at one with each other and with the server's options.
# KUBECONFORM_SCHEMAS is a -schema-location of kubeconform, where its own can't be reached.

my $DEPLOY = "$Sirius::Test::Server::ROOT/deploy";
my @files  = glob "$DEPLOY/kubernetes/*.yaml";

subtest 'kubeconform' => sub {
    my $kubeconform = program('kubeconform');
    plan skip_all => 'it is not installed' if !$kubeconform;
    my @schemas = $ENV{KUBECONFORM_SCHEMAS} ? ( '-schema-location', $ENV{KUBECONFORM_SCHEMAS} ) : ();
    open my $out, '-|', $kubeconform, qw(-strict -summary -skip), 'PodMonitor,Kustomization', @schemas, @files
        or die $!;
    my $said = do { local $/ = undef; readline $out };
    close $out;
    plan skip_all => "it has no schemas: $said" if $said =~ /download|could not find schema/;
    is $?, 0, 'content' or diag $said;
};

subtest 'what belongs together' => sub {
    skip_without('YAML::XS');
    my %by_kind = map { $_->{kind} => $_ } map { YAML::XS::LoadFile($_) } @files;
    my ( $deployment, $config, $service ) = @by_kind{qw(Deployment ConfigMap Service)};
    is_deeply [ sort @{ $by_kind{Kustomization}{resources} } ],
        [ grep { $_ ne 'kustomization.yaml' } map {s{.*/}{}r} sort @files ], 'all files are applied';

    my $pod    = $deployment->{spec}{template}{spec};
    my ($shop) = @{ $pod->{containers} };
    my $labels = $deployment->{spec}{template}{metadata}{labels};
    is_deeply $_, $labels, 'the same pods'
        for $service->{spec}{selector},
        map { $_->{spec}{selector}{matchLabels} } @by_kind{qw(Deployment PodDisruptionBudget PodMonitor)};
    my %port = map { $_->{name} => $_->{containerPort} } @{ $shop->{ports} };
    is $config->{data}{SIRIUS_LISTEN}, ":$port{http}", 'the port of the service';
    like $config->{data}{SIRIUS_ADMIN}, qr/:$port{admin}\z/, 'and that of the probes';
    is $shop->{envFrom}[0]{configMapRef}{name}, $config->{metadata}{name}, 'options come from the map';
    is $by_kind{HorizontalPodAutoscaler}{spec}{scaleTargetRef}
    {name}, $deployment->{metadata}{name}, 'what is scaled';
    ok !exists $deployment->{spec}{replicas}, 'by nobody else';

    for my $variable ( sort keys %{ $config->{data} } ) {
        my ($name) = lc($variable) =~ /\Asirius_(.+)/;
        my $row = Sirius::Config::Options->row($name);
        ok $row, "$variable is an option" or next;
        my $value = $config->{data}{$variable};
        next if $row->{type} eq 'bool';
        ok defined eval { Sirius::Config::Options->check( $row, $row->{many} ? [$value] : $value ) },
            'with a right value'
            or diag $@;
    }
    ok exists $pod->{enableServiceLinks} && !$pod->{enableServiceLinks}, 'no variables of services';
    my ( $delay, $grace ) = @{ $config->{data} }{qw(SIRIUS_DRAIN_DELAY SIRIUS_GRACEFUL_TIMEOUT)};
    cmp_ok $pod->{terminationGracePeriodSeconds}, '>=', $delay + $grace + 2, 'it may stop in peace';
    my $ready = $shop->{readinessProbe};
    cmp_ok $ready->{periodSeconds} * $ready->{failureThreshold} + $ready->{timeoutSeconds}, '<', $delay,
        'and is known to go before';
    is $ready->{httpGet}{path},               '/readyz',  'readiness';
    is $shop->{startupProbe}{httpGet}{path},  '/readyz',  'start';
    is $shop->{livenessProbe}{httpGet}{path}, '/healthz', 'a busy pod lives';
};

done_testing;
