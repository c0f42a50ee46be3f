# Folders are floors: no file of src and xs includes, and no object calls, what lies above it. One table says
# which floor lies above which, and a second what breaks that today: a line of it that is not needed any more
# fails too. The files of a folder are in order as well: none calls one that comes after it, so that no files
# call each other in a circle.
use strict;
use warnings;
use Config;
use File::Basename        qw(dirname);
use File::Spec::Functions qw(rel2abs);
use File::Temp            qw(tempdir);
use Test::More;

my $root = dirname( dirname( dirname( rel2abs(__FILE__) ) ) );
chdir $root or die "$root: $!";

# From the ground up; sirius-edge is src/sirius-edge.c, the program
my @FLOORS
    = qw(base http http1 net static share log worker transport conn live h1 h2 websocket edge xs sirius-edge);

# "from to" => why, and what ends it. Floors of one shelf that know nothing of each other
my %APART = (
    'conn worker'      => 'a worker of an edge has no connection of a client',
    'h1 worker'        => 'which knows no version of HTTP',
    'h2 worker'        => 'likewise',
    'h2 h1'            => 'each knows its version',
    'websocket worker' => 'likewise',
    'websocket h1'     => 'WebSockets are the same in each version',
    'websocket h2'     => 'likewise',
    'transport worker' => 'nor a transport',
    'xs conn'          => 'nor has perl',
    'xs h1'            => 'nor has perl',
    'xs h2'            => 'nor has perl',
    'xs websocket'     => 'nor has perl',
    'xs transport'     => 'nor has perl',
    'xs live'          => 'nor has perl',
    'xs static'        => 'files are sent without perl',
    'xs edge'          => 'perl is in no process with an edge',
);

# Upward today: "file of the one folder/file of the other" => reason. Empty is best.
my %EXCEPTION = ();

# The files of each folder, from the ground up: each calls only those before it
my %ORDER = (
    base => 'base64 buffer random resident syscalls',
    http =>
        'date method status token coding condition range fold priority response page started target traced forwarded grip',
    http1 => 'chunked write framing head ownhead',
    net   =>
        'bell descriptors beneath passing gate hangup inotify nosignal peer sockets packets lookout pidfd self sendfile signalfd beside cidr lease loop needed proxyline tempfile memfile timerfd unsent',
    share =>
        'counters exceptions paths futex lobby door facts layout memory sleepers ring scoreboard queue item',
    log       => 'syslog sink outlet text time format parse values',
    static    => 'path types mount fields find',
    transport => 'aead keyset pair keyfiles records tlsset tls',
    worker    => 'line edges reply publish worker',
    conn      =>
        'spools engine identity extra trouble deadline client listener pump parting output body accesslog exchange account send joined connection capacity '
        . 'proxyhead relay linger slowest leased intake expire handshake accept lifetime',
    live      => 'timer channel subscriber clients recent fanout live move hold',
    h1        => 'put end refuse decode read h1',
    h2        => 'state allocator priority numbers flood put refuse request tunnel session read h2',
    websocket =>
        'sha1 utf8 json opening wsframe wsevent wscontrol eventhead errand wscarrier wsread wsaccept wsorders wsanswer wsask wsmove websocket',
    edge =>
        'lanerules holder log answer others turns lanes entry presence text calls census report publish deliver crew files plain upgrade dispatch failures heir '
        . 'keys limits slow mend stop edge keeper rights sandbox setup',
    xs =>
        'alone row ending hold input lazy envpool env logview logformat accesslog call turn requestid socket site file said log report text trim '
        . 'unchunk grip wire stream response forwarded responder memory shared serve publish work requestloop remote place loading naming pass '
        . 'poll scoreboard signals spawn target window lookup operand identity given known snapshot seam callsite judge leaf sampler title calls',
);

my ( %level, %place );
for my $folder ( keys %ORDER ) {
    my @names = split q{ }, $ORDER{$folder};
    @place{ map { $folder eq 'xs' ? "xs/$_.c" : "src/$folder/$_.c" } @names } = 0 .. $#names;
}
@level{@FLOORS} = 0 .. $#FLOORS;

sub folder {
    my $path = shift;
    return 'sirius-edge' if $path eq 'src/sirius-edge.c';
    return $path =~ m{\A(?:src/(\w+)|(xs))/} ? $1 // $2 : undef;
}

sub slurp {
    my $file = shift;
    open my $in, '<', $file or die "$file: $!";
    local $/;
    return readline $in;
}

# Undef when it may; else what is wrong
sub wrong {
    my ( $from, $to ) = map { folder($_) } @_;
    return                        if $from eq $to;
    return "$from lies below $to" if $level{$from} < $level{$to};
    return $APART{"$from $to"};
}

my @files = sort glob 'src/*/*.[ch] src/*.c xs/*.[ch] xs/*.xs';
cmp_ok scalar @files, '>', 100, scalar(@files) . ' files';
my @unknown = grep { !defined folder($_) || !defined $level{ folder($_) } } @files;
is "@unknown", '', 'each lies on a floor that the table knows';

# Whether a file calls one of its folder that comes after it
sub climbs {
    my ( $from, $to ) = @_;
    return if folder($from) ne folder($to) || !defined $place{$from} || !defined $place{$to};
    return $place{$from} < $place{$to};
}

# A file for systems other than Linux has the place of that for Linux
my %in_order = map { s/_portable[.]c\z/.c/r => 1 }
    grep { m{\A(?:src/.+|xs)/} && /\.c\z/ && $_ ne 'xs/Sirius.c' } @files;
is join( "\n", sort keys %place ), join( "\n", sort keys %in_order ),
    'each file has its place in the order of its folder';

my ( %upward, %used );

sub judge {
    my ( $from, $to, $how ) = @_;
    my $why = wrong( $from, $to ) or return;
    $EXCEPTION{"$from $to"} ? $used{"$from $to"}++ : ( $upward{"$from $how $to: $why"} = 1 );
    return;
}

my $includes = 0;
for my $file (@files) {
    for my $name ( slurp($file) =~ /^[ \t]*#[ \t]*include[ \t]+"([^"]+)"/mg ) {
        my ($path) = grep {-f} map { 1 while s{[^/]+/\.\./}{}; $_ } dirname($file) . "/$name", "src/$name",
            "xs/$name";
        next if !$path;    # of perl, or made by xsubpp
        $includes++;
        judge( $file, $path, 'includes' );
    }
}
is join( "\n", sort keys %upward ), '', "none of $includes includes goes upward";

# Calls and data: what an object needs, and who has it
my $dir = tempdir( CLEANUP => 1 );
my ( %home, %needs );
my $newest = ( sort { $b <=> $a } map { ( stat $_ )[9] } grep {/\.h\z/} @files )[0];
for my $source ( grep {/\.c\z/} @files ) {
    ( my $object = "build/$source" ) =~ s/\.c\z/.o/;
    my $built = ( stat $object )[9] // 0;
    if ( $built < $newest || $built < ( stat $source )[9] ) {
        next if $source                =~ m{\Axs/};    # needs perl's flags; what make has built is judged
        ( $object = "$dir/$source.o" ) =~ s{/(?=[^/]*/|[^/]*\z)}{_}g;
        $object = "$dir/" . ( $source =~ tr{/}{_}r ) . '.o';
        is system( $Config{cc}, '-std=gnu11', '-D_GNU_SOURCE', '-Isrc', '-c', '-o', $object, $source ), 0,
            "$source compiles"
            or next;
    }
    for ( split /\n/, `nm -P $object` ) {
        my ( $symbol, $type ) = split;
        $needs{$source}{$symbol} = 1       if $type eq 'U';
        $home{$symbol}           = $source if $type =~ /\A[A-TV-Z]\z/ && $type ne 'W';
    }
}
cmp_ok scalar keys %home, '>', 300, keys(%home) . ' symbols';
%upward = ();
my $calls = 0;
my %climbing;
for my $source ( sort keys %needs ) {
    for my $symbol ( sort keys %{ $needs{$source} } ) {
        my $to = $home{$symbol} or next;
        $calls++;
        judge( $source, $to, "uses $symbol of" );
        $climbing{"$source uses $symbol of $to"} = 1 if climbs( $source, $to );
    }
}

# Inline functions are in no object: each name in the text of a file counts. A header has the place of its
# source
my %inline;
my %text = map { $_ => slurp($_) =~ s{/\*.*?\*/}{}grs =~ s{"(?:\\.|[^"\\])*"}{}gr } @files;
for my $header ( grep {/\.h\z/} @files ) {
    $inline{$_} = $header =~ s/\.h\z/.c/r for $text{$header} =~ /^static inline [^;{}()]*?\b(\w+)\(/mg;
}
cmp_ok scalar keys %inline, '>', 100, keys(%inline) . ' inline functions';
for my $file (@files) {
    my $from = $file =~ s/\.h\z/.c/r;
    my %seen;
    for my $name ( grep { $inline{$_} && !$seen{$_}++ } $text{$file} =~ /\b(\w+)\b/g ) {
        next                                                if $inline{$name} eq $from;
        $climbing{"$file uses $name of $inline{$name}"} = 1 if climbs( $from, $inline{$name} );
    }
}
cmp_ok $calls, '>', 300, "$calls uses of one file's symbols by another";
is join( "\n", sort keys %upward ),   '', 'none goes upward';
is join( "\n", sort keys %climbing ), '', 'no file uses one of its folder that comes after it';
is join( "\n", grep { !$used{$_} } sort keys %EXCEPTION ), '', 'no exception that is not needed';

# The test itself: what goes upward is told
is wrong( 'src/base/buffer.c', 'src/conn/engine.h' ), 'base lies below conn',
    'a file of the ground that includes the engine';
is wrong( 'src/edge/edge.c', 'src/conn/engine.h' ), undef, 'and not one above it';
like wrong( 'xs/work.c', 'src/edge/edge.h' ), qr/no process/, 'nor does xs reach into the edge';
ok climbs( 'src/conn/engine.c',    'src/conn/lifetime.c' ), 'a file that calls one after it';
ok !climbs( 'src/conn/lifetime.c', 'src/conn/engine.c' ),   'and not one before it';

done_testing;
