use strict;
use warnings;
use FindBin;
use Test::More;
use Sirius::Config::Foreign;
use Sirius::Config::Options;

# A user who types an option of another server is told what Sirius has

sub advice { return Sirius::Config::Foreign->advice(shift) }

is advice('bind'),          '(did you mean --listen?)',                         'gunicorn and Puma';
is advice('http_socket'),   '(did you mean --listen?)',                         'uWSGI, in its spelling';
is advice('chown-socket'),  '(did you mean --socket-owner or --socket-group?)', 'two options';
is advice('master'),        ': not needed, as there is always a supervisor',    'nothing is needed';
is advice('statsd-host'),   '(did you mean --admin?)',                          'one of many';
is advice('no-such-thing'), undef,                                              'nobody has it';

subtest 'what is advised exists' => sub {
    for my $name ( Sirius::Config::Foreign->names ) {
        my $text = advice($name);
        my @unknown
            = grep { my ($row) = Sirius::Config::Options->find($_); !$row } $text =~ /(?<![\w-])--([\w-]+)/g;
        is "@unknown", q(), "$name: $text";
    }
};

subtest 'it is no option of ours' => sub {
    for my $name ( Sirius::Config::Foreign->names ) {
        my ($row) = Sirius::Config::Options->find($name);
        ok !$row, $name;
    }
};

# The first column of the table for uWSGI in docs/MIGRATING.md
subtest 'the table of uWSGI' => sub {
    open my $in, '<', "$FindBin::Bin/../../docs/MIGRATING.md" or die "MIGRATING.md: $!";
    my @rows = do { local $/ = undef; readline($in) =~ /^\| uWSGI \| Sirius \|\n\|[-|]+\n((?:\|.*\n)+)/m };
    close $in;
    my @names = map { /\A\| ([^|]+) \|/ ? $1 =~ /`([\w-]+)`/g : () } map { split /\n/ } @rows;
    cmp_ok scalar @names, '>', 20, 'names';
    for my $name (@names) {
        my ($row) = Sirius::Config::Options->find($name);
        ok $row || defined advice($name), $name;
    }
};

done_testing;
