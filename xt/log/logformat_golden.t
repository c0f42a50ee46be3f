# Lines of Sirius::LogFormat are those of Apache::LogFormat::Compiler: 60 formats, 40 requests, several time
# zones. Where they differ is listed at the end, with both lines and the reason.
use strict;
use warnings;
use POSIX ();
use Test::More;
use Sirius::LogFormat;

BEGIN {
    eval { require Apache::LogFormat::Compiler; Apache::LogFormat::Compiler->VERSION('0.33') }
        or plan skip_all => 'Apache::LogFormat::Compiler 0.33 is not installed';
}

sub zone {
    $ENV{TZ} = shift;
    POSIX::tzset();
    return;
}
zone('UTC');

my %handlers = (
    char_handlers => {
        z => sub { my ($env) = @_; return $env->{HTTP_X_FORWARDED_FOR} },
        Z => sub {
            join '/', map { defined $_ ? $_ : 'undef' } $_[1][0], @_[ 2, 3 ];
        },
        n => sub {return},
        h => sub { return 'not asked' },
        y => sub { return "a\nb", 'c' },
    },
    block_handlers => {
        Z => sub {
            my ( $block, $env ) = @_;
            my ($key) = grep { $env->{$_} } split /\|/, $block;
            $env->{$key};
        },
        x => sub {
            return join ',', shift, map { ref || ( defined $_ ? $_ : 'undef' ) } @_;
        },
    },
);

my @formats = (
    'common',                                 'combined',
    '%h',                                     '%l',
    '%u',                                     '%t',
    '%r',                                     '%s',
    '%b',                                     '%T',
    '%D',                                     '%v',
    '%V',                                     '%p',
    '%P',                                     '%m',
    '%U',                                     '%q',
    '%H',                                     '%%',
    '"%h" "%l" "%u" "%t"',                    '%>s %<s %>r %<b %>%',
    '%{Referer}i',                            '%{referer}i',
    '%{User-agent}i',                         '%{USER_AGENT}i',
    '%{Cookie}i',                             '%{Content-Type}i %{content-length}i',
    '%{X-Forwarded-For}i',                    '%{Nobody-Sends}i',
    '%{Content-Type}o',                       '%{content-length}o',
    '%{Set-Cookie}o',                         '%{X-Odd}o|%{X-Empty}o',
    '%{%Y}t',                                 '%{%d/%b/%Y:%T %z}t',
    '%{%A %a %B %b %h}t',                     '%{%c}t',
    '%{%x %X %D %F %R %r}t',                  '%{%C %d %e %H %I %j %k %l}t',
    '%{%m %M %N %n %p %P %S %t}t',            '%{%s %u %U %V %w %W %G %g %y %Z}t',
    '%{%Ey %OH %EC %OS}t',                    '%{100%% {of} it}t',
    '%{a}}t',                                 'plain text',
    "tabs\tand \"quotes\" and 'single' ones", 'back\slash \n \\\\ slashes',
    'per cent % 5% "%" and at the end %',     'bang! %h!%m!',
    '$env @_ #{x} q{}',                       '~ { } [ ] |',
    '%h%h%h%%%h',                             '%z',
    '%Z',                                     '[%n]',
    '%y',                                     '%{HTTP_X_FORWARDED_FOR|REMOTE_ADDR}Z',
    '%{a|b}x',                                '%m%U%q %H %{Host}i %V:%p %>s %b %D',
);

my @response = ( 200, [ 'Content-Type' => 'text/html', 'Content-Length' => 1234 ] );
my $now      = 1_700_000_000;                                                          # 22:13:20
my %base     = (
    REMOTE_ADDR     => '127.0.0.1',
    REQUEST_METHOD  => 'GET',
    REQUEST_URI     => '/a/b?c=d',
    PATH_INFO       => '/a/b',
    QUERY_STRING    => 'c=d',
    SERVER_PROTOCOL => 'HTTP/1.1',
    SERVER_NAME     => 'localhost',
    SERVER_PORT     => 80,
);
my $all_bytes = join '', map {chr} 0 .. 255;

# What is different in each request: of %env; of response, length, microseconds, epoch
my @requests = (
    [ {} ],
    [ { HTTP_REFERER    => 'http://example.com/', HTTP_USER_AGENT => 'Mozilla/5.0 (X11; Linux x86_64)' } ],
    [ { REMOTE_USER     => 'alice' } ],
    [ { REMOTE_USER     => '' } ],
    [ { REMOTE_ADDR     => '2001:db8::1' } ],
    [ { REMOTE_ADDR     => undef } ],
    [ { REMOTE_ADDR     => '' } ],
    [ { HTTP_HOST       => 'www.example.com:8080' } ],
    [ { HTTP_HOST       => '' } ],
    [ { SERVER_NAME     => '' } ],
    [ { SERVER_NAME     => undef } ],
    [ { QUERY_STRING    => '' } ],
    [ { QUERY_STRING    => '0' } ],
    [ { QUERY_STRING    => "a=\x{e9}&b=\x00\"'" } ],
    [ { REQUEST_URI     => '/',                         PATH_INFO => '', QUERY_STRING => '' } ],
    [ { REQUEST_URI     => "/\r\n127.0.0.1 - - forged", PATH_INFO => "/\r\n127.0.0.1 - - forged" } ],
    [ { REQUEST_URI     => "/$all_bytes", PATH_INFO => "/$all_bytes", QUERY_STRING => $all_bytes } ],
    [ { REQUEST_URI     => '/' . 'x' x 70_000 } ],
    [ { REQUEST_URI     => undef } ],
    [ { REQUEST_METHOD  => "G\x7fT" } ],
    [ { REQUEST_METHOD  => '' } ],
    [ { SERVER_PROTOCOL => 'HTTP/1.0', SERVER_PORT => 8443 } ],
    [ { HTTP_USER_AGENT => '' } ],
    [ { HTTP_USER_AGENT => '0', HTTP_REFERER => '0' } ],
    [ { HTTP_USER_AGENT => 'he said "no" and \\' } ],
    [ { HTTP_USER_AGENT => $all_bytes, HTTP_REFERER => $all_bytes, HTTP_COOKIE => $all_bytes } ],
    [ { HTTP_USER_AGENT => "\xe2\x82\xac \xc3\xa9", HTTP_COOKIE => "\xff\xfe" } ],
    [ { HTTP_USER_AGENT      => 'y' x 100_000 . "\n" } ],
    [ { HTTP_USER_AGENT      => "\e[31mred\e[0m\t\b\a" } ],
    [ { HTTP_X_FORWARDED_FOR => '10.0.0.1, 10.0.0.2' } ],
    [ { HTTP_X_FORWARDED_FOR => "10.0.0.1\n" } ],
    [ { CONTENT_TYPE         => 'text/plain; charset=utf-8', CONTENT_LENGTH => 17 } ],
    [ {}, [ 404, [] ], 0, 0, $now + 1 ],
    [   {},    [ 500, [ 'X-Odd', "a\r\nb", 'x-odd', 'second', 'X-Empty', '' ] ],
        undef, undef, $now - 86_400 * 200
    ],
    [   {}, [ 302, [ 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'content-TYPE', undef ] ],
        5,  999_999, 86_400 * 365 + 7200
    ],
    [ {}, [ '304', [ 'Content-Length', '00' ] ], '12',  '1000000',     2_000_000_000 ],
    [ {}, \@response,                            2**40, 3_600_000_001, 951_834_896 ],
    [ {}, [ 200, ['X-Odd'] ],                    1,     1,             1_709_217_296 ],
    [   { HTTP_COOKIE => '!"#$%&\'()*+,-./:;<=>?@[\]^_`{|}~' },
        [ 206, [ "X-Odd", "!\@\$" ] ],
        7, 12_345_678, 3_000_050_000
    ],
    [   { REMOTE_USER => 'bob', HTTP_REFERER => '-' },
        [ 999, [ 'Content-Length', 0 ] ],
        18_446_744_073, 59_999_999, 86_399 - 7200
    ],
);

sub line {
    my ( $log, $delta, $res, @known ) = @_;
    local $SIG{__WARN__} = sub { };
    @known = ( 1234, 5678, $now ) if !$res;
    return $log->log_line( { %base, %$delta }, $res || [@response], @known );
}

is @formats,  60, 'formats';
is @requests, 40, 'requests';
for my $format (@formats) {
    my ( $ours, $theirs )
        = map { $_->new( $format, %handlers ) } qw(Sirius::LogFormat Apache::LogFormat::Compiler);
    my @wrong;
    for my $i ( 0 .. $#requests ) {
        my ( $got, $want ) = map { line( $_, @{ $requests[$i] } ) } $ours, $theirs;
        push @wrong, sprintf "request %d\ngot  %.300s\nwant %.300s", $i, $got, $want if $got ne $want;
    }
    ( my $name = $format ) =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
    is "@wrong", '', $name;
}

subtest 'without a length, microseconds, epoch' => sub {
    for my $format ( 'combined', '%b %T %D %m' ) {
        my ( $ours, $theirs ) = map { $_->new($format) } qw(Sirius::LogFormat Apache::LogFormat::Compiler);
        my ( $got,  $want );

        # Both in one second; time(2), which is theirs, is behind the clock by up to a tick of 10 ms
        for ( 1 .. 50 ) {
            ( $got, $want ) = map { $_->log_line( {%base}, [@response] ) } $ours, $theirs;
            last if $got eq $want;
            select undef, undef, undef, 0.01;
        }
        is $got, $want, $format;
    }
    my @lines = map { $_->new->log_line( {%base}, [@response], 1, 2, 3 ) } 'Sirius::LogFormat',
        'Apache::LogFormat::Compiler';
    is $lines[0], $lines[1], 'without a format';
};

subtest 'time zones' => sub {
    my @zones
        = qw(UTC America/New_York Europe/Berlin Asia/Tokyo Asia/Kolkata Asia/Kathmandu Australia/Lord_Howe
        America/St_Johns Pacific/Apia Pacific/Kiritimati EST5EDT XYZ-3:30 <-03>3);
    for my $zone ( @zones, '' ) {
        zone($zone);
        my @seconds = map { 1_704_067_199 + $_ * 86_400 * 13 + 3601 * $_ } 0 .. 60;
        for my $format ( '%t', '%{%FT%T%z %s %j}t' ) {
            my ( $ours, $theirs )
                = map { $_->new($format) } qw(Sirius::LogFormat Apache::LogFormat::Compiler);
            my ( $got, $want ) = ( '', '' );
            for my $second (@seconds) {
                $got  .= $ours->log_line( {%base}, [@response], 1, 2, $second );
                $want .= $theirs->log_line( {%base}, [@response], 1, 2, $second );
            }
            is $got, $want, "$zone: $format";
        }
    }
    zone('Europe/Berlin');
    my ( $ours, $theirs )
        = map { $_->new('%t %{%z}t') } qw(Sirius::LogFormat Apache::LogFormat::Compiler);
    for my $second ( 1_711_846_799, 1_711_846_800, 1_729_990_799, 1_729_990_800 ) {
        is $ours->log_line( {%base}, [@response], 1, 2, $second ),
            $theirs->log_line( {%base}, [@response], 1, 2, $second ), "clocks are changed: $second";
    }
    zone('UTC');
};

# format, what differs of the request, Apache::LogFormat::Compiler's line, ours
my %differences = (
    'what a client or a proxy sends is escaped wherever it is printed: such a line could be forged' => [
        [ '%u', { REMOTE_USER => "a\nb" },  "a\nb",  'a\x0ab' ],
        [ '%h', { REMOTE_ADDR => "1\r2" },  "1\r2",  '1\x0d2' ],
        [ '%V', { HTTP_HOST   => "h\e[m" }, "h\e[m", 'h\x1b[m' ],
        [ '%v', { SERVER_NAME => "s\xff" }, "s\xff", 's\xff' ],
        [   '%H %r',
            { SERVER_PROTOCOL => "HTTP/1.1\n" },
            "HTTP/1.1\n GET /a/b?c=d HTTP/1.1\n",
            'HTTP/1.1\x0a GET /a/b?c=d HTTP/1.1\x0a'
        ],
        [ '%p', { SERVER_PORT => "8\n0" }, "8\n0", '8\x0a0' ],
    ],
    'a name is a name, even when it is 0' => [
        [ '%h %u', { REMOTE_ADDR => '0', REMOTE_USER => '0' }, '- -', '0 0' ],
        [ '%v %V', { SERVER_NAME => '0', HTTP_HOST   => '0' }, '- -', '0 0' ],
    ],
    'a column that is not there moves the others' => [
        [ '%m %U', { REQUEST_METHOD  => undef, PATH_INFO   => undef }, ' ', '- -' ],
        [ '%H %p', { SERVER_PROTOCOL => undef, SERVER_PORT => undef }, ' ', '- -' ],
        [ '%r',    { map { $_ => undef } qw(REQUEST_METHOD REQUEST_URI SERVER_PROTOCOL) }, '  ', '-' ],
        [ '%s',    {}, '', '-', [ undef, [] ] ],
    ],
    'a line is bytes: a value with characters is written as its bytes, above 0xff those of UTF-8' => [
        [   '%{X}i',
            {   HTTP_X => do { my $s = "\xe9"; utf8::upgrade($s); $s }
            },
            "\xe9",
            '\xe9'
        ],
        [ '%{X}i', { HTTP_X => "\x{20ac}" }, "\x{20ac}", '\xe2\x82\xac' ],
    ],
    'noon is 12 PM and midnight 12 AM' => [
        [ '%{%I %l %p %P}t', {}, '[01  1 AM am]', '[12 12 PM pm]', undef, 43_200 ],
        [ '%{%r}t',          {}, '[01:00:00 PM]', '[12:00:00 AM]', undef, 0 ],
    ],
    'microseconds are whole, and numbers are numbers' => [
        [ '%D', {}, '12.75',  '12', undef, 0, 12.75 ],
        [ '%D', {}, '-5',     '-',  undef, 0, -5 ],
        [ '%T', {}, '0',      '-',  undef, 0, 'x' ],
        [ '%b', {}, 'x',      '-',  undef, 0, 0, 'x' ],
        [ '%s', {}, '200 OK', '-',  [ '200 OK', [] ] ],
    ],
    'a name is taken as it stands' => [
        [ '%{a!b}o', {}, '-', '1', [ 200, [ 'a!b' => 1 ] ] ],
    ],
);
for my $reason ( sort keys %differences ) {
    subtest $reason => sub {
        for ( @{ $differences{$reason} } ) {
            my ( $format, $delta, $theirs, $ours, $res, $epoch, $time, $length ) = @$_;
            my @known = ( $delta, $res || [@response], $length, $time, defined $epoch ? $epoch : $now );
            is line( Apache::LogFormat::Compiler->new($format), @known ), "$theirs\n",
                "$format, as it is there";
            is line( Sirius::LogFormat->new($format), @known ), "$ours\n", "$format, as it is here";
        }
    };
}

subtest 'an offset that has changed without summer time beginning or ending' => sub {
    zone('Europe/Moscow');    # +04 until 26 October 2014, then +03, both without summer time
    my @seconds = ( 1_414_274_400 - 86_400, 1_414_274_400 );
    my ( $ours, $theirs ) = map { $_->new('%t') } qw(Sirius::LogFormat Apache::LogFormat::Compiler);
    is_deeply [ map { line( $theirs, {}, [@response], 1, 1, $_ ) =~ /( .....)\]/ } @seconds ],
        [ ' +0400', ' +0400' ], 'as it is there';
    is_deeply [ map { line( $ours, {}, [@response], 1, 1, $_ ) =~ /( .....)\]/ } @seconds ],
        [ ' +0400', ' +0300' ], 'as it is here';
    zone('UTC');
};

subtest 'formats that do not compile there' => sub {
    local $SIG{__WARN__} = sub { };
    for ( [ '\%h', '\127.0.0.1' ], [ q(%{it's}i), '-' ], [ '\!', '\!' ], [ '%{%H!}t', '[22!]' ] ) {
        my ( $format, $line ) = @$_;
        ok !eval { line( Apache::LogFormat::Compiler->new($format), {} ) eq "$line\n" }, "$format, there";
        is line( Sirius::LogFormat->new($format), {} ), "$line\n", "$format, here";
    }
};

done_testing;
