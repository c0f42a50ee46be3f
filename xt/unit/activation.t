use strict;
use warnings;
use Test::More;
use Sirius::Service::Activation;

delete @ENV{ grep {/\ALISTEN_/} keys %ENV };

sub in_env {
    my ( $env, $code ) = @_;
    local @ENV{ keys %$env } = values %$env;
    return $code->();
}

sub left {
    return join ' ', sort grep {/\ALISTEN_/} keys %ENV;
}

subtest 'Without systemd' => sub {
    is_deeply [ Sirius::Service::Activation->descriptors ], [], 'no descriptors';
    is_deeply [ Sirius::Service::Activation->offered ],     [], 'none are offered';
    is_deeply [ Sirius::Service::Activation->forget ],      [], 'nothing to forget';
};

subtest 'LISTEN_FDS' => sub {
    my @case = (
        [ [ 2, $$,      'web:' ], [ { fd => 3, name => 'web' }, { fd => 4, name => 'unknown' } ] ],
        [ [ 1, $$,      undef ],  [ { fd => 3, name => 'unknown' } ] ],
        [ [ 1, $$,      'a:b' ],  [ { fd => 3, name => 'a' } ] ],
        [ [ 0, $$,      '' ],     [] ],
        [ [ 1, getppid, 'web' ],  [], 'LISTEN_PID is another process' ],
        [ [ 1, undef,   'web' ],  [], 'LISTEN_PID is missing' ],
    );
    for my $case (@case) {
        my ( $values, $want, $name ) = @$case;
        my %env;
        @env{qw(LISTEN_FDS LISTEN_PID LISTEN_FDNAMES)} = @$values;
        delete @env{ grep { !defined $env{$_} } keys %env };
        in_env(
            \%env,
            sub {
                is_deeply [ Sirius::Service::Activation->descriptors ], $want, $name || join ' ', %env;
                is left(), '', 'children will not know of them';
            }
        );
    }
    in_env(
        { LISTEN_FDS => 'many', LISTEN_PID => $$ },
        sub {
            eval { Sirius::Service::Activation->descriptors };
            is $@, "sirius: LISTEN_FDS: 'many' is not a number of descriptors\n", 'right error';
        }
    );
};

subtest 'Variables of another process' => sub {
    my %env = map { $_ => 1 } qw(LISTEN_FDS LISTEN_PID LISTEN_FDNAMES LISTEN_PIDFDID);
    in_env( \%env, sub { Sirius::Service::Activation->forget; is left(), '', 'forgotten' } );
};

done_testing;
