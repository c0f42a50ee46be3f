# An upload with its progress: size and digest of a file.
#
# The server collects the body, in memory or in a file in --tmpdir, and calls the application when it is
# there. So a slow upload holds no worker, and --max-body and --body-rate end what is too large or too slow;
# but the application cannot watch it come. The browser can: it knows best what it has sent.
use strict;
use warnings;
use Digest::SHA;
use Sirius::Scoreboard;

my $PAGE = <<'HTML';
<!DOCTYPE html>
<title>Upload</title>
<input type="file" id="file"> <progress id="progress" max="1" value="0"></progress>
<p id="answer"></p>
<script>
const at = id => document.getElementById(id);
at("file").onchange = () => {
    const request = new XMLHttpRequest();
    request.upload.onprogress = sent => at("progress").value = sent.loaded / sent.total;
    request.onload = () => at("answer").textContent = request.responseText;
    request.onerror = () => at("answer").textContent = "The upload was cut.";
    request.open("POST", "/");
    request.send(at("file").files[0]);
};
</script>
HTML

sub {
    my $env = shift;
    return [ 200, [ 'Content-Type' => 'text/html' ], [$PAGE] ] if $env->{REQUEST_METHOD} ne 'POST';
    my $digest = Digest::SHA->new(256);
    my $size   = 0;
    while ( my $read = $env->{'psgi.input'}->read( my $buffer, 1_048_576 ) ) {
        $digest->add($buffer);
        $size += $read;

        # What the application itself does with it: the operator sees that in "sirius top"
        Sirius::Scoreboard->mark("digest: $size of $env->{CONTENT_LENGTH} bytes");
    }
    return [ 200, [ 'Content-Type' => 'text/plain' ],
        [ "$size bytes, sha256 " . $digest->hexdigest . "\n" ] ];
};
