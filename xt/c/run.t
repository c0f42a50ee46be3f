# Compiles and runs xt/c/*.c with src, sanitizers on: one subtest per program. No Perl in src, none in them.
#   dev/test xt/c/run.t :: queue ring             these programs only
#   CC=clang CFLAGS=-O2 prove xt/c/run.t          another compiler, more flags
#   SIRIUS_C_DIR=/tmp/x CFLAGS=--coverage ...    build in another folder than build/c
#   CC=s390x-linux-gnu-gcc SIRIUS_C_RUN=qemu-s390x-static ...
#                                                for another machine, each program run by that command; dev/machines does it
# Objects are kept, and compiled again when their source, a header or the flags have changed. For single
# programs only those files of src are compiled that define what they call.
use strict;
use warnings;
use Config;
use Fcntl                 qw(LOCK_EX);
use File::Basename        qw(basename dirname);
use File::Path            qw(make_path);
use File::Spec::Functions qw(catfile rel2abs);
use File::Temp            qw(tempdir);
use POSIX                 ();
use Test::More;

my $here = dirname( rel2abs(__FILE__) );
my $root = dirname( dirname($here) );
my @cc   = split ' ', $ENV{CC}           || 'cc';
my @by   = split ' ', $ENV{SIRIUS_C_RUN} || '';
my ( $dir, $lock ) = build_dir();
my @libraries;
my @flags = (
    qw(-std=gnu11 -Wall -Wextra -Werror -g -pthread),
    "-I$root/src", seccomp(), tls(), http2(), sanitizers(), split ' ', $ENV{CFLAGS} || ''
);

# Exit code and output of a command, standard error included
sub run {
    my @command = @_;
    my $pid     = open my $out, '-|' // die "fork: $!";
    if ( !$pid ) {
        open STDERR, '>&', \*STDOUT;
        alarm( $ENV{SIRIUS_C_SECONDS} || 300 );    # also of the program that follows
        exec @command or print "$command[0]: $!\n" and exit 127;
    }
    my $text = do { local $/; <$out> }
        // '';
    close $out;
    return $?, $text;
}

# Another run in the same folder waits. A folder that cannot be written, such as that of a package, is left
# alone.
sub build_dir {
    my $path = $ENV{SIRIUS_C_DIR} || catfile( $root, qw(build c) );
    eval { make_path($path); 1 } && open my $file, '>', catfile( $path, 'lock' )
        or return tempdir( CLEANUP => 1 );
    flock $file, LOCK_EX or die "flock: $!";
    return $path, $file;
}

# Whether an object is newer than the files that it was made from, which the compiler has listed
sub is_current {
    my $object = shift;
    my $made   = ( stat $object )[9] or return;
    my ( undef, @from ) = split /\s*\\?\s+/, slurp("$object.d");
    for (@from) {
        my $changed = ( stat $_ )[9];
        return if !$changed || $changed >= $made;
    }
    return @from > 0;
}

# Objects of other flags or another compiler are of no use
sub forget_others {
    my $file  = catfile( $dir, 'flags' );
    my $flags = join "\n", @cc, @flags, ( run( @cc, '--version' ) )[1];
    return if slurp($file) eq $flags;
    unlink glob catfile( $dir, '*.o' );
    open my $out, '>', $file or die "$file: $!";
    print $out $flags;
    close $out or die "$file: $!";
    return;
}

# As Makefile.PL has them
sub seccomp {
    return linked( 'SR_SECCOMP',
        "#include <seccomp.h>\nint main(void) { return !seccomp_init(SCMP_ACT_ALLOW); }", '-lseccomp' );
}

sub tls {
    return linked(
        'SR_TLS',
        "#include <openssl/ssl.h>\nint main(void) { return !OPENSSL_init_ssl(0, 0); }",
        qw(-lssl -lcrypto)
    );
}

sub http2 {
    my $include = '#include <nghttp2/nghttp2.h>';
    my $option  = "$include\nint main(void) { nghttp2_option *o = 0; nghttp2_option_set_";
    return (
        linked( 'SR_HTTP2',        "$include\nint main(void) { return !nghttp2_version(0); }", '-lnghttp2' ),
        linked( 'SR_HTTP2_RESETS', "${option}stream_reset_rate_limit(o, 1, 1); }",             '-lnghttp2' ),
        linked( 'SR_HTTP2_CONTINUATIONS', "${option}max_continuations(o, 1); }",               '-lnghttp2' ),
    );
}

sub linked {
    my ( $name, $text, @with ) = @_;
    my $source = catfile( $dir, "$name.probe.c" );
    open my $file, '>', $source or die "$source: $!";
    print $file "$text\n";
    close $file;
    my ($code) = run( @cc, '-o', catfile( $dir, "$name.probe" ), $source, @with );
    push @libraries, @with if !$code;
    return $code ? () : "-D$name";
}

# None where they do not link: a minimal container
sub sanitizers {
    my $source = catfile( $dir, 'probe.c' );
    open my $file, '>', $source or die "$source: $!";
    print $file "int main(void) { return 0; }\n";
    close $file;
    my @wanted = ( '-fsanitize=address,undefined', '-fno-sanitize-recover=all' );
    my ($code) = run( @cc, @wanted, '-o', catfile( $dir, 'probe' ), $source );
    return $code ? () : @wanted;
}

# Two compilers at a time; a source that does not compile fails here, and only the programs that need it
sub compile_all {
    my @sources = @_;
    my ( %running, @failed, @objects );
    my $reap = sub {
        my $pid = waitpid -1, 0;
        my $job = delete $running{$pid} or return;
        push @{ $? ? \@failed : \@objects }, $job;
    };
    for my $source (@sources) {
        ( my $object = $source ) =~ s{^\Q$root\E/}{};
        $object =~ tr{/}{_};
        my $job = { source => $source, object => catfile( $dir, "$object.o" ) };
        if ( is_current( $job->{object} ) ) {
            push @objects, $job;
            next;
        }
        $reap->() while keys %running >= 2;
        my $pid = fork // die "fork: $!";
        if ( !$pid ) {
            open STDERR, '>', "$job->{object}.log";
            exec @cc, @flags, qw(-MMD -MF), "$job->{object}.d", '-c', '-o', $job->{object}, $source
                or POSIX::_exit(127);
        }
        $running{$pid} = $job;
    }
    $reap->() while %running;
    return \@objects, \@failed;
}

# These programs, and the files of src that define what they and those files call
sub compile_needed {
    my ( $src, @sources ) = @_;
    my ( %defined_in, %seen, @objects, @failed );
    for my $source (@$src) {
        my @names = slurp($source) =~ /^(?!static\b)\w[\w *]*?\b(sr_\w+)[(\[ ;]/mg;
        push @{ $defined_in{$_} }, $source for @names;
    }
    while (@sources) {
        @seen{@sources} = ();
        my ( $made, $broken ) = compile_all(@sources);
        push @objects, @$made;
        push @failed,  @$broken;
        my ( undef, $symbols ) = @$made ? run( tool('nm'), '-u', map { $_->{object} } @$made ) : ();
        my %next = map { $_ => 1 } map { @{ $defined_in{$_} || [] } } ( $symbols // '' ) =~ /\bU (sr_\w+)/g;
        @sources = grep { !exists $seen{$_} } sort keys %next;
    }
    return \@objects, \@failed;
}

# The one that knows what this compiler makes
sub tool {
    my $name = shift;
    my ( $code, $path ) = run( @cc, "-print-prog-name=$name" );
    return !$code && $path =~ /\A(.+)\n\z/ ? $1 : $name;
}

sub library {
    my @objects = map { $_->{object} } grep { $_->{source} !~ m{^\Q$here\E/} } @_;
    my $library = catfile( $dir, 'libsirius.a' );
    unlink $library;
    is system( tool('ar'), 'rcs', $library, @objects ), 0, q(src);
    return $library;
}

sub linked_with {
    my ( $program, $object, $library ) = @_;
    return run( @cc, @flags, '-o', $program, $object, $library, @libraries );
}

# For the list of dev/test
sub left_out {
    my ( $program, $what ) = @_;
    return if !defined $ENV{SIRIUS_TEST_LEFT_OUT};
    open my $file, '>>', $ENV{SIRIUS_TEST_LEFT_OUT} or die "$ENV{SIRIUS_TEST_LEFT_OUT}: $!";
    syswrite $file, "xt/c/run.t: $program: $what\n";
    return;
}

sub slurp {
    open my $file, '<', shift or return '';
    local $/;
    return <$file> // '';
}

plan skip_all => 'no C compiler' if ( run( @cc, '--version' ) )[0];

my %wanted = map  { $_ => 1 } @ARGV;
my @tests  = grep { !@ARGV || delete $wanted{ basename( $_, '.c' ) } } sort glob "$here/*.c";
BAIL_OUT("there is no program $_ in $here") for sort keys %wanted;
forget_others();
my @src = sort glob "$root/src/*/*.c";
my ( $objects, $failed ) = @ARGV ? compile_needed( \@src, @tests ) : compile_all( @tests, @src );
fail "$_->{source} compiles" or diag slurp("$_->{object}.log") for @$failed;

my $library  = library(@$objects);
my $complete = !@ARGV;
my %object   = map { $_->{source} => $_->{object} } @$objects;
for my $test ( grep { $object{$_} } @tests ) {
    my $name    = basename( $test, '.c' );
    my $program = catfile( $dir, $name );
    subtest $name => sub {
        my ( $code, $output ) = linked_with( $program, $object{$test}, $library );
        if ( $code && !$complete++ ) {
            ($objects) = compile_all(@src);
            $library = library(@$objects);
            ( $code, $output ) = linked_with( $program, $object{$test}, $library );
        }
        is $code, 0, "$name links" or return diag $output;
        ( $code, $output ) = run( @by, $program );
        my ( $count, $say ) = ( 0, $code ? \&diag : \&note );
        for ( split /\n/, $output ) {
            left_out( $name, $1 ) if /^ok \d+ - skipped: (.*)/;
            if    (/^(not )?ok \d+ - (.*)/) { $count++; ok !$1, $2 }
            elsif (/^1\.\.(\d+)/)           { is $count, $1, 'the whole plan was run' }
            elsif (/^1\.\.0 # SKIP ?(.*)/i) { pass "skipped: $1" }
            else                            { $say->($_) }
        }
        is $code, 0, "$name exits with 0";
    };
}

done_testing;
