package Sirius::Config::Companion;

use strict;
use warnings;

use File::Basename qw(basename);

use constant { COMMANDS_MAX => 16, TEXT_MAX => 4096 };

# In small letters, as a variable that is set for a command seldom is
my $NAME = qr/[a-z][a-z0-9_-]{0,31}/;

sub parse {
    my ( $class, $value ) = @_;
    my ( @all, %seen );
    for my $text ( ref $value eq 'ARRAY' ? @$value : $value ) {
        my $one = _one($text);
        die "two commands have the name '$one->{name}': give each its own, such as jobs=COMMAND\n"
            if $seen{ $one->{name} }++;
        push @all, $one;
    }
    die scalar(@all) . ' commands are too many: the maximum is ' . COMMANDS_MAX . "\n" if @all > COMMANDS_MAX;
    return \@all;
}

sub plan {
    my ( $class, $conf ) = @_;
    return {
        commands => [ map { +{%$_} } @{ $conf->{beside} || [] } ],
        env      => { %{ $conf->{env_values}            || {} } },
        map { $_ => $conf->{$_} } qw(chdir umask)
    };
}

sub program {
    my ( $class, $command ) = @_;
    return if $command =~ /[\$&*(){}\[\]'";\\|?<>~`\n]|\A\s*(?:\w+=|exec\s|\.\s)/;
    return ( split ' ', $command )[0];
}

# What another process has said
sub valid {
    my ( $class, $plan ) = @_;
    return if ref $plan ne 'HASH' || ref $plan->{commands} ne 'ARRAY' || ref $plan->{env} ne 'HASH';
    my @plain = ( @{$plan}{qw(chdir umask)}, values %{ $plan->{env} } );
    for my $one ( @{ $plan->{commands} } ) {
        return if ref $one ne 'HASH'          || grep { !defined || ref } @{$one}{qw(name command)};
        return if $one->{name} !~ /\A$NAME\z/ || $one->{command} !~ /\S/;
        push @plain, $one->{command};
    }
    return if grep { defined && ( ref || /\0/ ) } @plain;
    my %names = map { $_->{name} => 1 } @{ $plan->{commands} };
    return if keys %names != @{ $plan->{commands} } || keys %names > COMMANDS_MAX;
    return $plan;
}

# The name of its program, without a folder
sub _name {
    my $command   = shift;
    my ($program) = $command =~ /\A(?:\w+=\S*\s+|exec\s+)*(\S+)/;
    my $name      = lc( basename( $program // '' ) ) =~ s/[^a-z0-9_-]+/-/gr =~ s/\A[^a-z]+|-+\z//gr;
    return length $name ? substr $name, 0, 32 : 'command';
}

sub _one {
    my $text = shift;
    utf8::encode($text) if utf8::is_utf8($text);
    my ( $name, $command ) = $text =~ /\A\s*(?:($NAME)=)?\s*(.*?)\s*\z/s;
    die "'$text' has no command: write one such as 'jobs=perl bin/jobs.pl'\n" if !length $command;
    die "the command '$command' contains a control character\n"               if $command =~ /[[:cntrl:]]/;
    die 'a command is longer than ' . TEXT_MAX . " bytes\n"                   if length $command > TEXT_MAX;
    return { name => $name // _name($command), command => $command };
}

1;

=encoding utf8

=head1 NAME

Sirius::Config::Companion - the commands of --beside

=head1 SYNOPSIS

  use Sirius::Config::Companion;

  my $commands = Sirius::Config::Companion->parse( ['jobs=perl bin/jobs.pl minion worker'] );

=head1 DESCRIPTION

Reads the values of C<--beside>: a command, and before it perhaps its name and C<=>. The name has up to 32 small letters, digits, C<->
and C<_>, and begins with a letter, so that C<DEBUG=1 perl jobs.pl> is a command without a name. Without one the command has that of its
program.

=head1 METHODS

=head2 parse

  my $commands = Sirius::Config::Companion->parse( \@values );

A list of hashes with C<name> and C<command>. Dies with what is wrong.

=head2 plan

  my $plan = Sirius::Config::Companion->plan($conf);

What L<Sirius::Process::Companions> needs of the configuration: C<commands>; C<env>, the variables that C<--env> and C<--env-file> set;
C<chdir> and C<umask>.

=head2 program

  my $program = Sirius::Config::Companion->program($command);

The first word of a command that perl runs without a shell; else nothing.

=head2 valid

  $plan = Sirius::Config::Companion->valid($plan);

The same if it is a L</plan>; else nothing.

=head1 SEE ALSO

L<Sirius::Config::Type>, L<Sirius::Process::Companions>.

=cut
