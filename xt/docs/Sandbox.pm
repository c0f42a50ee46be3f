package Sandbox;

# A folder in which the commands of the documentation run: with an application, with the folders that they
# name, and with free ports in the place of theirs.

use strict;
use warnings;
use Cwd        ();
use Encode     qw(encode);
use File::Path qw(make_path);
use File::Temp ();
use POSIX      qw(WNOHANG);
use Sirius::Test;

my @FOLDERS = qw(/srv/shop /run/shop /etc/shop /var/log/shop);
my @PORTS   = ( 5000, 5001, 8080, 9090 );
my $ROOT    = Cwd::getcwd();

sub new {
    my $class = shift;
    my $dir   = File::Temp->newdir( 'docs-XXXXXX', TMPDIR => 1 );
    my $self  = bless { dir => $dir, path => "$dir", owner => $$ }, $class;
    make_path( map {"$dir$_"} @FOLDERS, '/bin' );
    chmod 0755, $dir;
    $self->file( 'srv/shop/app.psgi',
        "sub { [ 200, [ 'Content-Type' => 'text/plain' ], [\"Hello\\n\"] ] }\n" );
    $self->file( 'bin/sirius', qq{#!/bin/sh\nexec $^X $ROOT/bin/sirius "\$@"\n} );
    chmod 0755, "$dir/bin/sirius";
    $self->{port} = { map { $_ => free_port() } @PORTS };
    $self->{env}  = {
        DOCS_SANDBOX => "$dir",
        PATH         => "$dir/bin:$ENV{PATH}:/usr/sbin:/sbin",
        PERL5LIB     => join( ':', "$ROOT/blib/lib", "$ROOT/blib/arch", $ENV{PERL5LIB} || () ),
        TERM         => 'dumb',
        TMPDIR       => File::Spec->tmpdir,
    };
    return $self;
}

# What is wrong with a server, which has to answer; nothing when it does
sub answers {
    my ( $self, $job ) = @_;
    return ( "it does not listen\n", $self->output($job) ) if !@{ $job->{listens} };
    my ($address) = @{ $job->{listens} };
    my $answer = eval { Sirius::Test::Client->new($address)->ask('GET /') } or return "GET / at $address: $@";
    return $answer->status eq '200' ? () : 'GET /: ' . $answer->status;
}

sub dir { return '' . shift->{dir} }

sub file {
    my ( $self, $name, $text ) = @_;
    make_path( "$self->{dir}/$name" =~ s{/[^/]*\z}{}r );
    return spew( "$self->{dir}/$name", encode( 'UTF-8', $text ) );
}

# A block in terms of this folder: its paths, and the ports that are free
sub text {
    my ( $self, $text ) = @_;
    my ( $dir,  $port ) = @{$self}{qw(dir port)};
    $text =~ s/(?<![\w.])\Q$_\E(?![\w-])/$dir$_/g        for @FOLDERS;
    $text =~ s/(?<![\w.])$_(?!\w|\.\d|,\d)/$port->{$_}/g for @PORTS;
    $text =~ s{/usr/local/bin/sirius}{$dir/bin/sirius}g;
    return $text;
}

# Runs a shell script to its end: exit status (or "signal 9", "no end") and all that it printed
sub run {
    my ( $self, $script, $patience ) = @_;
    my $job = $self->spawn( 'bash', '-eu', '-o', 'pipefail', '-c', $script );
    $self->wait_for( $job, $patience || 60 );
    return ( $job->{how}, $self->output($job) );
}

# A program in the background, in a group of its own
sub spawn {
    my ( $self, @command ) = @_;
    my $log = "$self->{dir}/output" . ++$self->{jobs};
    my $pid = fork;
    defined $pid or die "fork: $!";
    if ( !$pid ) {
        setpgrp 0, 0;
        chdir "$self->{dir}/srv/shop" or POSIX::_exit(126);
        delete @ENV{ grep {/_proxy\z|\A(?:PLACK|LISTEN|SIRIUS|SERVER_STARTER|NOTIFY|WATCHDOG)_/i} keys %ENV };
        %ENV = ( %ENV, %{ $self->{env} }, PWD => Cwd::getcwd() );
        open STDIN,  '<',  '/dev/null' or POSIX::_exit(126);
        open STDOUT, '>>', $log        or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT    or POSIX::_exit(126);
        { exec { $command[0] } @command }
        POSIX::_exit(127);
    }
    setpgrp $pid, $pid;
    return { pid => $pid, log => $log };
}

# A server, until it listens: the job with its addresses, or without when there is none
sub serve {
    my ( $self, $command ) = @_;
    $command = "env $command" if $command =~ /\A\w+=/;
    my $port
        = $command =~ /listen|--port|--socket|--config|[^{]:\d/ ? '' : "SIRIUS_PORT=$self->{port}{5000} ";
    my $job = $self->spawn( 'bash', '-c', "exec env $port$command" );
    until_true( 30, sub { $self->_addresses($job) || $self->_ended($job) } );
    $job->{listens} = [ $self->_addresses($job) ];
    return $job;
}

# What is wrong with the command of a server, which has to answer and to end by TERM with status 0
sub serves {
    my ( $self, $command ) = @_;
    my $job   = $self->serve($command);
    my @wrong = $self->answers($job);
    my $how   = $self->stop($job);
    push @wrong, "it ends with $how\n", $self->output($job) if !@wrong && $how ne 'exit 0';
    unlink glob "$self->{dir}/var/log/shop/*";
    return @wrong;
}

# What is wrong with a script, which has to succeed
sub succeeds {
    my ( $self, $script ) = @_;
    my ( $how,  $output ) = $self->run($script);
    return $how eq 'exit 0' ? () : "$how\n$output";
}

# Its end by TERM: what its exit status was
sub stop {
    my ( $self, $job ) = @_;
    kill TERM => $job->{pid};
    $self->wait_for( $job, 30 );
    return $job->{how};
}

sub output { return Sirius::Test::Server::slurp( $_[1]{log} ) }

sub wait_for {
    my ( $self, $job, $patience ) = @_;
    return if until_true( $patience, sub { $self->_ended($job) } );
    kill KILL => -$job->{pid};
    until_true( 5, sub { $self->_ended($job) } );
    $job->{how} = 'no end';
    return;
}

# Ends whatever a block has left: the commands of what did not end by itself
sub clear {
    my $self = shift;
    until_true( 5, sub { !$self->left } );
    my %left = $self->left;
    kill KILL => keys %left;
    return values %left;
}

# Their environment tells, or their directory: a process that has set its title has lost the environment. The
# folder is a text here: at the end of perl its object may be gone first, and no name at all would be that of
# every process
sub left {
    my $self = shift;
    my $dir  = $self->{path};
    return if !defined $dir || $dir !~ m{/docs-\w+\z};
    return map { $_->{pid} => Sirius::Test::Server::slurp("/proc/$_->{pid}/cmdline") =~ tr/\0/ /r }
        grep {
        Sirius::Test::Server::slurp("/proc/$_->{pid}/environ") =~ /(?:\A|\0)DOCS_SANDBOX=\Q$dir\E\0/
            || ( readlink "/proc/$_->{pid}/cwd" || '' )
            =~ m{\A\Q$dir\E(?:/|\z)}
        } Sirius::Test::Server->all_processes;
}

# What says where it listens: STDERR, or the log that it has
sub _addresses {
    my ( $self, $job ) = @_;
    my $text = join '', map { Sirius::Test::Server::slurp($_) } $job->{log},
        glob "$self->{dir}/var/log/shop/error*";
    return
        map { s{\Ahttp://}{}; s{/\z}{} if !/\Aunix:/; s/\A(?:0\.0\.0\.0|localhost)(?=:)/127.0.0.1/; $_ }
        $text =~ /(?:listening on|Accepting connections at) (\S+)$/mg;
}

sub _ended {
    my ( $self, $job ) = @_;
    return 1 if defined $job->{how};
    local $?;
    return 0 if waitpid( $job->{pid}, WNOHANG ) != $job->{pid};
    $job->{how} = $? & 127 ? 'signal ' . ( $? & 127 ) : 'exit ' . ( $? >> 8 );
    return 1;
}

sub DESTROY {
    my $self = shift;
    local ( $?, $!, $@ );
    return $self->{owner} == $$ && ${^GLOBAL_PHASE} ne 'DESTRUCT' ? $self->clear : 0;
}

1;
