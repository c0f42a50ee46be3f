# The folders of lib are floors: no module names one that lies above it, and no modules name each other in a
# circle. What breaks that today is in a table, of which a line that is not needed any more fails too.
use strict;
use warnings;
use File::Find qw(find);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin: $!";

# From the ground up
my @FLOORS
    = qw(PSGI Base Channel WebSocket OS Config Log Service Listen App Worker Edge Profile Control Admin Process Dev Plack CLI bin);

# Modules that are in no folder of these
my %FLOOR = (
    'Sirius'             => 'OS',         # the library of xs
    'Sirius::Channel'    => 'Control',    # finds the server
    'Sirius::LogFormat'  => 'Log',
    'Sirius::Scoreboard' => 'OS',
    'bin/sirius'         => 'bin',
);

# Circles of today: "one other" => reason. Empty is best.
my %EXCEPTION = ();

my %level;
@level{@FLOORS} = 0 .. $#FLOORS;

sub floor {
    my $module = shift;
    return $FLOOR{$module} if $FLOOR{$module};
    return 'Plack' if $module =~ /\APlack::/;
    return $module =~ /\ASirius::(\w+)/ ? $1 : undef;
}

# The code of a file, without POD and comments
sub code {
    my $file = shift;
    open my $in, '<', $file or die "$file: $!";
    my $text = do { local $/ = undef; readline $in };
    $text =~ s/^=[a-z].*?(?:^=cut\n|\z)//msg;
    $text =~ s/^__END__\n.*//ms;
    $text =~ s/(?:^|\s)#.*//mg;
    return $text;
}

# Modules of ours that the text names
sub named {
    my ( $text, $own ) = @_;
    my $name = qr/Sirius(?:::[A-Z]\w*)+|Plack::(?:Handler::Sirius|Middleware::AccessLog::Compiled(?:::\w+)?)/;
    my %named = map { $_ => 1 } $text =~ /(?<![\w:])($name)/g;
    $named{Sirius} = 1 if $text =~ /(?:\b(?:use|require) +Sirius\b(?!::)|(?<![\w:])Sirius->)/;
    return grep { $_ ne $own } sort keys %named;
}

# Undef when it may; else what is wrong
sub wrong {
    my ( $from, $to )   = @_;
    my ( $low,  $high ) = ( floor($from), floor($to) );
    return "$from names $to, and $low lies below $high" if $level{$low} < $level{$high};
    return;
}

# Paths that come back to where they began, each once
sub circles {
    my %names = @_;
    my ( %done, %circle, @path, $walk );
    $walk = sub {
        my $module = shift;
        my ($at) = grep { $path[$_] eq $module } 0 .. $#path;
        if ( defined $at ) {
            $circle{ join q( ), sort @path[ $at .. $#path ] } = join ' -> ', @path[ $at .. $#path ], $module;
        }
        return if $done{$module}++;
        push @path, $module;
        $walk->($_) for @{ $names{$module} || [] };
        pop @path;
        return;
    };
    $walk->($_) for sort keys %names;
    return %circle;
}

my %file = ( 'bin/sirius' => 'bin/sirius' );
find( { wanted => sub { $file{ s{\Alib/|\.pm\z}{}gr =~ s{/}{::}gr } = $_ if /\.pm\z/ }, no_chdir => 1 },
    'lib' );
cmp_ok scalar keys %file, '>', 60, 'modules';
is join( q( ), grep { !defined floor($_) || !defined $level{ floor($_) } } sort keys %file ), '',
    'each lies on a floor that the table knows';

my ( %names, @wrong, @unknown );
for my $module ( sort keys %file ) {
    for my $to ( named( code( $file{$module} ), $module ) ) {
        if ( !$file{$to} ) { push @unknown, "$module: $to"; next }
        push @{ $names{$module} }, $to;
        push @wrong,               grep {defined} wrong( $module, $to );
    }
}
is join( "\n", @unknown ), '', 'what they name is there';
is join( "\n", @wrong ),   '', 'none of ' . ( map {@$_} values %names ) . ' names goes upward';
my %circle = circles(%names);
is join( "\n", map { $circle{$_} } grep { !$EXCEPTION{$_} } sort keys %circle ), '', 'none goes in a circle';
is join( "\n", grep { !$circle{$_} } sort keys %EXCEPTION ), '', 'no exception that is not needed';

# The test itself
like wrong( 'Sirius::Log', 'Sirius::Process::Pool' ), qr/Log lies below Process/, 'what goes upward is told';
is wrong( 'Sirius::Process::Pool', 'Sirius::Log' ), undef, 'and not what goes downward';
is_deeply { circles( a => ['b'], b => [ 'c', 'd' ], c => ['a'] ) }, { 'a b c' => 'a -> b -> c -> a' },
    'and a circle';
is_deeply [
    named( q(Sirius::Log->note('Sirius'); Sirius::Base::Text::age(); Plack::Handler::Sirius->new), q() ) ],
    [qw(Plack::Handler::Sirius Sirius::Base::Text Sirius::Log)], 'by the names in the code';

done_testing;
