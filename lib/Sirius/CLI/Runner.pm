package Sirius::CLI::Runner;

use strict;
use warnings;
use parent 'Plack::Runner';

use Cwd        ();
use File::Spec ();
use Sirius::Log::Access;
use Sirius::Admin::Port;
use Sirius::OS::Invocation ();    # before the application is loaded, which overwrites the command line
use Plack::Handler::Sirius ();    # so that the whole server is compiled before the application
use Sirius::Config::Address;
use Sirius::Config::EnvFile;
use Sirius::Config::Sources;
use Sirius::OS::Inherit;
use Sirius::Process::Succession;
use Sirius::OS::Memory;
use Sirius::Process::Launch;
use Sirius::Listen::Listener;
use Sirius::App::Loading;
use Sirius::Config::Options;
use Sirius::Config::Values;
use Sirius::Dev::Frames;
use Sirius::Dev::RequestLog;
use Sirius::Service::Starter;
use Sirius::Service::Activation;
use Sirius::OS::Title;
use Sirius::Worker;

use constant {
    PORT  => 5000,    # the usual one
    PORTS => 20,      # as many after it are tried with sirius dev
};

my @COMMANDS = qw(dev check ctl top profile);    # of bin/sirius

# Where the application is looked for; nothing if it is code. A name without a dot and a slash is that of a
# module
sub application {
    my $self = shift;
    return if $self->{eval};
    my $psgi = $self->{app} || $self->{argv}[0] || 'app.psgi';
    return $psgi if $psgi =~ /\A[\w:]+\z/;
    return File::Spec->rel2abs( $psgi, defined $self->{chdir} ? $self->{chdir} : () );
}

sub config_text {
    my $self = shift;
    require Sirius::Config::Shown;
    my %plack = map { $_ => $self->{$_} } qw(env server);
    return Sirius::Config::Shown->text( $self->{all}, $self->{from}, %plack );
}

# As run does it, without a server
sub load_application {
    my $self = shift;
    $self->setup;
    my $build = $self->locate_app( @{ $self->{argv} } );
    $ENV{PLACK_ENV} ||= $self->{env};    ## no critic (RequireLocalizedPunctuationVars)
    my $app = $build->();
    return $app if !defined $self->{path} || ref $app ne 'CODE';
    require Plack::App::URLMap;
    my $map = Plack::App::URLMap->new;
    $map->mount( $self->{path} => $app );
    return $map->to_app;
}

# What there is to say of options has been said by the supervisor of sirius dev
sub load_server {
    my ( $self, @args ) = @_;
    return $self->SUPER::load_server(@args)
        if !$self->{dev} || !Sirius::OS::Inherit->has( Sirius::Process::Launch->VARIABLE );
    local $SIG{__WARN__} = sub { };
    return $self->SUPER::load_server(@args);
}

# For an application that does not load: perl would exit with an arbitrary errno. With --chdir the application
# is found and loaded in that directory
sub locate_app {
    my ( $self, @args ) = @_;
    my $dir  = $self->{chdir};
    my $psgi = $self->{app} || $args[0] || ( $self->{eval} ? undef : 'app.psgi' );
    $self->{app} = File::Spec->rel2abs( $psgi, $dir ) if defined $dir && defined $psgi && !ref $psgi;
    my $load = _in( $dir, sub { $self->SUPER::locate_app(@args) } );
    return sub {
        my ( $app, @with ) = ( undef, @_ );
        $self->_renew_env                                   if $self->{dev};
        Sirius::Worker->belong( $self->{conf}, loads => 1 ) if $self->{conf};
        $self->_load_modules;
        return $app if eval {
            my $here = sub {
                return Sirius::OS::Title->load( sub {
                    _in( $dir, sub { my $memory = Sirius::OS::Memory->watch; $load->(@with) } );
                } );
            };
            $app = $self->_loads_first ? Sirius::App::Loading->watch( $self->{conf}, $here ) : $here->();
            1;
        };
        my $error = _not_there( $psgi, $@ );
        $! = 1;
        die $error;
    };
}

sub parse_options {
    my ( $self, @args ) = @_;
    my @rest;
    for my $i ( 0 .. $#args ) {
        next if $args[$i] ne '--';
        ( undef, @rest ) = splice @args, $i;
        last;
    }
    $self->{is_short} = !grep {/\A--?help\z/} @args;    # -h
    my ( $given, @words ) = _read(@args);
    _one_application( $given, @words );
    my ( $config, %all, @plack ) = ( undef, %$given );
    $all{app} = $words[0] // $rest[0] if !defined $all{app} && @words + @rest;
    if ( defined $given->{completion} ) {
        my $row   = Sirius::Config::Options->row('completion');
        my $shell = Sirius::Config::Options->check( $row, $given->{completion} );
        require Sirius::CLI::Completion;
        my @commands = @{ $self->{commands} || [] };
        require( s{::}{/}gr . '.pm' ) for @commands;
        print Sirius::CLI::Completion->script( $shell, @commands );
        exit 0;
    }
    if ( !$given->{help} && !$given->{version} ) {
        $config = $self->_sources($given);
        my $from = $self->{from} = $config->fill( \%all );
        $self->{chdir} = Sirius::Config::Options->check( Sirius::Config::Options->row('chdir'),
            $all{chdir}, $from->{chdir} )
            if defined $all{chdir};
        @plack = _for_plack( { map { $_ => $all{$_} } keys %$from }, $from );
        $self->_develop( $given, \%all );
        $self->_find_project( $given, \%all );
    }
    @plack = $self->_below_chdir( @plack, _for_plack( $given, {} ) );
    _in( $self->{chdir}, sub { $self->SUPER::parse_options( @plack, @words ) } );
    push @{ $self->{argv} }, @rest;
    $self->_refuse_directory( $all{app} );
    return $self->_pass_on( $given, \%all, $config ) if $config;
    return;
}

# Nothing of the application is loaded here, but in processes of their own
sub prepare_devel {
    my ( $self, $build ) = @_;
    my $app = sub { Sirius::Worker->check_app( $build->(@_) ) };    # Lint would name a line of its own
    my $whole
        = !$self->{dev}               ? $self->SUPER::prepare_devel($app)
        : $self->{default_middleware} ? $self->apply_middleware( $self->apply_middleware( $app, 'Lint' ),
        '+Sirius::Dev::Trap', $self->{dev}{session}->trap )
        : $app;
    Sirius::Dev::Frames->install if $self->{default_middleware};
    return $whole;
}

sub run {
    my ( $self, @args ) = @_;
    if ( $self->{dev} ) {
        require Sirius::Dev::Loader;
        $self->{_loader} = Sirius::Dev::Loader->new( $self->{dev}{session} );
    }
    return $self->SUPER::run(@args);
}

sub setup {
    my $self = shift;
    if ( $self->{help} ) {
        require Sirius::Config::Usage;
        print Sirius::Config::Usage->help( $self->{dev} ? 'dev' : undef, $self->{is_short} );
        exit 0;
    }
    if ( $self->{dev} ) {
        $self->{later}   = $self->{modules};
        $self->{modules} = [];
    }
    return $self->SUPER::setup if !$self->{conf} || !$self->_loads_first;
    return Sirius::App::Loading->watch( $self->{conf}, sub { $self->SUPER::setup }, more => 1 );    # for -M
}

sub version_cb {
    return sub {
        require Plack;
        require Sirius;
        printf "Sirius %s (Plack %s, perl %vd)\n", Sirius->VERSION, Plack->VERSION, $^V;
    };
}

# Of paths that are relative to the directory of --chdir
sub _absolute {
    my ( $self, @paths ) = @_;
    return map { File::Spec->rel2abs( $_, $self->{chdir} ) } @paths;
}

# Makes paths of modules, and of files watched for changes, relative to the directory of --chdir
sub _below_chdir {
    my ( $self, @args ) = @_;
    my $dir = $self->{chdir};
    return @args if !defined $dir;
    for my $i ( 0 .. $#args ) {
        $args[$i] = File::Spec->rel2abs( $args[$i], $dir ) if $i && $args[ $i - 1 ] eq '-I';
        $args[$i] =~ s{\A--Reload=\K(.*)}{join ',', map { File::Spec->rel2abs( $_, $dir ) } split /,/, $1}es;
    }
    return @args;
}

# They give way to all that is said anywhere. Requests wait while the application loads
sub _dev_defaults {
    my ( $self, $all ) = @_;
    my %default = ( queue_timeout => 300 );
    return %default if $self->{dev}{name} ne 'sirius dev';
    $default{slow_log} = 5;    # a loop without an end says nothing by itself
    $default{workers}  = 4 if !grep { defined $all->{$_} } qw(workers min_servers max_servers);
    $default{host}     = '127.0.0.1'
        if !grep( { defined $all->{$_} } qw(host listen socket) )
        && !Sirius::Service::Starter->descriptors
        && !Sirius::Service::Activation->offered;
    my $host = $all->{host} // $default{host};
    $default{port} = $self->_next_port($host)
        if defined $host && !grep { defined $all->{$_} } qw(listen port socket);
    @default{qw(access_log access_log_format request_log)} = ( 'STDERR', Sirius::Dev::RequestLog->FORMAT, 1 )
        if !grep { defined $all->{$_} } qw(access_log access_log_format);
    return %default;
}

# What sirius dev, or -r, does otherwise: {dev} is about it, and undef without
sub _develop {
    my ( $self, $given, $all ) = @_;
    my $dev = $self->{dev};
    my ( $server, $loader ) = ( $all->{server} // 'Sirius', $all->{loader} // '' );
    my $row = Sirius::Config::Options->row('reload');
    my $reloads
        = defined $all->{reload} && Sirius::Config::Options->check( $row, $all->{reload} )
        || defined $all->{Reload}
        || $loader eq 'Restarter';
    if ( !$dev && !$reloads ) {
        my ($only)
            = grep { defined $given->{$_} }
            qw(watch watch_exclude watch_scan preload_modules live_reload open editor);
        Sirius::Config::Options->fail(
            '--' . $only =~ tr/_/-/r . ': only valid with sirius dev, or with --reload' )
            if defined $only;
        return;
    }
    my $wrong
        = !$dev                                   ? undef
        : $server ne 'Sirius'                     ? "--server $server"
        : $loader ne '' && $loader ne 'Restarter' ? "--loader $loader"
        :                                           undef;
    Sirius::Config::Options->fail("$wrong: cannot be combined with sirius dev") if defined $wrong;
    return                                                                      if $server ne 'Sirius';
    $dev = $self->{dev} ||= { name => '--reload' };
    my @watch = ( @{ $all->{watch} || [] }, map {@$_} @{ $self->{env_files} || [] } );
    push @watch, split /,/, $all->{Reload} // '';
    @{$dev}{qw(exclude watch)} = map { [ $self->_absolute(@$_) ] } $all->{watch_exclude} || [], \@watch;
    my ($gone) = grep { !-e } @{ $dev->{watch} };
    Sirius::Config::Options->fail("--watch $gone: $!") if defined $gone;
    my %default = $self->_dev_defaults($all);

    for my $key ( grep { !defined $all->{$_} && defined $default{$_} } keys %default ) {
        $all->{$key} = $given->{$key} = $default{$key};
        $self->{from}{$key} = "default with $dev->{name}";
    }
    return;
}

# What links in error pages lead to
sub _editor {
    my ( $self, $conf ) = @_;
    require Sirius::Dev::Editor;
    my $editor = eval { Sirius::Dev::Editor->new( $conf->{editor} ) };
    chomp( my $error = $@ );
    Sirius::Config::Options->fail( "--editor: $error", $self->{from}{editor} ) if !$editor;
    return $editor;
}

# Where perl finds the application, by the name of a file or of a module
sub _file {
    my ( $self, $app ) = @_;
    return if !defined $app;
    return File::Spec->rel2abs( $app, $self->{chdir} ) if $app !~ /\A[\w:]+\z/;
    my $module  = $app =~ s{::}{/}gr . '.pm';
    my ($found) = grep {-f} map {"$_/$module"} @{ $self->{includes} }, grep { !ref } @INC;
    return defined $found ? File::Spec->rel2abs($found) : undef;
}

# sirius dev without the name of an application
sub _find_project {
    my ( $self, $given, $all ) = @_;
    return if !$self->{dev} || $self->{dev}{name} ne 'sirius dev' || grep {defined} @{$all}{qw(app e)};
    require Sirius::Dev::Project;
    my $folder = $self->{chdir} // '.';
    my ( $app, @more ) = Sirius::Dev::Project->find($folder);
    my $above = defined $app || @more ? undef : Sirius::Dev::Project->above($folder);
    Sirius::Config::Options->fail(
        @more
        ? "which application? @{[ join ', ', @more ]}: sirius dev $more[0], for example"
        : 'there is no application in this directory, such as '
            . Sirius::Dev::Project->names
            . ( defined $above ? "; the one above has $above: run sirius dev there" : ': name its file' )
    ) if !defined $app;
    $all->{app} = $given->{app} = $app;
    push @{ $given->{I} }, $self->_absolute(@more);
    return;
}

# The options that Plack::Runner handles itself, in a form that it cannot misread: it takes the word after an
# option it doesn't know as its value, whatever it is
sub _for_plack {
    my ( $given, $from ) = @_;
    my @args;
    for my $row ( grep { $_->{plackup} } Sirius::Config::Options->rows ) {
        my ( $name, $key ) = ( $row->{name}, Sirius::Config::Options->key( $row->{name} ) );
        my $value = $given->{$key};
        next if !defined $value;
        my @values
            = map { Sirius::Config::Options->check( $row, $_, $from->{$key} ) } ref $value ? @$value : $value;
        if ( $row->{plackup} ne 'flag' ) {
            push @args, length $name > 1 ? "--$name=$_" : ( "-$name", $_ ) for @values;
        } elsif ( $values[0] ) {
            push @args, "--$name";
        } elsif ( $name eq 'default-middleware' ) {
            push @args, "--no-$name";
        }
    }
    return @args;
}

# Calls the code in this directory, and returns to the current one, to which sockets and logs are relative
sub _in {
    my ( $dir, $code ) = @_;
    return $code->() if !defined $dir;
    my $here = Cwd::getcwd();
    chdir $dir or Sirius::Config::Options->fail("--chdir $dir: $!");
    my $value = $code->();
    die "chdir $here: $!\n" if defined $here && !chdir $here;
    return $value;
}

# Finds the row of a name, and its value if it is a bool: --keepalive and --enable-keepalive are 1,
# --disable-keepalive is 0
sub _known {
    my $name = shift;
    my ( $row, $sense ) = Sirius::Config::Options->find($name);
    Sirius::Config::Options->unknown($name) if !$row || $row->{hidden};
    return $row, defined $sense ? $sense : 1;
}

# Loads the modules of -M where the application is loaded; as Plack::Runner does it
sub _load_modules {
    my $self = shift;
    for my $entry ( splice @{ $self->{later} || [] } ) {
        my ( $module, @import ) = split /[=,]/, $entry;
        eval
            "package Plack::Runner; require $module; \$module->import(\@import); 1" ## no critic (StringyEval)
            or die $@;    ## no critic (RequireCarping)
    }
    return;
}

# Not at a reload, over which the supervisor watches, nor if the application is loaded in each worker or for
# each request
sub _loads_first {
    my $self = shift;
    return 0 if $self->{only_reads} || $self->{dev} || $self->{server} ne 'Sirius';
    return 0 if Sirius::OS::Inherit->has( Sirius::Process::Launch->VARIABLE );
    return $self->{loader} =~ /\A(?:Plack::Loader|Restarter)\z/;
}

# The next port if the usual one is in use, and nobody has asked for a certain one. The processes that load
# the application run the same command again, and have to have it there
sub _next_port {
    my ( $self, $host ) = @_;
    return if Sirius::OS::Inherit->has( Sirius::Process::Launch->VARIABLE );
    my $used = Sirius::Listen::Listener->used( $host, PORT ) // return;
    for my $port ( PORT + 1 .. PORT + PORTS ) {
        next if defined Sirius::Listen::Listener->used( $host, $port );
        warn 'port ' . PORT . " is already in use$used, so this is port $port\n";
        Sirius::OS::Invocation->insert( 'dev', "--port=$port" );
        return $port;
    }
    return;
}

# Plack says that there is no file of that name, or that it cannot be read, in a line of an eval. A name
# without a dot and a slash is that of a module
sub _not_there {
    my ( $psgi, $error ) = @_;
    return $error
        if !defined $psgi
        || ref $psgi
        || ref $error
        || $error !~ /\AError while loading (\S.*): ((?:No such|Permission|Is a) [\w ]+) at \(eval /;
    my ( $file, $why ) = ( $1, $2 );
    return "sirius: $file: $why\n" if $why !~ /\ANo such/;
    return "sirius: $file does not exist: name the file of the application, such as app.psgi\n"
        if $psgi !~ /\A[\w:]+\z/ || !-e $psgi && $psgi =~ /::/;
    return
        "sirius: $psgi is taken for the name of a module, of which there is none: for the file, write ./$psgi\n"
        if -e $psgi;
    my $closest = Sirius::Config::Options->nearest( $psgi, @COMMANDS );
    return
          "sirius: $psgi is neither a command (@{[ join ', ', @COMMANDS ]}) nor a module"
        . ( defined $closest ? " (did you mean sirius $closest?)" : '' )
        . ": to serve an application, name its file, such as app.psgi\n";
}

# The variables of --env-file. In place, as the options have it too
sub _note_env {
    my ( $self, @names ) = @_;
    %{ $self->{env_values} } = map { $_ => $ENV{$_} } @names;
    return;
}

# After "--" anything may follow: perl code of -e or a module finds it in @ARGV
sub _one_application {
    my ( $given, @words ) = @_;
    my $app = defined $given->{app} ? "--app $given->{app}" : defined $given->{e} ? '-e' : shift @words;
    return Sirius::Config::Options->fail(
        "unexpected argument '$words[0]': the application is already given by $app")
        if @words;
    return;
}

# With sirius dev, or -r
sub _open_session {
    my ( $self, $given, $app ) = @_;
    my ( $conf, $dev ) = @{$self}{qw(conf dev)};
    Sirius::Config::Options->fail("--daemonize: cannot be combined with $dev->{name}") if $conf->{daemonize};
    Sirius::Config::Options->fail("--workers 0: cannot be combined with $dev->{name}; use 1")
        if !$conf->{workers};
    require Sirius::Dev::Session;
    if ( !Sirius::OS::Inherit->has( Sirius::Process::Launch->VARIABLE ) ) {
        -d or warn "-I $_: $!\n" for @{ $self->{includes} };
    }
    my @sources = grep { defined && length } $given->{config} // $ENV{SIRIUS_CONFIG},
        map {@$_} @{ $self->{env_files} || [] };
    $dev->{session} = Sirius::Dev::Session->new(
        editor  => $self->_editor($conf),
        app     => scalar $self->_file($app),
        command => $dev->{name} eq 'sirius dev',
        conf    => $conf,
        exclude => $dev->{exclude},
        include => [ $self->_absolute( @{ $self->{includes} } ) ],
        sources => [ map { File::Spec->rel2abs($_) } @sources ],
        watch   => $dev->{watch},
    );
    push @{ $self->{options} }, develop => $dev->{session};
    return;
}

# The settings that Plack::Runner does not handle itself
sub _own {
    my $settings = shift;
    my %plack    = map { $_->{name} => 1 } grep { $_->{plackup} } Sirius::Config::Options->rows;
    return grep { !$plack{tr/_/-/r} } sort keys %$settings;
}

# Passes the settings of command line, environment and file to the handler
sub _pass_on {
    my ( $self, $given, $all, $config ) = @_;
    $self->{all} = {%$all};
    return $self->_pass_on_to_other( $given, $all ) if $self->{server} ne 'Sirius';
    $self->{options}
        = [ sources => $config, env_values => $self->{env_values}, map { $_ => $given->{$_} } _own($given) ];

    # Before the application is loaded, which may take a while
    my $conf = $self->{conf} = Sirius::Config::Values->parse( { @{ $self->{options} } } );
    if ( $self->{only_reads} ) {
        delete $self->{dev};
        return;
    }
    $self->_print_config if $given->{show_config};
    my $served = $self->{eval} ? '-e' : $self->{app} || $self->{argv}[0] || 'app.psgi';
    Sirius::OS::Title->serves($served)         if !ref $served;
    Sirius::OS::Title->set( $conf, 'loading' ) if $self->{loader} ne 'Restarter';
    $_->check($conf) for qw(Sirius::Log::Access Sirius::Admin::Port);
    _shield($conf);

    # at a reload the addresses are bound already
    _probe($conf) if !Sirius::OS::Inherit->has( Sirius::Process::Launch->VARIABLE );
    $self->_open_session( $given, $self->{eval} || ref $served ? undef : $served ) if $self->{dev};
    return;
}

# The server is not Sirius
sub _pass_on_to_other {
    my ( $self, $given, $all ) = @_;
    $self->_print_config if $given->{show_config};
    my ( $host, $port, $socket, $listen ) = delete @{$all}{qw(host port socket listen)};
    delete @{$all}{qw(config env_file show_config)};
    $self->{access_log} = delete $all->{access_log};    # for Plack's middleware
    my @address = $self->mangle_host_port_socket( $host, $port, $socket, @{ $listen || [] } );
    $self->{options} = [ @address, map { $_ => $all->{$_} } _own($all) ];
    return;
}

sub _print_config {
    my $self = shift;
    warn "$_\n" for @{ $self->{conf} ? $self->{conf}{notices} : [] };
    print $self->config_text;
    exit 0;
}

# Reports an address in use at once, not when the application has been loaded
sub _probe {
    my $conf  = shift;
    my @specs = Sirius::Process::Succession->new($conf)->keeps('admin') ? () : @{ $conf->{admin} || [] };
    push @specs, @{ $conf->{listen} }
        if !$conf->{listen_sock}
        && !Sirius::Service::Starter->descriptors
        && !Sirius::Service::Activation->offered;
    return Sirius::Listen::Listener->probe( $conf->{backlog}, @specs );
}

# Splits the words into options, by their full names, and others
sub _read {
    my @args = @_;
    my ( %given, @words );
    while ( defined( my $arg = shift @args ) ) {
        my ( $name, $value ) = $arg =~ /\A--?([^-=][^=]*)(?:=(.*))?\z/s;
        ( $name, $value ) = ( $1, $2 )
            if $arg =~ /\A-([IMe])(.+)\z/s && !Sirius::Config::Options->find($name);
        if ( !defined $name ) {
            push @words, $arg;
            next;
        }
        my ( $row, $bool ) = _known($name);
        if ( $row->{type} eq 'bool' ) {
            Sirius::Config::Options->fail("--$row->{name} takes no value")
                if defined $value && $row->{plackup};
            $value = defined $value ? Sirius::Config::Options->check( { %$row, name => $name }, $value ) : 1;
            $value = $value         ? $bool : 1 - $bool;
        }
        $value = $row->{bare} // _value( $row, \@args ) if !defined $value;
        my $key = Sirius::Config::Options->key( $row->{name} );
        if ( $row->{many} ) { push @{ $given{$key} }, $value }
        else                { $given{$key} = $value }
    }
    return \%given, @words;
}

# A folder in place of the file in it. A module may have the same name: MyShop/ beside MyShop.pm
sub _refuse_directory {
    my ( $self, $app ) = @_;
    return if !defined $app || defined $self->{eval} || !-d File::Spec->rel2abs( $app, $self->{chdir} // () );
    return if $app =~ /\A[\w:]+\z/ && defined $self->_file($app);
    my $command = $self->{dev} && $self->{dev}{name} eq 'sirius dev' ? 'sirius dev' : 'sirius';
    return Sirius::Config::Options->fail(
        "$app is a directory: change into it and run $command there, or name its .psgi file");
}

# sirius dev forks from a process that has read the files of --env-file at its start
sub _renew_env {
    my $self = shift;
    delete @ENV{ keys %{ $self->{env_values} } };
    my %place = map { Sirius::Config::EnvFile->read(@$_)->set( \%ENV ) } @{ $self->{env_files} || [] };
    $self->_note_env( keys %place );
    return;
}

# Sockets that another process has opened for us are open before the application is loaded. Programs that it
# starts must not inherit them
sub _shield {
    my $conf    = shift;
    my @numbers = map { Sirius::Config::Address->bare($_) =~ /\Afd:(\d+)\z/ } @{ $conf->{listen} },
        @{ $conf->{admin} || [] };
    push @numbers, map { $_->{fd} } Sirius::Service::Starter->descriptors,
        Sirius::Service::Activation->offered;
    return Sirius::OS::Inherit->close_on_exec(@numbers);
}

# The environment and the file of --config. The variables in a file of --env-file are a part of the
# environment, and it may be either of these that names the file
sub _sources {
    my ( $self, $given ) = @_;
    my ( $config, @new, %read, %place );
    my $row = Sirius::Config::Options->row('env-file');
    do {
        $config = Sirius::Config::Sources->read( command => 1, file => $given->{config}, places => \%place );
        my %all   = %$given;
        my $from  = $config->fill( \%all );
        my $paths = Sirius::Config::Options->check( $row, $all{env_file} || [], $from->{env_file} );
        @new = grep { !$read{$_}++ } @$paths;
        push @{ $self->{env_files} }, [@new] if @new;
        %place = ( %place, Sirius::Config::EnvFile->read(@new)->set( \%ENV ) );
        $self->{env} = $ENV{PLACK_ENV} if $place{PLACK_ENV};
    } while (@new);
    $self->_note_env( keys %place );
    return $config;
}

sub _value {
    my ( $row, $args ) = @_;
    Sirius::Config::Options->fail("--$row->{name} requires a value")
        if !@$args || length $row->{name} > 1 && $args->[0] =~ /\A--[[:alpha:]]/;
    return shift @$args;
}

1;

=encoding utf8

=head1 NAME

Sirius::CLI::Runner - the command line of sirius

=head1 SYNOPSIS

  use Sirius::CLI::Runner;

  my $runner = Sirius::CLI::Runner->new(server => 'Sirius', env => 'deployment');
  $runner->parse_options(@ARGV);
  $runner->run;

=head1 DESCRIPTION

L<Plack::Runner> without the traps of its command line. In L<Plack::Runner> an unknown option takes the next argument
as its value, so that C<--preload-app app.psgi> loses the application. Here the table in L<Sirius::Config::Options> has
every option, flags take no value, and a wrong or unknown option ends the program before the application is loaded.
Port 0 and IPv6 addresses work. Nothing after C<--> is an option. With C<--chdir> the application is loaded in that
directory; the paths of all other options are relative to the directory in which the command was run.

=head1 METHODS

The methods of L<Plack::Runner>, except the following:

=head2 application

  my $file = $runner->application;

The file of the application, after L</parse_options>; the name of a module as it is, nothing for code of C<-e>.

=head2 config_text

  print $runner->config_text;

What C<--show-config> prints (L<Sirius::Config::Shown>), after L</parse_options>.

=head2 load_application

  my $app = $runner->load_application;

Loads modules and application as C<run> does, and returns the application.

=head2 parse_options

  $runner->parse_options(@ARGV);

Reads the command line, then the environment and the file of C<--config> (L<Sirius::Config::Sources>), and checks all of it.
Plack::Runner gets what it can do itself. The handler gets the rest, addresses as they are: here port 0 would become
5000 and C<[::1]:80> the host C<[>. Files of C<--env-file> are read first (L<Sirius::Config::EnvFile>): a reload runs the
command with the environment that it had at first, and reads them again.

C<commands> among the arguments of C<new> are the classes of the commands that C<--completion> knows. With C<only_reads> that is all. Otherwise this process gets its title, and the addresses are tried.

=head2 setup

Like L<Plack::Runner>, with C<--help> of Sirius.

=head2 version_cb

Prints the versions of Sirius, Plack and perl.

=head1 SEE ALSO

L<sirius>, L<Sirius::Config::Options>, L<Sirius::Config::Sources>, L<Plack::Runner>.

=cut
