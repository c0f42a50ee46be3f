use strict;
use warnings;
use lib 't/lib';
use File::Temp qw(tempdir);
use IO::Handle ();
use POSIX      ();
use Test::More;
use Time::HiRes qw(sleep);
use Sirius;
use Sirius::Log;
use Sirius::Test;

my $dir   = tempdir( CLEANUP => 1 );
my $files = 0;
my $STAMP = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;

# The exit status of the code in a child, whose STDERR is the log. It ends as any program does
sub child {
    my $code = shift;
    my $pid  = fork;
    die $! if !defined $pid;
    if ( !$pid ) {
        $SIG{__WARN__} = 'DEFAULT';
        eval { $code->(); 1 } or print {*STDERR} $@;
        exit 0;
    }
    waitpid $pid, 0;
    return wantarray ? ( $?, $pid ) : $?;
}

sub content {
    my $file = shift;
    open my $fh, '<:raw', $file or return '';
    local $/ = undef;
    my $text = readline $fh;
    return defined $text ? $text : '';
}

# What the code leaves in a log, with PID for the PID and STAMP for the time
sub logged {
    my ( $code, %conf ) = @_;
    my $file = "$dir/" . ++$files;
    my ( $status, $pid ) = child( sub { Sirius::Log->open( { error_log => $file, %conf } ); $code->() } );
    my $text = content($file);
    $text =~ s/^$STAMP /STAMP /mg;
    $text =~ s/\b$pid\b/PID/g;
    return $status ? "status $status: $text" : $text;
}

subtest 'Time, process and level before each line' => sub {
    is logged( sub { print {*STDERR} "printed\n" } ),        "STAMP PID error printed\n", 'print';
    is logged( sub { printf {*STDERR} "%s\n", 'printed' } ), "STAMP PID error printed\n", 'printf';
    is logged( sub { warn "warned\n" } ),                    "STAMP PID warn warned\n",   'warn';
    is logged( sub { \*STDERR->print( 'in ', "parts\n" ) } ), "STAMP PID error in parts\n",
        'print with a list';
    is logged( sub { my $x; my $y = "$x\n" } ) =~ /\ASTAMP PID warn Use of uninitialized/, 1, 'a warning';
    is logged( sub { warn "one\ntwo\n\n" } ), "STAMP PID warn one\nSTAMP PID warn two\nSTAMP PID warn \n",
        'several lines';
    is logged( sub { Sirius::Log->note('started') } ), "STAMP PID notice sirius: started\n",
        'a line of the server has one prefix';
    is logged( sub { Sirius::Log->note("is here\n\tmain::app") } ),
        "STAMP PID notice sirius: is here\nSTAMP PID notice \tmain::app\n", 'its stack trace';
    is logged( sub { Sirius::Log->$_('happened') } ), "STAMP PID $_ sirius: happened\n", "its level: $_"
        for qw(error warn info);
    is logged( sub { Sirius::Log->error('happened') }, log_prefix => 0 ), "[sirius PID] error: happened\n",
        'without the prefix the line names it';
    is logged( sub { Sirius::Log->note('error while it rained') } ),
        "STAMP PID notice sirius: error while it rained\n", 'a word is no level';
    is logged( sub { print {*STDERR} "[sirius 12] passed on\n" } ), "STAMP 12 notice sirius: passed on\n",
        'a line of another process';
    is logged( sub { print {*STDERR} "$_\n" for '[sirius ] a', '[sirius 1]', '[sirius x] b', '[' } ),
        "STAMP PID error [sirius ] a\nSTAMP PID error [sirius 1]\nSTAMP PID error [sirius x] b\nSTAMP PID error [\n",
        'none of these';
    is logged( sub { die "died\n" } ), "STAMP PID error died\n", 'died';
};

subtest 'With and without' => sub {
    my $code = sub { print {*STDERR} 'a', 'b', "\n"; Sirius::Log->note('c') };
    is logged( $code, log_prefix => 0 ), "ab\n[sirius PID] c\n",                             'no prefix';
    is logged( $code, log_prefix => 1 ), "STAMP PID error ab\nSTAMP PID notice sirius: c\n", 'prefix';

    pipe my $read, my $write or die $!;
    for my $case ( [ {}, qr/sirius_log\(plain\)\z/ ], [ { log_prefix => 1 }, qr/sirius_log\(prefix\)\z/ ] ) {
        my ( $conf, $want ) = @$case;
        child( sub { Sirius::Log->open($conf); syswrite $write, join ' ', PerlIO::get_layers(*STDERR) } );
        sysread $read, my $got, 999;
        like $got, $want, 'without a file ' . join ' ', %$conf;
    }
    is logged( sub { Sirius::Log->close; Sirius::Log->close; warn "plain\n" } ), "plain\n", 'closed';
};

subtest 'Lines in parts' => sub {
    my $two = sub {
        STDERR->autoflush(1);
        print {*STDERR} 'one ';
        warn "two\n";
    };
    is logged($two), "STAMP PID error one two\n", 'held until the newline, whatever flushes';
    is logged( sub { print {*STDERR} 'last' } ), "STAMP PID error last\n",  'the end of the process ends it';
    is logged( sub { print {*STDERR} 'last' }, log_prefix => 0 ), "last\n", 'without prefix';
    is logged( sub { print {*STDERR} 'a'; Sirius::Log->note('b'); print {*STDERR} "c\n" } ),
        "STAMP PID error a\nSTAMP PID notice sirius: b\nSTAMP PID error c\n", 'a line of the server is whole';
    my $forks = sub {
        print {*STDERR} 'of the parent';
        child( sub { print {*STDERR} "of the child\n" } );
        child( sub { } );
        print {*STDERR} ", once\n";
    };
    like logged($forks), qr/\ASTAMP \d+ error of the child\nSTAMP PID error of the parent, once\n\z/,
        'a child has its own';

    my $long = 'x' x 65536;
    my $code = sub { print {*STDERR} $_ for split( /(.{1000})/, $long ), "\n" };
    is logged($code), "STAMP PID error $long\n", '64 KiB in parts';
    my @lines = split /\n/, logged( sub { print {*STDERR} $_ for ( 'y' x 1000 ) x 200, "\n" } );
    is length( join '', map {s/STAMP PID error //r} @lines ), 200_000, 'more than that is cut, and complete';
    is grep( {/\ASTAMP PID error y+\z/} @lines ),             @lines,  'all of it lines';
    cmp_ok length $lines[0], '>', 65536, 'not before 64 KiB';
    is logged( sub { print {*STDERR} 'z' x 100_000, "\n"; warn "\n" } ),
        'STAMP PID error ' . 'z' x 100_000 . "\nSTAMP PID warn \n", 'no empty line behind a cut';
};

subtest 'An application and its layers' => sub {
    my $euro = "\x{20ac}";
    for my $layer (qw(:utf8 :encoding(UTF-8) :raw:utf8)) {
        is logged( sub { binmode STDERR, $layer; print {*STDERR} "$euro\n"; STDERR->flush } ),
            "STAMP PID error \xe2\x82\xac\n", $layer;
    }
    my $deep = sub { binmode STDERR, ':encoding(UTF-8)'; print {*STDERR} 'x' x 30_000, "\n"; STDERR->flush };
    is logged($deep), 'STAMP PID error ' . 'x' x 30_000 . "\n", 'a long line through an encoding';
    is logged( sub { binmode STDERR; warn "a\n" } ),         "STAMP PID warn a\n", 'binmode';
    is logged( sub { binmode STDERR, ':pop'; warn "a\n" } ), "a\n",                'popped';
    is logged( sub { print {*STDERR} 'a'; binmode STDERR, ':pop'; warn "b\n" } ), "STAMP PID error a\nb\n",
        'popped in a line';
    is logged( sub { binmode STDERR, ':pop' for 1 .. 2; binmode STDERR, ':perlio'; print {*STDERR} "a\n" } ),
        "a\n", 'popped more, and pushed';
    is logged( sub { print {*STDERR} 'a'; close STDERR } ), "STAMP PID error a\n", 'closed';
    is logged( sub { close STDERR; open STDERR, '>', '/dev/null'; warn "a\n" } ), '', 'closed and opened';
    is logged( sub { close STDERR; warn "a\n"; Sirius::Log->note('b'); Sirius::Log->reopen } ), '',
        'closed and used';
    is logged( sub { open my $copy, '>&', \*STDERR; print {$copy} "a\n"; close $copy; warn "b\n" } ),
        "STAMP PID error a\nSTAMP PID warn b\n", 'a copy has it too';
    is logged( sub { local *STDERR; open STDERR, '>', \my $text; warn "a\n"; print {*STDOUT} '' } ), '',
        'in memory';
    is logged( sub { open my $fh, '>:sirius_log(prefix)', "$dir/own"; print {$fh} 'a' } ), '', 'on its own';
    like content("$dir/own"), qr/\A$STAMP \d+ error a\n\z/, 'works as well';
    is logged( sub { system 'echo a >&2'; warn "b\n" } ), "a\nSTAMP PID warn b\n", 'a program';
};

subtest 'A thread' => sub {
    require Config;
    plan skip_all => 'perl has no threads' if !$Config::Config{useithreads};
    my $code = sub {
        require threads;
        print {*STDERR} 'a';
        threads->create( sub { warn "b\n" } )->join;
        print {*STDERR} "c\n";
    };
    is logged($code), "STAMP PID warn b\nSTAMP PID error ac\n", 'its own lines';
};

subtest 'Reopened' => sub {
    my $file = "$dir/moving";
    my $code = sub {
        Sirius::Log->open( { error_log => $file, log_prefix => 0 } );
        print {*STDERR} "a\n", 'b';
        rename $file, "$file.1" or die $!;
        print {*STDERR} "b\n";
        Sirius::Log->reopen;
        print {*STDERR} "c\n";
    };
    is child($code),       0,         'right status';
    is content("$file.1"), "a\nbb\n", 'old file';
    is content($file),     "c\n",     'new file';

    mkdir "$dir/gone" or die $!;
    my $fails = sub {
        Sirius::Log->open( { error_log => "$dir/gone/log", log_prefix => 0 } );
        rename "$dir/gone", "$dir/there" or die $!;
        Sirius::Log->reopen;
        print {*STDERR} "a\n";
    };
    child($fails);
    like content("$dir/there/log"),
        qr{\A\[sirius \d+\] error: --error-log \Q$dir\E/gone/log: No such file or directory; logging continues .*\na\n\z},
        'goes on with the old one';

    is logged( sub { open STDERR, '>>', "$dir/elsewhere"; Sirius::Log->reopen; warn "a\n" } ), '',
        q(an application's own file)
        or diag content("$dir/elsewhere");
    like content("$dir/elsewhere"), qr/warn a\n\z/, 'is left alone';
    ok eval { Sirius::Log->reopen; 1 }, 'nothing to reopen';
};

subtest 'The file' => sub {
    my $file = "$dir/file";
    child( sub { umask oct 22; Sirius::Log->open( { error_log => $file } ); warn "a\n" } );
    is sprintf( '%o', ( stat $file )[2] & oct 7777 ), '640', 'not for everybody';
    child( sub { Sirius::Log->open( { error_log => $file } ); warn "b\n" } );
    like content($file), qr/ a\n.* b\n\z/, 'appended';
    eval { Sirius::Log->open( { error_log => "$dir/no/log" } ) };
    is $@,     "sirius: --error-log $dir/no/log: No such file or directory\n", 'right error';
    is 0 + $!, 1,                                                              'right exit status';
    my $gone = sub {
        Sirius::Log->open( { error_log => $file } );
        system 'ls -l /proc/self/fd >&2';
    };
    child($gone);
    my @inherited = content($file) =~ / (\d+) -> \Q$file\E$/mg;
    is_deeply \@inherited, [ 1, 2 ], 'programs inherit descriptor 2 alone';    # 1 is the shell's copy
SKIP: {
        skip 'for root', 2 if $>;
        child( sub { Sirius::Log->open( { error_log => "$dir/owned" }, 65534, 65533 ) } );
        is join( ':', ( stat "$dir/owned" )[ 4, 5 ] ), '65534:65533', 'a new one is given away';
        child( sub { Sirius::Log->open( { error_log => $file }, 65534, 65533 ) } );
        is join( ':', ( stat $file )[ 4, 5 ] ), "$<:" . ( $( + 0 ), 'another is not';
    }
};

subtest 'No line is lost or split while 8 workers write 100,000 lines and the log is rotated' => sub {
    my ( $file, $workers, $lines ) = ( "$dir/rotated", 8, 12_500 );
    my $big  = 'b' x 65536;
    my $code = sub {
        my @pids;
        Sirius::Log->open( { error_log => $file } );
        local $SIG{USR1} = sub { Sirius::Log->reopen };
        for my $worker ( 1 .. $workers ) {
            my $pid = fork;
            die $! if !defined $pid;
            push @pids, $pid and next if $pid;
            for my $n ( 1 .. $lines ) {
                print {*STDERR} "worker $worker line ", $n, ' ', $n % 1000 ? 'short' : $big, "\n";
            }
            exit 0;
        }
        for my $n ( 1 .. 5 ) {
            until_true( 10, sub { -s $file } );
            rename $file, "$file.$n" or die $!;
            Sirius::Log->reopen;
            kill USR1 => @pids;
        }
        waitpid $_, 0 for @pids;
    };
    child($code);
    my ( %seen, @wrong );
    for my $part ( glob "$file*" ) {
        open my $fh, '<', $part or die $!;
        while ( my $line = readline $fh ) {
            if ( $line =~ /\A$STAMP \d+ error (worker \d line \d+) (?:short|$big)\n\z/ ) { $seen{$1}++ }
            else { push @wrong, substr $line, 0, 200 }
        }
    }
    is_deeply \@wrong, [], 'none split';
    is keys %seen,                       $workers * $lines, 'none lost';
    is grep( { $_ != 1 } values %seen ), 0,                 'none twice';
    ok -e "$file.5", 'rotated';
};

done_testing;
