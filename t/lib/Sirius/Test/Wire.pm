package Sirius::Test::Wire;

# A client of TLS that has its records in hand: they are made by OpenSSL in memory, and the test sends them as
# it likes.
#
#   my $wire = Sirius::Test::Wire->new( $server->address );
#   $wire->put( $wire->seal( request('GET /') ) );       # one record, in one piece
#   is $wire->response->status, 200, 'an answer';

use strict;
use warnings;
use Net::SSLeay;
use Sirius::Test::Client;
use Sirius::Test::Response;
use Time::HiRes qw(time);

Net::SSLeay::initialize();

# Options: version (1.2 or 1.3), ciphers, before (plain bytes that go first), last (the last bytes of the
# handshake, of TLS 1.3, are not sent: $wire->{held} has them), groups, session (of another wire, to be
# resumed), and those of Sirius::Test::Client
sub new {
    my ( $class, $address, %option )          = @_;
    my ( $version, $ciphers, $before, $last ) = delete @option{qw(version ciphers before last)};
    my ( $groups, $session )                  = delete @option{qw(groups session)};
    my $context = Net::SSLeay::CTX_new();
    my $number  = { '1.2' => 0x303, '1.3' => 0x304 }->{ $version || '1.3' };
    Net::SSLeay::CTX_set_min_proto_version( $context, $number );
    Net::SSLeay::CTX_set_max_proto_version( $context, $number );
    if    ( $ciphers && $number == 0x304 ) { Net::SSLeay::CTX_set_ciphersuites( $context, $ciphers ) }
    elsif ($ciphers)                       { Net::SSLeay::CTX_set_cipher_list( $context, $ciphers ) }
    Net::SSLeay::CTX_set1_groups_list( $context, $groups ) if $groups;
    my $self = bless {
        client  => Sirius::Test::Client->new( $address, %option, plain => 1 ),
        context => $context,
        in      => '',
        last    => $last,
        ssl     => Net::SSLeay::new($context),
        map { $_ => Net::SSLeay::BIO_new( Net::SSLeay::BIO_s_mem() ) } qw(from to)
    }, $class;
    Net::SSLeay::set_bio( $self->{ssl}, $self->{from}, $self->{to} );
    Net::SSLeay::set_connect_state( $self->{ssl} );
    Net::SSLeay::set_session( $self->{ssl}, $session ) if $session;
    $self->put($before)                                if defined $before;
    $self->{up} = $self->_handshake;
    return $self;
}

# The handshake is complete
# Which alert it was, in OpenSSL's words: "unexpected message"
sub alert { return shift->{alert} }

sub is_up { return shift->{up} }

sub cipher { return Net::SSLeay::get_cipher( shift->{ssl} ) }

# For another wire; ask when a response has come, as tickets are before it
sub session { return Net::SSLeay::get1_session( shift->{ssl} ) }

sub is_resumed { return Net::SSLeay::session_reused( shift->{ssl} ) }

# Records with these bytes, one for each text
sub seal {
    my ( $self, @text ) = @_;
    Net::SSLeay::write( $self->{ssl}, $_ ) for @text;
    return $self->_made;
}

# The record that ends this side
sub close_notify {
    my $self = shift;
    Net::SSLeay::shutdown( $self->{ssl} );
    return $self->_made;
}

# Sends bytes as they are
sub put {
    my ( $self, @bytes ) = @_;
    $self->{client}->send($_) for @bytes;
    return $self;
}

sub client { return shift->{client} }

# One response, as Sirius::Test::Client has it
sub response {
    my ( $self, %option ) = @_;
    my $until = time + ( $option{patience} || $Sirius::Test::Client::PATIENCE );
    while (1) {
        my $response
            = eval { Sirius::Test::Response->take( \$self->{in}, head => $option{head}, eof => $self->{end} ) };
        return Sirius::Test::Response->failure( $@ =~ s/\n\z//r )                           if $@;
        return $response                                                                    if $response;
        return Sirius::Test::Response->failure( length $self->{in} ? 'cut' : $self->{end} ) if $self->{end};
        $self->more( $until - time ) or return Sirius::Test::Response->failure('timeout');
    }
}

# How the connection ends when only its end may come: "close_notify", "eof" (without it), "reset", "alert" or
# "bytes: ..."
sub end {
    my ( $self, $patience ) = @_;
    my $until = time + ( $patience || $Sirius::Test::Client::PATIENCE );
    while ( !$self->{end} ) { $self->more( $until - time ) or last }
    return length $self->{in} ? 'bytes: ' . substr( $self->{in}, 0, 200 ) : $self->{end} || 'timeout';
}

# Reads what comes within so many seconds. False: nothing did
sub more {
    my ( $self, $seconds ) = @_;
    return 0 if $self->{end};
    my $bytes = $seconds > 0 ? $self->{client}->some( 1, $seconds ) : '';
    Net::SSLeay::BIO_write( $self->{from}, $bytes ) if length $bytes;
    my $got = $self->_open;
    $self->{end} ||= $self->{client}{end};
    return $got || length $bytes || $self->{end};
}

sub _open {
    my $self = shift;
    my $got  = 0;
    while (1) {
        my ( $text, $n ) = Net::SSLeay::read( $self->{ssl}, 65_536 );
        if ( defined $text && $n > 0 ) { $self->{in} .= $text; $got += $n; next }
        my $why = Net::SSLeay::get_error( $self->{ssl}, $n // -1 );
        $self->{end} = 'close_notify' if $why == Net::SSLeay::ERROR_ZERO_RETURN();
        if ( $why == Net::SSLeay::ERROR_SSL() ) {
            $self->{end} = 'alert';
            my $error = Net::SSLeay::ERR_error_string( Net::SSLeay::ERR_peek_error() );
            ( $self->{alert} ) = $error =~ /alert (.+)\z/;
        }
        Net::SSLeay::ERR_clear_error();
        return $got;
    }
}

sub _handshake {
    my $self  = shift;
    my $until = time + $Sirius::Test::Client::PATIENCE;
    while ( time < $until ) {
        my $done = Net::SSLeay::do_handshake( $self->{ssl} );
        if ( $done == 1 && $self->{last} ) { $self->{held} = $self->_made }
        else                               { $self->put( $self->_made ) }
        return 1 if $done == 1;
        if ( Net::SSLeay::get_error( $self->{ssl}, $done ) != Net::SSLeay::ERROR_WANT_READ() ) {
            Net::SSLeay::ERR_clear_error();
            return 0;
        }
        my $bytes = $self->{client}->some( 1, $until - time );
        return 0 if !length $bytes;
        Net::SSLeay::BIO_write( $self->{from}, $bytes );
    }
    return 0;
}

sub _made {
    my $self = shift;
    return Net::SSLeay::BIO_pending( $self->{to} ) ? Net::SSLeay::BIO_read( $self->{to}, 2**24 ) : '';
}

sub DESTROY {
    my $self = shift;
    Net::SSLeay::free( $self->{ssl} );
    Net::SSLeay::CTX_free( $self->{context} );
    return;
}

1;
