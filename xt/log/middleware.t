# Plack::Middleware::AccessLog::Compiled writes what Plack::Middleware::AccessLog writes, and more where that
# knows less.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use Test::More;
use Sirius::Test;
use File::Temp;
use HTTP::Request::Common;
use Plack::Builder;
use Plack::Middleware::AccessLog::Compiled;
use Plack::Test;
use Plack::Util;

sub file_with {
    my $text = shift;
    my $file = File::Temp->new;
    print {$file} $text;
    close $file;
    open my $fh, '<', "$file" or die $!;
    return $fh;
}

# A body that is read by getline
sub pieces {
    my @pieces = @_;
    my $closed = 0;
    return Plack::Util::inline_object( getline => sub { shift @pieces }, close => sub { $closed++ } );
}

# The lines of all requests, by that middleware
sub lines {
    my ( $name, $app, $options, @requests ) = @_;
    my @lines;
    my $logged = builder {
        enable $name, logger => sub { push @lines, @_ }, %$options;
        $app
    };
    test_psgi $logged, sub {
        my $client = shift;
        $client->($_) for @requests;
    };
    return @lines;
}

my %apps = (
    array => sub { [ 200, [ 'Content-Type' => 'text/plain', 'X-A' => "b\n" ], [ 'abc', 'de' ] ] },
    empty => sub { [ 204, [],                                                 [] ] },
    file  => sub { [ 200, [],                                                 file_with('0123456789') ] },
    'not found' => sub { [ 404, [ 'Content-Length' => 3 ], ['no!'] ] },
    delayed     => sub {
        sub { shift->( [ 201, [ 'X-A' => 1 ], ['delayed'] ] ) }
    },
);
my @requests = (
    GET('/'),
    GET( '/a/b?c=d%20e', Referer => 'http://example.com/', 'User-Agent' => 'he said "no"' ),
    POST( '/%00%0a/..;x', [ a => 1 ], 'X-Forwarded-For' => '10.0.0.1' ),
    HEAD( '/', Cookie => "a=\x{e9}" ),
    PUT( 'http://other.example.com:8080/', 'User-Agent' => "\x01\x7f" ),
);

subtest 'the same lines' => sub {
    plan skip_all => 'Plack::Middleware::AccessLog has no char_handlers'
        if !Plack::Middleware::AccessLog->can('char_handlers') && !eval {
        require Plack::Middleware::AccessLog;
        Plack::Middleware::AccessLog->can('char_handlers');
        };
    my %handlers = (
        char_handlers  => { z => sub { $_[0]{HTTP_X_FORWARDED_FOR} } },
        block_handlers => { Z => sub {"$_[0] $_[2][0]"} },
    );
    my $format = '%h %l %u "%r" %s %>s %b %v %V %p %m %U %q %H %{Referer}i %{User-Agent}i %{X-A}o %z %{x y}Z';
    for my $name ( sort keys %apps ) {
        for my $options ( {}, map { { format => $_, %handlers } } 'common', 'combined', $format ) {
            my ( @ours, @theirs );
            for ( 1 .. 20 ) {    # in one second
                @ours   = lines( 'AccessLog::Compiled', $apps{$name}, $options, @requests );
                @theirs = lines( 'AccessLog',           $apps{$name}, $options, @requests );
                last if "@ours" eq "@theirs";
            }
            is_deeply \@ours, \@theirs, "$name, " . ( $options->{format} || 'no format' );
            is @ours, @requests, 'one for each request';
        }
    }
};

subtest 'bodies that are counted' => sub {
    my %counted = (
        getline => sub { [ 200, [], pieces( 'abc', '', 'de' ) ] },
        stream  => sub {
            sub {
                my $writer = shift->( [ 200, [ 'Content-Length' => 5 ] ] );
                $writer->write($_) for 'abc', '', 'de';
                $writer->close;
            }
        },
        'delayed getline' => sub {
            sub { shift->( [ 200, [], pieces( 'ab', 'cde' ) ] ) }
        },
        'a path' => sub {
            my $file = File::Temp->new;
            print {$file} 'abcde';
            close $file;
            [   200, [],
                Plack::Util::inline_object( path => sub {"$file"}, getline => sub { }, close => sub { } )
            ];
        },
    );
    for my $name ( sort keys %counted ) {
        my @lines
            = lines( 'AccessLog::Compiled', $counted{$name}, { format => '%s %b %D' }, GET('/'), GET('/') );
        is @lines, 2, "$name: a line each";
        like $_, qr/\A200 5 \d+\n\z/, $name for @lines;
    }
};

subtest 'a response is not changed' => sub {
    my $response = [ 200, [ 'Content-Length' => 5 ], pieces('abcde') ];
    my $app      = Plack::Middleware::AccessLog::Compiled->wrap( sub {$response}, logger => sub { } );
    my $got      = $app->( {} );
    is_deeply $got->[1], [ 'Content-Length' => 5 ], 'its length stays';
    isnt $got->[2],                $response->[2], 'a body that must be counted is wrapped';
    isnt $app->( {} )->[2]{inner}, $got->[2],      'once';
    my $array = [ 200, [], ['abc'] ];
    is +Plack::Middleware::AccessLog::Compiled->wrap( sub {$array}, logger => sub { } )->( {} ), $array,
        'an array is what it was';
};

subtest 'when it is written' => sub {
    my @log;
    my %option = ( format => '%s %b', logger => sub { push @log, @_ } );
    my $app = Plack::Middleware::AccessLog::Compiled->wrap( sub { [ 200, [], pieces(qw(ab cd)) ] }, %option );
    my $body = $app->( {} )->[2];
    is $body->getline, 'ab',  'a piece';
    is "@log",         '',    'not before the end';
    is $body->getline, 'cd',  'another';
    is $body->getline, undef, 'no more';
    $body->close;
    is "@log", "200 4\n", 'when it is closed';
    $body->close;
    undef $body;
    is "@log", "200 4\n", 'once';

    @log  = ();
    $body = $app->( {} )->[2];
    $body->getline;
    undef $body;
    is "@log", "200 2\n", 'or dropped: the client has gone';

    @log = ();
    my $stream = Plack::Middleware::AccessLog::Compiled->wrap(
        sub {
            sub {
                my $writer = shift->( [ 200, [] ] );
                $writer->write('abc');
                die "in the middle\n";
            }
        },
        %option
    );
    my @written;
    my $server = sub {
        Plack::Util::inline_object( write => sub { push @written, @_ }, close => sub { } );
    };
    ok !eval { $stream->( {} )->($server); 1 }, 'an application dies while it streams';
    is $@,         "in the middle\n", 'the server is told';
    is "@log",     "200 3\n",         'and a line is written';
    is "@written", 'abc',             'what it has written came through';

    @log = ();
    my $waiting;
    my $polled = Plack::Middleware::AccessLog::Compiled->wrap(
        sub {
            sub {
                shift->( [ 200, [] ] )->poll_cb( sub { my $w = shift; $w->write('polled'); $w->close } );
            }
        },
        %option
    );
    $polled->( {} )->( sub {
        my $inner = Plack::Util::inline_object( write => sub { }, close => sub { } );
        return Plack::Util::inline_object(
            write   => sub { },
            close   => sub { },
            poll_cb => sub {
                my $cb = shift;
                $waiting = sub { $cb->($inner) }
            }
        );
    } );
    is "@log", '', 'not yet';
    $waiting->();
    is "@log", "200 6\n", 'what is written in poll_cb is counted';
};

subtest 'where it is written' => sub {
    my $errors = '';
    open my $fh, '>', \$errors or die $!;
    my $app = Plack::Middleware::AccessLog::Compiled->wrap( sub { [ 200, [], ['x'] ] }, format => '%s %b' );
    $app->( { 'psgi.errors' => $fh } );
    close $fh;
    is $errors, "200 1\n", 'psgi.errors, without a logger';

    {

        package Derived;
        our @ISA = 'Plack::Middleware::AccessLog::Compiled';

        sub log_line {
            my ( $self, $status, $headers, $env, $opts ) = @_;
            "$status @$headers $opts->{content_length}";
        }
    }
    my @log;
    Derived->wrap( sub { [ 200, [ A => 1 ], ['x'] ] }, logger => sub { push @log, @_ } )->( {} );
    is "@log", '200 A 1 1', 'a derived class makes its own lines';
};

subtest 'a wrong format' => sub {
    ok !eval {
        Plack::Middleware::AccessLog::Compiled->wrap( sub { }, format => '%h %Z' );
    }, 'dies at once';
    like $@, qr/\Aaccess log format: unknown item %Z at character 4\n/, 'and says where';
};

subtest 'time' => sub {
    my @log;
    my $app = Plack::Middleware::AccessLog::Compiled->wrap(
        sub {
            select undef, undef, undef, 0.05;
            return [ 200, [], ['x'] ];
        },
        format => '%D %{ms}T %T',
        logger => sub { push @log, @_ }
    );
    $app->( {} );
    my ( $us, $ms, $s ) = split ' ', $log[0];
    cmp_ok $us, '>=', 50_000, 'microseconds';
    is $ms, int( $us / 1000 ),      'milliseconds';
    is $s,  int( $us / 1_000_000 ), 'seconds';
};

subtest 'under a server' => sub {
    my $server = start_server( <<'APP', qw(--workers 1) );
use Plack::Builder;
builder {
    enable 'AccessLog::Compiled', format => '%h "%r" %s %b %D';
    sub {
        my $env = shift;
        return [ 200, [], ['array'] ] if $env->{PATH_INFO} eq '/array';
        return sub {
            my $writer = shift->( [ 200, [] ] );
            $writer->write('piece') for 1 .. 3;
            $writer->close;
        };
    }
};
APP
    my %bytes = ( array => 5, stream => 15 );
    for my $name ( sort keys %bytes ) {
        is $server->ask("GET /$name")->status, 200, $name;
        my $line = qr{^127\.0\.0\.1 "GET /$name HTTP/1\.1" 200 $bytes{$name} \d+$}m;
        until_true( 30, sub { $server->log =~ $line } );
        like $server->log, $line, 'its line is in psgi.errors';
    }
    $server->stop;
};

done_testing;
