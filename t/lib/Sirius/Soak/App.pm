package Sirius::Soak::App;

# The application under soak. A path /KIND/CLIENT-NUMBER?LENGTH names the kind of response; the bytes of its
# body are derived from NUMBER and LENGTH. So a client knows each byte that must come, and notices one that
# belongs to another response.

use strict;
use warnings;
use Digest::MD5 qw(md5);
use Time::HiRes qw(sleep time);

use constant PIECES  => 8;       # of a body that comes in several
use constant LONGEST => 2**20;

my $STEP  = 977;
my $BLOCK = join '', map { md5($_) } 1 .. 2 * LONGEST / 16;
my $FILE;

my %ANSWER = (
    cleanup => \&_cleanup,
    cut     => \&_cut,
    delayed => \&_delayed,
    die     => sub { die "on purpose\n" },
    early   => \&_early,
    exit    => sub { exit 0 },
    file    => \&_file,
    lines   => \&_lines,
    list    => \&_list,
    nothing => sub { return _of( $_[0], 204, [] ) },
    post    => \&_post,
    retire  => \&_retire,
    same    => sub { return _of( $_[0], 304, [] ) },
    sleep   => sub { sleep 0.005; return _text( $_[0] ) },
    stream  => \&_stream,
    stuck   => \&_stuck,
    text    => \&_text,
);

sub app {
    my ( $class, $file ) = @_;
    $FILE = $file;
    return sub {
        my $env = shift;
        my ( $kind, $id, $number ) = $env->{PATH_INFO} =~ m{\A/(\w+)/(\d+-(\d+))\z} or return [ 404, [], [] ];
        my $answer = $ANSWER{$kind} or return [ 404, [], [] ];
        return $answer->( {
            env     => $env,
            headers => [ 'Content-Type' => 'application/octet-stream', 'X-Id' => $id, 'X-Pid' => $$ ],
            length  => $env->{QUERY_STRING},
            number  => $number,
        } );
    };
}

# For the kind "file": the bytes are those of this file from the same offset
sub block { return $BLOCK }

# The body of an answer. Not by substr: perl would keep the longest one ever made
sub body {
    my ( $class, $number, $length ) = @_;
    return unpack 'x' . _place($number) . "a$length", $BLOCK;
}

# For the kind "file": everything from an offset in its first half
sub body_of_file {
    my ( $class, $number, $size ) = @_;
    my $place = _place($number) % ( $size / 2 );
    return substr $BLOCK, $place, $size - $place;
}

sub _cleanup {
    my $request = shift;
    push @{ $request->{env}{'psgix.cleanup.handlers'} }, sub { my $env = shift; $env->{'soak.end'} = $$ };
    return _text($request);
}

sub _cut {
    my $request = shift;
    return sub {
        my $writer = shift->( _of( $request, 200 ) );
        $writer->write( _body($request) );
        die "in the middle, on purpose\n";
    };
}

sub _delayed {
    my $request = shift;
    return sub { my $respond = shift; return $respond->( _text($request) ) };
}

sub _early {
    my $request = shift;
    $request->{env}{'psgix.informational'}->( 103, [ Link => '</style.css>; rel=preload' ] );
    return _text($request);
}

sub _file {
    my $request = shift;
    open my $fh, '<:raw', $FILE or die "$FILE: $!\n";
    my $size = -s $fh;
    seek $fh, _place( $request->{number} ) % ( $size / 2 ), 0 or die "$FILE: $!\n";
    return _of( $request, 200, $fh );
}

sub _lines {
    my $request = shift;
    return _of( $request, 200, Sirius::Soak::App::Lines->new( _pieces($request) ) );
}

sub _list {
    my $request = shift;
    return _of( $request, 200, [ _pieces($request) ] );
}

# MD5 and length of what has arrived
sub _post {
    my $request = shift;
    my ( $input, $md5, $length ) = ( $request->{env}{'psgi.input'}, Digest::MD5->new, 0 );
    while ( my $n = $input->read( my $bytes, 16_384 ) ) {
        $md5->add($bytes);
        $length += $n;
    }
    return _of( $request, 200, [ $md5->hexdigest . " $length" ] );
}

sub _retire {
    my $request = shift;
    $request->{env}{'psgix.harakiri.commit'} = 1;
    return _text($request);
}

sub _stream {
    my $request = shift;
    return sub {
        my $writer = shift->( _of( $request, 200 ) );
        $writer->write($_) for _pieces($request);
        $writer->close;
    };
}

# Waits so many seconds, whatever signals come
sub _stuck {
    my $request = shift;
    my $until   = time + $request->{length};
    sleep 1 while time < $until;
    return _of( $request, 200, ['late'] );
}

sub _text { return _of( $_[0], 200, [ _body( $_[0] ) ] ) }

sub _body { return __PACKAGE__->body( @{ $_[0] }{qw(number length)} ) }

sub _of {
    my ( $request, $status, @body ) = @_;
    return [ $status, $request->{headers}, @body ];
}

sub _pieces {
    my $request = shift;
    my $size    = 1 + int( $request->{length} / PIECES );
    return unpack "(a$size)*", _body($request);
}

sub _place { return shift() * $STEP % LONGEST }

package Sirius::Soak::App::Lines;

sub new {
    my ( $class, @lines ) = @_;
    return bless \@lines, $class;
}

sub close   { return 1 }
sub getline { return shift @{ $_[0] } }

1;
