package Sirius::Config::Address;

use strict;
use warnings;

use Socket qw(AF_INET AF_INET6 IN6ADDR_LOOPBACK inet_pton);

# The end of an address says what it speaks; ":ssl" is Starman's
my $SPEAKS = qr/(?:,(tls|h2c)|:(ssl))\z/i;

sub bare {
    my ( $class, $spec ) = @_;
    return $spec =~ s/$SPEAKS//r;
}

# Numeric owner and group; -1 leaves it as it is
sub ids {
    my ( $class, %want ) = @_;
    my $number = qr/\A(?:\d+|-1)\z/;
    my ( $owner, $group ) = map { defined $_ ? $_ : -1 } @want{qw(owner group)};
    my $uid = $owner =~ $number ? $owner : getpwnam $owner;
    my $gid = $group =~ $number ? $group : getgrnam $group;
    die "there is no user $owner\n"  if !defined $uid;
    die "there is no group $group\n" if !defined $gid;
    return $uid, $gid;
}

sub is_h2c {
    my ( $class, $spec ) = @_;
    return _speaks($spec) eq 'h2c';
}

# What cannot be meant as the path of a unix socket, although a file may have that name
sub is_no_path {
    my ( $class, $text ) = @_;
    return 0 if $text =~ m{/|\A\@|\Aunix:};
    my $address = eval { $class->parse($text) };
    return $address && !defined $address->{path};
}

# False for a name, too: where it leads is known when it is bound
sub is_public {
    my ( $class, $host ) = @_;
    $host =~ tr/[]//d;
    return 1 if $host eq '' || $host eq '*';
    if ( $host =~ /:/ ) {
        my $six = inet_pton( AF_INET6, $host );
        return !defined $six || $six ne IN6ADDR_LOOPBACK;    # fe80::1%eth0 is none either
    }
    my $four = inet_pton( AF_INET, $host );
    return defined $four && 127 != unpack 'C', $four;
}

sub is_tls {
    my ( $class, $spec ) = @_;
    return _speaks($spec) eq 'tls';
}

sub parse {
    my ( $class, $spec ) = @_;
    my $speaks = _speaks($spec);
    my $bare   = $class->bare($spec);
    die
        "'$spec': an address speaks TLS or h2c, which is HTTP/2 without TLS: with ,tls alone it speaks HTTP/2 as well\n"
        if $bare =~ $SPEAKS;
    my ( $path, $end, $file ) = $bare =~ /\A(.*)(,(?:tls|h2c))(\?\w+=.*)\z/is;
    die "'$spec': $end comes last: write $path$file$end\n" if defined $end;
    return { %{ _parse($bare) }, $speaks ? ( $speaks => 1 ) : () };
}

# Guesses the intended address. A bare name is refused as a path: a forgotten port would make a unix socket in
# the current directory
sub _no_address {
    my $spec = shift;
    my $unix = "unix:$spec or ./$spec for a unix socket";
    my ( $host, $port )
        = $spec =~ /\A(\[.*\]):?(.*)\z/s ? ( $1, $2 )
        : $spec =~ /\A(.*):(.*)\z/s      ? ( $1, $2 )
        :                                  ( $spec, '' );
    die "'$spec' is not an address: it contains white space\n" if $spec                =~ /\s/;
    die "'$spec' has no port: write $host:5000, or $unix\n"    if $port eq '' && $spec !~ /\A\d+\D*\z/;
    die "'$spec': $port is not a port number: write HOST:PORT, or $unix\n" if $port    =~ /\D/;
    return die "'$spec' is not a port number: write HOST:PORT, or $unix\n";
}

sub _parse {
    my $spec = shift;
    return { fd   => $1 } if $spec =~ /\Afd:(\d+)\z/;
    return { name => $1 } if $spec =~ /\Asystemd:(.+)\z/s;
    return _unix( $spec, $1 )                                               if $spec =~ /\Aunix:(.*)\z/s;
    die "'$spec' is a URL: write HOST:PORT, or the path of a unix socket\n" if $spec =~ m{\A[a-z]\w*://}i;
    return _unix( $spec, $spec )                                            if $spec =~ m{/|\A\@};
    return { host => '', port => _port($spec) }                             if $spec =~ /\A\d+\z/;
    if ( $spec =~ /\A\[([^\[\]]*:[^\[\]]*)\]:(\d+)\z/ ) {
        my ( $host, $port ) = ( $1, $2 );
        die "'$spec': $host is not an IPv6 address\n" if !defined inet_pton( AF_INET6, $host =~ s/%.*//sr );
        return { host => $host, port => _port($port) };
    }

    # This is what plackup makes of --host ::1 --port 80
    if ( $spec =~ /\A(.*:.*):(\d+)\z/ ) {
        my ( $host, $port ) = ( $1, $2 );
        die "'$spec' is not an address: write [IPV6]:PORT or unix:PATH\n"
            if !defined inet_pton( AF_INET6, $host );
        return { host => $host, port => _port($port) };
    }
    return { host => $1, port => _port($2) } if $spec =~ /\A([^:\s]*):(\d+)\z/;
    die "the address is empty\n"             if $spec eq '';
    return _no_address($spec);
}

sub _port {
    my $port = shift;
    die "port $port is out of range: use 0 to 65535\n" if length $port > 5 || $port > 65535;
    return $port + 0;
}

# 'tls', 'h2c' or ''
sub _speaks {
    my $spec = shift;
    return $spec !~ $SPEAKS ? '' : defined $2 ? 'tls' : lc $1;
}

# Owner, group and mode of the socket file may follow the path
sub _unix {
    my ( $spec, $text ) = @_;
    my %address;
    if ( $text =~ s/\?(\w+=[^?]*)\z// ) {
        for my $pair ( split /&/, $1 ) {
            my ( $key, $value ) = $pair =~ /\A(mode|owner|group)=(.+)\z/s
                or die "'$spec': '$pair' is not mode=, owner= or group= with a value\n";
            $address{$key} = $value;
        }
    }
    if ( defined $address{mode} ) {
        die "'$spec': mode $address{mode} is not octal, such as 0660\n" if $address{mode} !~ /\A0?[0-7]{3}\z/;
        $address{mode} = oct $address{mode};
    }
    eval { __PACKAGE__->ids(%address); 1 } or die "'$spec': $@";
    if ( $text =~ s/\A\@/\0/ ) {
        die "'$spec': an abstract socket has no file, so it takes no mode, owner or group\n" if %address;
        die "'$spec' has no name\n"                                                          if $text eq "\0";
    }
    die "'$spec' has no path\n" if $text eq '';
    die "'$spec' ends with a slash: a unix socket is a file, not a directory\n"
        if $text =~ m{\A[^\0].*/\z}s || $text eq '/';
    return { path => $text, %address };
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Address - an address to listen on or to connect to, as text

=head1 SYNOPSIS

  use Sirius::Config::Address;

  my $address = Sirius::Config::Address->parse('[::1]:5000');    # { host => '::1', port => 5000 }

=head1 DESCRIPTION

Reads an address and opens nothing.

=head1 ADDRESSES

  127.0.0.1:5000    this address          5000      as :5000
  localhost:5000    the IPv4 address of a name, or else its IPv6 address
  :5000             all IPv4 addresses    *:5000    all IPv4 and IPv6 addresses
  [::1]:5000        an IPv6 address       [::]:5000 as *:5000, without the fall-back to IPv4
  [fe80::1%eth0]:80 an IPv6 address of one interface only
  /run/app.sock     a unix socket         ./app.sock, unix:app.sock as well
  @app, unix:@app   a name in Linux's abstract namespace
  fd:3              a descriptor that listens already
  systemd:web       all of systemd's that have this name (FileDescriptorName=)
  0.0.0.0:443,tls   any of them, with TLS
  10.0.0.1:80,h2c   any of them, with HTTP/2 without TLS beside HTTP/1.1 (RFC 9113 3.3)

With port 0 the system chooses one. Text with a slash is a path, with colons or without. A name without a slash is a
path only with C<unix:> in front: otherwise a host whose port was forgotten would be taken for a path.

A path may be followed by the mode, owner and group of the file, as in
C<unix:/run/app.sock?mode=0660&owner=www&group=www-data>. The defaults are C<--socket-mode>, C<--socket-owner> and
C<--socket-group>; without them the umask decides. See L<Sirius::Listen::Unix>.

=head1 METHODS

=head2 bare

  my $text = Sirius::Config::Address->bare('0.0.0.0:443,tls');

The text without its end that says what the address speaks.

=head2 ids

  my ( $uid, $gid ) = Sirius::Config::Address->ids( owner => 'www', group => 'www-data' );

Returns the numbers of a user and a group, which are given as names or numbers; -1 if one is not given. Dies if the
system does not know one.

=head2 is_h2c

  my $bool = Sirius::Config::Address->is_h2c('10.0.0.1:80,h2c');

Whether the text ends with C<,h2c>.

=head2 is_no_path

  my $bool = Sirius::Config::Address->is_no_path('127.0.0.1:5000');

Whether the text is an address that is not the path of a unix socket, where only a path is accepted.

=head2 is_public

  my $bool = Sirius::Config::Address->is_public('10.0.0.1');

Whether other machines may reach this host: false for a loopback address (127.0.0.0/8, ::1) only.

=head2 is_tls

  my $bool = Sirius::Config::Address->is_tls('0.0.0.0:443,tls');

Whether the text ends with C<,tls>, or C<:ssl> as Starman writes it.

=head2 parse

  my $address = Sirius::Config::Address->parse('unix:/run/app.sock?mode=0660');

C<host> and C<port>, or C<fd>, or C<name> (of systemd), or C<path>, with a NUL byte first for a C<@name>, and C<mode>,
C<owner> and C<group> if they are given; C<tls> or C<h2c> is true as L</is_tls> says. Dies with a message that contains the text if it is
not an address.

=head1 SEE ALSO

L<Sirius::Listen::Listener>, L<Sirius::Config::Options>.

=cut
