package Sirius::OS::Invocation;

use strict;
use warnings;

use Cwd         ();
use File::Spec  ();
use Time::HiRes qw(CLOCK_MONOTONIC clock_gettime);

# Noted when this is loaded, as early as the server can: an application may change all of it later
my @words = _words();
my $cwd   = _cwd();
my %env   = %ENV;
my @inc   = map { File::Spec->rel2abs($_) } grep { !ref } @INC;
my $began = clock_gettime(CLOCK_MONOTONIC);
my ($lib) = File::Spec->rel2abs(__FILE__) =~ m{(.*)/Sirius/OS/Invocation\.pm\z};

sub age { return clock_gettime(CLOCK_MONOTONIC) - $began }

sub directory { return $cwd }

sub env { return {%env} }

sub folders { return @inc }

# For the next run: more words behind the first one of this name
sub insert {
    my ( $class, $word, @more ) = @_;
    my ($at) = grep { $words[$_] eq $word } 0 .. $#words;
    splice @words, 1 + $at, 0, @more if defined $at;
    return;
}

sub restore {
    my ( $class, $state ) = @_;
    @words = @{ $state->{words} };
    @inc   = @{ $state->{inc} };
    %env   = %{ $state->{env} };
    $cwd   = $state->{cwd};
    return;
}

sub run {
    my ( $class, %more ) = @_;
    die "the command line is not known\n" if !@words;
    my @first = map {"-MSirius::OS::Inherit=$_"} sort keys %more;
    return $class->run_perl( $cwd, { %env, %more }, "-I$lib", @first, @words );
}

sub run_module {
    my ( $class, $module, $call, %more ) = @_;
    my @folders = map {"-I$_"} @inc;
    return $class->run_perl( undef, { %ENV, %more }, @folders, "-M$module", '-e', "$module->$call" );
}

sub run_perl {
    my ( $class, $dir, $env, @args ) = @_;
    defined $dir && ( chdir $dir or die "chdir $dir: $!\n" );
    local %ENV = %$env;
    { exec {$^X} $^X, @args }
    die "exec $^X: $!\n";
}

sub state { return { cwd => $cwd, env => {%env}, inc => [@inc], words => [@words] } }

sub words { return @words }

sub _cmdline {
    open my $fh, '<:raw', '/proc/self/cmdline' or return;
    my $line = do { local $/ = undef; readline $fh };
    close $fh;
    my ( undef, @all ) = split /\0/, $line, -1;
    pop @all;
    return @all;
}

# The directory as the shell calls it: a link to the newest release leads to another folder at the next reload
sub _cwd {
    my $physical = Cwd::getcwd();
    my $logical  = $ENV{PWD};
    return $physical if !defined $physical || !defined $logical || $logical !~ m{\A/};
    my ( $here, $there ) = map { join ' ', ( stat $_ )[ 0, 1 ] } $physical, $logical;
    return length $there && $here eq $there ? $logical : $physical;
}

# The words of the command line, with the interpreter's: "perl -Ilib bin/sirius ...". Plack::Util::load_psgi
# sets $0 for a moment, which overwrites them. Then the program's are in @ARGV, and of the interpreter's only
# the folders matter
sub _words {
    my @all = _cmdline();
    return @all if grep { $_ eq $0 } @all and @all > @ARGV;
    return ( map {"-I$_"} grep { !ref } @INC ), $0, @ARGV;
}

1;

=encoding utf8

=head1 NAME

Sirius::OS::Invocation - the command that this program was started with

=head1 SYNOPSIS

  use Sirius::OS::Invocation;

  my $pid = fork;
  Sirius::OS::Invocation->run( SIRIUS_GENERATION => $text ) if !$pid;

=head1 DESCRIPTION

A reload runs the original command again. This module records that command when it is loaded: the words of the command
line, perl's own options included, the working directory, the environment and C<@INC>. The directory is C<PWD> if the
program runs there, so that a reload follows a symbolic link in it to the newest release.

=head1 METHODS

=head2 age

  my $seconds = Sirius::OS::Invocation->age;

The time since the command was run.

=head2 directory

The working directory of the start.

=head2 env

The environment of the start, a copy.

=head2 folders

The directories of C<@INC> at the time at which this module was loaded.

=head2 insert

  Sirius::OS::Invocation->insert( 'dev', '--port=5001' );

Adds words behind this one, which the next L</run> has.

=head2 restore

  Sirius::OS::Invocation->restore($state);

In the next program: restores the command of the first one.

=head2 run

  Sirius::OS::Invocation->run(%more);

Becomes that command, in its directory, with its environment and C<%more> added, which is kept for L<Sirius::OS::Inherit/take>
before anything of the command runs. Dies when it can't.

=head2 run_module

  Sirius::OS::Invocation->run_module( $module, $call, %more );

Becomes a perl that finds modules where the command found them and calls a method of one: C<$call> is its name, with arguments in
parentheses or not. It stays in the present directory, with the present environment and C<%more> added. Dies when it can't.

=head2 run_perl

  Sirius::OS::Invocation->run_perl( $directory, \%env, @arguments );

Becomes a perl of the same kind with these arguments. Without a directory it stays in the present one.

=head2 state

The command as data for L</restore>.

=head2 words

The words of the command line without the program that runs it.

=head1 SEE ALSO

L<Sirius::Process::Supervisor>.

=cut
