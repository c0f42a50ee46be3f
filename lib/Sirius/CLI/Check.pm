package Sirius::CLI::Check;

use strict;
use warnings;
use parent 'Sirius::CLI::Command';

use Sirius::Admin::Port;
use Sirius::CLI::Check::Addresses;
use Sirius::CLI::Check::Application;
use Sirius::CLI::Check::Files;
use Sirius::CLI::Check::Limits;
use Sirius::CLI::Check::Report;
use Sirius::CLI::Runner;
use Sirius::Log::Access;
use Sirius::Service::Privileges;

use constant LIMIT => 30;    # seconds, without --limit

# In the order of a start of the server. Each has a method check, which gets the report and the context:
#   conf        the checked values of all options
#   from        where each of them comes from
#   get, limit  what the options of this command say
#   privileges  rights of the workers; undef if they cannot be set
#   runner      has read the options and can load the application
my @CHECKS = map {"Sirius::CLI::Check::$_"} qw(Files Addresses Limits Application);

my @ROWS = (
    {   name  => 'get',
        type  => 'string',
        value => 'PATH',
        many  => 1,
        text  =>
            'Ask the application for this path, with a query if it has one; repeat it for others (default: that of --path, or /)'
    },
    {   name => 'limit',
        type => 'seconds',
        min  => 0.1,
        max  => 86_400,
        text => 'Limit the time for loading the application, and the time for the page (default: 30)'
    },
    { name => 'quiet',  type => 'bool', text => 'Print warnings and errors only' },
    { name => 'strict', type => 'bool', text => 'Exit with status 1 if there are warnings' },
);

my $HELP = <<'TEXT';

All options of the server can be given: see sirius --help. With --show-config their values are printed first.

The application is loaded in a process of its own and asked for a page, or several. No server is started, and none that runs is
touched. The exit status is 0 without errors, 1 with errors, 2 if an option is wrong.
TEXT

sub help {
    my $class = shift;
    return $class->SUPER::help . $HELP;
}

sub main {
    my ( $self, @words ) = @_;
    my @get = @{ $self->given('get') || [] };
    for my $path ( grep { !m{\A/} } @get ) {
        $self->wrong("--get $path: a path begins with /");
    }
    my $runner = $self->_read(@words);
    my $conf   = $runner->{conf};
    @get = ( $runner->{path} // '' ) =~ m{\A/} ? $runner->{path} : '/' if !@get;
    print $runner->config_text if $runner->{all}{show_config};
    my $report = Sirius::CLI::Check::Report->new( quiet => $self->given('quiet') );
    $report->warning($_) for @{ $conf->{notices} };
    $report->ok( 'the options are valid' . ( defined $conf->{config} ? ", and so is $conf->{config}" : '' ) );
    my $privileges = eval { Sirius::Service::Privileges->new($conf) };
    $report->error($@) if !$privileges;
    my %context = (
        conf       => $conf,
        from       => $runner->{from},
        get        => \@get,
        limit      => $self->given('limit') // LIMIT,
        privileges => $privileges,
        runner     => $runner,
    );
    $_->check( $report, %context ) for @CHECKS;
    $report->sum;
    return $report->errors || $self->given('strict') && $report->warnings ? $self->FAILED : $self->DONE;
}

sub name { return 'check' }

sub passes_on { return 1 }

sub rows { return @ROWS }

sub summary { return 'Check options, set-up and application' }

sub synopsis { return '[options] [options of the server] [app.psgi]' }

# What the server would read, and would refuse before anything else
sub _read {
    my ( $self, @words ) = @_;
    my $runner = Sirius::CLI::Runner->new(
        server     => 'Sirius',
        env        => $ENV{PLACK_ENV} || 'deployment',
        only_reads => 1,
    );
    my $good = eval {
        $runner->parse_options(@words);
        Sirius::Config::Options->fail("--server $runner->{server}: sirius check knows Sirius only")
            if !$runner->{conf};
        $_->check( $runner->{conf} ) for qw(Sirius::Log::Access Sirius::Admin::Port);
        1;
    };
    return $runner if $good;
    chomp( my $error = $@ );
    return $self->wrong( $error =~ s/\Asirius: //r );
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Check - sirius check: would the server start, and the application answer?

=head1 SYNOPSIS

  sirius check app.psgi
  sirius check --config /etc/shop/sirius.conf
  sirius check --strict --quiet --get /healthz --listen 127.0.0.1:5000 app.psgi

=head1 DESCRIPTION

Takes the options of L<sirius>, the environment variables and the configuration file, and tries what a start of the server would
need. Each finding is one line on STDOUT that begins with C<ok>, C<warning> or C<error>:

  ok: the options are valid
  error: 127.0.0.1:5000 is in use by nginx (PID 812): stop it, or choose another address with --listen
  warning: Plack::Middleware::ContentLength is not needed: the server computes Content-Length itself; remove it
  1 error, 1 warning

An B<error> means that with this set-up the server would not start, or that it would not answer as it should: an address that
cannot be bound, a log that cannot be written, an application that does not load, a page that dies or breaks PSGI. A B<warning>
means that the server starts and answers, but something is lost, slow, or will fail later: options without effect, a file that a
reload could not read, a database connection that the workers would share, middleware that the server makes needless.

What is checked, in this order:

=over 4

=item Options

The command line, the environment, the files of C<--config> and C<--env-file>, user and group.

=item Files

Whether the logs, the PID file, the unix sockets and temporary files can be made, by the user who needs to; whether that user
can read what a reload reads again; whether there are the programs of C<--access-log> and C<--beside>.

=item Addresses

Whether each can be bound. If another process uses it, it is named, if this user may know it. An address of a running server of
Sirius is no error if C<--pid> names that server, else a warning: it may be the one that you are going to reload.

=item Limits

Open files in relation to C<--max-connections> and workers; C<net.core.somaxconn> in relation to C<--backlog>.

=item Application

It is loaded in a child process, as the server loads it, then asked for the pages of C<--get> with the C<%env> of the server, after
C<--after-fork>, as the user of C<--user>, under L<Plack::Middleware::Lint>. Both have a time limit, after which the line of code is named
at which it stood. The answer may be delayed or streamed; of an endless stream a second is read. Then: sockets, database handles and files
that all workers would share, middleware that is not needed here, modules that have a faster version in C.

=back

The check binds TCP addresses for a moment, without listening, and leaves nothing behind but what the application does when it
is loaded and asked for a page.

=head1 OPTIONS

The options of L<sirius>, and:

=over 4

=item B<--get> I<PATH>

Ask the application for this path, with a query if it has one; repeat it for others (default: that of C<--path>, or /).

=item B<--limit> I<SECONDS>

Limit the time for loading the application, and the time for the page (default: 30). With C<--load-timeout> the server has another
limit for loading; it is not used here.

=item B<--quiet>

Print warnings and errors only.

=item B<--strict>

Exit with status 1 if there are warnings.

=item B<--help>

Print the options and exit.

=back

With C<--show-config> the value of each option and its source are printed first.

=head1 EXIT STATUS

C<0>: no errors. C<1>: there are errors, or warnings with C<--strict>. C<2>: an option, a variable or a line of a file is wrong; one
line on STDERR names it, and nothing else has been checked.

=head1 METHODS

=head2 run

  exit Sirius::CLI::Check->run(@ARGV);

Runs the command with these words, and returns its exit status.

=head1 SEE ALSO

L<sirius>, L<Plack::Middleware::Lint>.

=cut
