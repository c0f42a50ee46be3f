package Sirius::Config::Usage;

use strict;
use warnings;

use List::Util qw(max);
use Sirius::Config::Options;
use Sirius::Config::Type;
use Text::Wrap ();

my $INDENT = 34;    # the column at which the texts of --help begin

my $HEAD = <<'TEXT';
Usage: sirius [options] [app.psgi]
       sirius dev [options] [app.psgi]      the same while you work on it: see sirius dev --help
       sirius check [options] [app.psgi]    check set-up and application: see sirius check --help
       sirius ctl [options] COMMAND         control a running server: see sirius ctl --help
       sirius top [options]                 watch a running server: see sirius top --help
       sirius profile [options]             show where the time goes: see sirius profile --help

SECONDS accepts a unit: 500ms, 30s, 5m, 1h, 7d. BYTES accepts k, m and g: 64k, 10m, 1g.
TEXT

my %HEAD = ( dev => <<'TEXT' );
Usage: sirius dev [options] [app.psgi]

Serves the application while you work on it, at http://localhost:5000/ or the next free port. When
you save a file, the application is loaded again; requests wait meanwhile, and are answered by the
new code. An application that does not load is shown as a page with the message of perl. Without a
name it is that of this directory: app.psgi, bin/app.psgi, another *.psgi, or one of Mojolicious.

Other defaults than those of sirius: --env development, --workers 4, --host 127.0.0.1,
--queue-timeout 300, --slow-log 5; and each request is logged on the terminal unless --access-log is
given. --chdir, --config and all other options of sirius are accepted.
TEXT

# What -h lists: the options of a day
my %DAILY = (
    '' => [
        qw(I env reload listen port host workers tls-cert tls-key static request-timeout max-body max-reqs-per-child
            config env-file user daemonize access-log admin trust-proxy)
    ],
    dev => [
        qw(e I M env watch watch-exclude live-reload open editor listen host port tls-self-signed static workers slow-log
            config env-file chdir access-log)
    ],
);

# Formats bytes in the form that options accept
sub bytes {
    my ( $class, $bytes ) = @_;
    for my $unit ( [ g => 30 ], [ m => 20 ], [ k => 10 ] ) {
        my ( $letter, $bits ) = @$unit;
        return ( $bytes >> $bits ) . $letter if $bytes && !( $bytes & ( 1 << $bits ) - 1 );
    }
    return $bytes;
}

sub help {
    my ( $class, $command, $short ) = @_;
    my $head = defined $command ? $HEAD{$command} : $HEAD;
    my @all  = _visible();
    return $head . $class->list( $INDENT, @all ) if !$short;
    my %daily = map { $_ => 1 } @{ $DAILY{ $command // '' } };
    my @rows  = map { _shortened( $_, defined $command ) } grep { $daily{ $_->{name} } } @all;
    my $name  = join q( ), 'sirius', $command // ();
    return $head . $class->list( $INDENT, @rows ) . "\n$name --help lists all @{[ scalar @all ]}.\n";
}

sub list {
    my ( $class, $column, @rows ) = @_;
    local ( $Text::Wrap::columns, $Text::Wrap::unexpand ) = ( 100, 0 );
    $column = 2 + max map { length _left($_) } @rows if !defined $column;
    my ( $text, $group ) = ('');
    for my $row (@rows) {
        my $its = $row->{group} // '';
        $text .= "\n" . ( length $its ? "$its\n" : '' ) if !defined $group || $group ne $its;
        $group = $its;
        my $left = _left($row);
        my $fits = length $left < $column;
        $text .= "$left\n" if !$fits;
        my $first = $fits ? sprintf '%-*s', $column, $left : ' ' x $column;
        $text .= Text::Wrap::wrap( $first, ' ' x $column, _sentence($row) ) . "\n";
    }
    return $text;
}

sub pod {
    my $class = shift;
    local ( $Text::Wrap::columns, $Text::Wrap::unexpand, $Text::Wrap::huge ) = ( 121, 0, 'overflow' );
    my ( $text, $group ) = ( '', '' );
    for my $row ( _visible() ) {
        $text .= ( length $group ? "=back\n\n" : '' ) . "=head2 $row->{group}\n\n=over 4\n\n"
            if $group ne $row->{group};
        $group = $row->{group};
        my $value = Sirius::Config::Type->placeholder($row);
        my $names = join ', ', map {"B<$_>"} _names($row);
        $names .= defined $row->{bare} ? "[=I<$value>]" : " I<$value>" if defined $value;
        $text  .= "=item $names\n\n" . Text::Wrap::wrap( '', '', _sentence($row) ) . ".\n\n";
    }
    return "$text=back\n";
}

sub _default {
    my $row     = shift;
    my $default = $row->{default};
    return if !defined $default || $row->{text} =~ /\(default:/;
    return $default ? 'enabled' : 'disabled' if $row->{type} eq 'bool';
    return $row->{type} eq 'bytes' ? Sirius::Config::Usage->bytes($default) : $default;
}

# The names, and what stands for the value
sub _left {
    my $row   = shift;
    my $value = defined $row->{type} ? Sirius::Config::Type->placeholder($row) : undef;
    my $text  = '  ' . join ', ', _names($row);
    return $text if !defined $value;
    return $text . ( defined $row->{bare} ? "[=$value]" : " $value" );
}

sub _names {
    my $row = shift;
    return split /, /, $row->{typed} if $row->{typed};
    return map { length > 1 ? "--$_" : "-$_" } grep {defined} $row->{short}, $row->{name},
        @{ $row->{alias} || [] };
}

sub _sentence {
    my $row     = shift;
    my $default = _default($row);
    return $row->{text} . ( defined $default ? " (default: $default)" : '' );
}

# What is done, without how and when. The command has defaults of its own
sub _shortened {
    my ( $row, $is_command ) = @_;
    my %short = (
        %$row,
        alias => [],
        group => 'Options of a day',
        text  => $row->{text} =~ s/ \(default:.*//sr =~ s/[.;:] .*//sr
    );
    delete $short{default} if $is_command || $row->{type} eq 'bool' || !$row->{default};
    return \%short;
}

sub _visible {
    return grep { !$_->{hidden} } Sirius::Config::Options->rows;
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Usage - the options as text

=head1 SYNOPSIS

  perl -Ilib -MSirius::Config::Usage -e 'print Sirius::Config::Usage->pod'

=head1 DESCRIPTION

Makes C<sirius --help> and the list of the manual page L<sirius> from the table in L<Sirius::Config::Options>. A test
compares the page with L</pod>. The help of other commands (L<Sirius::CLI::Command>) has the same form.

=head1 METHODS

=head2 bytes

  my $text = Sirius::Config::Usage->bytes(65_536);    # 64k

=head2 help

  print Sirius::Config::Usage->help( $command, $short );

The text of C<--help>, of the command C<dev> if it is given; with a true second argument that of C<-h>, twenty options in short.

=head2 list

  print Sirius::Config::Usage->list( $column, @rows );

The options of other commands in the same form: the rows are as those of the table, and C<group> may be absent. The texts begin in
this column, or, if it is undefined, two spaces behind the widest name.

=head2 pod

  print Sirius::Config::Usage->pod;

=head1 SEE ALSO

L<Sirius>, L<Sirius::Config::Options>.

=cut
