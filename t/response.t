use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp ();
use Test::More;
use Sirius::Test::Patient;
use Sirius::Test;

# What an application may answer: arrays, files, objects, streams, and statuses without a body

my $dir    = File::Temp->newdir;
my $file   = spew( "$dir/file", join '', map {"line $_\n"} 1 .. 20_000 );
my $server = start_server( "my \$file = '$file';\n" . <<'APP', qw(--workers 2) );
package Lines;
sub getline { my $self = shift; return $self->{n} > 0 ? 'line ' . $self->{n}-- . "\n" : undef }
sub close { }
package main;
my %answer = (
    '/array' => sub { [ 200, [ 'X-A' => 1, 'X-A' => 2 ], [ 'a', '', 'b', "\x{e4}" ] ] },
    '/file'  => sub { open my $in, '<', $file or die; [ 200, [], $in ] },
    '/lines' => sub { [ 200, [], bless { n => 3 }, 'Lines' ] },
    '/later' => sub { sub { $_[0]->( [ 200, [], ['later'] ] ) } },
    '/stream' => sub {
        sub {
            my $writer = $_[0]->( [ 200, [ 'Content-Type' => 'text/plain' ] ] );
            $writer->write("part $_\n") for 1 .. 3;
            $writer->close;
        }
    },
    '/204' => sub { [ 204, [], [] ] },
    '/304' => sub { [ 304, [ ETag => '"x"' ], [] ] },
    '/404' => sub { [ 404, [ 'Content-Length' => 4 ], ['gone'] ] },
    '/big' => sub { [ 200, [], [ 'x' x 2_000_000 ] ] },
);
sub { $answer{ $_[0]{PATH_INFO} }->() };
APP
my $client = $server->connect;
my $array  = $client->ask('GET /array');
is $array->body,                                 "ab\xe4",                           'an array';
is scalar( grep { $_ eq 'X-A' } $array->names ), 2,                                  'a field twice';
is $client->ask('GET /file')->body,              Sirius::Test::Server::slurp($file), 'a file';
is $client->ask('GET /lines')->body,             "line 3\nline 2\nline 1\n",         'an object with getline';
is $client->ask('GET /later')->body,             'later',                    'a response that comes later';
is $client->ask('GET /stream')->body,            "part 1\npart 2\npart 3\n", 'a stream';
is length $client->ask('GET /big')->body,        2_000_000,                  'two megabytes';

for my $status ( 204, 304 ) {
    my $answer = $client->ask("GET /$status");
    is $answer->status, $status, "status $status";
    is $answer->body,   '',      'without a body';
}
is $client->ask('GET /404')->body, 'gone', 'an error of the application, and the connection goes on';
$server->stop;
done_testing;
