use strict;
use warnings;
use Test::More;

# What the commands of sirius have in common, by one that prints what it was given

package Sirius::CLI::Echo;    ## no critic (ProhibitMultiplePackages)
use parent 'Sirius::CLI::Command';

sub name { return 'echo' }

sub main {
    my ( $self, @words ) = @_;
    $self->fail( 7, "as\nsaid" ) if @words && $words[0] eq 'fail';
    $self->fail(0)               if @words && $words[0] eq 'leave';
    die "a mistake\n"            if @words && $words[0] eq 'die';
    $self->no_more( @words[ 3 .. $#words ] );
    print join ',', map( { $_ . '=' . ( $self->given($_) // 'undef' ) } qw(file loud times) ), @words;
    return $self->given('loud') ? 3 : $self->DONE;
}

sub rows {
    return { name => 'file', short => 'f', type => 'string', text => 'Read this file' },
        { name => 'loud', type => 'bool', text => 'Shout' },
        {
        name    => 'times',
        type    => 'count',
        value   => 'N',
        min     => 1,
        max     => 9,
        default => 1,
        text    => 'Say it N times'
        };
}

package Sirius::CLI::Before;    ## no critic (ProhibitMultiplePackages)
our @ISA = 'Sirius::CLI::Echo';
sub name      { return 'before' }
sub no_more   { }
sub passes_on { return 1 }

package main;

# Exit status, STDOUT and STDERR
sub run { return run_as( 'Sirius::CLI::Echo', @_ ) }

sub run_as {
    my ( $class, @args ) = @_;
    my ( $out,   $err )  = ( '', '' );
    open my $stdout, '>', \$out or die $!;
    open my $stderr, '>', \$err or die $!;
    my $before = select $stdout;
    local *STDERR = $stderr;
    my $status = eval { $class->run(@args) };
    select $before;
    return $status, $out, $err . $@;
}

subtest 'Words and options' => sub {
    my %case = (
        ''                           => 'file=undef,loud=undef,times=undef',
        'a b c'                      => 'file=undef,loud=undef,times=undef,a,b,c',
        '--file x a'                 => 'file=x,loud=undef,times=undef,a',
        '-file=x a'                  => 'file=x,loud=undef,times=undef,a',
        'a -f x b'                   => 'file=x,loud=undef,times=undef,a,b',
        '--file - --times 3'         => 'file=-,loud=undef,times=3',
        '--file -x'                  => 'file=-x,loud=undef,times=undef',
        'a -- --loud'                => 'file=undef,loud=undef,times=undef,a,--loud',
        '--times=2 --times=4 +times' => 'file=undef,loud=undef,times=4,+times',
    );
    is_deeply [ run( split q( ), $_ ) ], [ 0, $case{$_}, '' ], "'$_'" for sort keys %case;
    is_deeply [ run('--loud') ], [ 3, 'file=undef,loud=1,times=undef', '' ],
        'the exit status is that of the command';
};

subtest 'Wrong usage: one line that names the option, exit status 2' => sub {
    my $see  = 'see sirius echo --help';
    my %case = (
        '--fly'           => "unknown option --fly; $see",
        '--tim 3'         => "unknown option --tim; $see",
        '--LOUD'          => "unknown option --LOUD; $see",
        '--loud=1'        => "--loud takes no value; $see",
        '--file'          => "--file requires a value; $see",
        '--file='         => "--file requires a value; $see",
        '--file --loud'   => "--file requires a value; $see",
        '--times 0'       => '--times: 0 is too small: the minimum is 1',
        '--times often'   => q(--times: 'often' is not a whole number),
        'a b c d'         => "unexpected argument 'd'; $see",
        "--fl\ey"         => "unknown option --fl\\x1by; $see",
        '--fly --times 0' => "unknown option --fly; $see",
        '--help --fly'    => "unknown option --fly; $see",
    );
    is_deeply [ run( split q( ), $_ ) ], [ 2, '', "sirius echo: $case{$_}\n" ], "'$_'" for sort keys %case;
};

subtest 'Options of the server are passed on' => sub {
    my %case = (
        '--workers 4 --loud -l :80 app.psgi' => 'file=undef,loud=1,times=undef,--workers,4,-l,:80,app.psgi',
        '-MFoo --file x --max-body=1k -e 1'  => 'file=x,loud=undef,times=undef,-MFoo,--max-body=1k,-e,1',
        'app.psgi -- --loud -f'              => 'file=undef,loud=undef,times=undef,app.psgi,--,--loud,-f',
    );
    for my $words ( sort keys %case ) {
        is( ( run_as( 'Sirius::CLI::Before', split q( ), $words ) )[1], $case{$words}, "'$words'" );
    }
    is_deeply [ run_as( 'Sirius::CLI::Before', qw(--times 0 --workers x) ) ],
        [ 2, '', "sirius before: --times: 0 is too small: the minimum is 1\n" ], 'its own are checked';
    my $see = "; see sirius before --help\n";
    is_deeply [ run_as( 'Sirius::CLI::Before', @{ $_->[0] } ) ], [ 2, '', "sirius before: $_->[1]$see" ],
        $_->[1]
        for [ [qw(a --file)], '--file requires a value' ], [ [qw(--loud=1 a)], '--loud takes no value' ];
    is( ( run_as( 'Sirius::CLI::Before', qw(a -- --file) ) )[0], 0, 'behind -- they are words' );
};

subtest 'Other failures' => sub {
    is_deeply [ run('fail') ],  [ 7, '', "sirius echo: as\nsaid\n" ], 'with a status and a message';
    is_deeply [ run('leave') ], [ 0, '', '' ],                        'without a message';
    is_deeply [ run('die') ], [ undef, '', "a mistake\n" ], 'an exception that is none of these is passed on';
};

subtest 'Help' => sub {
    is_deeply [ run($_) ], [ 0, <<'HELP', '' ], $_ for qw(--help -h);
Usage: sirius echo [options]

  -f, --file STRING  Read this file
  --loud             Shout
  --times N          Say it N times (default: 1)
  -h, --help         Print this help and exit
HELP
};

done_testing;
