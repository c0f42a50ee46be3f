use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp ();
use POSIX      ();
use Sirius::CLI::Profile::Output;
use Sirius::Test;
use Test::More;

# What becomes of a file to which a profile is written

my $OUTPUT = 'Sirius::CLI::Profile::Output';
my $dir    = File::Temp->newdir( 'sirius-XXXXXX', TMPDIR => 1 );
my $file   = "$dir/file";
sub slurp { return Sirius::Test::Server::slurp(shift) }

sub there {
    return join q( ), sort map {s{.*/}{}r} glob "$dir/* $dir/.s*";
}

subtest 'A file' => sub {
    umask oct 22;
    my $output = $OUTPUT->new($file);
    is slurp($file), '', 'is made at once';
    $output->write('first');
    is slurp($file), 'first', 'and written';
    is( ( stat $file )[2] & 0777, oct 644, 'as the umask says' );
    chmod oct 640, $file or die $!;
    open my $old, '<', $file or die $!;
    $output = $OUTPUT->new($file);
    is slurp($file), 'first', 'of one that is there nothing is lost';
    $output->write("caf\xe9");
    is slurp($file),  "caf\xe9", 'until all is written';
    is readline $old, 'first',   'to a new file';
    is( ( stat $file )[2] & 0777, oct 640, 'of the same mode' );
    is there(), 'file', 'and no other is left';
    symlink 'file', "$dir/link" or die $!;
    $OUTPUT->new("$dir/link")->write('short');
    ok -l "$dir/link", 'a link stays';
    is slurp($file), 'short', 'and its file is written';
};

subtest 'Of another user' => sub {
    plan skip_all => 'needs root' if $>;
    chown 12, 13, $file or die $!;
    $OUTPUT->new($file)->write('theirs');
    is_deeply [ ( stat $file )[ 4, 5 ] ], [ 12, 13 ], 'it stays of that user';
    is slurp($file), 'theirs', 'and is written';
};

subtest 'No file' => sub {
    POSIX::mkfifo( "$dir/fifo", oct 600 ) or die $!;
    open my $reader, '+<', "$dir/fifo" or die $!;
    $OUTPUT->new("$dir/fifo")->write("through\n");
    is readline $reader, "through\n", 'a FIFO';
    ok -p "$dir/fifo",                      'stays one';
    ok !eval { $OUTPUT->new("$dir/no/x") }, 'no directory';
    is $@, "$dir/no/x: No such file or directory\n", 'and why';
    ok !eval { $OUTPUT->new('/dev/full')->write('x'); 1 }, 'no room';
    is $@, "/dev/full: No space left on device\n", 'and why';
};

# A program whose STDOUT is that
sub says {
    my $redirection = shift;
    my @include     = map {"-I$_"} @INC;
    return
        `$^X @include -MSirius::CLI::Profile::Output -e '$OUTPUT->new( \@ARGV )->write("new\n"); print STDERR "done\n"' $redirection`;
}

subtest 'STDOUT' => sub {
    is says('2>&1'),            "new\ndone\n",                                       'is written';
    is says('2>&1 >/dev/full'), "cannot write to STDOUT: No space left on device\n", 'no room';
    is says('2>&1 >&-'),        "cannot write to STDOUT: Bad file descriptor\n",     'it is closed';
    spew( $file, "old\n" );
    says("/dev/stdout 2>&1 >> $file");
    is slurp($file), "old\nnew\n", '/dev/stdout does not lose what is there';
};

done_testing;
