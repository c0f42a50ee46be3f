# What C and Perl both spell: numbers, causes, states and the words of reports. Each is the same on both
# sides, and whatever in lib names a constant or a file of src beside a number has its row here.
use strict;
use warnings;
use Config;
use File::Find qw(find);
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin: $!";

sub slurp {
    my $file = shift;
    open my $in, '<', $file or die "$file: $!";
    local $/ = undef;
    return readline $in;
}

# Where Perl has it, as a pattern with one group => constants of C; "<=": Perl allows no more than C can take
#<<< not in columns
my @NUMBERS = (
    [ 'Sirius/Edge/Place.pm', qr/\bTERM => (\d+)/, 'SR_EDGE_STOP' ],
    [ 'Sirius/Edge/Place.pm', qr/\bINT => (\d+)/, 'SR_EDGE_STOP_NOW' ],
    [ 'Sirius/Edge/Place.pm', qr/\bUSR1 => (\d+)/, 'SR_EDGE_CLOSE' ],
    [ 'Sirius/Edge/Setup.pm', qr/%HOLD = .*all => (\d+)/, 'SR_HOLDS_ALL' ],
    [ 'Sirius/Edge/Setup.pm', qr/%HOLD = .*own => (\d+)/, 'SR_HOLDS_OWN' ],
    [ 'Sirius/Edge/Setup.pm', qr/%INFORMATIONAL = .*direct => (\d+)/, 'SR_INFORMATIONAL_DIRECT' ],
    [ 'Sirius/Edge/Setup.pm', qr/%INFORMATIONAL = .*on => (\d+)/, 'SR_INFORMATIONAL_ON' ],
    [ 'Sirius/Edge/Setup.pm', qr/%INFORMATIONAL = .*off => (\d+)/, 'SR_INFORMATIONAL_OFF' ],
    [ 'Sirius/Edge/Types.pm', qr/TYPE_MAX => (\d+)/, 'SR_TYPE_MAX' ],
    [ 'Sirius/Config/Static.pm', qr/FOLDERS_MAX => (\d+)/, 'SR_MOUNTS_MAX' ],
    [ 'Sirius/Config/Lane.pm', qr/LANES_MAX => (\d+)/, 'SR_LANES_MAX' ],
    [ 'Sirius/Config/Lane.pm', qr/TEXT_MAX => (\d+)/, 'SR_LANE_TEXT_MAX' ],
    [ 'Sirius/Config/Values.pm', qr/SLOTS_MAX => ([\d_]+)/, '<= SR_QUEUE_SLOTS_MAX' ],
    [ 'Sirius/Config/Static.pm', qr/CHARSET_MAX => (\d+)/, 'SR_CHARSET_MAX' ],
    [ 'Sirius/Config/Type.pm', qr/> (\d+);\s*# SR_LISTENERS_MAX/, 'SR_LISTENERS_MAX' ],
    [ 'Sirius/Config/Type.pm', qr/> (\d+);\s*# SR_CIDRS_MAX/, 'SR_CIDRS_MAX' ],
    [ 'Sirius/Config/Options.pm', qr/'workers', 'workers'.*max => (\d+)/, '<= SR_SLEEPERS_ROWS' ],
    [ 'Sirius/Config/Options.pm', qr/'edges', 'edges'.*max => (\d+)/, '<= SR_EDGES_MAX' ],
    [ 'Sirius/Config/Options.pm', qr/'max-queue', .*max => ([\d_]+)/, '<= SR_QUEUE_SLOTS_MAX' ],
    [ 'Sirius/Config/Options.pm', qr/'max-header-fields', .*max => (\d+)/, '<= SR_REQUEST_FIELDS_MAX' ],
    [ 'Sirius/Config/Options.pm', qr/'max-header-bytes', .*max => ([\d <]+)/, '<= SR_HEAD_MAX' ],
    [ 'Sirius/Config/Options.pm', qr/'max-request-line', .*max => ([\d <]+)/, '<= SR_HEAD_MAX' ],
    [ 'Plack/Handler/Sirius.pm', qr/\bSLOT => (\d+)/, 'SR_SLOT_BYTES' ],
    [ 'Plack/Handler/Sirius.pm', qr/\bSPARE => (\d+)/, 'src/edge/edge.c SPARE_SLOTS' ],
    [ 'Sirius/CLI/Check/Limits.pm', qr/\bSPARE => (\d+)/, 'src/conn/capacity.c SPARE' ],
    [ 'Sirius/CLI/Check/Limits.pm', qr/\bSPARE_PART => (\d+)/, 'src/conn/capacity.c SPARE_PART' ],
    [ 'Sirius/Process/Pool.pm', qr/\bHIGH => (\d+)/, 'src/net/descriptors.c HIGH' ],
);
#>>>

# The values of constants in headers, as the compiler knows them
sub compiled {
    my @names = @_;
    my $dir   = tempdir( CLEANUP => 1 );
    open my $out, '>', "$dir/shared.c" or die "$dir: $!";
    print $out qq(#include <stdio.h>\n#include "edge/edge.h"\n#include "static/types.h"\nint main(void)\n{\n);
    print $out qq(    printf("$_ %lld\\n", (long long)$_);\n) for @names;
    print $out "}\n";
    close $out or die "$dir: $!";
    system( $Config{cc}, qw(-std=gnu11 -D_GNU_SOURCE -Isrc -o), "$dir/shared", "$dir/shared.c" ) == 0
        or return;
    return map {/(\S+) (\S+)/} split /\n/, `$dir/shared`;
}

my %value = compiled( grep {/\ASR_\w+\z/} map { $_->[2] =~ s/\A<= //r } @NUMBERS );
ok scalar keys %value, 'constants of C';
for (@NUMBERS) {
    my ( $file, $pattern, $name )     = @$_;
    my ( $limit, $source, $constant ) = $name =~ /\A(<= )?(?:(src\S+) )?(\S+)\z/;
    my $want   = $source ? ( slurp($source) =~ /\b$constant = (\d+)/ )[0] : $value{$constant};
    my ($text) = slurp("lib/$file") =~ $pattern;
    my $have   = defined $text ? eval $text : undef;    ## no critic (ProhibitStringyEval)
    if ($limit) { cmp_ok $have // 'nothing', '<=', $want // -1, "$file: at most $constant" }
    else        { is $have, $want, "$file: $constant" }
}

subtest 'no other number of lib is one of src' => sub {
    my %row = map { ( $_->[0] => 1 ) } @NUMBERS;
    my @others;
    find(
        {   no_chdir => 1,
            wanted   => sub {
                return if !/\.pm\z/;
                my $file = s{\Alib/}{}r;
                my ($code) = slurp($_) =~ /\A(.*?)^(?:__END__|=\w)/ms;
                push @others, $file
                    if ( $code // slurp($_) ) =~ m{\d.*# .*(?:\bSR_[A-Z]|\bsrc/\w+/\w+\.[ch])}
                    && !$row{$file};
                push @others, $file
                    if ( $code // '' ) =~ m{^# .*\bsrc/\w+/\w+\.[ch].*\n(?:# .*\n)*.*=.*\d}m && !$row{$file};
            }
        },
        'lib'
    );
    is "@others", '', 'all that refer to one have a row';
};

# Strings of C, those of a function or of all of a file
sub strings {
    my ( $file, $function ) = @_;
    my $text = slurp($file);
    ($text) = $text =~ /^[^\n]*\b$function\(.*?\n\{\n(.*?)^\}/ms if $function;
    return $text =~ /"([^"\n]*)"/g;
}

subtest 'causes of the end of a worker' => sub {
    my %counted = map { $_ => 1 } strings( 'src/share/scoreboard.c', 'sr_exit_name' );
    my ($code)  = slurp('lib/Sirius/OS/ExitStatus.pm') =~ /\A(.*?)^=/ms;
    my ($table) = $code                                =~ /\@REASONS = \((.*?)^\);/ms;
    my ($sub)   = $code                                =~ /^sub kind \{(.*?)^\}/ms;
    my %told    = map { $_ => 1 } $table =~ /'([a-z-]+)' *\]/g, $sub =~ /(?:return|[?:]) '([a-z-]+)'/g;
    is join( q( ), sort keys %told ), join( q( ), sort keys %counted ), 'are those that are counted';
};

subtest 'states of a worker' => sub {
    my %state = map { $_ => 1 } strings( 'src/share/scoreboard.c', 'sr_worker_state_name' );
    my ( %asked, @unknown );
    find(
        {   no_chdir => 1,
            wanted   => sub {
                return if !/\.pm\z/;
                my $text = slurp($_);
                for my $name ( $text =~ /\{state\} eq '(\w+)'/g,
                    map { split /\|/ } $text =~ m{\{state\} =~ /\\A\(\?:([\w|]+)\)\\z/}g )
                {
                    $asked{$name} = 1;
                    push @unknown, "$_: $name" if !$state{$name} && $name ne 'hanging';    # made in lib
                }
            }
        },
        'lib'
    );
    is "@unknown", '', 'whatever is asked for exists';
    cmp_ok scalar keys %asked, '>', 2, join q( ), sort keys %asked;
};

subtest 'reports of edges and keepers' => sub {
    my @files = ( 'src/sirius-edge.c', glob 'src/edge/*.c src/conn/trouble.c' );
    my %made;
    for my $file (@files) {
        $made{$_} = $file
            for map { /\A%d ([a-z]+)(?:[ \\]|\z)/ || /\A ([a-z]+)(?: |\\n)\z/ || /\A(keys\w*)\z/ ? $1 : () }
            strings($file);
        $made{$_} = $file for slurp($file) =~ /sr_report_begin\([^;]*"(\w+)"\);/g;
    }
    my $group  = slurp('lib/Sirius/Edge/Group.pm')  =~ /^sub hear \{(.*?)^\}/ms  ? $1 : '';
    my $keeper = slurp('lib/Sirius/Edge/Keeper.pm') =~ /^sub heard \{(.*?)^\}/ms ? $1 : '';
    my %heard  = map { $_ => 1 } "$group$keeper" =~ /\$what eq '(\w+)'/g,
        map { split /\|/ } $group =~ m{\$what =~ /\\A\(\?:([\w|]+)\)}g;
    is join( q( ), sort keys %heard ), join( q( ), sort keys %made ), 'are those that the supervisor hears';
};

done_testing;
