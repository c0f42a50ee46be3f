use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use Sirius::Config::Options;
use Sirius::Config::Values;
use Sirius::Edge::Group;
use Sirius::Edge::Keeper;
use Sirius::Edge::Program;
use Sirius::Edge::Setup;

# Options as words for sirius-edge: each is one that the program knows, and what comes from elsewhere is
# looked at

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };
my $dir = tempdir( CLEANUP => 1 );

sub words_of {
    my $conf  = Sirius::Config::Values->parse( {@_} );
    my %words = map { split /=/, $_, 2 } Sirius::Edge::Setup->of($conf);
    return \%words;
}

# All of them have a value then
my @ALL = (
    acme_webroot           => $dir,
    hsts                   => '1h,includeSubDomains',
    https_redirect         => 8443,
    listen                 => [ ':80', ':443,tls' ],
    tls_self_signed        => 1,
    access_log             => 'x',
    access_log_errors_only => 1,
    access_log_format      => '%h',
    access_log_min_time    => '500ms',
    max_connections        => 100,
    max_body               => '1m',
    proxy_protocol         => 1,
    request_id_header      => 'X-Request-Id',
    request_timeout        => 30,
    server_software        => 'Test',
    tmpdir                 => $dir,
    trust_proxy            => '10.0.0.0/8,::1,x-forwarded-host',
    underscores_in_headers => 'trusted',
);

subtest 'Options' => sub {
    my $words = words_of(@ALL);
    my %want  = (
        'https-port'             => 8443,
        'https-redirect'         => 1,
        'hsts'                   => 'max-age=3600; includeSubDomains',
        'access-log-errors-only' => 1,
        'access-log-format'      => '%h',
        'access-log-min-time'    => 0.5,
        'forwarded'              => 0,
        'keepalive'              => 1,
        'linger-timeout'         => 5,
        'max-body'               => 1 << 20,
        'max-connections'        => 100,
        'proxy-protocol'         => 1,
        'request-id-header'      => 'X-Request-Id',
        'request-timeout'        => 30,
        'server'                 => 'Test',
        'tmpdir'                 => $dir,
        'trust-proxy'            => '10.0.0.0/8,::1',
        'trusted-underscores'    => 1,
        'underscores'            => 1,
        'x-forwarded-host'       => 1,
    );
    is $words->{$_}, $want{$_}, $_ for sort keys %want;
    like $words->{'acme-webroot'}, qr{\Aid:\d+-\d+,webroot,charset:=/\.well-known/acme-challenge=\Q$dir\E\z},
        'acme-webroot';
    is words_of( https_redirect => 1 )->{'https-port'}, undef, 'no port unless there is one';
    my $plain = words_of();
    is $plain->{$_}, undef, "no $_" for qw(acme-webroot hsts https-port https-redirect request-id-header);
    is_deeply [ grep {/access-log/} sort keys %$plain ], [], 'no log, no words about it';
    is_deeply [ @{$plain}{qw(underscores x-forwarded-host trust-proxy)} ], [ 0, 0, undef ],
        'what is not trusted';
    is words_of( server_software => '' )->{server}, undef, 'no Server field';
};

# Beside those that are as an option is: a word of the table that nothing makes, and one that is made and not
# in it
subtest 'The table of words' => sub {
    my %from   = Sirius::Edge::Shared->words;
    my %option = map { Sirius::Config::Options->key( $_->{name} ) => 1 } Sirius::Config::Options->rows;
    my @tls
        = ( tls_cert => ['a'], tls_key => ['b'], tls_min => '1.2', tls_ciphers => 'HIGH', tls_dir => '/' );
    push @tls,
        tls_client_ca     => 'c',
        tls_client_crl    => ['d'],
        tls_client_verify => 'optional',
        tls_self_signed   => 1;
    my @words = (
        Sirius::Edge::Setup->of( Sirius::Config::Values->parse( {
            @ALL,
            slow_log    => 1,
            static      => ["/=$dir"],
            lane        => ['/a=1'],
            request_log => 1,
            websocket   => ['/ws']
        } ) ),
        Sirius::Edge::Keeper->words( { @tls, tls_self_signed_file => 'e', listen => ['1.2.3.4:1,tls'] } )
    );
    my %made = map { /\A([^=]+)/ ? ( $1 =~ tr/-/_/r => 1 ) : () } @words;
    is join( q( ), grep { !$from{$_} } sort keys %made ), '', 'has each that is made';
    is join( q( ), grep { !$made{$_}   && $from{$_} =~ /made|tls/ } sort keys %from ), '', 'and no other';
    is join( q( ), grep { !$option{$_} && $from{$_} =~ /option|onoff/ } sort keys %from ),
        'sheds_unfinished', 'the others are options, but for one of the admin port';
    cmp_ok scalar keys %from, '>', 50, scalar( keys %from ) . ' words';
};

subtest 'The program knows each of them' => sub {
    my $words = words_of(@ALL);
    delete $words->{tmpdir};    # which it asks for when it has read all others
    my @words = ( map( {"$_=$words->{$_}"} sort keys %$words ), qw(lobby=0 sleepers=0 listen=0:tcp:1:x) );
    my $pid   = open( my $from, '-|' ) // die "fork: $!";
    if ( !$pid ) {
        open STDERR, '>&', \*STDOUT or die $!;
        exec Sirius::Edge::Program->path, @words;
    }
    my $said = readline $from;
    close $from;
    like $said, qr/tmpdir is missing/, 'none is wrong, until one is missing';
    isnt $?, 0, 'so it ends';
};

subtest 'Settings of another process' => sub {
    my @words = Sirius::Edge::Setup->of( Sirius::Config::Values->parse( {@ALL} ) );
    is_deeply( Sirius::Edge::Setup->known( \@words ), \@words, 'all that this version makes' );
    is_deeply( Sirius::Edge::Setup->known( [ 'max-body=1', 'uid=0', 'lobby=3', 'fly=1', '' ] ),
        ['max-body=1'], 'no other, above all no descriptor and no user' );
    for my $bad ( undef, 'max-body=1', {}, [undef], [ ['max-body=1'] ], ["tmpdir=/a\0b"], ["tmpdir=/a\nb"] ) {
        is( Sirius::Edge::Setup->known($bad), undef, 'nothing of what is none' );
    }
};

# It may be installed again, and reads the state that this one has written
subtest 'A version that calls it settings' => sub {
    my $conf  = Sirius::Config::Values->parse( { max_body => 1000 } );
    my @words = Sirius::Edge::Setup->of($conf);
    my $state = Sirius::Edge::Group->new( 2, conf => $conf, listeners => [], number => 2 )->state;
    is_deeply $state->{settings},                               \@words, 'those of all edges';
    is_deeply [ map { $_->{settings} } @{ $state->{places} } ], [ \@words, \@words, [], [] ], 'and of each';
};

done_testing;
