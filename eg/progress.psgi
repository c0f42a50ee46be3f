# A progress bar: an event stream that the server holds, while a job publishes how far it is. No worker waits
# for it.
#
# Each event has an id, and names the one before it. Who asks for a stream gets where the job is now, with the
# id of that. If something was published in between, the server ends the stream, and the browser comes again
# at once: so none is missed.
use strict;
use warnings;
use File::Temp ();
use Sirius::Channel;
use Time::HiRes qw(sleep);

my $STEPS = 20;
my $jobs  = File::Temp->newdir;    # yours are in a database
my $PAGE  = <<'HTML';
<!DOCTYPE html>
<title>Progress</title>
<button>Start</button> <progress max="100" value="0"></progress>
<script>
const bar = document.querySelector('progress');
document.querySelector('button').onclick = async () => {
    const job = await (await fetch('/jobs', { method: 'POST' })).text();
    const events = new EventSource('/jobs?' + job);
    events.onmessage = event => {
        bar.value = event.data;
        if (event.data === '100') events.close();
    };
};
</script>
HTML

sub done {
    my $job = shift;
    open my $in, '<', "$jobs/$job" or return;
    my $done = readline $in;
    close $in or return;
    return $done;
}

# What the stream says: the id is the number of steps that are done
sub event {
    my $done = shift;
    return "id: $done\ndata: " . int( 100 * $done / $STEPS ) . "\n\n";
}

sub note {
    my ( $job, $done ) = @_;
    open my $out, '>', "$jobs/$job.new" or die "$jobs/$job.new: $!\n";
    print {$out} $done;
    close $out or die "$jobs/$job.new: $!\n";
    rename "$jobs/$job.new", "$jobs/$job" or die "$jobs/$job: $!\n";
    return;
}

# Any process can publish. This one does after its response, as a small job may; docs/JOBS.md has others
sub work {
    my $job = shift;
    for my $step ( 1 .. $STEPS ) {
        sleep 0.1;
        note( $job, $step );
        Sirius::Channel->publish( "job-$job" => event($step), id => $step, prev_id => $step - 1 );
    }
    return;
}

my %answer = (
    'GET /' => sub { return [ 200, [ 'Content-Type' => 'text/html' ], [$PAGE] ] },

    'POST /jobs' => sub {
        my $env = shift;
        my $job = sprintf '%08x%04x', time, $$ % 65536;
        note( $job, 0 );
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { work($job) };
        return [ 201, [ 'Content-Type' => 'text/plain' ], [$job] ];
    },

    'GET /jobs' => sub {
        my $env   = shift;
        my ($job) = $env->{QUERY_STRING} =~ /\A([0-9a-f]{12})\z/;
        my $done  = defined $job ? done($job) : undef;
        return [ 404, [ 'Content-Type' => 'text/plain' ], ["no such job\n"] ] if !defined $done;
        my @fields = (
            'Content-Type'      => 'text/event-stream',
            'Cache-Control'     => 'no-cache',
            'X-Accel-Buffering' => 'no',                  # for nginx: pass each event on at once
        );
        push @fields,
            'Grip-Hold'    => 'stream',
            'Grip-Channel' => "job-$job; prev-id=$done",
            'Grip-Link'    => "</jobs?$job>; rel=next"     # Pushpin asks there instead of ending the stream
            if $done < $STEPS;
        return [ 200, \@fields, [ "retry: 200\n" . event($done) ] ];
    },
);

sub {
    my $env    = shift;
    my $answer = $answer{"$env->{REQUEST_METHOD} $env->{PATH_INFO}"} or return [ 404, [], [] ];
    return $answer->($env);
};
