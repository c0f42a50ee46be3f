use strict;
use warnings;
use Fcntl      qw(FD_CLOEXEC F_DUPFD F_GETFD F_SETFD);
use File::Temp qw(tempfile);
use POSIX      ();
use Test::More;
use Sirius::OS::Inherit;
use Sirius::Process::Renewal;

my $lib = join q(:), @INC;    # before import has taken something away

sub flags { return 0 + fcntl shift, F_GETFD, 0 }

# A descriptor that some program before this one has left open
sub inherited {
    open my $null, '<', '/dev/null' or die $!;
    return POSIX::dup( fileno $null );
}

# What a program has that this one starts: of these numbers
sub child_has {
    my @numbers = @_;
    my $code    = 'print join q( ), grep { defined readlink "/proc/self/fd/$_" } @ARGV';
    open my $in, '-|', $^X, '-e', $code, @numbers or die $!;
    my $seen = readline $in;
    close $in or die $!;
    return defined $seen ? $seen : '';
}

subtest 'give and take' => sub {
    my ($fh)   = tempfile( UNLINK => 1 );
    my $number = inherited();
    my $text = Sirius::OS::Inherit->give( { it => fileno $fh, is => [ 'this', 1 ] }, $fh, $number, \*STDERR );
    is flags($fh),                       0,                           'open on exec';
    is child_has( fileno $fh, $number ), "@{[ fileno $fh ]} $number", 'a program gets both';
    is_deeply [ map { ref || ref \$_ } Sirius::OS::Inherit->take('SIRIUS_TEST') ], [], 'nothing is there';
    local $ENV{SIRIUS_TEST} = $text;
    my $state = Sirius::OS::Inherit->take('SIRIUS_TEST');
    is_deeply $state,
        { it => fileno $fh, is => [ 'this', 1 ], descriptors => [ fileno $fh, $number, 2 ] },
        'the state, and the numbers of what came with it';
    ok !exists $ENV{SIRIUS_TEST}, 'the variable has gone';
    Sirius::OS::Inherit->take_back;
    is flags($fh),                       FD_CLOEXEC, 'taken back: closed on exec';
    is child_has( fileno $fh, $number ), '',         'both of them';
    ok -e "/proc/self/fd/$number", 'and open here';
    fcntl \*STDERR, F_SETFD, 0;
    local $ENV{SIRIUS_TEST} = '[]';
    ok !eval { Sirius::OS::Inherit->take('SIRIUS_TEST'); 1 }, 'a list is none';
    is $@, "sirius: SIRIUS_TEST is reserved for Sirius itself and must not be set\n", 'which it says';
};

subtest 'Bytes stay bytes' => sub {
    my %state = (
        path   => "/gr\xc3\xb6\xff",
        words  => [ "\xe9", { "\xe4" => "\x{263a}" } ],
        number => 7,
        none   => undef
    );
    my %bytes = ( %state, words => [ "\xe9", { "\xe4" => "\xe2\x98\xba" } ] );
    for my $round ( 1, 2 ) {
        local $ENV{SIRIUS_TEST} = Sirius::OS::Inherit->give( \%state );
        my $taken = Sirius::OS::Inherit->take('SIRIUS_TEST');
        is_deeply $taken, { %bytes, descriptors => [] }, "round $round";
        my ($word) = grep { !ref } @{ $taken->{words} };
        ok !grep( { utf8::is_utf8($_) } $taken->{path}, $word, %{ $taken->{words}[1] } ),
            'in the form in which a path or an argument is what it was';
        %state = %$taken;
        delete $state{descriptors};
    }
};

subtest 'More than a variable can have' => sub {
    for my $length ( 90_000, 200_000, 700_000 ) {
        my $number = inherited();
        my $text   = Sirius::OS::Inherit->give( { it => 'x' x $length }, $number );
        cmp_ok length $text, '<', 128 * 1024, "$length: the text of the variable";
        my $code
            = 'my $it = Sirius::OS::Inherit->take(q(SIRIUS_TEST)); print length $it->{it}, qq( @{ $it->{descriptors} })';
        for my $how ( [], ['=SIRIUS_TEST'] ) {
            my $pid = open my $in, '-|' or do {
                $ENV{SIRIUS_TEST} = $text;
                exec $^X, ( map {"-I$_"} @INC ), "-MSirius::OS::Inherit@$how", '-e', $code;
            };
            is readline $in, "$length $number", @$how ? 'taken early' : 'taken by the next program';
            close $in;
            $text = Sirius::OS::Inherit->give( { it => 'x' x $length }, $number );
        }
        Sirius::OS::Inherit->take_back;
    }
};

subtest 'What is in the variable is nobody else\'s from the first moment' => sub {
    my ( $one, $two ) = ( inherited(), inherited() );
    is child_has( $one, $two ), "$one $two", 'two that others would get';
    local $ENV{SIRIUS_TEST} = qq({"descriptors":[$one,$two,999999],"it":$one});
    Sirius::OS::Inherit->import('SIRIUS_TEST');
    ok !exists $ENV{SIRIUS_TEST}, 'the variable has gone';
    is child_has( $one, $two ), '', 'nobody gets them';
    my $state  = Sirius::OS::Inherit->take('SIRIUS_TEST');
    my $handle = Sirius::OS::Inherit->take_handle( $state->{it} );
    is fileno $handle, $one,       'this process does';
    is flags($handle), FD_CLOEXEC, 'closed on exec as before';
    close $handle or die $!;
    ok !-e "/proc/self/fd/$one", 'closed when it is closed: there is no second handle';
    ok -e "/proc/self/fd/$two",  'what nobody took stays open';

    for my $text ( '', '[1]', 'no JSON', '{"descriptors":[]}', '{}' ) {
        local $ENV{SIRIUS_TEST} = $text;
        ok eval { Sirius::OS::Inherit->import('SIRIUS_TEST'); 1 }, "'$text' is borne";
    }
};

subtest 'close_on_exec' => sub {
    my $number = inherited();
    Sirius::OS::Inherit->close_on_exec( 0, 1, 2, $number, $number, 4_000, 99_999_999_999 );
    is flags( \*STDIN ) & FD_CLOEXEC, 0,  'not STDIN';
    is child_has($number),            '', 'this one';
    ok !eval { Sirius::OS::Inherit->handle(4_000); 1 }, 'what is not open';
    like $@, qr/\Adescriptor 4000: Bad file/, 'is not';
};

subtest 'What C code has closed by then' => sub {
    my $code = 'use Sirius::OS::Inherit; use POSIX (); my $fd = POSIX::dup(0);'
        . 'Sirius::OS::Inherit->close_on_exec($fd); Sirius::OS::Inherit->give( {}, $fd ); POSIX::close($fd)';
    local $ENV{PERL5LIB} = $lib;
    is `$^X -w -e '$code' 2>&1`, '', 'perl ends without a word';
    is $?,                       0,  'and well';
};

subtest 'A supervisor that can become no new program' => sub {
    my ($fh) = tempfile( UNLINK => 1 );
    my $seen;
    no warnings 'redefine';
    local *Sirius::Process::Renewal::_state   = sub { return {}, $fh };
    local *Sirius::OS::Invocation::run_module = sub { $seen = flags($fh); die "exec: it failed\n" };
    ok !eval { Sirius::Process::Renewal->become( {} ); 1 }, 'fails';
    is $@,         "exec: it failed\n", 'with the reason';
    is $seen,      0,                   'after all was ready for it';
    is flags($fh), FD_CLOEXEC,          'its children get nothing of it';
};

done_testing;
