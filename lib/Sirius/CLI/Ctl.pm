package Sirius::CLI::Ctl;

use strict;
use warnings;
use parent 'Sirius::CLI::Command';

use JSON::PP ();
use POSIX    ();
use Sirius::CLI::Ctl::Status;
use Sirius::Control::Client;

use constant PATIENCE => 10;    # seconds to wait for an answer, without --wait

# Exit statuses by the kind of failure
my %STATUS = ( refused => 1, wrong => 2, unreachable => 3, timeout => 4 );

my $COMMANDS = 'status, ready, reload, stop, workers N, channels or publish CHANNEL';
my %COMMANDS = map { $_ => 1 } qw(channels publish ready reload status stop workers);

# Options of one command only
my @PUBLISH = qw(close format id prev-id sender);
my @FORMATS = qw(http-stream http-response ws-message);

my @ROWS = (
    [   'Commands',
        {   typed => 'status',
            text  => 'Print the state of the server: its processes, requests and last reload'
        },
        { typed => 'ready',           text => 'Exit with status 0 if the server can serve requests' },
        { typed => 'reload',          text => 'Load the new code and let new workers take over' },
        { typed => 'stop',            text => 'Finish the requests, then stop' },
        { typed => 'workers N',       text => 'Change the number of workers to N' },
        { typed => 'channels',        text => 'Print the channels that have the most subscribers' },
        { typed => 'publish CHANNEL', text => 'Send STDIN to the held connections of CHANNEL' },
    ],
    [   'Options',
        {   name  => 'control',
            type  => 'string',
            value => 'PATH',
            text  =>
                'Connect to the control socket at PATH (default: SIRIUS_CONTROL, or the only server without --control)'
        },
        {   name  => 'pid',
            type  => 'count',
            min   => 1,
            max   => 2**22,
            value => 'PID',
            text  => 'Control the server with this PID'
        },
        {   name => 'wait',
            type => 'bool',
            text => 'Return when the command has completed, not when it has been accepted'
        },
        {   name  => 'format',
            type  => 'string',
            value => 'FORMAT',
            text  =>
                'With publish: what STDIN is: http-stream, http-response or ws-message (default: http-stream and ws-message)'
        },
        { name => 'id', type => 'string', value => 'ID', text => 'With publish: the id of the item' },
        {   name  => 'prev-id',
            type  => 'string',
            value => 'ID',
            text  => 'With publish: the id of the item before it in the channel'
        },
        {   name  => 'sender',
            type  => 'string',
            value => 'NAME',
            text  => 'With publish: the user who sends it, whose own subscriptions may skip it'
        },
        {   name => 'close',
            type => 'bool',
            text => 'With publish: then close the streams and WebSockets of CHANNEL'
        },
        { name => 'abort', type => 'bool', text => 'With reload: abort the reload that is in progress' },
        {   name => 'timeout',
            type => 'seconds',
            min  => 0.001,
            max  => 7 * 86_400,
            text => 'Give up waiting after this time (default: 10; with --wait: no limit)'
        },
        { name => 'json', type => 'bool', text => 'Print the answer of the server as one line of JSON' },
    ],
);

sub main {
    my ( $self, @words ) = @_;
    my $request = $self->_request(@words);
    my $asks    = $request->{command} eq 'ready';
    $request->{command} = 'figures' if $asks;
    my $path    = $self->server;
    my $timeout = $self->given('timeout') // ( $self->given('wait') ? undef : PATIENCE );
    my ( $answer, $line );
    my $done = eval {
        my $client = Sirius::Control::Client->new( $path, $timeout );
        ( $answer, $line ) = $request->{items} ? _publish( $client, $request ) : $client->ask($request);
        $client->wait_end if $answer->{ok} && $self->given('wait') && $request->{command} eq 'stop';
        1;
    };
    return $asks ? $self->_ready($answer) : $self->_show( $answer, $line ) if $done;
    my $failure = $@;
    die $failure if ref $failure ne 'HASH';
    return $self->fail( $STATUS{ $failure->{kind} }, $failure->{text} );
}

sub name { return 'ctl' }

sub rows { return __PACKAGE__->grouped(@ROWS) }

sub summary { return 'Control a running server' }

sub synopsis { return '[options] COMMAND' }

sub unreachable { return $STATUS{unreachable} }

# What is sent, if anything is
sub _formats {
    my $self = shift;
    my $only = $self->given('format');
    $self->wrong("--format: '$only' is unknown: use http-stream, http-response or ws-message")
        if defined $only && !grep { $_ eq $only } @FORMATS;
    return if $self->given('close') && POSIX::isatty(0);
    binmode STDIN;
    my $bytes = do { local $/ = undef; readline STDIN }
        // '';
    return if $self->given('close') && !length $bytes;
    my $formats = Sirius::Channel::Item->formats($bytes);
    return $formats if !defined $only;
    return { $only => $formats->{$only} // { body => $bytes } };
}

# Items that are packed: what is to be sent, then what is to be closed
sub _items {
    my ( $self, $channel ) = @_;
    $self->wrong('publish: the channel is missing') if !length( $channel // '' );
    require Sirius::Channel::Item;
    require Sirius::Control::Place;
    $self->wrong('publish: SIRIUS_CONTROL is none, as in programs of a server without a control socket')
        if Sirius::Control::Place->is_none( $ENV{SIRIUS_CONTROL} )
        && !grep { defined $self->given($_) } qw(control pid);
    my %how
        = ( formats => scalar $self->_formats, map { $_ => $self->given($_) } qw(close id prev-id sender) );
    my @packed = eval {
        map { Sirius::Channel::Item->packed($_) } Sirius::Channel::Item->items( $channel, %how );
    };
    return @packed ? \@packed : $self->wrong( 'publish: ' . $@ =~ s/\n\z//r );
}

sub _publish {
    my ( $client, $request ) = @_;
    $client->publish($_) for @{ $request->{items} };
    my $answer = { ok => 1, text => 'published' };
    return $answer, JSON::PP->new->canonical->encode($answer);
}

# As /readyz of the admin port
sub _ready {
    my ( $self, $answer ) = @_;
    require Sirius::Admin::Verdict;
    my $verdict = $answer->{ok} && Sirius::Admin::Verdict->new( $answer->{status} );
    my $why     = $verdict ? $verdict->unready : $answer->{error};
    return $self->fail( $STATUS{refused}, "not ready: $why" ) if defined $why;
    print map {"$_\n"} 'ready', $verdict->edges;
    return $self->DONE;
}

# The command in the form that the server understands
sub _request {
    my ( $self, $command, @more ) = @_;
    $self->wrong("no command given: use $COMMANDS")           if !defined $command;
    $self->wrong("unknown command '$command': use $COMMANDS") if !$COMMANDS{$command};
    my %request = ( command => $command );
    if ( $command eq 'workers' ) {
        my $number = shift @more;
        $self->wrong('workers: the number of workers is missing')        if !defined $number;
        $self->wrong("workers: '$number' is not a whole number above 0") if $number !~ /\A[1-9]\d{0,8}\z/;
        $request{workers} = $number + 0;
    }
    my $channel = $command eq 'publish' ? shift @more : undef;
    $self->no_more(@more);
    if ( my ($only) = $command eq 'publish' ? () : grep { defined $self->given($_) } @PUBLISH ) {
        $self->wrong("--$only: only valid with publish");
    }
    $request{items} = $self->_items($channel) if $command eq 'publish';
    if ( $self->given('abort') ) {
        $self->wrong('--abort: only valid with reload')         if $command ne 'reload';
        $self->wrong('--abort: cannot be combined with --wait') if $self->given('wait');
        $request{abort} = JSON::PP::true();
    }
    if ( $command eq 'ready' and my ($none) = grep { $self->given($_) } qw(json wait) ) {
        $self->wrong("--$none: not valid with ready");
    }
    $request{wait} = JSON::PP::true() if $self->given('wait');
    return \%request;
}

sub _show {
    my ( $self, $answer, $line ) = @_;
    if ( $self->given('json') ) {
        print "$line\n";
        return $answer->{ok} ? $self->DONE : $STATUS{refused};
    }
    my $text
        = !$answer->{ok}      ? join "\n", grep { defined && length } @{$answer}{qw(error said)}
        : $answer->{status}   ? Sirius::CLI::Ctl::Status->text( $answer->{status} )
        : $answer->{channels} ? Sirius::CLI::Ctl::Status->channels($answer)
        :                       $answer->{text};
    utf8::encode($text);
    return $self->fail( $STATUS{refused}, $text ) if !$answer->{ok};
    print "$text\n";
    return $self->DONE;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Ctl - sirius ctl: control a running server

=head1 SYNOPSIS

  sirius ctl status
  sirius ctl ready
  sirius ctl reload --wait
  sirius ctl workers 8
  sirius ctl stop --wait --timeout 60
  sirius ctl publish news < event

  use Sirius::CLI::Ctl;
  exit Sirius::CLI::Ctl->run(@ARGV);

=head1 DESCRIPTION

Connects to the control socket of a server: of C<--control> or C<SIRIUS_CONTROL>, else of the only server that can be found, or the one
with the PID of C<--pid>. A user finds his own servers. Root finds all; its own come before those of other users, whose user is named on STDERR.
Only root and the user of the server may use the socket. The command needs no PID and sends no signal, so it cannot affect an unrelated
process.

A server without C<--control> has its socket, F<sirius-PID.control>, in the first of these directories that belongs to its user and to which
nobody else may write: the first one of C<RUNTIME_DIRECTORY>, which systemd sets for a unit; C<XDG_RUNTIME_DIR>; F</run> for root; else
F<sirius-UID> in the directory for temporary files, which it makes with mode 0700. If there is none, it has no socket.

=head1 COMMANDS

=over 4

=item B<status>

Prints the state of the server: its PID and addresses; its generations, of which the one that is C<serving> runs the newest code;
its edges and their connections; its certificates with their files and the days that are left until they expire, and why those in the
files are not in use, if so; its workers with their state, the number of requests they have served, and what they have been doing for how long; and the result of the last reload.

=item B<ready>

Asks whether requests can be sent to the server, as F</readyz> of the admin port does: exit status 0, and further lines if something is wrong
with an edge; else 1 or more, and the reason. For the health check of a container, where it needs no admin port: C<sirius ctl ready
--timeout 2>. A server with C<--workers 0> has no control socket.

=item B<reload>

Runs the original command again with the new code, and lets its workers take over, as the signal C<HUP> does. With C<--wait> the
command returns when the new generation is serving and the old one has exited. If the new generation does not start, the old one
keeps serving; the command prints the error, including the messages of perl, and exits with status 1. It does so as well if the new
generation serves, but something is wrong with the files of certificates. A reload that is requested
during another one follows it, or replaces it if that takes twice as long as the last one.

With C<--abort> the reload that is in progress is aborted, and the old code keeps serving. If no reload is in progress, the exit
status is 1.

=item B<stop>

Stops gracefully, as C<TERM> does. With C<--wait> the command returns when the server has exited.

=item B<workers> I<N>

Changes the number of workers to I<N>, as C<TTIN> and C<TTOU> do in steps of one. With C<--wait> the command returns when all of
them are serving.

=item B<channels>

Prints the channels to which held connections listen, those with the most subscribers first: 256 of each edge; their subscribers, and how
many messages were published since there is one.

=item B<publish> I<CHANNEL>

Sends what is on STDIN to the streams and WebSockets that listen to I<CHANNEL>, as L<Sirius::Channel> does. It returns when the server has
passed it on to its edges, whether anybody listens or not: see B<channels>.

=back

=head1 OPTIONS

=over 4

=item B<--abort>

With B<reload>: abort the reload that is in progress.

=item B<--close>

With B<publish>: then ends the streams and WebSockets of the channel. Without anything on STDIN it only ends them.

=item B<--control> I<PATH>

Connect to the control socket at I<PATH> (default: the environment variable C<SIRIUS_CONTROL>, or the only server without --control).

=item B<--format> I<FORMAT>

With B<publish>: who gets the bytes, and as what. C<http-stream>: streams, as they are. C<ws-message>: WebSockets, as a text message, or as
a binary one if they are not UTF-8. C<http-response>: responses that are held, as their body, with status 200. By default streams and
WebSockets get them.

=item B<--id> I<ID>, B<--prev-id> I<ID>

With B<publish>: the id of the item, and of the one before it in the channel.

=item B<--json>

Print the answer of the server as one line of JSON.

=item B<--pid> I<PID>

Control the server with this PID, if several run.

=item B<--sender> I<NAME>

With B<publish>: the user who sends it. Subscriptions with the filter C<skip-self> whose client is of this user do not get it.

=item B<--timeout> I<SECONDS>

Give up waiting after this time (default: 10; with C<--wait>: no limit). Units are accepted as by L<sirius>: C<500ms>, C<5m>. A
command that the server has accepted is carried out nevertheless.

=item B<--wait>

Return when the command has completed, not when it has been accepted.

=item B<-h>, B<--help>

Print a summary of commands and options, and exit.

=back

=head1 EXIT STATUS

  0   the command has completed, or without --wait was accepted
  1   the server refused the command or failed; the reason is on STDERR, with --json in "error" and "said" on STDOUT
  2   wrong usage
  3   no server was found or is listening on the socket, or the socket cannot be used
  4   the time of --timeout is over

=head1 METHODS

=head2 run

  exit Sirius::CLI::Ctl->run(@ARGV);

Runs the command with these words, and returns its exit status.

=head1 SEE ALSO

L<sirius>.

=cut
