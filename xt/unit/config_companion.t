use strict;
use warnings;
use Test::More;
use Sirius::Config::Companion;
use Sirius::Config::Values;

# --beside: what its values mean, and what is wrong with others

delete @ENV{ grep {/\ASIRIUS_/} keys %ENV };

my $class = 'Sirius::Config::Companion';

sub one { return join '|', @{ $class->parse(shift)->[0] }{qw(name command)} }

sub wrong {
    my $value = shift;
    return eval { $class->parse($value); 1 } ? 'accepted' : $@;
}

subtest 'values' => sub {
    my @values = (
        [ 'jobs=perl bin/jobs.pl -v',         'jobs|perl bin/jobs.pl -v' ],
        [ ' mail-2_x = /opt/mail --queue=a ', 'mail-2_x|mail-2_x = /opt/mail --queue=a' ],
        [ 'mail-2_x= /opt/mail --queue=a ',   'mail-2_x|/opt/mail --queue=a' ],
        [ '/opt/Shop/Send_Mail.pl now',       'send_mail-pl|/opt/Shop/Send_Mail.pl now' ],
        [ 'perl bin/x',                       'perl|perl bin/x' ],
        [ 'exec perl bin/x; y',               'perl|exec perl bin/x; y' ],
        [ 'DEBUG=1 PATH=/bin perl bin/x',     'perl|DEBUG=1 PATH=/bin perl bin/x' ],
        [ 'jobs=DEBUG=1 perl bin/x',          'jobs|DEBUG=1 perl bin/x' ],
        [ 'jobs=a=b',                         'jobs|a=b' ],
        [ '( sleep 1; echo )',                'command|( sleep 1; echo )' ],
        [ '/opt/123',                         'command|/opt/123' ],
        [ "jobs=caf\x{e9}\x{20ac}",           "jobs|caf\xc3\xa9\xe2\x82\xac" ],
        [ 'a' x 40 . ' b',                    'a' x 32 . '|' . 'a' x 40 . ' b' ],
    );
    is one( $_->[0] ),                                $_->[1], $_->[1] =~ s/[^ -~]/?/gr for @values;
    is scalar @{ $class->parse( [ 'a=x', 'b=x' ] ) }, 2,       'several';
};

subtest 'what is wrong' => sub {
    my @wrong = (
        [ '',                        qr/\A'' has no command: write one such as 'jobs=/ ],
        [ ' jobs= ',                 qr/has no command/ ],
        [ "jobs=a\tb",               qr/contains a control character/ ],
        [ "jobs=a\nb",               qr/contains a control character/ ],
        [ 'jobs=' . 'a' x 4097,      qr/longer than 4096 bytes/ ],
        [ [ 'a=x', 'b=x', 'a=y' ],   qr/two commands have the name 'a': give each its own/ ],
        [ [ 'perl x', 'perl y' ],    qr/two commands have the name 'perl'/ ],
        [ [ map {"a$_=x"} 1 .. 17 ], qr/17 commands are too many: the maximum is 16/ ],
    );
    like wrong( $_->[0] ), $_->[1], 'an error: ' . $_->[1] for @wrong;
};

subtest 'whether perl runs it without a shell' => sub {
    is $class->program('perl -Ilib bin/x --a=b'), 'perl', 'words';
    is $class->program($_), undef, $_
        for 'a; b', 'a | b', 'a > b', 'A=1 b', 'exec b', 'a $b', 'a "b"', 'a b*', '. a';
};

subtest 'configuration' => sub {
    my $conf = Sirius::Config::Values->parse(
        { beside => [ 'a=x', 'b=y' ], chdir => '/', umask => '027', env_values => { A => 1 } } );
    my $plan = $class->plan($conf);
    is_deeply $plan,
        {
        chdir    => '/',
        commands => [ { name => 'a', command => 'x' }, { name => 'b', command => 'y' } ],
        env      => { A => 1 },
        umask    => oct 27
        },
        'what the server needs of it';
    is $class->valid($plan), $plan, 'is valid';
    is_deeply $class->plan( Sirius::Config::Values->parse( {} ) )->{commands}, [], 'none is fine';
    local $ENV{SIRIUS_BESIDE} = 'jobs=perl -e "sleep 1, 2"';
    my $of_env = Sirius::Config::Values->parse( {} );
    is $of_env->{beside}[0]{command}, 'perl -e "sleep 1, 2"', 'a variable has one command';
};

subtest 'what another process says' => sub {
    my @wrong = (
        [],
        {},
        { commands => [],                                                     env => [] },
        { commands => [1],                                                    env => {} },
        { commands => [ { name => 'a' } ],                                    env => {} },
        { commands => [ { name => 'A', command => 'x' } ],                    env => {} },
        { commands => [ { name => "a\n", command => 'x' } ],                  env => {} },
        { commands => [ { name => 'a', command => ['x'] } ],                  env => {} },
        { commands => [ { name => 'a', command => "x\0" } ],                  env => {} },
        { commands => [ { name => 'a', command => ' ' } ],                    env => {} },
        { commands => [ ( { name => 'a', command => 'x' } ) x 2 ],            env => {} },
        { commands => [ map { +{ name => "a$_", command => 'x' } } 1 .. 17 ], env => {} },
        { commands => [],                                                     env => { A => {} } },
        { commands => [],                                                     env => { A => "\0" } },
        { commands => [],                                                     env => {}, chdir => {} },
    );
    is $class->valid($_), undef, 'is refused' for @wrong;
};

done_testing;
