package Sirius::CLI::Check::Shared;

use strict;
use warnings;

use Fcntl qw(O_ACCMODE O_APPEND O_RDONLY);
use Sirius::App::ForkCheck;
use Sirius::OS::Proc;

my $ADVICE
    = 'while the application is loaded, so all workers will share it: open it in --after-fork or at the first use';

sub check {
    my ( $class, $report, %context ) = @_;
    my %before = map { $_ => 1 } @{ $context{before} };
    my @found  = Sirius::App::ForkCheck->found( keys %before );
    my $known  = join ' ', @found;
    for my $fd ( grep { !$before{$_} } $class->open_now ) {
        my $what = _describe($fd);
        push @found, $what if defined $what && index( $known, $what ) < 0;
    }
    $report->warning("$_ is opened $ADVICE") for @found;
    my $threads = () = glob '/proc/self/task/*';
    $report->warning( 'the application has '
            . ( $threads - 1 )
            . ' threads when it is loaded; workers are forks and will have none of them: start them in --after-fork'
    ) if $threads > 1;
    return;
}

# Numbers of descriptors
sub open_now {
    opendir my $dir, '/proc/self/fd' or return ( 0 .. 2 );
    my @numbers = sort { $a <=> $b } grep { /\A\d+\z/ && -l "/proc/self/fd/$_" } readdir $dir;
    closedir $dir;
    return grep { -e "/proc/self/fd/$_" || -l "/proc/self/fd/$_" } @numbers;    # not that of the directory
}

# What harms when two have it; nothing for a socket, which ForkCheck knows, and for files that are read or
# appended to
sub _describe {
    my $fd   = shift;
    my $link = readlink "/proc/self/fd/$fd";
    return if !defined $link;
    return 'a descriptor of epoll, as event loops have,'
        if $link =~ /eventpoll/ && !$INC{'EV.pm'};    # EV makes a new one
    return 'a ring of io_uring' if $link =~ /io_uring/;
    return 'a pipe'             if $link =~ /\Apipe:/;
    return if $link !~ m{\A/} || $link =~ m{\A/(?:dev|proc|sys)/} || !-f "/proc/self/fd/$fd";
    my ($flags) = Sirius::OS::Proc->text("/proc/self/fdinfo/$fd") =~ /^flags:\s*0*(\d+)/m;
    return if !defined $flags;
    $flags = oct "0$flags";
    return if ( $flags & O_ACCMODE ) == O_RDONLY || $flags & O_APPEND;
    return $link =~ s/ \(deleted\)\z//r;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Shared - what the application opens before the workers are forked

=head1 SYNOPSIS

  use Sirius::CLI::Check::Shared;

  my @before = Sirius::CLI::Check::Shared->open_now;
  ...
  Sirius::CLI::Check::Shared->check( $report, before => \@before );

=head1 DESCRIPTION

Finds sockets and database handles (L<Sirius::App::ForkCheck>), files that are written to at a common position, pipes, event loops and
threads that the application has made while it was loaded.

=head1 METHODS

=head2 check

C<before> are the descriptors that were open before the application was loaded. The rest as in L<Sirius::CLI::Check>.

=head2 open_now

The numbers of all open descriptors.

=head1 SEE ALSO

L<Sirius::CLI::Check>.

=cut
