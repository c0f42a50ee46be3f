use strict;
use warnings;
use lib 't/lib';
use Test::More;
use File::Temp qw(tempdir);
use Sirius::Config::EnvFile;
use Sirius::Test::Server;

my $dir = tempdir( CLEANUP => 1 );

sub file {
    my ( $text, $name ) = @_;
    return Sirius::Test::Server::spew( "$dir/" . ( $name || 'env' ), $text );
}

# The variables of a file with this text, or the error
sub read_text {
    my %env;
    eval { Sirius::Config::EnvFile->read( file(shift) )->set( \%env ); 1 } and return \%env;
    my $error = $! + 0 == 2 ? $@ : "errno $!: $@";
    return $error =~ s/\Q$dir\E/DIR/gr;
}

subtest 'Values' => sub {
    my @case = (
        [ 'A=1',                       '1' ],
        [ "A=1\n",                     '1' ],
        [ "A=1\r\n",                   '1' ],
        [ "\xef\xbb\xbfA=1",           '1' ],
        [ 'export A=1',                '1' ],
        [ "\t export\t A=1",           '1' ],
        [ 'A = 1  ',                   '1' ],
        [ 'A=',                        '' ],
        [ 'A=   ',                     '' ],
        [ q(A=''),                     '' ],
        [ 'A=""',                      '' ],
        [ 'A=a b  c',                  'a b  c' ],
        [ 'A=a=b==',                   'a=b==' ],
        [ 'A=#ff0000',                 '#ff0000' ],
        [ 'A=x#y',                     'x#y' ],
        [ 'A=x #y',                    'x' ],
        [ "A=x\t# y",                  'x' ],
        [ 'A= # y',                    '' ],
        [ q(A=it's),                   q(it's) ],
        [ 'A=a\nb',                    'a\nb' ],
        [ 'A=$HOME ${B} `c`',          '$HOME ${B} `c`' ],
        [ q(A=' a "b" #c\n$d '),       ' a "b" #c\n$d ' ],
        [ q(A='x' # y),                'x' ],
        [ q(A='x'#y),                  'x' ],
        [ q(A='x'  ),                  'x' ],
        [ 'A="a\nb\tc\rd"',            "a\nb\tc\rd" ],
        [ 'A="\"\\\\\$\`\x\'"',        q("\\$`\x') ],
        [ 'A="\\\\n"',                 '\n' ],
        [ "A=\"one\ntwo\n\"\nB=2",     "one\ntwo\n" ],
        [ "A='one\ntwo'\nB=2",         "one\ntwo" ],
        [ "A=1\nA=2",                  '2' ],
        [ "A=\xc3\xa4\xff",            "\xc3\xa4\xff" ],
        [ 'A="' . 'x' x 100_000 . '"', 'x' x 100_000 ],
        [ 'A=' . 'x' x 100_000,        'x' x 100_000 ],
        [ 'A="' . '\n' x 50_000 . '"', "\n" x 50_000 ],
    );
    for my $case (@case) {
        my ( $text, $want ) = @$case;
        my $env  = read_text($text);
        my $name = substr( $text, 0, 30 ) =~ s/[^ -~]/?/gr;
        is ref $env ? $env->{A} : $env, $want, $name;
        is $env->{B},                   2,     'and the next' if $text =~ /B=2/;
    }
    is_deeply read_text("# A=1\n\n  ; B=2\n   \n#\nC=3\n"), { C => 3 }, 'comments and empty lines';
    is_deeply read_text(''),                                {},         'an empty file';
    is_deeply read_text("_a1=1\nB_2=2"),                    { _a1 => 1, B_2 => 2 }, 'names';
};

subtest 'Errors name the line and do not show it' => sub {
    my $form = 'not NAME=VALUE, where NAME consists of letters, digits and underscores';
    my @case = (
        [ "A=1\nsk_live_secret\n",         2, $form ],
        [ "A=1\n\n1B=secret\n",            3, $form ],
        [ 'A-B=secret',                    1, $form ],
        [ '=secret',                       1, $form ],
        [ "export secret",                 1, $form ],
        [ "A=\"x\ny\"\n# c\nsecret",       4, $form ],
        [ qq(A="secret\nB=1\n),            1, 'the quote " is not closed' ],
        [ qq(X=1\nA='secret\nB=1\n),       2, q(the quote ' is not closed) ],
        [ qq(X=1\nA="x" secret\n),         2, 'there is more text after the quoted value of A' ],
        [ qq(X=1\nY=2\nA="secret\0"\nB=1), 3, 'contains a NUL byte' ],
    );
    for my $case (@case) {
        my ( $text, $line, $why ) = @$case;
        is read_text($text), "sirius: --env-file DIR/env, line $line: $why\n", $why;
    }
    my $read = sub {
        eval { Sirius::Config::EnvFile->read(@_); 1 } and return 'read';
        return ( $! + 0 ) . ": $@";
    };
    is $read->("$dir/none"), "2: sirius: --env-file $dir/none: No such file or directory\n", 'no file';
    is $read->($dir),        "2: sirius: --env-file $dir: is a directory\n",                 'a directory';
};

subtest 'Who wins' => sub {
    my ( $one, $two ) = ( file( "A=1\nB=1\nC=1\n", 'one' ), file( "\nB=2\nC=2\n", 'two' ) );
    my %env   = ( A => '', C => 'there' );
    my %place = Sirius::Config::EnvFile->read( $one, $two )->set( \%env );
    is_deeply \%env,   { A => '', B => 2, C => 'there' }, 'what is there, then the last file';
    is_deeply \%place, { B => "$two, line 2" },           'where it was';
};

done_testing;
