package Sirius::Test::EventSource;

# A stream of events, which comes again when the server ends it, as that of a browser does.
#
#   my $page = Sirius::Test::EventSource->new( $server, '/__sirius/live' );
#   ok $page->hears( qr/event: generation/ );
#   is_deeply [ $page->data ], ['one'];

use strict;
use warnings;
use Sirius::Test::Client;
use Sirius::Test::Server;

sub new {
    my ( $class, $server, $path ) = @_;
    my $self = bless { path => $path, said => '', server => $server }, $class;
    $self->_read;
    return $self;
}

# What it was told, without what it was told before by the same words
sub data {
    my $self = shift;
    my %seen;
    return grep { !$seen{$_}++ } $self->{said} =~ /^data: (\S+)$/mg;
}

# Whether that has been said, at last: a pattern, or a sub
sub hears {
    my ( $self, $what ) = @_;
    my $has = ref $what eq 'CODE' ? $what : sub { $self->{said} =~ $what };
    return Sirius::Test::Server::until_true( 30, sub { $self->_read; $has->($self) } );
}

# From now on
sub forget { return shift->{said} = '' }

sub said { return shift->{said} }

# In HTTP/1.0, so that nothing stands between the bytes
sub _read {
    my $self = shift;
    if ( !$self->{client} ) {
        $self->{client} = $self->{server}->connect;
        $self->{client}->send( Sirius::Test::Client::request("GET $self->{path} HTTP/1.0") );
    }
    $self->{said} .= $self->{client}->some( 1, 0.05 );
    delete $self->{client} if $self->{client}{end};
    return;
}

1;
