use strict;
use warnings;
use lib 't/lib';
use File::Temp qw(tempdir);
use POSIX      ();
use Test::More;
use Sirius::Service::Daemon;
use Sirius::Test;

my $dir = tempdir( CLEANUP => 1 );

# Runs the command that becomes a daemon, with the code in it; STDOUT and STDERR are pipes, or the files that
# are named. Returns its status and the two pipes
sub command {
    my ( $code, %file ) = @_;
    pipe my $stdout, my $out or die $!;
    pipe my $stderr, my $err or die $!;
    my $pid = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        POSIX::dup2( fileno $out, 1 );
        POSIX::dup2( fileno $err, 2 );
        close $_ for $stdout, $stderr, $out, $err;
        for my $fd ( keys %file ) {
            open my $fh, '>', $file{$fd} or die $!;
            POSIX::dup2( fileno $fh, $fd );
        }
        my $status = 1;
        eval {
            my $daemon = Sirius::Service::Daemon->start;
            put( 'pid', $$ );
            $status = $code->($daemon);
            1;
        } or print {*STDERR} $@;
        STDERR->flush;
        POSIX::_exit($status);
    }
    close $_ for $out, $err;
    waitpid $pid, 0;
    my $status = $? >> 8;
    return ( $status, $stdout, $stderr, Sirius::Test::Server::slurp("$dir/pid") );
}

# Whole or not at all
sub put {
    my ( $name, $text ) = @_;
    rename spew( "$dir/$name.new", $text ), "$dir/$name" or die $!;
    return;
}

sub reset_dir { return unlink glob "$dir/*" }

sub until_told {
    my $name = shift;
    until_true( 30, sub { -e "$dir/$name" } );
    return Sirius::Test::Server::slurp("$dir/$name");
}

# A daemon that is told to end by a file, and does not outlive the test
sub until_end {
    until_true( 60, sub { -e "$dir/end" || !-e $dir } );
    return 0;
}

subtest 'Ready' => sub {
    reset_dir();
    my $code = sub {
        my $daemon = shift;
        print {*STDERR} "loading\n";
        print {*STDOUT} "hello\n";
        $daemon->ready;
        print {*STDERR} "after\n";
        my $session = ( split ' ', Sirius::Test::Server::slurp('/proc/self/stat') =~ s/.*\) //sr )[3];
        put( 'facts', join ' ', $session, map { readlink "/proc/self/fd/$_" } 0 .. 2 );
        $daemon->ready;
        return until_end();
    };
    my ( $status, $stdout, $stderr, $pid ) = command($code);
    is $status, 0, 'right status';
    is join( '', readline $stderr ), "loading\n", 'what it said until then, and nobody holds the pipe';
    is join( '', readline $stdout ), "hello\n",   'on STDOUT as well';
    my ( $session, @descriptors ) = split ' ', until_told('facts');
    is_deeply \@descriptors, [ ('/dev/null') x 3 ], 'detached';
    isnt $session, $pid, 'does not lead its session: it can get no terminal';
    ok kill( 0, $pid ), 'alive';
    put( 'end', '' );
};

subtest 'Failed' => sub {
    for my $case (
        [ sub { shift->failed(3); return 0 },                            3, '',             'with a status' ],
        [ sub { shift->failed; return 0 },                               1, '',             'without' ],
        [ sub { die "sirius: no\n" },                                    1, "sirius: no\n", 'died' ],
        [ sub { print {*STDERR} "killed\n"; kill KILL => $$; sleep 60 }, 1, "killed\n",     'was killed' ],
        [ sub { return 0 },                                              1, '',             'just ended' ],
        )
    {
        my ( $code, $want, $text, $name ) = @$case;
        reset_dir();
        my ( $status, undef, $stderr ) = command($code);
        is $status,                      $want, $name;
        is join( '', readline $stderr ), $text, 'what it said';
    }
};

subtest 'Children that were forked before' => sub {
    reset_dir();
    my $code = sub {
        my $daemon = shift;
        my $child  = fork;
        die $! if !defined $child;
        if ( !$child ) {
            $daemon->ready;    # not its business
            put( 'child', $$ );
            return until_end();
        }
        until_true( 30, sub { -e "$dir/child" } );
        print {*STDERR} "waited\n";
        $daemon->ready;
        waitpid $child, 0;
        return 0;
    };
    my ( $status, $stdout, $stderr ) = command($code);
    is $status, 0, 'right status';
    is join( '', readline $stderr ), "waited\n", 'no child holds STDERR';
    is join( '', readline $stdout ), '',         'nor STDOUT';
    put( 'end', '' );
};

subtest 'STDERR is a log' => sub {
    for my $case ( [ 'a file of the shell', {}, 2 => "$dir/log" ], [ 'as it is told', { keep_stderr => 1 } ] )
    {
        my ( $name, $args, %file ) = @$case;
        reset_dir();
        my $code = sub { shift->ready(%$args); print {*STDERR} "after\n"; return 0 };
        my ( $status, $stdout, $stderr ) = command( $code, %file );
        until_true( 30, sub { -s "$dir/log" } ) if %file;
        is $status, 0, $name;
        is join( '', %file ? Sirius::Test::Server::slurp("$dir/log") : readline $stderr ), "after\n", 'kept';
        is join( '', readline $stdout ), '', 'STDOUT is not';
    }
    reset_dir();
    my $code = sub {
        my $daemon = shift;
        open STDERR, '>', "$dir/log" or die $!;
        $daemon->ready;
        print {*STDERR} "after\n";
        STDERR->flush;
        return 0;
    };
    my ( $status, undef, $stderr ) = command($code);
    is $status,                      0,  'opened by the application';
    is join( '', readline $stderr ), '', 'nothing else';
    ok until_true( 30, sub { Sirius::Test::Server::slurp("$dir/log") eq "after\n" } ), 'kept';
};

done_testing;
