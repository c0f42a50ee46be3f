package Sirius::CLI::Check::Request;

use strict;
use warnings;

use List::Util qw(first);
use Plack::Middleware::Lint;
use Plack::Util  ();
use Scalar::Util qw(blessed reftype);
use Sirius       ();
use Sirius::App::WarmUp;
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Config::Address;
use Socket qw(AF_UNIX PF_UNSPEC SOCK_STREAM);

# A stream without end is read for a second, or so far
use constant { STREAM => 1, BYTES => 1 << 20 };

use constant SLOW => 1;    # seconds that deserve a warning

sub check {
    my ( $class, $report, %args ) = @_;
    my $self = bless { report => $report, began => now(), bytes => 0, what => "GET $args{get}", %args },
        $class;
    my $env = $self->_env;
    local @ARGV;    # as in a worker
    my $done = eval {
        my $response = Plack::Middleware::Lint->wrap( $args{app} )->($env);
        if   ( ref $response eq 'CODE' ) { $self->_delayed($response) }
        else                             { $self->_take($response) }
        1;
    };
    return $self->_failed($@) if !$done;
    $self->_judge;
    for my $handler ( grep { ref eq 'CODE' } @{ $env->{'psgix.cleanup.handlers'} } ) {
        eval { $handler->($env); 1 }
            or $report->error( "a handler of psgix.cleanup dies: " . $args{explain}->("$@") );
    }
    return;
}

# A response that comes later, or a writer. Lint looks at what it is given
sub _delayed {
    my ( $self, $response ) = @_;
    $self->{until} = now() + STREAM;
    $response->( sub {
        my $given = shift;
        $self->_take($given);
        return if @$given == 3;
        return Plack::Util::inline_object( close => sub { }, write => sub { $self->_piece( shift, 1 ) } );
    } );
    return;
}

# As the server makes it for a client on this machine
sub _env {
    my $self  = shift;
    my $tcp   = first { Sirius::Config::Address->parse($_)->{port} } @{ $self->{conf}{listen} };
    my $port  = defined $tcp ? Sirius::Config::Address->parse($tcp)->{port} : 80;
    my $where = Plack::Util::inline_object(
        is_tls  => sub { defined $tcp && Sirius::Config::Address->is_tls($tcp) },
        is_unix => sub { !defined $tcp },
        name    => sub {'localhost'},
        port    => sub {$port},
    );
    socketpair my $io, $self->{client}, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!\n";
    my $maker = Sirius::App::WarmUp->new( listener => $where, multiprocess => $self->{conf}{workers} );
    return $maker->env(
        $self->{get},
        HTTP_USER_AGENT => 'Sirius/' . Sirius->VERSION . ' (check)',
        'psgix.io'      => $io,
    );
}

# Lint dies as the application may
sub _failed {
    my ( $self,   $error ) = @_;
    my ( $report, $what )  = @{$self}{qw(report what)};
    my $why = $self->{explain}->("$error");
    $why =~ s/ \(UTF-8 strings\)/: encode it, for example as UTF-8/ if $why =~ /Lint\.pm/;
    return $report->error("$what: the response breaks PSGI: $why")
        if $why =~ s{ at \S+/Middleware/Lint\.pm line \d+\z}{};
    return $report->error("$what: the application dies while it sends the response: $why") if $self->{status};
    return $report->error("$what: the application dies: $why");
}

sub _judge {
    my $self = shift;
    my ( $report, $status ) = @{$self}{qw(report status)};
    my $time = now() - $self->{began};
    return $report->error(
        "$self->{what}: the application returns a callback, but never calls the responder that it gets")
        if !defined $status;
    my $printed = $self->{printed}->();
    return $report->error( "$self->{what} is answered with $status"
            . ( defined $printed ? ", and the application prints: $printed" : '; look into its log' ) )
        if $status >= 500;
    return $report->error(
        "$self->{what}: Content-Length is $self->{length}, but the body has $self->{bytes} bytes")
        if defined $self->{length}
        && !$self->{endless}
        && $self->{length} ne $self->{bytes}
        && $status !~ /\A[23]04\z/;
    $report->ok(
        sprintf '%s is answered with %d, %s %s, in %s',
        $self->{what},
        $status,
        $self->{endless}      ? 'a stream,'        : Sirius::Base::Text->bytes( $self->{bytes} ),
        defined $self->{type} ? "of $self->{type}" : 'without a Content-Type',
        Sirius::Base::Text->duration($time)
    );
    return if $time < SLOW || $self->{endless};
    return $report->warning( sprintf '%s takes %s, in which its worker serves nobody else',
        $self->{what}, Sirius::Base::Text->duration($time) );
}

sub _piece {
    my ( $self, $piece, $streams ) = @_;
    return if !defined $piece;
    my $bytes = "$piece";
    utf8::downgrade( $bytes, 1 )
        or return $self->{report}
        ->error("$self->{what}: the body has characters above 255: encode it, for example as UTF-8");
    $self->{bytes} += length $bytes;
    return if !$self->{until} || $self->{bytes} < BYTES && now() < $self->{until};
    $self->{endless} = 1;
    return if !$streams;
    $self->_judge;    # an application may catch whatever this throws
    return $self->{finish}->();
}

# Status, fields and a body, if there is one
sub _take {
    my ( $self, $response ) = @_;
    my ( $status, $fields, $body ) = @$response;
    my @fields = @$fields;
    while ( my ( $name, $value ) = splice @fields, 0, 2 ) {
        $self->{length} = $value if lc $name eq 'content-length';
        $self->{type}   = $value if lc $name eq 'content-type';
    }
    $self->{status} = $status;
    if    ( ref $body eq 'ARRAY' ) { $self->_piece($_) for @$body }
    elsif ( defined $body ) {
        $self->{until} = now() + STREAM;
        local $/ = \65_536;
        while ( !$self->{endless} && defined( my $piece = $body->getline ) ) { $self->_piece($piece) }
        $body->close if reftype $body eq 'GLOB' || blessed $body && $body->can('close');
    }
    return;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Request - asks the application for a page

=head1 SYNOPSIS

  use Sirius::CLI::Check::Request;

  Sirius::CLI::Check::Request->check( $report, app => $app, conf => $conf, get => '/', explain => sub { shift }, printed => sub { } );

=head1 DESCRIPTION

Calls the application with the C<%env> that the server would make, under L<Plack::Middleware::Lint>, takes a response of any kind, and
judges it. Runs in a process of its own, which has a time limit.

=head1 METHODS

=head2 check

C<explain> makes a line of an exception; C<printed> returns the last line that the application has printed meanwhile; C<finish> ends
the process, in the middle of a stream without end.

=head1 SEE ALSO

L<Sirius::CLI::Check>, L<Plack::Middleware::Lint>.

=cut
