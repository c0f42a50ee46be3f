package Sirius::CLI::Profile::Output;

use strict;
use warnings;

use Errno          qw(EINTR);
use File::Basename qw(dirname);
use File::Temp     ();

sub new {
    my ( $class, $file ) = @_;
    return bless { out => *STDOUT, where => 'cannot write to STDOUT' }, $class if !defined $file;
    my $self = bless { file => $file, where => $file }, $class;
    open $self->{out}, '>>:raw', $file or $self->_fail;
    return $self;
}

sub write {    ## no critic (ProhibitBuiltinHomonyms)
    my ( $self, $bytes ) = @_;
    utf8::encode($bytes) if !utf8::downgrade( $bytes, 1 );
    my ( $file, $out ) = @{$self}{qw(file out)};
    return $self->_put( $out, $bytes ) if !defined $file;
    return                             if $self->_replace($bytes);
    truncate $out, 0 if -f $out && $file !~ m{\A/(?:dev|proc)/};    # not what STDOUT may append to
    $self->_put( $out, $bytes );
    close $out or $self->_fail;
    return;
}

sub _fail { die shift->{where} . ": $!\n" }

# Past perl's buffer: what is left there would fail again at the end, with a message of perl
sub _put {
    my ( $self, $out, $bytes ) = @_;
    while ( length $bytes ) {
        my $written = syswrite $out, $bytes;
        if    ( defined $written ) { substr $bytes, 0, $written, '' }
        elsif ( $! != EINTR )      { $self->_fail }
    }
    return;
}

# Puts a new file in the place of the one that is there. False: it is a FIFO, a device or a link, such as
# /dev/stdout, or no file can be made beside it
sub _replace {
    my ( $self, $bytes ) = @_;
    my ( $mode, $uid, $gid ) = ( lstat $self->{file} )[ 2, 4, 5 ];
    return 0 if !-f _;
    my $new = eval { File::Temp->new( DIR => dirname( $self->{file} ), TEMPLATE => '.sirius-XXXXXX' ) }
        or return 0;
    my ( undef, undef, $own_uid, $own_gid ) = ( stat $new )[ 2 .. 5 ];
    return 0 if ( $uid != $own_uid || $gid != $own_gid ) && !chown $uid, $gid, $new;
    chmod $mode & oct 777, $new;
    $self->_put( $new, $bytes );
    $self->_fail if !close($new) || !rename "$new", $self->{file};
    $new->unlink_on_destroy(0);
    return 1;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Profile::Output - where sirius profile writes

=head1 SYNOPSIS

  use Sirius::CLI::Profile::Output;

  my $output = Sirius::CLI::Profile::Output->new($file);
  ...    # takes samples
  $output->write($bytes);

=head1 DESCRIPTION

A file has what it had before, or all of the new bytes.

=head1 METHODS

=head2 new

  my $output = Sirius::CLI::Profile::Output->new($file);
  my $output = Sirius::CLI::Profile::Output->new;

A file, or STDOUT. The file is made if there is none, and what is in it stays. Dies with a line that says why if it cannot be written, before
samples are taken that would be lost.

=head2 write

  $output->write($bytes);

Writes all of it. A regular file is replaced by a new one with its owner and mode; what is behind a link is overwritten. Dies with a line that says why.

=head1 SEE ALSO

L<Sirius::CLI::Profile>.

=cut
