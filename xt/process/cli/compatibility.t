use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../t/lib";
use Test::More;
use Fcntl qw(FD_CLOEXEC F_GETFD F_SETFD);
use File::Temp;
use IO::Socket::INET;
use Sirius::Config::Options;
use Sirius::Test;

# docs/COMPATIBILITY.md: every row of its tables is tried, in the way that its last column says

my $root = $Sirius::Test::Server::ROOT;
my $page = "$root/docs/COMPATIBILITY.md";
my @rows = read_rows();

# What the tables must have: options of Starlet, Starman, Monoceros and Gazelle
my @OPTIONS = qw(
    backlog child-exit daemonize disable-keepalive disable-proctitle enable-ssl err-respawn-interval error-log group host
    keepalive-timeout listen max-keepalive-connection max-keepalive-reqs max-readahead-reqs max-reqs-per-child
    max-requests max-servers max-spare-servers max-workers min-readahead-reqs min-reqs-per-child min-servers
    min-spare-servers pid port preload-app read-timeout server-software socket socket-path spawn-interval ssl-cert
    ssl-key timeout user workers
);

# Rows of the tables with four columns
sub read_rows {
    open my $in, '<', $page or die "$page: $!";
    my @found;
    while ( my $line = readline $in ) {
        my @cell = $line =~ /\A\| (.*) \|\n\z/ ? split / \| /, $1 : ();
        next if @cell != 4 || $cell[3] !~ /\A`([^`]+)`\z/;
        my $check = $1;
        my @items = $cell[1] =~ /`([^`]+)`/g;
        push @found,
            map { { check => $check, item => $_, line => $., name => "$cell[0]: $_", to => $cell[1] } }
            @items;
    }
    return @found;
}

sub kind { return ( split / /, shift->{check}, 2 )[0] }

# --- one server for several rows: what they need of it must not differ ---

# As a shell would have it
sub words {
    my @words = shift =~ /('[^']*'|[^\s']+)/g;
    tr/'//d for @words;
    return @words;
}

# Names of the options in an item, as they are typed and as the server calls them
sub options {
    my $item = shift;
    my @names;
    for my $word ( words($item) ) {
        my ($typed) = $word =~ /\A--?([A-Za-z][^=]*)/ or next;
        $typed =~ tr/_/-/;
        my ($row) = Sirius::Config::Options->find($typed);
        ($row) = Sirius::Config::Options->find( substr $typed, 0, 1 ) if !$row;    # -IDIR
        push @names, { typed => $typed, own => $row ? $row->{name} : $typed };
    }
    return @names;
}

sub needs {
    my $case = shift;
    my ( $kind, $more ) = split / /, $case->{check}, 2;
    my %need = map { ( $_->{own} => $case->{item} ) } options( $case->{item} );
    $need{application} = $case->{item} if $need{app} || $need{e};
    $need{loader}      = $case->{item} if grep { $need{$_} } qw(Reload reload loader);
    $need{workers}     = $case->{item} if grep {/\A(?:min|max)-(?:servers|reqs)|\A[Rr]eload/} keys %need;
    $need{address}     = $case->{item} if grep { $need{$_} } qw(host listen port socket);
    $need{address}     = $case->{item} if $case->{item} =~ /\ASERVER_STARTER/;
    $need{connection}  = $case->{item} if $kind         =~ /\A(?:closes|keeps)\z/;
    $need{alone}       = $case->{name} if $kind eq 'recycles' || $need{'error-log'};
    $need{path}        = $kind eq 'serves' && defined $more ? $more : '/';
    return \%need;
}

sub fits {
    my ( $case, $group ) = @_;
    my ( $has,  $need )  = ( $group->{needs}, needs($case) );
    return if $has->{alone} || $need->{alone};
    return !grep { defined $has->{$_} && $has->{$_} ne $need->{$_} } keys %$need;
}

sub groups {
    my @groups;
    for my $case (@_) {
        my ($group) = grep { fits( $case, $_ ) } @groups;
        push @groups, $group = { needs => {}, cases => [] } if !$group;
        push @{ $group->{cases} }, $case;
        $group->{needs} = { %{ $group->{needs} }, %{ needs($case) } };
    }
    return @groups;
}

# --- starting one ---

# The options of a group as a command line, with the application behind them, and what it needs in the
# environment
sub command_line {
    my ( $group, $dir ) = @_;
    my ( @args, %env );
    my %seen;
    for my $item ( grep { !$seen{$_}++ } map { $_->{item} } @{ $group->{cases} } ) {
        my $user = getpwuid $>;
        my $own  = getgrgid $) + 0;
        $item = $item =~ s/\bDIR\b/$dir/gr =~ s/\bUSER\b/$user/gr =~ s/\bGROUP\b/$own/gr;
        if ( $item =~ /\A([A-Z_]{3,})=(.*)\z/ ) { $env{$1} = $2 }
        else                                    { push @args, words($item) }
    }
    my $need = $group->{needs};
    push @args, '--workers', $need->{alone} ? 1 : 2
        if !grep {/\A--?(?:max.)?workers|\A--(?:min|max)-servers/} @args;
    push @args, "$root/eg/hello.psgi" if !$need->{application};
    s{\Aeg/}{$root/eg/} for @args;
    return \@args, \%env;
}

# A socket as start_server leaves it to its child
sub starter_socket {
    my $env    = shift;
    my $socket = IO::Socket::INET->new( Listen => 5, LocalAddr => '127.0.0.1' ) or die $@;
    fcntl $socket, F_SETFD, fcntl( $socket, F_GETFD, 0 ) & ~FD_CLOEXEC or die $!;
    my ( $port, $fd ) = ( $socket->sockport, fileno $socket );
    $env->{SERVER_STARTER_PORT} =~ s/PORT=FD/$port=$fd/;
    return $socket;
}

sub start_group {
    my $group = shift;
    my $dir   = $group->{dir} = File::Temp->newdir;
    my ( $args, $env ) = command_line( $group, $dir );
    my $socket = $env->{SERVER_STARTER_PORT} && starter_socket($env);
    my $log    = grep { $_ eq '--error-log' } @$args;
    my $server = Sirius::Test::Server->start( args => $args, env => $env, $log ? ( ready => 0 ) : () );
    if ($log) {
        my $text = sub { Sirius::Test::Server::slurp("$dir/error_log") };
        until_true( 30, sub { $text->() =~ m{listening on (\S+)} } )
            or die "not ready\n", $text->(), $server->log;
        ( $group->{address} ) = $text->() =~ m{listening on http://(\S+)/};
    }
    return $group->{server} = $server;
}

sub ask {
    my ( $group, $client ) = @_;
    my $server = $group->{server};
    $client ||= $server->connect( $group->{address} ? ( to => $group->{address} ) : () );
    return $client->ask("GET $group->{needs}{path}");
}

# --- what is found ---

my %FOUND = (
    'serves' => sub { return ask(shift)->status eq '200' },
    'notice' => sub {
        my ( $group, $case ) = @_;
        my $log = $group->{server}->log;
        return !grep {
            my $name = $_;
            $log !~ /^sirius: --(?:\Q$name->{typed}\E|\Q$name->{own}\E)\S* has no effect: \w/m
        } options( $case->{item} );
    },
    'workers' => sub {
        my ( $group, undef, $number ) = @_;
        return until_true( 20, sub { $number == $group->{server}->workers } );
    },
    'keeps' => sub {
        my $group  = shift;
        my $client = $group->{server}->connect;
        return 3 == grep { ask( $group, $client )->status eq '200' } 1 .. 3;
    },
    'closes' => sub {
        my ( $group, undef, $idle ) = @_;
        my $client = $group->{server}->connect;
        my $answer = ask( $group, $client );
        return $answer->status eq '200' && ( $idle || $answer->closes ) && $client->end eq 'eof';
    },
    'recycles' => sub {
        my $group = shift;
        my ($worker) = $group->{server}->workers;
        return 20 == ( grep { ask($group)->status eq '200' } 1 .. 20 )
            && until_true( 20, sub { my @now = $group->{server}->workers; @now == 1 && $now[0] != $worker } );
    },
    'header' => sub {
        my ( $group, undef, $field ) = @_;
        my ( $name, $value ) = split /: /, $field, 2;
        return ask($group)->header($name) eq $value;
    },
    'writes' => sub {
        my ( $group, undef, $file ) = @_;
        $file =~ s/DIR/$group->{dir}/;
        return ask($group)->status eq '200' && until_true( 10, sub { -s $file } );
    },
    'log' => sub { return ask(shift)->status eq '200' },
);

# After the stop
my %FOUND_LATER
    = ( 'log' => sub { my ( $group, undef, $text ) = @_; return index( $group->{server}->log, $text ) >= 0 }
    );

sub try_group {
    my $group = shift;
    my @cases = @{ $group->{cases} };
    my $name  = join ' ', map { $_->{item} } @cases;
    if ( !eval { start_group($group) } ) {
        my $error = $@;
        return map { try_group($_) } map { groups($_) } @cases if @cases > 1;    # which one is it?
        return fail("$cases[0]{name}: starts (line $cases[0]{line})") || diag $error;
    }
    my %found;
    for my $case (@cases) {
        my ( $kind, $more ) = split / /, $case->{check}, 2;
        $found{$case} = eval { $FOUND{$kind}->( $group, $case, $more ) };
        $case->{error} = $@;
    }
    $group->{server}->stop or diag $name;
    for my $case (@cases) {
        my ( $kind, $more ) = split / /, $case->{check}, 2;
        $found{$case} &&= $FOUND_LATER{$kind}->( $group, $case, $more ) if $FOUND_LATER{$kind};
        ok $found{$case}, "$case->{name}: $case->{check}"
            or diag "$page line $case->{line}\n", $case->{error}, $group->{server}->log;
    }
    return;
}

# Runs the command until it ends
sub run_command {
    my ( $case, @more ) = @_;
    my $dir = File::Temp->newdir;
    my ( $args, $env ) = command_line( { cases => [$case], needs => needs($case) }, $dir );
    my $server = Sirius::Test::Server->spawn( args => [ @more, @$args ], env => $env );
    return ( $server->wait_exit || 'still running', $server, $dir );
}

# --- the page ---

my %signal = map { $_ => 1 } qw(one reloads reopens replaced stops);
my %by_end = map { $_ => 1 } qw(daemon exit refused);

cmp_ok scalar(@rows), '>', 90, 'the tables have been found';
my %typed = map { ( $_->{typed} => 1 ) } map { options( $_->{item} ) } grep { !$signal{ kind($_) } } @rows;
is_deeply [ grep { !$typed{$_} } @OPTIONS ], [], 'every option is there';
my @strange = grep { !$signal{ kind($_) } && !$by_end{ kind($_) } && !$FOUND{ kind($_) } } @rows;
is_deeply [ map {"line $_->{line}: $_->{check}"} @strange ], [], 'every check is known';

subtest 'Options with which it serves' => sub {
    try_group($_) for groups( grep { $FOUND{ kind($_) } } @rows );
};

subtest 'Options with which it does not' => sub {
    for my $case ( grep { kind($_) =~ /\A(?:exit|refused)\z/ } @rows ) {
        my ( $how, $server ) = run_command($case);
        my ($option) = options( $case->{item} );
        my $want = kind($case) eq 'exit' ? $case->{check} : 'exit 2';
        is $how, $want, "$case->{name}: $want" or diag $server->log;
        if ( kind($case) eq 'exit' ) { like $server->output, qr/sirius/i, 'prints it' }
        else {
            like $server->log, qr/\Asirius: [^\n]*--(?:$option->{typed}|$option->{own})\b[^\n]*\n\z/,
                'one line';
        }
    }
};

subtest 'The background' => sub {
    for my $case ( grep { kind($_) eq 'daemon' } @rows ) {
        my $address = File::Temp->newdir;
        my ( $how, $server, $dir ) = run_command( $case, '--listen', "unix:$address/sock" );
        is $how, 'exit 0', "$case->{name}: the command returns" or diag $server->log;
        my ($file) = $case->{item}                             =~ m{DIR/(\S+)};
        my ($pid)  = Sirius::Test::Server::slurp("$dir/$file") =~ /\A(\d+)\n\z/;
        ok $pid, 'the file has its PID' or next;
        is eval { $server->connect( to => "unix:$address/sock" )->ask('GET /')->status }, 200, 'it serves'
            or diag $@;
        kill TERM => $pid;
        my $gone = until_true( 30, sub { !kill 0, $pid } );
        ok $gone, 'it stops' or kill KILL => -$pid, $pid;
    }
};

# --- signals ---

my $number = 2;

# So many workers, none of those
sub are {
    my ( $server, $want, @not ) = @_;
    my %not = map { $_ => 1 } @not;
    return until_true(
        30,
        sub {
            my @now = $server->workers;
            @now == $want && !grep { $not{$_} } @now;
        }
    );
}

sub by_one {
    my ( $step, $server, $send ) = @_;
    $send->();
    return are( $server, $number += $step );
}

my %OUTCOME = (
    'reloads' => sub {
        my ( $server, $send, @old ) = @_;
        my ($generation) = $server->generations;
        $send->();
        return
               are( $server, $number, @old )
            && until_true( 20, sub { my @now = $server->generations; @now == 1 && $now[0] != $generation } )
            && !$server->exited
            && $server->ask('GET /')->status eq '200';
    },
    'one more' => sub { return by_one( 1,  @_ ) },
    'one less' => sub { return by_one( -1, @_ ) },
    'replaced' => sub {
        my ( $server, $send, @old ) = @_;
        $send->( $old[0] );
        return are( $server, $number, $old[0] );
    },
);

# Once for each signal and outcome, on all servers that know it
sub each_signal {
    my ( $cases, $code ) = @_;
    my %result;
    for my $case (@$cases) {
        my $key = "$case->{to} $case->{check}";
        $result{$key} = eval { $code->($case) } ? 1 : 0 if !defined $result{$key};
        ok $result{$key}, "$case->{name}: $case->{check}" or diag $@;
    }
    return;
}

subtest 'Signals while it serves' => sub {
    my $server = Sirius::Test::Server->start( app => "$root/eg/hello.psgi", args => [qw(--workers 2)] );
    each_signal(
        [ grep { $OUTCOME{ $_->{check} } } @rows ],
        sub {
            my $case = shift;
            are( $server, $number );
            my $send = sub { kill $case->{item} => @_ ? @_ : $server->pid };
            return $OUTCOME{ $case->{check} }->( $server, $send, $server->workers ) || diag $server->log;
        }
    );
    $server->stop;
};

subtest 'Signals that end it' => sub {
    each_signal(
        [ grep { kind($_) eq 'stops' } @rows ],
        sub {
            my $server
                = Sirius::Test::Server->start( app => "$root/eg/hello.psgi", args => [qw(--workers 2)] );
            return $server->stop( shift->{item} );
        }
    );
};

subtest 'A new log' => sub {
    each_signal(
        [ grep { kind($_) eq 'reopens' } @rows ],
        sub {
            my $case   = shift;
            my $group  = { cases => [ { item => '--error-log DIR/error_log' } ], needs => { path => '/' } };
            my $server = start_group($group);
            my $log    = "$group->{dir}/error_log";
            rename $log, "$log.old" or die $!;
            $server->signal( $case->{item} );
            my $good = until_true( 10, sub { -e $log } );
            return $server->stop && $good;
        }
    );
};

done_testing;
