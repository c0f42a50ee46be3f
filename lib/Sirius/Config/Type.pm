package Sirius::Config::Type;

use strict;
use warnings;

use File::Spec ();
use List::Util qw(first min);
use Sirius::Base::Text;
use Sirius::Config::Address;
use Sirius::Config::Companion;
use Sirius::Config::Lane;
use Sirius::Config::Static;
use Sirius::OS::Cpus;
use Socket qw(AF_INET AF_INET6 inet_ntop inet_pton);

my %BYTES = ( k => 2**10, m => 2**20, g => 2**30 );

# How the value is shown in --help
my %PLACEHOLDER = (
    bytes   => 'BYTES',
    code    => 'CODE',
    count   => 'N',
    dir     => 'DIR',
    listen  => 'ADDRESS',
    group   => 'GROUP',
    octal   => 'OCTAL',
    path    => 'FILE',
    paths   => 'FILE',
    port    => 'PORT',
    seconds => 'SECONDS',
    string  => 'STRING',
    token   => 'STRING',
    user    => 'USER',
);

my %CHECK = (
    any    => sub { return shift },
    bool   => \&_bool,
    beside => sub { return Sirius::Config::Companion->parse(shift) },
    bytes  => \&_size,
    choice => \&_choice,
    code   => \&_code,
    count  => sub { return _range( _count(shift), @_ ) },
    dir    => \&_dir,
    edges  => \&_edges,
    header => \&_header,
    hsts   => \&_hsts,
    lane   => sub { return Sirius::Config::Lane->parse(shift) },
    listen => \&_listen,
    mount  => \&_mount,
    group  => \&_group,
    octal  => \&_octal,
    path   => \&_path,
    paths  => sub {
        my $value = shift;
        return [ map { _path( $_, {} ) } ref $value ? @$value : $value ];
    },
    port      => sub { return _range( _count(shift), { min => 0, max => 65535 } ) },
    proxies   => \&_proxies,
    redirect  => \&_redirect,
    seconds   => sub { return _range( _seconds(shift), @_ ) },
    static    => sub { return Sirius::Config::Static->parse(shift) },
    string    => \&_string,
    token     => \&_token,
    user      => \&_user,
    'warm-up' => \&_warm_up,
    websocket => \&_websocket,
    workers   => \&_workers,
);

sub check {
    my ( $class, $row, $value ) = @_;

    # Only a file can contain one; the system would end the text there
    die "the value contains a NUL byte\n" if grep { !ref && /\0/ } ref $value eq 'ARRAY' ? @$value : $value;
    return $CHECK{ $row->{type} }->( $value, $row );
}

sub placeholder {
    my ( $class, $row ) = @_;
    return $row->{value} || $PLACEHOLDER{ $row->{type} };
}

# plackup gives an option that it doesn't know the next word as its value
sub _bool {
    my ( $value, $row ) = @_;
    return 0 if $value =~ /\A(?:0*|no|off|false)\z/i;
    return 1 if $value =~ /\A(?:\d+|yes|on|true)\z/i;
    my $hint = $value =~ /\A-|[.]/ ? "; with plackup, write --$row->{name}=1" : '';
    die "'$value' is not a boolean: use 1 or 0$hint\n";
}

sub _bytes {
    my $value = shift;
    my ( $number, $unit ) = $value =~ /\A(\d{1,15})([kmg]?)b?\z/i
        or die "'$value' is not a size: use a number of bytes, such as 8192, 64k, 10m or 1g\n";
    return $number * ( $BYTES{ lc $unit } || 1 );
}

# One of several words. Words for booleans are accepted for on and off
sub _choice {
    my ( $value, $row ) = @_;
    my %word  = ( 1 => 'on', yes => 'on', true => 'on', 0 => 'off', no => 'off', false => 'off' );
    my $given = $word{ lc $value } || lc $value;
    my @of    = @{ $row->{of} };
    return ( first { $_ eq $given } @of )
        || die "'$value' is not one of " . join( ', ', @of ) . "\n";
}

sub _code {
    my $value = shift;
    return $value if ref $value eq 'CODE';
    my $code = _compile($value);
    die 'the code does not compile: ' . $@ =~ s/ at \(eval \d+\)/ at/r =~ s/\n.*//sr . "\n"
        if !defined $code && $@;
    die "'$value' is not a sub: write 'sub { ... }'\n" if ref $code ne 'CODE';
    return $code;
}

sub _compile { return eval "package main; no strict; no warnings; $_[0]" }

sub _count {
    my $value = shift;
    die "'$value' is not a whole number\n" if $value !~ /\A-?\d{1,15}\z/;
    return $value + 0;
}

sub _dir {
    my ( $value, $row ) = @_;
    die "'$value' is not a directory\n"            if !-d $value;
    die "the directory '$value' is not writable\n" if $row->{writable} && !-w _;
    return File::Spec->rel2abs($value);
}

sub _edges {
    my ( $value, $row ) = @_;
    $value = min $row->{max}, int( ( Sirius::OS::Cpus->count + 7 ) / 8 ) if $value eq 'auto';
    die "'$value' is not a number of processes: use a whole number or auto\n" if $value !~ /\A-?\d{1,15}\z/;
    return _range( $value + 0, $row );
}

# An account by name or number; a number needs no entry in the password file
sub _group {
    my ( $value, $row ) = @_;
    my @names = $row->{list} ? split /,/, $value, -1 : $value;
    for my $name ( @names ? @names : '' ) {
        die "'$name' is not a known group\n" if $name !~ /\A\d{1,10}\z/ && !defined getgrnam $name;
    }
    return $value;
}

# The name of a field of responses that means nothing to HTTP
sub _header {
    my $value = shift;
    die "'$value' is not the name of a header field\n" if $value !~ /\A[!#\$%&'*+.^_`|~0-9A-Za-z-]{1,100}\z/;
    die "'$value' is a field with another meaning: use X-Request-Id\n" if $value !~ /\AX-|-id\z/i;
    return $value;
}

# The value of Strict-Transport-Security (RFC 6797 6.1)
sub _hsts {
    my $value = shift;
    my ( $time, @words ) = split /\s*[,;]\s*/, $value =~ s/\A\s+|\s+\z//gr, -1;
    my $seconds = Sirius::Base::Text->whole_seconds( ( $time // '' ) =~ s/\Amax-age=//ir )
        // die "'$value' does not begin with a time: use a number of seconds, such as 31536000, or 365d\n";
    die "@{[ $time =~ /([0-9]+)/ ]} is too large: the maximum is 9999999999\n" if $seconds > 9_999_999_999;
    my %name  = map { lc $_ => $_ } qw(includeSubDomains preload);
    my %given = map { $name{ lc $_ } // die("'$_' is not one of includeSubDomains, preload\n") => 1 } @words;
    return join '; ', "max-age=$seconds", grep { $given{$_} } qw(includeSubDomains preload);
}

sub _listen {
    my ( $value, $row ) = @_;
    my @specs = ref $value eq 'ARRAY' ? @$value : $value;
    die scalar(@specs) . " addresses are too many: the maximum is 64\n" if @specs > 64;    # SR_LISTENERS_MAX
    for my $spec (@specs) {
        my $address = Sirius::Config::Address->parse($spec);
        die "$spec: the status page speaks plain HTTP only\n" if $address->{tls} && $row->{name} eq 'admin';
    }
    return \@specs;
}

# Of Plack::App::URLMap, which dies with a line of its own
sub _mount {
    my $value = shift;
    die "'$value' is not the path of a URL: it begins with /\n" if $value !~ m{\A(?:https?://[^/]+)?/};
    return $value;
}

# Normalizes a network. Bits set after the prefix are an error, as another network must have been meant
sub _network {
    my $word = shift;
    return $word if $word eq 'unix';
    my ( $text, $bits ) = $word =~ m{\A([0-9a-f.:]+)(?:/(0|[1-9]\d{0,2}))?\z}i;
    my $family  = defined $text && $text =~ /:/ ? AF_INET6 : AF_INET;
    my $address = defined $text       ? inet_pton( $family, $text ) : undef;
    my $width   = $family == AF_INET6 ? 128                         : 32;
    die
        "'$word' is not a network: use one such as 10.0.0.0/8 or ::1, or unix, forwarded, x-forwarded-host or x-forwarded-port\n"
        if !defined $address || defined $bits && $bits > $width;
    return $word if !defined $bits;
    my $network = substr( unpack( 'B*', $address ), 0, $bits ) . '0' x ( $width - $bits );
    my $meant   = pack 'B*', $network;
    die "'$word' has bits set after the first $bits; did you mean ", inet_ntop( $family, $meant ), "/$bits?\n"
        if $meant ne $address;
    return $word;
}

# Text only: the number 0022 of a Perl program would arrive as 18
sub _octal {
    my $value = shift;
    die "'$value' is not a file mode: use an octal number from 0 to 0777\n" if $value !~ /\A0*[0-7]{1,3}\z/;
    return oct $value;
}

# Absolute, as the server may change its directory
sub _path {
    my ( $value, $row ) = @_;
    _string($value);
    return $value if $row->{socket} && $value eq 'none';
    die "'$value' is an address, not the path of a unix socket: write ./$value for a file of that name\n"
        if $row->{socket} && Sirius::Config::Address->is_no_path($value);
    die "'$value' is a directory\n" if -d $value;
    return File::Spec->rel2abs($value);
}

# Networks, and which further fields are believed from proxies in them
sub _proxies {
    my $value = _string(shift);
    my ( %field, @networks );
    for my $word ( map { lc s/\A\s+|\s+\z//gr } split /,/, $value, -1 ) {
        if ( $word =~ /\A(?:forwarded|x-forwarded-(?:host|port))\z/ ) { $field{$word} = 1 }
        else                                                          { push @networks, _network($word) }
    }
    die "'$value' contains no network: add one, such as 10.0.0.0/8\n"     if !@networks;
    die scalar(@networks) . " networks are too many: the maximum is 64\n" if @networks > 64;    # SR_CIDRS_MAX
    for my $what ( $field{forwarded} ? qw(host port) : () ) {
        die
            "forwarded cannot be combined with x-forwarded-$what: the Forwarded field has the host, with its port\n"
            if $field{"x-forwarded-$what"};
    }
    return { networks => \@networks, %field };
}

sub _range {
    my ( $value, $row ) = @_;
    die "$value is too small: the minimum is $row->{min}\n" if defined $row->{min} && $value < $row->{min};
    die "$value is too large: the maximum is $row->{max}\n" if defined $row->{max} && $value > $row->{max};
    die "$value is too small: the minimum is $row->{least}, or 0\n"
        if $row->{least} && $value && $value < $row->{least};
    return $value;
}

# 0: off; 1: to the port that the addresses tell; or a port
sub _redirect {
    my $value = shift;
    return $value + 0 if $value =~ /\A\d{1,5}\z/ && $value <= 65_535;
    return 0          if $value =~ /\A(?:no|off|false)?\z/i;
    return 1          if $value =~ /\A(?:yes|on|true)\z/i;
    die "'$value' is not a port: use yes, or a number from 2 to 65535\n";
}

sub _seconds {
    my $value = shift;
    return Sirius::Base::Text->seconds($value)
        // die "'$value' is not a time: use a number of seconds, such as 30, 0.5, 500ms, 5m or 7d\n";
}

# 300 for 300 MiB is a common slip, and would be a limit that every process exceeds
sub _size {
    my ( $value, $row ) = @_;
    my $bytes = _bytes($value);
    my ($number) = $value =~ /\A0*(\d+)/;
    die "$value means $bytes bytes, $row->{why}; did you mean ${number}m?\n"
        if $bytes && $row->{least} && $bytes < $row->{least};
    die "$value means $bytes bytes, the minimum is $row->{min}; did you mean ${number}k?\n"
        if $bytes && defined $row->{min} && $bytes < $row->{min};
    return _range( $bytes, $row );
}

sub _string {
    my $value = shift;
    die "the value is empty\n" if !length $value;
    return $value;
}

# A header value; empty for no header
sub _token {
    my $value = shift;
    my $bad   = first {/[^\x20-\x7e]/} split //, $value;
    die sprintf "the value contains the character 0x%02x, which is not allowed in a header\n", ord $bad
        if defined $bad;
    return $value;
}

sub _user {
    my $value = shift;
    die "'$value' is not a known user\n" if $value !~ /\A\d{1,10}\z/ && !defined getpwnam $value;
    return $value;
}

# Subs, and paths or URLs. A comma within a path is a part of it
sub _warm_up {
    my $value = shift;
    my @all;
    for my $text ( ref $value eq 'ARRAY' ? @$value : $value ) {
        if ( ref $text || $text =~ /\A\s*sub\b/ ) {
            push @all, _code($text);
            next;
        }
        my @targets = map {s/\A\s+|[\s,]+\z//gr} split m{,\s*(?=/|https?:)}i, $text;
        for my $target ( @targets ? @targets : '' ) {
            die "'$target' is not a path: write /PATH, http://HOST/PATH or 'sub { ... }'\n"
                if $target !~ m{\A(?:https?://[\w.:\[\]-]+)?(?:/[\x21\x22\x24-\x7e]*)?\z}i || !length $target;
            push @all, $target;
        }
    }
    return \@all;
}

# Bytes of a path as a client sends it
sub _websocket {
    my $value    = shift;
    my @prefixes = ref $value ? @$value : $value;
    my @off      = grep { $_ eq 'off' } @prefixes;
    die "'off' and a path contradict each other: give one of them\n" if @off && @off < @prefixes;
    return ['off']                                                   if @off;
    for (@prefixes) {
        die "'$_' is not the beginning of a path: write /chat, or off\n" if !m{\A/[!-~]*\z} || /[?#]/;
    }
    return \@prefixes;
}

# A number, or two of them: at the start and at the most
sub _workers {
    my ( $value, $row ) = @_;
    my $auto = qr/auto(?:[*]\d{1,4})?/;
    my ( $low, $high ) = $value =~ /\A(-?\d{1,15}|$auto)(?::(\d{1,15}|$auto))?\z/
        or die "'$value' is not a number of workers: use a whole number, auto, auto*N, MIN:MAX or MIN:auto\n";
    my $at_most = $high && $high =~ /auto/;
    for ( grep {defined} $low, $high ) {
        my $number = /\Aauto(?:[*](\d+))?\z/ ? Sirius::OS::Cpus->workers * ( $1 // 1 ) : $_ + 0;
        die "'$value': auto*0 would be no workers\n" if /auto/ && !$number;
        $_ = _range( $number, { %$row, min => defined $high ? 1 : 0 } );
    }
    return $low                                                          if !defined $high;
    return [ $low, $high < $low ? $low : $high ]                         if $at_most;
    die "'$value': the minimum $low is greater than the maximum $high\n" if $low > $high;
    return [ $low, $high ];
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Type - values of options

=head1 SYNOPSIS

  use Sirius::Config::Type;

  Sirius::Config::Type->check({ type => 'bytes', max => 2**30 }, '64k');    # 65536

=head1 DESCRIPTION

C<count> is a whole number; C<seconds> a number with an optional C<ms>, C<s>, C<m>, C<h> or C<d>; C<bytes> a whole number with
an optional C<k>, C<m> or C<g>; C<bool> is 1, 0, yes, no, on, off, true, false or empty; C<port>, C<listen>, C<dir> and
C<string> are what they say; C<mount> is the path of a URL; C<path> is a file, returned as an absolute path, as C<dir> is; C<paths> is a list of these; C<octal> is an octal number
up to 0777, returned as a number; C<user> and C<group> are names that exist, or numbers; C<edges> is a whole number or C<auto>; C<workers> is a whole number,
C<auto> (see L<Sirius::OS::Cpus>), C<auto*N>, or two of these as C<MIN:MAX>, returned as a list of two; C<token> is printable ASCII,
perhaps none; C<code> is a sub or the text of one; C<warm-up> is one of these, or paths and URLs with commas between them, returned as a list; C<static> is described in L<Sirius::Config::Static>, C<lane> in L<Sirius::Config::Lane>, C<beside> in L<Sirius::Config::Companion>; C<redirect> is a port, or 0 or 1 for no and yes; C<hsts> is a time with C<includeSubDomains> and C<preload> after commas, returned as the value of the header field; C<choice> is one of the words in C<of>; C<any> takes everything. None has a NUL byte in it.

C<header> is the name of a header field that ends with C<-Id> or begins with C<X->.

C<proxies> are networks with commas between them, C<unix> for unix sockets, and perhaps C<forwarded>, or
C<x-forwarded-host> and C<x-forwarded-port>; a hash with the list C<networks>, and these names as keys.

=head1 METHODS

=head2 check

  my $value = Sirius::Config::Type->check($row, $text);

Returns the value in its final form, or dies with what is wrong with it. C<$row> has C<type> and perhaps C<min> and C<max>.

=head2 placeholder

  my $word = Sirius::Config::Type->placeholder($row);

C<BYTES>, C<SECONDS>, ...: what stands for the value in a list of options. Undefined for C<bool> and C<any>.

=head1 SEE ALSO

L<Sirius>, L<Sirius::Config::Options>.

=cut
