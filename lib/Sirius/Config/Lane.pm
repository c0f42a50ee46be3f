package Sirius::Config::Lane;

use strict;
use warnings;

use List::Util qw(max sum);
use Sirius::Base::Text;

use constant { LANES_MAX => 16, TEXT_MAX => 127 };    # src/share/lane.h

my $WEEK  = 7 * 86_400;
my $TOKEN = qr/[!#\$%&'*+.^_`|~0-9A-Za-z-]+/;

# What follows after a comma: name => how its value is read
my %OPTION = ( queue => \&_queue, timeout => \&_timeout );

sub fields {
    my ( $class, $lanes ) = @_;
    return grep {/\A$TOKEN: /} map { $_->{text} } @{ $lanes || [] };
}

sub parse {
    my ( $class, $value ) = @_;
    my ( @lanes, %seen );
    for my $text ( ref $value eq 'ARRAY' ? @$value : $value ) {
        my $lane = _one($text);
        die "'$lane->{text}' is given twice\n" if $seen{ _same( $lane->{text} ) }++;
        push @lanes, $lane;
    }
    die scalar(@lanes) . ' lanes are too many: the maximum is ' . LANES_MAX . "\n" if @lanes > LANES_MAX;
    return \@lanes;
}

sub queues {
    my ( $class, $conf ) = @_;
    my $sum = 0;
    $sum += $_->{queue} // $conf->{max_queue} for @{ $conf->{lane} || [] };
    return $sum;
}

# Whether they leave no worker for other requests
sub take_all {
    my ( $class, $conf ) = @_;
    my $workers = max $conf->{workers}, $conf->{workers_max} || 0;
    return $workers && sum( 0, map { $_->{limit} } @{ $conf->{lane} || [] } ) >= $workers;
}

sub words {
    my ( $class, $conf ) = @_;
    return map {
        join ',', $_->{limit}, $_->{queue} // $conf->{max_queue}, $_->{timeout} // $conf->{queue_timeout},
            $_->{text}
    } @{ $conf->{lane} || [] };
}

# A field and its value. The value stands between blanks in a list of words, and before a number
sub _field {
    my ( $name, $value ) = @_;
    die "the field '$name' has no value: write one such as '$name: batch=2'\n" if $value !~ /\S/;
    die "the value of the field '$name' contains a control character\n"        if $value =~ /[[:cntrl:]]/;
    $value =~ s/\A\s+|\s+\z//g;
    return "$name: $value";
}

sub _one {
    my $text = shift;
    my ( $given, @options ) = split /,/, $text, -1;
    my ( $what, $limit ) = ( $given // '' ) =~ /\A(.*?)\s*=\s*([^=]*)\z/s
        or die "'$text' has no limit: use one such as /report=2\n";
    die "'$limit' is not a number of requests: use one from 1, such as /report=2\n"
        if $limit !~ /\A0*[1-9]\d{0,5}\z/;
    my %lane = ( limit => $limit + 0, text => _what($what) );
    die 'the lane is longer than ' . TEXT_MAX . " bytes\n" if length $lane{text} > TEXT_MAX;
    for my $option (@options) {
        my ( $name, $value ) = split /=/, $option, 2;
        my $code = $OPTION{ $name // '' }
            or die "'$option' is not an option of a lane: use " . join( ', ', sort keys %OPTION ) . "\n";
        die "$name is given twice in '$text'\n" if exists $lane{$name};
        $lane{$name} = $code->( $value // '' );
    }
    return \%lane;
}

# As the path of a request says it when it is decoded
sub _prefix {
    my $prefix = shift;
    die
        "the prefix '$prefix' contains a percent sign: write the characters themselves, which match both ways\n"
        if $prefix =~ /%/;
    die "the prefix '$prefix' contains a character that cannot be in one\n"
        if $prefix =~ /[[:cntrl:]?#\\]/;
    die "the prefix '$prefix' contains an empty name, . or ..\n" if $prefix =~ m{//|/\.{1,2}(?:/|\z)};
    utf8::encode($prefix)                                        if utf8::is_utf8($prefix);
    return $prefix;
}

sub _queue {
    my $value = shift;
    die "queue needs a number of requests, such as queue=20; 0: none waits\n" if $value !~ /\A\d{1,9}\z/;
    return $value + 0;
}

# What is the same in two texts of one lane: case counts only in the value of a field (src/edge/lanerules.c)
sub _same {
    my $text = shift;
    return $text =~ /\A($TOKEN): (.*)\z/s ? lc($1) . ": $2" : lc $text;
}

sub _timeout {
    my $value   = shift;
    my $seconds = Sirius::Base::Text->seconds($value)
        // die "timeout needs a time, such as timeout=60 or timeout=5m; 0: no limit\n";
    die "timeout=$value is negative\n"                        if $seconds < 0;
    die "timeout=$value is too large: the maximum is $WEEK\n" if $seconds > $WEEK;
    return $seconds;
}

# A prefix of paths, with a method before it, or a field
sub _what {
    my $what = shift;
    return _prefix($what)              if $what =~ m{\A/};
    return uc($1) . q( ) . _prefix($2) if $what =~ m{\A($TOKEN)\s+(/.*)\z}s;
    return _field( $1, $2 )            if $what =~ m{\A($TOKEN):(.*)\z}s;
    die "the prefix '$what' does not begin with a slash: did you mean /$what?\n" if $what =~ m{\A[\w.-]+\z};
    die
        "'$what' is not a prefix, a method and a prefix, or a field: use one such as /report, 'POST /import' or 'X-Class: batch'\n";
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Lane - the lanes of --lane

=head1 SYNOPSIS

  use Sirius::Config::Lane;

  my $lanes = Sirius::Config::Lane->parse( [ '/report=2,queue=20', 'POST /import=1', 'X-Class: batch=2' ] );
  my @words = Sirius::Config::Lane->words( { lane => $lanes, max_queue => 1000, queue_timeout => 30 } );

=head1 DESCRIPTION

Reads the values of C<--lane>: a prefix of paths, a method and a prefix, or a field and its value; C<=>, and how many of
these requests may run at a time; and options after commas. A comma cannot be part of a prefix or a value.

=over

=item queue=N

How many of them may wait; the value of C<--max-queue> unless it is given.

=item timeout=SECONDS

How long each may wait; the value of C<--queue-timeout> unless it is given; 0: no limit.

=back

=head1 METHODS

=head2 fields

  my @texts = Sirius::Config::Lane->fields($lanes);

The texts of the lanes that belong to a field.

=head2 parse

  my $lanes = Sirius::Config::Lane->parse( \@values );

A list of hashes with C<text>, C<limit>, and perhaps C<queue> and C<timeout>. Dies with what is wrong.

=head2 queues

  my $sum = Sirius::Config::Lane->queues($conf);

How many requests may wait in all lanes together.

=head2 take_all

  my $bool = Sirius::Config::Lane->take_all($conf);

Whether all lanes together may occupy all workers.

=head2 words

  my @words = Sirius::Config::Lane->words($conf);

The same as texts for an edge, one for each lane: limit, queue, timeout, and which requests.

=head1 SEE ALSO

L<Sirius::Config::Type>, L<Sirius::Edge::Setup>.

=cut
