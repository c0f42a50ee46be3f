# Streams that bench/held listens to, and what it asks for beside them
use strict;
use warnings;

sub {
    return [ 200, [ 'Content-Type' => 'text/plain' ], ["hello\n"] ] if shift->{PATH_INFO} ne '/stream';
    return [
        200,
        [   'Content-Type'    => 'text/event-stream',
            'Grip-Hold'       => 'stream',
            'Grip-Channel'    => 'news',
            'Grip-Keep-Alive' => ':\n\n; format=cstring; timeout=30'
        ],
        ["retry: 1000\n\n"]
    ];
};
