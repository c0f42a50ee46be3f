package Work;

# What an application does between its framework and its templates: it reads, computes and formats
use strict;
use warnings;

my @NAMES = qw(lorem ipsum Dolor sit, amet. consectetur);
my @LINES = map {
    join q(,), $_, ( $_ * 7919 ) % 1009, 'name' . ( $_ % 97 ), sprintf '2026-%02d-%02d', 1 + $_ % 12,
        1 + $_ % 28
} 1 .. 2500;
my $TEXT = join q( ), map { $NAMES[ ( $_ * 31 ) % 6 ] . ( $_ % 11 ) } 1 .. 9000;

sub all {
    parse();
    my $rows = parse();
    my %is   = (
        totals   => totals($rows),
        rows     => [ @{ ranked($rows) }[ 0 .. 49 ] ],
        words    => words(),
        distance => distance( substr( $TEXT, 0, 150 ), substr $TEXT, 300, 150 ),
        lines    => scalar @{ wrapped() },
        sum      => checksum(),
        primes   => primes(),
        escaped  => escaped(),
    );
    return \%is;
}

sub checksum {
    my $sum = 0;
    $sum = ( $sum * 33 + $_ ) % 4_294_967_291 for unpack 'C*', substr $TEXT, 0, 80_000;
    return $sum;
}

# Of Levenshtein
sub distance {
    my ( $one, $other ) = @_;
    my @before = ( 0 .. length $other );
    for my $i ( 1 .. length $one ) {
        my @row = ($i);
        for my $j ( 1 .. length $other ) {
            my $best
                = $before[ $j - 1 ] + ( substr( $one, $i - 1, 1 ) eq substr( $other, $j - 1, 1 ) ? 0 : 1 );
            $best = $before[$j] + 1    if $before[$j] + 1 < $best;
            $best = $row[ $j - 1 ] + 1 if $row[ $j - 1 ] + 1 < $best;
            push @row, $best;
        }
        @before = @row;
    }
    return $before[-1];
}

sub escaped {
    my $copy = $TEXT x 2;
    $copy =~ s/([a-f])/'&#' . ord($1) . ';'/ge;
    return length $copy;
}

sub parse {
    my @rows;
    for my $line (@LINES) {
        my ( $id, $amount, $name, $date ) = split /,/, $line;
        push @rows, { id => $id, amount => $amount, name => $name, date => $date };
    }
    return \@rows;
}

sub primes {
    my $most = 26_000;
    my @is   = (1) x $most;
    for my $i ( 2 .. sqrt $most ) {
        next if !$is[$i];
        for ( my $j = $i * $i; $j < $most; $j += $i ) { $is[$j] = 0 }    ## no critic (ProhibitCStyleForLoops)
    }
    return scalar grep { $is[$_] } 2 .. $most - 1;
}

sub ranked {
    my $rows = shift;
    my @got;
    @got = sort { $a->{amount} <=> $b->{amount} || $a->{name} cmp $b->{name} } @$rows for 1 .. 2;
    return \@got;
}

sub totals {
    my $rows = shift;
    my %of;
    for my $times ( 1 .. 4 ) {
        for my $row (@$rows) {
            $of{ $row->{name} }{sum} += $row->{amount};
            $of{ $row->{name} }{n}++;
            $of{ substr $row->{date}, 0, 7 }{sum} += $row->{amount} * $times;
        }
    }
    return \%of;
}

sub words {
    my %n;
    for ( 1 .. 2 ) {
        $n{ lc $1 }++ while $TEXT =~ /(\w+)/g;
    }
    return \%n;
}

sub wrapped {
    my @out;
    my $line = q();
    for my $word ( split / /, "$TEXT $TEXT" ) {
        if ( length($line) + length($word) > 70 ) {
            push @out, $line;
            $line = q();
        }
        $line .= " $word";
    }
    return \@out;
}

1;
