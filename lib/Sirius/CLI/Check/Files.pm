package Sirius::CLI::Check::Files;

use strict;
use warnings;
use filetest 'access';    # what the kernel says, read-only file systems included

use File::Basename qw(dirname);
use File::Spec     ();
use POSIX          ();
use Sirius::Config::Companion;
use Sirius::OS::Child;

my $SYSLOG = '/dev/log';

sub check {
    my ( $class, $report, %context ) = @_;
    my $self = bless { %context, report => $report }, $class;
    my $conf = $context{conf};
    $self->_access_log;
    $self->_log( '--error-log', $conf->{error_log} ) if defined $conf->{error_log};
    $self->_pid_file                                 if defined $conf->{pid};
    $self->_beside;
    return $self->_as_workers;
}

# Why there can be no new file of this name; nothing when there can
sub no_new_file {
    my ( $class, $path ) = @_;
    my $dir = dirname( File::Spec->rel2abs($path) );
    return                                              if -d $dir && -w $dir && -x _;
    return "the directory $dir does not exist: make it" if !-e $dir;
    return "$dir is not a directory"                    if !-d _;
    return
        sprintf "user %s may not create files in %s: give that directory to this user, or choose another one",
        _user($>), $dir;
}

# The number in a PID file, if that process is there
sub pid_in {
    my ( $class, $path ) = @_;
    return if !defined $path || !-f $path;    # a FIFO would be waited for
    open my $in, '<', $path or return;
    my ($pid) = ( readline($in) || '' ) =~ /\A\s*(\d{1,10})\s*\z/;
    close $in;
    return if !$pid || !kill( 0, $pid ) && !-e "/proc/$pid";
    return $pid;
}

sub _access_log {
    my $self = shift;
    my $log  = $self->{conf}{access_log};
    return if !defined $log || !length $log || $log eq '-';
    if ( $log =~ /\A[|]\s*(\S+)/ ) {
        my $program = $1;
        return if $program =~ m{[^\w./+-]};    # something that only a shell understands
        return if _is_there($program);
        return $self->{report}
            ->error("--access-log $log: there is no program $program: install it, or write its whole path");
    }
    return $self->_log( '--access-log', $log ) if $log !~ /\Asyslog:/;
    return                                     if -S $SYSLOG;
    return $self->{report}
        ->error("--access-log $log: no syslog daemon listens on $SYSLOG: start one, or log to a file");
}

# With the rights of the workers: files that they write, and files that a reload reads again
sub _as_workers {
    my $self       = shift;
    my $privileges = $self->{privileges} or return;
    my ( $conf, $runner ) = @{$self}{qw(conf runner)};
    my @reads = grep { defined $_->[1] } [ '--config', $conf->{config} ],
        map { [ '--env-file', $_ ] } @{ $conf->{env_file} || [] };
    my $app = $runner->application;
    push @reads, [ 'the application', $app ] if defined $app && -e $app;
    pipe my $read, my $write or return;
    my $child = Sirius::OS::Child->fork( sub {
        close $read;
        eval { $privileges->drop; 1 } or _say( $write, "error\t$@" );
        my $user = _user($>);
        for my $one (@reads) {
            my ( $what, $path ) = @$one;
            next if -r $path;
            _say( $write,
                "warning\t$what $path: user $user may not read it, so a reload would fail: let this user read it"
            );
        }
        _webroot( $write, $conf->{acme_webroot}, $user ) if defined $conf->{acme_webroot};
        my $why = ref($self)->no_new_file("$conf->{tmpdir}/x");
        _say( $write,
            defined $why
            ? "error\t--tmpdir $conf->{tmpdir}: $why"
            : "ok\ttemporary files can be made in $conf->{tmpdir}" );
        POSIX::_exit(0);
    } ) or return;
    close $write;
    while ( defined( my $line = readline $read ) ) {
        my ( $level, $text ) = split /\t/, $line, 2;
        $self->{report}->$level($text);
    }
    $child->wait(5);
    return;
}

# Those that need no shell
sub _beside {
    my $self = shift;
    my $conf = $self->{conf};
    for my $one ( @{ $conf->{beside} || [] } ) {
        my $program = Sirius::Config::Companion->program( $one->{command} ) // next;
        my $report  = $self->{report};
        if ( _is_there( $program, $conf->{chdir} ) ) {
            $report->ok("--beside $one->{name}: there is a program $program");
        } else {
            $report->error(
                "--beside $one->{name}: there is no program $program: install it, or write its whole path");
        }
    }
    return;
}

sub _first_line {
    my $path = shift;
    open my $in, '<', $path or return '';
    my $line = readline $in;
    close $in;
    return defined $line ? $line : '';
}

sub _is_there {
    my ( $program, $dir ) = @_;
    my @places
        = $program =~ m{/} ? File::Spec->rel2abs( $program, $dir // () ) : map {"$_/$program"}
        File::Spec->path;
    return scalar grep { -f && -x _ } @places;
}

sub _log {
    my ( $self, $option, $path ) = @_;
    my $report = $self->{report};
    $path = File::Spec->rel2abs($path);
    return $report->error("$option $path is a directory: name a file in it") if -d $path;
    if ( -e $path ) {
        return $report->ok("$option $path can be written") if -w $path;
        return $report->error(
            "$option $path: user ${\ _user($>) } may not write to this file: give it to this user, or choose another one"
        );
    }
    my $why = ref($self)->no_new_file($path);
    return $report->error("$option $path: $why") if defined $why;
    return $report->ok("$option $path can be created");
}

sub _pid_file {
    my $self = shift;
    my ( $report, $path ) = ( $self->{report}, $self->{conf}{pid} );
    my $pid = ref($self)->pid_in($path);
    if ( !-e $path && !-l $path ) {
        my $why = ref($self)->no_new_file($path);
        return defined $why ? $report->error("--pid $path: $why") : $report->ok("--pid $path can be created");
    }
    return $report->error(
        "--pid $path: there is something that is not a PID file: remove it, or choose another path")
        if -l $path || !-f $path || -s _ > 64 || _first_line($path) !~ /\A\s*\d*\s*\z/;
    return $report->error(
        "--pid $path: user ${\ _user($>) } may not write to this file: give it to this user")
        if !-w $path;
    return $report->ok("--pid $path names a server that runs, PID $pid") if defined $pid;
    return $report->ok("--pid $path is left from an earlier server, and will be replaced");
}

sub _say {
    my ( $to, $text ) = @_;
    $text =~ s/\s*\n\s*/ /g;
    return syswrite $to, "$text\n";
}

sub _user {
    my $uid  = shift;
    my $name = getpwuid $uid;
    return defined $name ? $name : $uid;
}

# certbot makes the rest with its own umask each time; a part of it may have stayed
sub _webroot {
    my ( $to, $dir, $user ) = @_;
    my ($closed) = grep { -e $_ && !-x $_ } $dir, map {"$dir/$_"} '.well-known', '.well-known/acme-challenge';
    return _say( $to, "ok\tthe challenges below $dir can be read" ) if -x $dir && !defined $closed;
    $closed //= $dir;
    return _say( $to,
        "error\t--acme-webroot $dir: user $user may not enter $closed: let this user, such as by chmod a+x" );
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Files - can the server write what it shall, and read it again?

=head1 SYNOPSIS

  use Sirius::CLI::Check::Files;

  Sirius::CLI::Check::Files->check( $report, conf => $conf, privileges => $privileges, runner => $runner );

=head1 DESCRIPTION

Looks at logs, PID file, temporary files and the directory of C<--acme-webroot>, and changes nothing. The latter two, and what a reload reads, are looked at by a child
that has become the user of C<--user>.

=head1 METHODS

=head2 check

See L<Sirius::CLI::Check>.

=head2 no_new_file

  my $why = Sirius::CLI::Check::Files->no_new_file($path);

Why this user cannot make a file of this name, and what to do. Nothing if it can be made.

=head2 pid_in

  my $pid = Sirius::CLI::Check::Files->pid_in($path);

The number in a PID file, if there is such a process.

=head1 SEE ALSO

L<Sirius::CLI::Check>.

=cut
