use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib", $FindBin::Bin;
use Test::More;
use File::Temp;
use Page;
use Sandbox;
use Sirius::Test;

# Every block of code in README.md, CONTRIBUTING.md and docs/*.md has a mark in the line above it, and is
# tried as that says:
#
#   run        a shell script, which has to succeed; nothing runs that it has not started
#   serve      one command, a server: it answers a request, and ends by TERM with status 0
#   running    as run, while a server runs: see the function running
#   app        an application, in Perl: it answers a request
#   perl       Perl that has to compile
#   config     a file of --config: a server with it answers a request
#   nginx, haproxy, caddy, apache, varnish, systemd, logrotate, prometheus, yaml, apparmor, selinux
#              a file for that program, which has to like it; skipped where the program is not installed. xt/proxy/hostile.t
#              runs those of proxies
#   skip: WHY  nothing is tried
#
# Blocks without a language are pictures or lists, and need no mark.

my $sandbox = Sandbox->new;
my $running;

# The server that operators of the documentation have
sub running {
    return $running if $running && !answers($running);
    stop_running();    # a block may have ended it
    my $command
        = $sandbox->text(
              'sirius --listen 127.0.0.1:5000 --workers 2 --control /run/shop/control --pid /run/shop/pid'
            . ' --admin 127.0.0.1:9090 --access-log /var/log/shop/access.log --error-log /var/log/shop/error.log app.psgi'
        );
    return $running = $sandbox->serve($command);
}

# The blocks after it need its ports
sub stop_running {
    $sandbox->stop($running) if $running;
    undef $running;
    unlink glob $sandbox->dir . '/var/log/shop/*';
    return;
}

sub answers  { return $sandbox->answers(shift) }
sub serves   { return $sandbox->serves(shift) }
sub succeeds { return $sandbox->succeeds(shift) }

# The rest of a configuration, where the documentation has only what matters
my $units = File::Temp->newdir;
my %check = (
    run => sub {
        stop_running();
        my @wrong = succeeds(shift);
        return ( @wrong, map {"it has left: $_\n"} $sandbox->clear );
    },
    running => sub { my @wrong = answers( running() ); return @wrong ? @wrong : succeeds(shift) },
    serve   => sub { stop_running();                   return serves(shift) },
    config  => sub {
        my $text = shift;
        stop_running();
        my ($name) = $text =~ m{\A# (\S+)};
        $name =~ s{\A\Q@{[ $sandbox->dir ]}\E/?}{};
        $sandbox->file( $name, $text );
        return serves( 'sirius --config ' . $sandbox->dir . "/$name" );
    },
    app => sub {
        stop_running();
        $sandbox->file( 'srv/shop/tried.psgi', shift );
        return serves('sirius tried.psgi');
    },
    nginx => sub {
        my $text = shift;
        my $dir  = File::Temp->newdir;
        my $file = $sandbox->file( 'nginx.conf',
                  "pid $dir/pid; error_log $dir/log; events {} http { access_log off;\n"
                . join( '', map {"${_}_temp_path $dir/$_;\n"} qw(client_body proxy fastcgi uwsgi scgi) )
                . "$text}\n" );
        return succeeds("nginx -t -q -p $dir -c $file");
    },
    haproxy => sub {
        my $text = shift;
        $text .= "listen nowhere\n    bind 127.0.0.1:1\n" if $text !~ /\bbind /;
        return succeeds( 'haproxy -c -q -f ' . $sandbox->file( 'haproxy.cfg', $text ) );
    },
    caddy => sub {
        my $dir = $sandbox->dir;
        return succeeds( "HOME=$dir XDG_DATA_HOME=$dir caddy validate --adapter caddyfile --config "
                . $sandbox->file( 'Caddyfile', shift ) );
    },
    apache2 => sub {
        my $text    = shift;
        my $modules = '/usr/lib/apache2/modules';
        my $main    = join '',
            map {"LoadModule ${_}_module $modules/mod_$_.so\n"}
            qw(mpm_event authz_core headers proxy proxy_http);
        my $dir = $sandbox->dir;
        return succeeds(
            'apache2 -t -f '
                . $sandbox->file(
                'apache.conf',
                "ServerRoot $dir\nServerName localhost\nDefaultRuntimeDir $dir\nErrorLog $dir/apache.log\n$main$text"
                )
        );
    },
    varnishd => sub {
        return succeeds(
            'varnishd -C -n ' . $sandbox->dir . '/varnish -f ' . $sandbox->file( 'site.vcl', shift ) );
    },
    perl => sub {
        return succeeds(
            "$^X -I$FindBin::Bin/../../t/lib -c " . $sandbox->file( 'srv/shop/example.t', shift ) );
    },
    'systemd-analyze' => sub {
        my $text = shift;
        my ($name) = $text =~ /\A# (\S+)/;
        spew( "$units/$name", $text );
        my ( undef, $output )
            = $sandbox->run("SYSTEMD_UNIT_PATH=$units: systemd-analyze verify $units/$name || true");
        return grep {m{\Q$units\E}} split /^/, $output;
    },
    logrotate => sub {
        my $file = $sandbox->file( 'logrotate.conf', shift );
        chmod 0644, $file;
        return succeeds("logrotate -d -s $units/state $file");
    },
    promtool => sub {
        my $file = $sandbox->file( 'prometheus.yml', shift );
        my $kind = Sirius::Test::Server::slurp($file) =~ /^groups:/m ? 'rules' : 'config';
        return succeeds("promtool check $kind $file");
    },
    apparmor_parser => sub {
        return succeeds( 'apparmor_parser -Q -K ' . $sandbox->file( 'profile', shift ) );
    },
    checkmodule => sub {
        my $file = $sandbox->file( 'shop.te', shift );
        return succeeds( 'checkmodule -M -m -o ' . $sandbox->dir . "/shop.mod $file" );
    },
    python3 => sub {
        my $file = $sandbox->file( 'some.yaml', shift );
        return succeeds("python3 -c 'import sys, yaml; assert yaml.safe_load(open(sys.argv[1]))' $file");
    },
);
my %program = (
    ( map { $_ => $_ } qw(caddy haproxy logrotate nginx) ),
    apache     => 'apache2',
    apparmor   => 'apparmor_parser',
    selinux    => 'checkmodule',
    varnish    => 'varnishd',
    prometheus => 'promtool',
    systemd    => 'systemd-analyze',
    yaml       => 'python3',
);

# What this machine lacks
sub missing {
    my $block = shift;
    my ( $mark, $text ) = @{$block}{qw(mark text)};
    my @programs = ( $program{$mark} || (), $text =~ /\b(curl|jq|rotatelogs|start_server) /g );
    my @missing  = grep { !program($_) } @programs;
    push @missing, "python3's yaml"
        if $mark eq 'yaml' && !@missing && system q(python3 -c 'import yaml' 2>/dev/null);
    push @missing, '/dev/log' if $text =~ /\bsyslog:/ && !-S '/dev/log';
    push @missing, grep { !installed($_) } $text =~ /^use ([A-Z][\w:]*)/mg if $mark eq 'app';
    push @missing, 'DBD::SQLite' if $text =~ /\bdbi:SQLite:/ && !installed('DBD::SQLite');
    return @missing;
}

sub installed {
    my $name = shift =~ s{::}{/}gr;
    return grep { -e "$_/$name.pm" } @INC;
}

sub try {
    my $block = shift;
    my ( $mark, $name ) = ( $block->{mark}, "$block->{page} line $block->{line}" );
    return fail("$name has a mark") if !defined $mark;
SKIP: {
        skip "$name: $1", 1 if $mark =~ /\Askip: (.+)/;
        my $program = $program{$mark};
        my @missing = missing($block);
        skip "$name: not installed: @missing", 1 if @missing;
        my $check = $check{ $program || $mark };
        return fail("$name: there is no mark '$mark'") if !$check;
        my @wrong = $check->( $sandbox->text( $block->{text} ) );
        ok !@wrong, "$name: $mark" or diag @wrong;
    }
    return;
}

subtest 'what is left is found, and nothing of others' => sub {
    my $job = $sandbox->spawn( 'sleep', 60 );
    until_true( 5, sub { ( readlink "/proc/$job->{pid}/exe" || '' ) =~ /sleep|coreutils/ } );
    my %left = $sandbox->left;
    is_deeply [ keys %left ], [ $job->{pid} ], 'a process in its folder';
    $sandbox->stop($job);
    for my $path ( undef, '', '/', '/tmp' ) {
        my $lost = bless { path => $path, owner => 0 }, 'Sandbox';
        is_deeply [ $lost->left ], [], 'without a folder: ' . ( $path // 'undef' );
    }
};

subtest 'what is wrong is found' => sub {
    my %wrong = (
        apache2           => "Nonsense on\n",
        apparmor_parser   => "profile nonsense {\n",
        checkmodule       => "module shop 1.0;\nnonsense\n",
        varnishd          => "vcl 4.1; nonsense\n",
        caddy             => "nonsense {\n",
        config            => "# x.conf\nnonsense = 1\n",
        haproxy           => "frontend a\n    nonsense\n",
        nginx             => "nonsense on;\n",
        perl              => "1 +;\n",
        promtool          => "nonsense: 1\n",
        python3           => "a: [ b\n",
        run               => "false\n",
        'systemd-analyze' => "# wrong.service\n[Service]\nNonsense=1\nExecStart=/bin/true\n",
    );
    for my $name ( sort keys %wrong ) {
        my ($program) = grep { $_ eq $name } values %program;
    SKIP: {
            skip "$name is not installed", 1 if $program && !program($program);
            my @found = $check{$name}->( $wrong{$name} );
            ok scalar @found, $name;
        }
    }
    my @blocks = Page->parse( 'x', "<!-- test: run -->\n```sh\nx\n```\n\n```sh\ny\n```\n" )->blocks;
    is_deeply [ map { $_->{mark} } @blocks ], [ 'run', undef ], 'a mark belongs to the block below it';
};

my @only = @ARGV;
for my $page ( Page->all ) {
    next if @only && !grep { $page->file =~ /\Q$_\E/ } @only;
    my @blocks = grep { length $_->{language} || defined $_->{mark} } $page->blocks;
    subtest $page->file => sub {
        is_deeply [ $page->indented ], [], 'blocks of code are fenced';
        my $first = sub { return ( shift->{mark} || '' ) eq 'running' ? 0 : 1 };  # one server for all of them
        try($_) for sort { $first->($a) <=> $first->($b) || $a->{line} <=> $b->{line} } @blocks;
    };
}
stop_running();
is_deeply [ $sandbox->clear ], [], 'nothing is left behind';
done_testing;
