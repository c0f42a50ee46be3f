use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use Config;
use Page;
use Sirius;
use Sirius::Admin::Metrics;
use Sirius::Config::Options;
use Sirius::Config::Usage;
use Sirius::Process::Pool;
use Sirius::Worker;

# What the documentation names is there: pages, headings, files, functions, modules, options with their
# defaults, commands, variables, metrics and signals

my @pages = Page->all;
my %page  = map { $_->file => $_ } @pages;

sub slurp {
    my $file = shift;
    open my $in, '<', $file or die "$file: $!";
    local $/ = undef;
    return readline $in;
}

# A page on which each check finds something, and as little as it may
my $faulty = Page->parse( 'docs/MIGRATING-TUNING.md', <<'PAGE' );
# Wrong

[nowhere](NOWHERE.md), `src/core/nowhere.c`, `sr_nowhere`, `Sirius::Nowhere`, `SIRIUS_NOWHERE`, `sirius ctl nowhere`,
`kill -NOWHERE 1`.

| row | in the file |
|-----|-------------|
| `sr_engine_new` | `src/http/date.c` |
| `--nowhere` | `--nowhere` |
| default | `--max-queue` 1001 |
PAGE

# A test for each page: what the code finds wrong in it
sub each_page {
    my ( $name, $code ) = @_;
    is scalar( () = $code->($faulty) ), 1, "$name: what is wrong is found" or diag $code->($faulty);
    return subtest $name => sub {
        is_deeply [ $code->($_) ], [], $_->file for @pages;
    };
}

# The wrong ones of the spans of a page: those for which the code is true
sub wrong_spans {
    my ( $page, $wrong ) = @_;
    return map {"line $_->[0]: $_->[1]"} grep { $wrong->( $_->[1] ) } $page->spans;
}

# --- links ---

each_page links => sub {
    my $page = shift;
    my @wrong;
    for ( $page->links ) {
        my ( $line, $file, $anchor ) = @$_;
        if    ( !-e $file ) { push @wrong, "line $line: no file $file" }
        elsif ( defined $anchor && ( !$page{$file} || !grep { $_ eq $anchor } $page{$file}->anchors ) ) {
            push @wrong, "line $line: no heading $file#$anchor";
        }
    }
    return @wrong;
};

# --- files, functions, modules ---

my $folder = qr{(?:bench|bin|dev|docs|eg|fuzz|lib|src|t|xs)};

each_page files => sub {
    return wrong_spans(
        shift,
        sub {
            my $text = shift;
            return if $text =~ m{[*\\]|[A-Z]{4}};                               # a pattern, or TARGET
            return grep { !-e } $text =~ m{(?<![\w./])($folder/[\w./-]*\w)}g;
        }
    );
};

my $code   = join '', map { slurp($_) } glob 'src/*/*.[ch] xs/*.[ch] xs/*.xs';
my %metric = map { ( "sirius_$_" => 1 ) }
    slurp('lib/Sirius/Admin/Metrics.pm') =~ /^    \[ '(\w+)', '(?:counter|gauge|histogram)'/mg;

sub is_metric { return $metric{ shift =~ s/_(?:bucket|sum|count)\z//r } }

each_page 'functions and metrics' => sub {
    my $page  = shift;
    my @wrong = wrong_spans(
        $page,
        sub {
            return
                grep { !is_metric($_) && $code !~ /\b$_\b/ }
                shift =~ /\b((?:sr|sirius|envpool)_[a-z_]+[a-z])\b/g;
        }
    );
    for my $block ( $page->blocks ) {
        push @wrong, map {"$_ in the block of line $block->{line}"}
            grep { !is_metric($_) } $block->{text} =~ /\b(sirius_[a-z_]+[a-z])\b/g;
    }
    return @wrong;
};

# In rows that name functions and files, each function is in one of the files
each_page 'functions of files' => sub {
    my @wrong;
    for ( shift->lines ) {
        my ( $number, $line ) = @$_;
        next if $line !~ /\A\|/;
        my @files = grep {-f} $line =~ m{`((?:src|xs)/[\w./]+)`}g or next;
        my $text  = join '', map { slurp($_) } @files;
        push @wrong,
            map {"line $number: $_"} grep { $text !~ /\b$_\(/ } $line =~ /`((?:sr|sirius|envpool)_\w+)`/g;
    }
    return @wrong;
};

each_page modules => sub {
    return wrong_spans(
        shift,
        sub {
            return
                grep { my $file = 'lib/' . s{::}{/}gr; !-e "$file.pm" && !-e "$file.pod" }
                shift =~ /\b((?:Sirius|Plack::Handler::Sirius)(?:::[A-Z]\w+)*)\b/g;
        }
    );
};

# --- options ---

# Of commands that are no server
my %other = map { $_ => 1 }
    map( { slurp("lib/Sirius/$_.pm") =~ /^=item (?:B<-\w>, )?B<--(\w+)>/mg }
    qw(CLI/Check CLI/Ctl CLI/Profile CLI/Top) ),
    qw(interval signal-on-hup);

sub is_option {
    my $name = shift;
    return 1 if $other{$name} || $name =~ /\*\z/;
    my ($row) = Sirius::Config::Options->find($name);
    return $row && !$row->{hidden};
}

# What stands for other servers' options: all but the last column of the tables of MIGRATING
sub ours {
    my $page = shift;
    return map {
        my ( $number, $line ) = @$_;
        $line =~ s/\A\|.*\|(?=[^|]*\|\z)// if $page->file =~ /MIGRATING/;
        [ $number, $line ]
    } $page->lines;
}

each_page options => sub {
    my $page = shift;
    return if $page->file =~ /COMPATIBILITY/;    # they are tried one by one
    my @wrong;
    for ( ours($page) ) {
        my ( $number, $line ) = @$_;
        for my $span ( $line =~ /`([^`]+)`/g ) {
            next if $span !~ /\A(?:--|sirius |plackup )/;
            push @wrong, map {"line $number: --$_"} grep { !is_option($_) } $span =~ /(?:\A| )--([\w-]+\*?)/g;
        }
    }
    for my $block ( grep { ( $_->{mark} || '' ) !~ /\Askip/ } $page->blocks ) {
        for my $command ( $block->{text} =~ /\b((?:sirius|plackup -s Sirius) (?:[^\n]|\\\n)*)/g ) {
            $command =~ s/'[^']*'//g;
            push @wrong, map {"--$_ in the block of line $block->{line}"}
                grep { !is_option($_) } $command =~ / --([\w-]+)/g;
        }
    }
    return @wrong;
};

# As "--name 30", and in tables with a column of defaults
each_page defaults => sub {
    my $page = shift;
    return if $page->file !~ /MIGRATING|TUNING|SIGNALS|DEPLOY/;
    my @wrong;
    for ( ours($page) ) {
        my ( $number, $line ) = @$_;
        my @said = $line =~ /`--([\w-]+)`(?:,)? (\d+)(?: s)?\b(?! (?:MiB|GiB|MB|GB))/g;
        push @said, $line =~ /`--([\w-]+)` \((\d+)(?: s)?\)/g;
        push @said, $1, $2 if $page->file =~ /TUNING/ && $line =~ /\A\| `--([\w-]+)` \| (\S+) \|/;
        while ( my ( $name, $value ) = splice @said, 0, 2 ) {
            my ($row) = Sirius::Config::Options->find($name);
            my $default
                = !defined $row->{default} ? ''
                : $row->{type} eq 'bytes'  ? Sirius::Config::Usage::_default($row)
                :                            $row->{default};
            push @wrong, "line $number: --$name is $default, not $value" if $value ne $default;
        }
    }
    return @wrong;
};

subtest 'every limit is explained' => sub {
    my %told   = map  { $_ => 1 } slurp('docs/TUNING.md') =~ /`--([\w-]+)/g;
    my %group  = map  { $_ => 1 } 'Connections and queue', 'Time limits', 'Size limits', 'Keep-alive';
    my @limits = grep { $group{ $_->{group} } && !$_->{hidden} && $_->{type} =~ /seconds|bytes|count/ }
        Sirius::Config::Options->rows;
    cmp_ok scalar @limits, '>', 15, 'they have been found';
    is_deeply [ grep { !$told{$_} && $_ ne 'timeout' } map { $_->{name} } @limits ], [], 'in docs/TUNING.md';
};

each_page variables => sub {
    my $page = shift;
    my $used = join '', map { slurp($_) } glob 'Makefile.PL t/lib/Sirius/Test/*.pm dev/*';
    return wrong_spans(
        $page,
        sub {
            return
                grep { !is_option( lc tr/_/-/r ) && $used !~ /\bSIRIUS_\Q$_\E\b/ && $_ ne 'NAME' }
                shift =~ /\bSIRIUS_([A-Z_]+[A-Z])\b/g;
        }
    );
};

each_page commands => sub {
    my $page = shift;
    my $known
        = qr/\A(?:ctl (?:--\S+ |\S*\/\S+ )*(?:channels|publish|ready|reload|status|stop|workers)\b|top\b)/;
    return wrong_spans( $page,
        sub { my $text = shift; return $text =~ /\Asirius ((?:ctl|top) .*)/ && $1 !~ $known } );
};

# --- signals ---

my %signal = map { $_ => 1 } split ' ', $Config{sig_name};

sub section {
    my ( $file, $heading ) = @_;
    my ($text) = slurp($file) =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms;
    return defined $text ? $text : '';
}

sub told {
    my $text  = shift;
    my @cells = $text =~ /^\| ([^|]+) \|/mg;
    return map { $_ => 1 } map {/\b([A-Z][A-Z0-9]+)\b/g} @cells;
}

subtest signals => sub {
    my %supervisor = told( section( 'docs/SIGNALS.md', 'To the supervisor' ) );
    my %worker     = told( section( 'docs/SIGNALS.md', 'To a worker' ) );
    is_deeply [ grep { !$supervisor{$_} } Sirius::Process::Pool->signals ], [],
        'all that the supervisor heeds';
    my %handlers = Sirius::Worker->new->handlers;
    is_deeply [ grep { !$worker{$_} } sort keys %handlers ], [], 'all that a worker heeds';
    is_deeply [ grep { !$signal{$_} } sort keys %supervisor, sort keys %worker ], [],
        'and nothing that is no signal';
};

each_page 'signals by their names' => sub {
    return wrong_spans(
        shift,
        sub {
            return grep { !$signal{$_} } shift =~ /\bkill -([A-Z][A-Z0-9]+)\b/g;
        }
    );
};

done_testing;
