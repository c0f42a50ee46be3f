package Sirius::Test::Dev;

# sirius dev, and an application in a folder of its own that a test changes.
#
#   my $dev = Sirius::Test::Dev->start( 'sub { [ 200, [], ["one"] ] }', qw(--workers 1) );
#   $dev->save( 'app.psgi', 'sub { [ 200, [], ["two"] ] }' );
#   ok $dev->answers('two');
#   $dev->stop;

use strict;
use warnings;
use parent -norequire, 'Sirius::Test::Server';
use File::Basename qw(dirname);
use File::Path     qw(make_path);
use File::Temp;
use Sirius::Test::Server;

# %option: env, files (name => text), folder of its own, command words before the options (sub => 'dev')
sub start {
    my ( $class, $app, @args ) = @_;
    my %option = ref $args[0] ? %{ shift @args } : ();
    my $folder = $option{folder} || File::Temp->newdir( 'sirius-app-XXXXXX', TMPDIR => 1 );
    write_file( "$folder/$_",       $option{files}{$_} ) for sort keys %{ $option{files} || {} };
    write_file( "$folder/app.psgi", $app ) if defined $app;
    my $self = $class->SUPER::start(
        args    => \@args,
        app     => "$folder/" . ( $option{app} || 'app.psgi' ),
        command => [ $^X, "$Sirius::Test::Server::ROOT/bin/sirius", @{ $option{words} || ['dev'] } ],
        env     => { NO_COLOR => 1, %{ $option{env} || {} } },
        folder  => $folder,
        ready   => 1,
    );
    return $self;
}

# True when GET / has this body (a string or a pattern), at last
sub answers {
    my ( $self, $want, $path ) = @_;
    $path = '/' if !defined $path;
    return Sirius::Test::Server::until_true(
        20,
        sub {
            my $response = $self->ask("GET $path");
            my $body     = $response && $response->body;
            return defined $body && ( ref $want ? $body =~ $want : $body eq $want );
        }
    );
}

# Which is told as a name
sub listeners {
    my $self = shift;
    return map {s/\Alocalhost:/127.0.0.1:/r} $self->SUPER::listeners;
}

sub folder { return '' . shift->{folder} }

# As most editors do: another file, which takes the name
sub save {
    my ( $self, $name, $text ) = @_;
    my $path = $self->folder . "/$name";
    write_file( "$path.new~", $text );
    rename "$path.new~", $path or die "$path: $!";
    return $path;
}

# In place, as others do
sub write {
    my ( $self, $name, $text ) = @_;
    return write_file( $self->folder . "/$name", $text );
}

# The supervisor, the process that generations come from and so on, by their titles
sub base {
    my $self = shift;
    my @base = grep { Sirius::Test::Server::comm($_) eq 'sirius: base' } $self->generations;
    return @base;
}

sub reloads {
    my $self = shift;
    my @all  = $self->log =~ /reload completed/g;
    return scalar @all;
}

sub write_file {
    my ( $path, $text ) = @_;
    make_path( dirname($path) );
    return Sirius::Test::Server::spew( $path, $text );
}

1;
