package Sirius::Dev::SlowLoad;

use strict;
use warnings;

use Cwd                 ();
use File::Spec          ();
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::Dev::Project;
use Sirius::OS::Sampler;
use Sirius::Profile::Label;

use constant {
    FRAMES_MAX => 4,    # that are named
    TRIES      => 5,    # to read a stack that does not change meanwhile
};

my @AFTER  = ( 5, 30 );                                               # seconds
my $CALLS  = 'Sirius::Dev::Loader::_build';                           # the sub that loads the application
my $OWN    = qr/\A(?:(?:Plack|Sirius)(?!::Sandbox\b)::|\(eval\)\z)/;  # that is between it and the application
my $SERVER = qr/\A(Plack::Handler::[\w:]+|HTTP::Server::PSGI|Mojo::Server::(?!PSGI\b|CGI\b)\w+)::run\z/;

sub act {
    my ( $self, $generation ) = @_;
    my ($at) = $self->due($generation);
    return if !defined $at || now() < $at;
    my $after    = $AFTER[ $self->{told}++ ];
    my @frames   = _frames( $generation->pid );
    my ($server) = map { $_->[0] =~ $SERVER } @frames;
    return $self->{say}->( $self->_name . " is still loading after $after s" . $self->_where(@frames) )
        if !defined $server;
    $self->{told} = @AFTER;
    return $self->{say}
        ->( $self->_name . " starts a server of its own, $server, while it is loaded" . $self->_meant );
}

# When there is something to say of this generation
sub due {
    my ( $self, $generation ) = @_;
    return                                                 if !$generation;
    @{$self}{qw(number told)} = ( $generation->number, 0 ) if $self->{number} != $generation->number;
    return $self->{told} < @AFTER ? $generation->since + $AFTER[ $self->{told} ] : ();
}

# app: path of its file, or undef; files: a Sirius::Dev::Files; say: hears a line
sub new {
    my ( $class, %args ) = @_;
    return bless { number => 0, told => 0, %args }, $class;
}

# Of the application, innermost first: name, file and line. None if the stack cannot be read
sub _frames {
    my $pid     = shift;
    my $sampler = eval { Sirius::OS::Sampler->new( $pid, 'sirius dev' ) } or return;
    for ( 1 .. TRIES ) {
        my ( $labels, undef, $moved ) = $sampler->stack($CALLS);
        next if !$labels || $moved;
        my @frames = grep { defined $_->[1] } map { [ Sirius::Profile::Label->parts($_) ] } @$labels;
        shift @frames while @frames && $frames[0][0] =~ $OWN;
        return reverse @frames;
    }
    return;
}

sub _is_own {
    my ( $self, $file ) = @_;
    return -f $file && $self->{files}->is_inside( File::Spec->rel2abs($file) );
}

# What may be meant in place of a program that serves itself
sub _meant {
    my $self = shift;
    my ($app) = Sirius::Dev::Project->find('.');
    return ': name the .psgi file of the application instead'
        if !defined $app || File::Spec->rel2abs($app) eq ( $self->{app} // q() );
    return ": name the .psgi file of the application instead; that of this directory is $app";
}

sub _name {
    my $self = shift;
    return defined $self->{app} ? $self->_short( $self->{app} ) : 'the application';
}

sub _short {
    my ( $self, $path ) = @_;
    return Sirius::Base::Text->harmless( $self->{files}->short( Cwd::realpath($path) // $path ) );
}

# The innermost place, and the calls in the application that lead there
sub _where {
    my ( $self, @frames ) = @_;
    my ( @shown, $last );
    for my $frame (@frames) {
        my ( $name, $file, $line ) = @$frame;
        next if @shown && ( "$file:$line" eq $last || !$self->_is_own($file) );
        $last = "$file:$line";
        $name =~ s/\APlack::Sandbox::\w+:://;
        $name =~ s/\[.*\]\z//s;
        push @shown,
              ( $name =~ /\A\(/ ? '' : Sirius::Base::Text->harmless($name) . q( ) )
            . $self->_short($file)
            . ":$line";
        last if @shown == FRAMES_MAX;
    }
    return @shown ? ', at ' . join ' < ', @shown : '';
}

1;

=encoding utf8

=head1 NAME

Sirius::Dev::SlowLoad - says where an application is that takes long to load

=head1 SYNOPSIS

  my $slow = Sirius::Dev::SlowLoad->new( app => $path, files => $files, say => sub { warn "$_[0]\n" } );
  $slow->act($generation);

=head1 DESCRIPTION

When a generation has been loading the application for 5 seconds, and again after 30, there is a line with the place: the innermost sub,
and up to three calls in the code of the application that lead there. The stack is read by L<Sirius::OS::Sampler>; if that is not possible,
the line has no place.

A program that starts a server of its own while it is loaded, such as F<script/myapp_server.pl> of Catalyst, never ends to load. The line
says so then.

=head1 METHODS

=head2 act

  $slow->act($generation);

Says what is due of a L<Sirius::Process::Generation> that is loading, or undef.

=head2 due

  my @times = $slow->due($generation);

The monotonic time at which L</act> has something to say.

=head2 new

  my $slow = Sirius::Dev::SlowLoad->new(%args);

C<app>, the path of the F<.psgi> file, or undef; C<files>, a L<Sirius::Dev::Files>; C<say>, code that is called with a line.

=head1 SEE ALSO

L<Sirius::Dev::Reload>, L<Sirius::Process::SlowLog>.

=cut
