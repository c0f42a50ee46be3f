# Server-sent events: a page with a clock that the server moves.
#
# A stream holds its worker while it lasts. So none lasts for ever: the browser comes back by itself and says
# which event it has seen last. And streams take at most half of the workers: when that many are held, the
# answer ends after the events that are there, and the browser asks again a second later. Between two answers
# its connection is idle and holds no worker.
use strict;
use warnings;
use Sirius::Scoreboard;

my $LASTS = 20;    # seconds of a stream; less than --graceful-timeout, so that no reload cuts one
my $KEPT  = 10;    # events that can be asked for later

my $PAGE = <<'HTML';
<!DOCTYPE html>
<title>Events</title>
<p id="time">...</p>
<script>
new EventSource("/events").onmessage = event => document.getElementById("time").textContent = event.data;
</script>
HTML

sub {
    my $env = shift;
    return [ 200, [ 'Content-Type' => 'text/html' ], [$PAGE] ] if $env->{PATH_INFO} ne '/events';
    my ($last) = ( $env->{HTTP_LAST_EVENT_ID} || '' ) =~ /\A([0-9]{1,12})\z/;
    return sub { stream( shift, defined $last ? $last : time - 1 ) };
};

# One event for each second. Yours come from a database or a queue: workers share no memory
sub events_after {
    my $last = shift;
    my $now  = time;
    $last = $now - $KEPT if $last < $now - $KEPT;
    return map { { id => $_, data => scalar gmtime $_ } } $last + 1 .. $now;
}

# Streams mark their row of the scoreboard, which all workers and "sirius top" can read
sub may_stay {
    Sirius::Scoreboard->mark('events');
    my $now = Sirius::Scoreboard->snapshot;
    return 2 * grep( { $_->{mark} eq 'events' } @{ $now->{workers} } ) <= $now->{wanted};
}

sub stream {
    my ( $respond, $last ) = @_;
    my @fields = (
        'Content-Type'      => 'text/event-stream',
        'Cache-Control'     => 'no-cache',
        'X-Accel-Buffering' => 'no',                  # for nginx: pass each event on at once
    );
    my $writer = $respond->( [ 200, \@fields ] );
    my $end    = may_stay() ? time + $LASTS : 0;
    my $there  = $writer->write("retry: 1000\n\n");
    while ($there) {
        my @events = events_after($last);
        $last = $events[-1]{id} if @events;

        # A comment where there is no event, to learn whether anybody still listens
        $there = $writer->write( join '', ": \n\n", map {"id: $_->{id}\ndata: $_->{data}\n\n"} @events );
        last if time >= $end;
        sleep 1;
    }
    $writer->close;
    return;
}
