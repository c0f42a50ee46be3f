package Sirius::CLI::Command;

use strict;
use warnings;

use Getopt::Long ();
use Sirius::Config::Type;

# The exit statuses that all commands have
use constant { DONE => 0, FAILED => 1, USAGE => 2 };

my %HELP = ( name => 'help', short => 'h', type => 'bool', text => 'Print this help and exit' );

sub fail {
    my ( $self, $status, $message ) = @_;
    die [ $status, $message ];
}

sub given {
    my ( $self, $name ) = @_;
    return $self->{given}{$name};
}

sub grouped {
    my ( $class, @groups ) = @_;
    my @all;
    for my $group (@groups) {
        my ( $name, @rows ) = @$group;
        push @all, map { +{ %$_, group => $name } } @rows;
    }
    return @all;
}

sub help {
    my $class = shift;
    require Sirius::Config::Usage;
    return
          'Usage: sirius '
        . $class->name . q( )
        . $class->synopsis . "\n"
        . Sirius::Config::Usage->list( undef, $class->_rows );
}

# No argument may be left
sub no_more {
    my ( $self, @words ) = @_;
    return if !@words;
    return $self->_wrong_word("unexpected argument '$words[0]'");
}

sub passes_on { return 0 }

sub run {
    my ( $class, @args ) = @_;
    my $status = eval { $class->_run(@args) };
    return $status if defined $status;
    my $failure = $@;
    die $failure if ref $failure ne 'ARRAY';
    ( $status, my $message ) = @$failure;
    print {*STDERR} 'sirius ', $class->name, ": $message\n" if defined $message;
    return $status;
}

# The control socket that is meant by --control, --pid or nothing
sub server {
    my $self = shift;
    require Sirius::Control::Place;
    $self->wrong('--control: cannot be combined with --pid')
        if defined $self->given('control') && defined $self->given('pid');
    my $server
        = eval { Sirius::Control::Place->find( path => $self->given('control'), pid => $self->given('pid') ) };
    chomp( my $error = $@ );
    return $self->tell_user($server)->{path}         if $server;
    return $self->fail( $self->unreachable, $error ) if $error =~ /\Ano server/;
    return $self->wrong($error);    # there are several
}

sub summary { return '' }

sub synopsis { return '[options]' }

# Root may mean another server
sub tell_user {
    my ( $self, $server ) = @_;
    print {*STDERR} 'sirius ', $self->name, ': this is the server ', Sirius::Control::Place->words($server),
        "\n"
        if defined $server->{uid} && $server->{uid} != $>;
    return $server;
}

# The exit status where no server is found
sub unreachable { return FAILED }

sub wrong {
    my ( $self, $message ) = @_;
    return $self->fail( USAGE, $message =~ s/([\0-\x1f\x7f])/sprintf '\x%02x', ord $1/ger );
}

# Checks a value and returns its final form
sub _check {
    my ( $class, $row, $value ) = @_;
    local $SIG{__DIE__};
    my $checked = eval { Sirius::Config::Type->check( $row, $value ) };
    return $checked if defined $checked;
    chomp( my $error = $@ );
    return $class->wrong("--$row->{name}: $error");
}

# Splits the words into options, by their names, and arguments
sub _parse {
    my ( $class, @args ) = @_;
    my @rows   = grep { defined $_->{name} } $class->_rows;
    my @config = qw(permute getopt_compat no_auto_abbrev no_ignore_case prefix_pattern=--|-);
    push @config, 'pass_through' if $class->passes_on;
    my $parser = Getopt::Long::Parser->new( config => \@config );
    my ( %given, @said );
    {
        local $SIG{__WARN__} = sub { push @said, _words(shift) };
        local @ARGV = @args;
        $parser->getoptions( \%given, map { _spec($_) } @rows );
        @args = @ARGV;
    }
    push @said, $class->_passed_over( \@rows, @args ) if $class->passes_on;
    $class->_wrong_word( $said[0] ) if @said;
    for my $row ( grep { $_->{type} ne 'bool' && defined $given{ $_->{name} } } @rows ) {
        for my $value ( $row->{many} ? @{ $given{ $row->{name} } } : $given{ $row->{name} } ) {
            $class->_wrong_word("--$row->{name} requires a value")
                if !length $value || $value =~ /\A--[[:alpha:]]/;
            $value = $class->_check( $row, $value );
        }
    }
    return \%given, @args;
}

# Getopt::Long also passes on an option that it knows, without a value that it needs or with one that it
# doesn't take
sub _passed_over {
    my ( $class, $rows, @args ) = @_;
    my %row = map { $_->{name} => $_ } @$rows;
    for my $arg (@args) {
        last if $arg eq '--';
        my ($name) = $arg =~ /\A--?([^-=][^=]*)/ or next;
        return "--$name " . ( $row{$name}{type} eq 'bool' ? 'takes no value' : 'requires a value' )
            if $row{$name};
    }
    return;
}

# Adds --help to the group of the last option
sub _rows {
    my $class = shift;
    my @rows  = $class->rows;
    return @rows, { %HELP, map { defined $_->{group} ? ( group => $_->{group} ) : () } $rows[-1] };
}

sub _run {
    my ( $class, @args )  = @_;
    my ( $given, @words ) = $class->_parse(@args);
    if ( $given->{help} ) {
        print $class->help;
        return DONE;
    }
    return bless( { given => $given }, $class )->main(@words);
}

# In the form that Getopt::Long requires
sub _spec {
    my $row   = shift;
    my $value = $row->{type} eq 'bool' ? '' : $row->{many} ? '=s@' : '=s';
    return join( q(|), grep {defined} @{$row}{qw(name short)} ) . $value;
}

# The messages of Getopt::Long in the form of the server's own
sub _words {
    my $said = shift;
    return "unknown option --$1"   if $said =~ /\AUnknown option: (.*)\n/s;
    return "--$1 requires a value" if $said =~ /\AOption (\S+) requires an argument/;
    return "--$1 takes no value"   if $said =~ /\AOption (\S+) does not take an argument/;
    return lcfirst $said =~ s/\n//r;
}

sub _wrong_word {
    my ( $class, $message ) = @_;
    return $class->wrong( "$message; see sirius " . $class->name . ' --help' );
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Command - what the commands of sirius have in common

=head1 SYNOPSIS

  package Sirius::CLI::Greet;
  use parent 'Sirius::CLI::Command';

  sub name { return 'greet' }

  sub rows {
      return { name => 'times', short => 'n', type => 'count', min => 1, value => 'N', text => 'Say it N times (default: 1)' };
  }

  sub main {
      my ( $self, @words ) = @_;
      $self->no_more(@words);
      print "hello\n" for 1 .. $self->given('times') || 1;
      return $self->DONE;
  }

  exit Sirius::CLI::Greet->run(@ARGV);

=head1 DESCRIPTION

The base class of commands such as L<sirius ctl|Sirius::CLI::Ctl> and L<sirius top|Sirius::CLI::Top>. It reads the options, checks
their values, prints C<--help>, and reports a failure in one line that begins with the name of the command. A wrong option names
itself, and the exit status is 2.

Options are named in full, with one dash or two, before or after other words, as C<--name VALUE> or C<--name=VALUE>. Nothing after
C<--> is an option.

=head1 METHODS OF A COMMAND

A command has these methods:

=head2 main

  my $status = $command->main(@words);

Does the work, and returns the exit status. C<@words> are the arguments that are no options.

=head2 name

C<ctl>, for example.

=head2 passes_on

True if options that the command does not know are among C<@words>, with their values and C<-->: for a command that takes those of
the server as well and gives them to L<Sirius::CLI::Runner>. Otherwise they are wrong.

=head2 rows

The options, each a hash with C<name>, C<type>, C<text>, and perhaps C<short>, C<value>, C<min>, C<max> and C<group>, as in the table
of L<Sirius::Config::Options>; see L<Sirius::Config::Type> for the types. A row with C<typed> instead of C<name> is no option: it
is only printed by C<--help>. C<--help> itself needs no row.

=head2 summary

What the command does, in a few words, for completion in shells.

=head2 synopsis

What stands after the name in the first line of the help; C<[options]> unless the command says something else.

=head1 METHODS

=head2 fail

  $command->fail( $status, $message );

Ends the command: with C<sirius NAME: MESSAGE> on STDERR, if there is a message, and this exit status.

=head2 given

  my $value = $command->given('times');

The value of an option, undefined if it was not given.

=head2 grouped

  sub rows { return __PACKAGE__->grouped( [ 'Output', \%json, \%file ], [ 'Time', \%timeout ] ) }

For L</rows>: adds the name of its group to each.

=head2 help

The text of C<--help>.

=head2 no_more

  $command->no_more(@words);

Fails if there are words.

=head2 run

  my $status = Sirius::CLI::Greet->run(@arguments);

Runs the command and returns the exit status: C<DONE> (0), C<FAILED> (1), C<USAGE> (2), or another one of the command.

=head2 server

  my $path = $command->server;

The control socket of the options C<control> and C<pid>, or of the only server. Fails with the status of L</unreachable> if there is
none, and with 2 if there are several (L<Sirius::Control::Place>).

=head2 tell_user

  $server = $command->tell_user($server);

Says on STDERR which server of L<Sirius::Control::Place/find> it is, if it is of another user than this process, and returns it.

=head2 unreachable

The exit status where there is no server: C<FAILED>, or another one of the command.

=head2 wrong

  $command->wrong('--times: cannot be combined with --once');

Fails with exit status 2. Control characters of the message are escaped.

=head1 SEE ALSO

L<sirius>, L<Sirius::CLI::Ctl>, L<Sirius::CLI::Top>, L<Sirius::Config::Usage>.

=cut
