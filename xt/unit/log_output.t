use strict;
use warnings;
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use Test::More;
use Sirius;
use Sirius::Log::Output;

# What another program prints becomes lines of the log that nobody can take for others

my @said;
{
    no warnings 'redefine';
    *Sirius::Log::_put = sub { push @said, $_[1] }
}

sub output {
    pipe my $read, my $write or die "pipe: $!";
    fcntl $_, F_SETFL, O_NONBLOCK | fcntl $_, F_GETFL, 0 for $read, $write;
    @said = ();
    return ( Sirius::Log::Output->new( handle => $read, name => 'jobs', pid => 7 ), $write );
}

# The lines that these bytes make, without the mark before each
sub lines {
    my @pieces = @_;
    my ( $output, $write ) = output();
    for my $piece (@pieces) {
        syswrite $write, $piece;
        $output->hear;
    }
    close $write;
    $output->finish;
    my $text  = join '', @said;
    my @lines = split /\n/, $text;
    is scalar( grep { !s/\Ajobs\[7\]: // } @lines ), 0, 'each line has its mark';
    return \@lines;
}

subtest 'lines' => sub {
    is_deeply lines("one\ntwo\n"), [qw(one two)], 'two';
    is_deeply lines( "on", "e\ntw", "o\nth", "ree" ), [qw(one two three)],
        'in pieces, the last without its end';
    is_deeply lines("\n \n\r\none\r\n\n"), ['one'], 'empty ones are left out';
    is_deeply lines(''),                   [],      'nothing';
    is_deeply lines("a\tb\n"),             ['a b'], 'a tab';
};

subtest 'whatever is in them' => sub {
    is_deeply lines("\e[2J\a\b\0\x7f\r!\n"),       ['\x1b[2J\x07\x08\x00\x7f\x0d!'], 'control characters';
    is_deeply lines("caf\xc3\xa9 \xe2\x82\xac\n"), ["caf\xc3\xa9 \xe2\x82\xac"],     'UTF-8 stays';
    is_deeply lines("\xc2\x9b2J \xe2\x80\xae \xe2\x80\xa8\n"), ['\x9b2J \x{202e} \x{2028}'],
        'but for characters that control something';
    is_deeply lines("caf\xe9 \x9b\n"),         ['caf\xe9 \x9b'],         'other bytes';
    is_deeply lines("[sirius 1] error: no\n"), ['[sirius 1] error: no'], 'a line like one of the server';
    my $all = join '', map {chr} 0 .. 255;
    my $got = join '', @{ lines("$all\n") };
    unlike $got, qr/[^\x20-\x7e]/, 'all bytes';
};

subtest 'long lines' => sub {
    my $long = join '', map { sprintf '%05d', $_ } 1 .. 6000;
    my $got  = lines( map( { substr $long, $_ * 1000, 1000 } 0 .. 29 ), "\nnext\n" );
    is join( '', @$got ),                      "${long}next", 'nothing is lost';
    is scalar( grep { length > 4096 } @$got ), 0,             'but none is longer than the limit';
    is $got->[-1],                             'next',        'and the next line is one';
    my $wide = "\xe2\x82\xac" x 3000;
    is join( '', @{ lines( substr( $wide, 0, 5000 ), substr $wide, 5000 ) } ), $wide, 'no character is torn';
    is join( '', @{ lines( "\x80" x 5000 ) } ), '\x80' x 5000,                        'nor must there be one';
    my ( $output, $write ) = output();
    syswrite $write, 'x' x 60_000;
    ok $output->hear, 'it can be read';
    is scalar @said, 1, 'one call for all lines';
    cmp_ok length $said[0],         '<',  17_000, 'of a piece';
    cmp_ok length $output->{begun}, '<=', 4096,   'not more is kept';
};

subtest 'its end' => sub {
    my ( $output, $write ) = output();
    ok $output->hear, 'nothing yet';
    syswrite $write, 'half';
    ok $output->hear, 'a part';
    is_deeply \@said, [], 'is kept';
    my $state = $output->state;
    is_deeply $state, { begun => 'half', handle => fileno $output->handle, name => 'jobs', pid => 7 },
        'for the next program';
    close $write;
    ok !$output->hear, 'the end of the file';
    $output->finish;
    is_deeply \@said, ["jobs[7]: half\n"], 'the rest';
    is $output->handle, undef, 'closed';
    ( $output, $write ) = output();
    local $SIG{PIPE} = 'IGNORE';
    my $bytes = 0;
    syswrite $write, "$_\n" x 8000 for 1 .. 4;
    $output->finish;
    ok !defined syswrite( $write, 'x' ), 'who goes on writing finds nobody';
};

done_testing;
