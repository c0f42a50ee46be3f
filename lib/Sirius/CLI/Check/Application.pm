package Sirius::CLI::Check::Application;

use strict;
use warnings;

use File::Basename      qw(basename dirname);
use File::Spec          ();
use File::Temp          ();
use POSIX               ();
use Sirius::Base::Clock qw(now);
use Sirius::Base::Text;
use Sirius::CLI::Check::Middleware;
use Sirius::CLI::Check::Modules;
use Sirius::CLI::Check::Request;
use Sirius::CLI::Check::Shared;
use Sirius::OS::Child;
use Sirius::OS::ExitStatus;
use Sirius::OS::Proc;
use Sirius::Worker;

# Seconds: between two looks at the child; for it to say where it is, after its limit; and for its END blocks
use constant { LOOK => 0.05, PATIENCE => 1, TO_END => 5 };

sub check {
    my ( $class, $report, %context ) = @_;
    my $self = bless { %context, report => $report }, $class;
    my $file = $context{runner}->application;
    $self->{name} = defined $file ? basename($file) : '-e';
    return $report->error(
        "the application file $file does not exist: name it as the last argument, or with --app")
        if defined $file && $file =~ /[.]|\W/ && !-e $file;
    $self->{file} = $file;
    my $temp = eval { File::Temp->new( TMPDIR => 1 ) };
    return $report->error( 'cannot create a temporary file: ' . $@ =~ s/ at \S+ line .*//sr ) if !$temp;
    open $self->{out}, '>>', $temp->filename
        or return $report->error("cannot write to a temporary file: $!");
    open $self->{printed}, '<', $temp->filename
        or return $report->error("cannot read a temporary file: $!");
    undef $temp;    # and with it the name
    pipe my $read, my $write or return $report->error("cannot create a pipe: $!");
    my $child = Sirius::OS::Child->fork(
        sub {
            close $read;
            $self->{to} = $write;
            $self->_in_child;
        },
        group  => 1,
        on_end => sub { $self->{status} = $_[1] },
    ) or return $report->error( 'cannot fork: ' . Sirius::OS::Child->failure );
    close $write;
    my ( $guard, $alive ) = _guard( $child->pid ) or return $report->error("cannot fork: $!");
    $self->_follow( $child, $read );
    $child->signal('KILL') if !$child->wait( $self->{done} ? TO_END : 0 );
    $child->wait(TO_END);
    close $alive;
    $guard->wait(TO_END);
    return;
}

# The methods of the report, which is in the other process
sub error   { my ( $self, $text ) = @_; $self->_say( error   => $text ); return 0 }
sub ok      { my ( $self, $text ) = @_; $self->_say( ok      => $text ); return 1 }
sub warning { my ( $self, $text ) = @_; $self->_say( warning => $text ); return 1 }

# What a worker is before its first request
sub _become_worker {
    my $self = shift;
    my ( $conf, $privileges ) = @{$self}{qw(conf privileges)};
    if ($privileges) {
        eval { $privileges->drop; $privileges->umask_and_chdir; 1 } or return $self->error($@);
    }
    my $worker = Sirius::Worker->new( conf => $conf, multiprocess => $conf->{workers} ? 1 : 0, row => 0 );
    for my $name ( $conf->{workers} ? qw(before_fork after_fork) : () ) {
        my $hook = $conf->{$name} or next;
        next if eval { $hook->( $name eq 'after_fork' ? $worker : () ); 1 };
        $self->error( "--" . ( $name =~ tr/_/-/r ) . ' dies: ' . $self->_explain($@) );
        return 0;
    }
    return 1;
}

sub _ended {
    my ( $self, $phase ) = @_;
    my $status = $self->{status};
    my $last   = $self->_last_line;
    my $mend = $status & 127 ? 'look for the fault in its modules in C' : 'an application must not call exit';
    return $self->{report}->error( $self->_what($phase)
            . ': the process '
            . Sirius::OS::ExitStatus->words( $status, '' )
            . ( defined $last ? "; the last line that it printed: $last" : '' )
            . "; $mend" );
}

# Perl's message in a line that somebody can act on
sub _explain {
    my ( $self, $error ) = @_;
    $error =~ s/\A(?:Error while loading \S+: )+//;
    my ($line) = $error =~ /\A\s*(.*)/;
    if ( my ( $path, $where )
        = $error =~ /\ACan't locate (\S+\.pm) in \@INC.* at ((?:\(eval \d+\)|\S+) line \d+)/ )
    {
        my $module = $path =~ s/\.pm\z//r =~ s{/}{::}gr;
        my ($lib)
            = grep { -e "$_/$path" } map { ( "$_/lib", "$_/../lib", $_ ) } dirname( $self->{file} || './x' );
        my $mend
            = defined $lib
            ? 'it is in ' . File::Spec->abs2rel($lib) . ': add -I ' . File::Spec->abs2rel($lib)
            : 'install it, or name the directory that has it with -I';
        $where = '-e or -M' if $where =~ /\A\(eval/;
        return "the module $module, which $where needs, was not found: $mend";
    }
    return $line =~ s/[.]?\s*\z//r;
}

sub _finish {
    my $self = shift;
    POSIX::_exit(0) if $$ != $self->{pid};    # a child of the application that has come back
    my $line = $self->_warned;
    $self->warning("the application prints a warning of perl: $line") if defined $line;
    $self->_say('done');
    exit 0;
}

# Lines of the child until it has ended or its time is over
sub _follow {
    my ( $self, $child, $read ) = @_;
    my ( $report, $text, $phase, $asked ) = ( $self->{report}, '', 'load', 0 );
    my $until = now() + $self->{limit};
    while (1) {
        my $gone = $child->is_gone;
        vec( my $bits = '', fileno $read, 1 ) = 1;
        my $got
            = select( $bits, undef, undef, LOOK ) > 0
            ? sysread $read, $text, 65_536, length $text
            : undef;
        while ( $text =~ s/\A([^\n]*)\n// ) {
            my ( $word, $rest ) = split /\t/, $1, 2;
            return $self->{done} = 1 if $word eq 'done';
            return $self->_late( $phase, $rest ) if $word eq 'late';
            if ( $word eq 'at' ) { ( $phase, $until ) = ( $rest, now() + $self->{limit} ) }
            else                 { $report->$word($rest) }
        }
        next if $got;

     # What it wrote before its end has been read by now. A pipe that it has closed would be readable for ever
        return $self->_ended($phase)      if $gone;
        next                              if $child->wait( defined $got ? LOOK : 0 ) || now() < $until;
        return $self->_late( $phase, '' ) if $asked++;
        $child->signal('USR2');
        $until = now() + PATIENCE;
    }
    return;
}

# Ends the application and its children when the check has ended for any reason: Ctrl-C does not reach a
# process group of its own. The pipe has no other writer than the check
sub _guard {
    my $group = shift;
    pipe my $read, my $alive or return;
    my $guard = Sirius::OS::Child->fork(
        sub {
            close $alive;
            local @SIG{qw(HUP INT QUIT TERM)} = ('IGNORE') x 4;
            sysread $read, my $nothing, 1;
            kill KILL => -$group;
            POSIX::_exit(0);
        },
        group => 1
    ) or return;
    return $guard, $alive;
}

# In the child, as all that it calls
sub _in_child {
    my $self = shift;
    my $conf = $self->{conf};
    open STDIN,  '<',   '/dev/null';
    open STDOUT, '>>&', $self->{out};
    open STDERR, '>&',  \*STDOUT;
    STDOUT->autoflush(1);
    $self->{pid} = $$;
    $self->_say( at => 'load' );

    # At once and not before the next statement, which is another line, or never comes. It ends the process,
    # so it harms nothing
    my $asked
        = POSIX::SigAction->new( sub { $self->_say( late => _where( $self->{file} ) ); POSIX::_exit(1) } );
    POSIX::sigaction( POSIX::SIGUSR2(), $asked );
    my $app   = $self->_load or $self->_finish;
    my @paths = $self->_become_worker ? @{ $self->{get} } : ();

    # A response without an end is left from within
    my $next;
    $next = sub {
        my $path = shift @paths;
        if ( !defined $path ) {
            Sirius::CLI::Check::Middleware->check( $self, app => $app );
            Sirius::CLI::Check::Modules->check($self);
            $self->_finish;
        }
        $self->_say( at => "GET $path" );
        $self->_request( $app, $path, $next );
        return $next->();
    };
    return $next->();
}

sub _last_line {
    my $self  = shift;
    my @lines = grep {/\S/} $self->_printed;
    return @lines ? $lines[-1] =~ s/\s+\z//r : undef;
}

sub _late {
    my ( $self, $phase, $where ) = @_;
    return $self->{report}->error( $self->_what($phase)
            . sprintf( ' takes more than %g s', $self->{limit} )
            . ( length $where ? "; it is $where" : '' )
            . ': make it faster, or raise --limit if it has to take so long' );
}

sub _load {
    my $self   = shift;
    my $runner = $self->{runner};
    my @before = Sirius::CLI::Check::Shared->open_now;
    my $began  = now();
    my $app    = eval { $runner->load_application };
    if ( !defined $app && length $@ ) {
        $self->error( "$self->{name} does not load: " . $self->_explain("$@") );
        return;
    }
    if ( !eval { Sirius::Worker->check_app($app) } ) {
        $self->error( "$self->{name}: " . $@ =~ s/\Asirius: //r );
        return;
    }
    my $memory = Sirius::OS::Proc->resident($$);
    $self->ok(
        sprintf '%s loads in %s%s',
        $self->{name},
        Sirius::Base::Text->duration( now() - $began ),
        $memory ? ', and the process has ' . Sirius::Base::Text->bytes($memory) . ' then' : q()
    );
    Sirius::CLI::Check::Shared->check( $self, before => \@before ) if $runner->{loader} ne 'Delayed';
    return $app;
}

sub _printed {
    my $self = shift;
    seek $self->{printed}, 0, 0;
    return readline $self->{printed};
}

sub _request {
    my ( $self, $app, $path, $finish ) = @_;
    my $size = -s $self->{out};
    return Sirius::CLI::Check::Request->check(
        $self,
        app     => $app,
        conf    => $self->{conf},
        explain => sub { $self->_explain(shift) },
        finish  => $finish,
        get     => $path,
        printed => sub { ( -s $self->{out} ) > $size ? $self->_last_line : undef },
    );
}

sub _say {
    my ( $self, @words ) = @_;
    return if $$ != $self->{pid};
    my $line = join( "\t", @words ) =~ s/[ \t]*\n\s*/ /gr . "\n";
    utf8::encode($line) if utf8::is_utf8($line);
    syswrite $self->{to}, $line;
    return;
}

# The first that perl itself has to say about the code
sub _warned {
    my $self  = shift;
    my @lines = grep {/ at \S+ line \d+\.?$/} $self->_printed;
    return if !@lines;
    my $more = @lines > 1 ? ' (and ' . ( @lines - 1 ) . ' more)' : '';
    return $lines[0] =~ s/\s+\z//r . $more;
}

sub _what {
    my ( $self, $phase ) = @_;
    return $phase eq 'load' ? "loading $self->{name}" : $phase;
}

# Where the code is: in a signal handler; and which line of the application has led there
sub _where {
    my $file = shift;
    my ( @frames, $i );
    for ( $i = 1; my @frame = caller $i; $i++ ) { push @frames, [ @frame[ 1, 2 ] ] }
    my %ours = map { $INC{$_} => 1 } grep {m{\A(?:Sirius/|Plack/(?:Runner|Util)\.pm\z)}} keys %INC;
    @frames = grep { !$ours{ $_->[0] } && $_->[0] !~ /\A\(eval/ } @frames;
    return '' if !@frames;
    my ($own) = grep { defined $file && $_->[0] eq $file } @frames;
    my $text = "at $frames[0][0] line $frames[0][1]";
    $text .= ", called from $own->[0] line $own->[1]" if $own && "@$own" ne "@{ $frames[0] }";
    return $text;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check::Application - does the application load, and does it answer?

=head1 SYNOPSIS

  use Sirius::CLI::Check::Application;

  Sirius::CLI::Check::Application->check( $report, %context );

=head1 DESCRIPTION

Loads the application in a child process, as the server does, and asks it for a page. The child writes its findings to a pipe, one on
a line. The parent prints them, and has a line of its own for a child that ends or takes too long: it asks the child by C<USR2> where
it is, then kills it and all that it has started.

=head1 METHODS

=head2 check

See L<Sirius::CLI::Check>.

=head2 error, ok, warning

In the child: what those of L<Sirius::CLI::Check::Report> do in the parent.

=head1 SEE ALSO

L<Sirius::CLI::Check>, L<Sirius::CLI::Check::Request>, L<Sirius::CLI::Check::Shared>, L<Sirius::CLI::Check::Middleware>,
L<Sirius::CLI::Check::Modules>.

=cut
