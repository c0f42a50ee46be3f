package Sirius::Dev::Trap;

use strict;
use warnings;
use parent 'Plack::Middleware';

use POSIX        ();
use Scalar::Util qw(refaddr weaken);
use Sirius::Dev::ErrorPage;
use Sirius::Dev::Exception;
use Sirius::Dev::Source;

use constant SEEN_MAX =>
    32;    # exceptions of a request of which the places are kept: most are caught by the application

sub call {
    my ( $self, $env ) = @_;
    my $seen = [];
    my ( $done, $response ) = _try( $seen, sub { return $self->app->($env) } );
    return $self->_answer( $env, $seen, $@ ) if !$done;
    if ( ref $response eq 'ARRAY' ) {
        $self->_tell_caught( $env, $seen ) if ( $response->[0] // '' ) eq '500' && @$seen;
        return $response;
    }
    return $response if ref $response ne 'CODE';
    return sub {
        my $responder = shift;
        my $begun;
        my $respond = sub {
            my $answer = shift;
            $self->_tell_caught( $env, $seen )
                if !$begun++ && ref $answer eq 'ARRAY' && ( $answer->[0] // '' ) eq '500' && @$seen;
            return $responder->($answer);
        };
        my ( $whole, $value ) = _try( $seen, sub { return $response->($respond) } );
        return $value if $whole;
        my $error = $@;
        return $responder->( $self->_answer( $env, $seen, $error ) ) if !$begun;
        $self->_exception( $env, $seen, $error );
        die $error;    ## no critic (RequireCarping)
    };
}

sub _answer {
    my ( $self, $env, $seen, $error ) = @_;
    my $exception = $self->_exception( $env, $seen, $error );
    return Sirius::Dev::ErrorPage->response( 'text/html', $exception->html )
        if Sirius::Dev::Source->wants_html( $env->{HTTP_ACCEPT} );
    return Sirius::Dev::ErrorPage->response( 'text/plain', $exception->plain );
}

# Where it was: the last one of this kind. It is printed as well
sub _exception {
    my ( $self, $env, $seen, $error ) = @_;
    my ($its) = grep { _is_same( $_->[0], $error ) } reverse @$seen;
    my $exception = $self->_made( $env, $error, $its && $its->[1] );
    $self->_print( $env, $exception );
    return $exception;
}

sub _is_same {
    my ( $one, $other ) = @_;
    return 0 if !defined $one || !defined $other || ref $one ne ref $other;
    return ref $one ? refaddr $one == refaddr $other : $one eq $other;
}

sub _made {
    my ( $self, $env, $error, $calls, @more ) = @_;
    my %own = map { $_ => $self->{$_} } qw(editor files);
    return Sirius::Dev::Exception->new( %own, calls => $calls, env => $env, error => $error, @more );
}

# An object is not kept: that it goes may have a meaning. Only its class is
sub _note {
    my ( $seen, $error ) = @_;
    shift @$seen if @$seen >= SEEN_MAX;
    push @$seen, [ $error, Sirius::Dev::Exception->calls(__PACKAGE__), ref $error ];
    weaken $seen->[-1][0] if ref $error;
    return;
}

# STDERR of a worker is that of the server
sub _print {
    my ( $self, $env, $exception ) = @_;
    my $colours = POSIX::isatty(2) && !length( $ENV{NO_COLOR} || '' ) && ( $ENV{TERM} || 'dumb' ) ne 'dumb';
    return $env->{'psgi.errors'}->print( $exception->terminal($colours) );
}

# A framework that has caught it answers by itself, and seldom says where it was
sub _tell_caught {
    my ( $self, $env, $seen ) = @_;
    for my $its ( reverse @$seen ) {
        my ( $error, $calls, $class ) = @$its;
        my $kind = length $class ? "Exception of $class" : 'Exception';
        my $shown
            = defined $error ? $error : "it was gone when the response was made, so its text is not known";
        my $exception = $self->_made( $env, $shown, $calls, title => "$kind before the status 500" );
        return $self->_print( $env, $exception ) if $exception->has_place;
    }
    return;
}

# True, and the value; else $@ is the exception
sub _try {
    my ( $seen, $code ) = @_;
    my $before = $SIG{__DIE__};
    local $SIG{__DIE__} = sub {
        _note( $seen, $_[0] );
        $before->(@_) if ref $before eq 'CODE';
        die @_;    ## no critic (RequireCarping)
    };
    my $value;
    my $done = eval { $value = $code->(); 1 };
    return ( $done, $value );
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::Trap - shows exceptions of the application to who works on it

=head1 SYNOPSIS

  $app = Sirius::Dev::Trap->wrap( $app, editor => $editor, files => $files );

=head1 DESCRIPTION

Middleware of C<sirius dev>, in place of L<Plack::Middleware::StackTrace>. An exception, also one of a delayed response, is printed to
C<psgi.errors> and becomes a response with status 500 (L<Sirius::Dev::Exception>). If a framework catches an exception and answers with status
500 itself, its response stays as it is, and the last exception in the code of the application is printed. Of an object that is gone by
then, that is its class and where it was thrown: no object is kept longer, or asked for its text before.

A handler in C<$SIG{__DIE__}> is called after this one's. One that a framework sets during the request, as Mojolicious does, replaces it:
then what the framework catches itself is not printed.

=head1 METHODS

=head2 call

As that of L<Plack::Middleware>.

=head1 SEE ALSO

L<Sirius::Dev::Loader>.

=cut
