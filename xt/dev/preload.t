# sirius dev: what is not the application's is loaded once, and generations are forked from there
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../t/lib";
use File::Temp;
use Test::More;
use Sirius::Test;
use Sirius::Test::Dev;

# A folder of PERL5LIB, in which perl looks for modules of others
my $library = File::Temp->newdir( 'sirius-lib-XXXXXX', TMPDIR => 1 );

sub library { return Sirius::Test::Dev::write_file( "$library/$_[0]", $_[1] ) }

sub dev {
    my ( $app, @args ) = @_;
    my %option = ref $args[0] ? %{ shift @args } : ();
    return Sirius::Test::Dev->start( $app, { env => { PERL5LIB => "$library" }, %option }, @args );
}

# Until modules are in the process that generations come from: then a new one has them from there
sub preloaded {
    my ( $dev, $code ) = @_;
    my $n = 0;
    return until_true(
        20,
        sub {
            $dev->save( 'again.pm', '# ' . ++$n . "\n" );
            my $reloads = $dev->reloads;
            until_true( 5, sub { $dev->reloads > $reloads } );
            return $code->();
        }
    );
}

library( 'Others/Slow.pm',
    "package Others::Slow;\nour \$PID = \$\$;\nour \$TIMES = 0;\nsub import { \$TIMES++ }\n1;\n" );

my $APP = <<'APP';
use Others::Slow;
my $pid = $$;
sub { [ 200, [ 'Content-Type', 'text/plain' ], [ ( $Others::Slow::PID == $pid ? 'own' : 'shared' ) . " $Others::Slow::TIMES" ] ] }
APP

subtest 'once for all generations' => sub {
    linux_only('generations are forked from one process');
    my $dev = dev($APP);
    is $dev->ask('GET /')->body, 'own 1', 'the first one loads it itself';
    ok preloaded( $dev, sub { $dev->ask('GET /')->body eq 'shared 1' } ),
        'those that follow have it, and import is called'
        or diag $dev->log;
    my ($base) = $dev->base;
    $dev->save( 'app.psgi', "# changed\n$APP" );
    ok until_true( 20, sub { $dev->log =~ /app\.psgi changed/ && $dev->ask('GET /')->body eq 'shared 1' } ),
        'a change of the application';
    is + ( $dev->base )[0], $base, 'the process stays';
    library( 'Others/Slow.pm',
        "package Others::Slow;\nour \$PID = \$\$;\nour \$TIMES = 100;\nsub import { \$TIMES++ }\n1;\n" );
    ok $dev->answers(qr/ 101\z/), 'a new version of it is served';
    isnt + ( $dev->base )[0], $base, 'by another process';
    ok preloaded( $dev, sub { $dev->ask('GET /')->body eq 'shared 101' } ), 'which has it again';
    $dev->write( 'Others/Slow.pm', "package Others::Slow;\nour \$PID = \$\$;\nour \$TIMES = 7;\n1;\n" );
    $dev->save( 'app.psgi', "use lib '@{[ $dev->folder ]}';\n$APP" );
    ok $dev->answers('own 7'), 'a file of its name in the application is that of the application';
    $dev->stop;
};

subtest '--disable-preload-modules' => sub {
    library( 'Others/Slow.pm',
        "package Others::Slow;\nour \$PID = \$\$;\nour \$TIMES = 0;\nsub import { \$TIMES++ }\n1;\n" );
    my $dev = dev( $APP, '--disable-preload-modules' );
    for ( 1 .. 3 ) {
        my $reloads = $dev->reloads;
        $dev->save( 'again.pm', "# $_\n" );
        until_true( 20, sub { $dev->reloads > $reloads } );
        is $dev->ask('GET /')->body, 'own 1', 'each generation loads it itself';
    }
    $dev->stop;
};

subtest 'modules that want to be read again, or to be left alone' => sub {
    linux_only('generations are forked from one process');
    library( 'Others/Data.pm',
        "package Others::Data;\nsub text { local \$/; <DATA> }\n1;\n__DATA__\n" . 'x' x 20_000 . "end\n" );
    library( 'Others/Die.pm',
        "package Others::Die;\ndie 'needs the application' if !\$Others::First;\n1;\n" );
    library( 'Others/Socket.pm',
        "package Others::Socket;\nuse IO::Socket::INET;\nour \$S = IO::Socket::INET->new( Listen => 1, LocalAddr => '127.0.0.1:0' );\n1;\n"
    );
    library( 'Others/Exit.pm',   "package Others::Exit;\nexit 0 if !\$Others::First;\n1;\n" );
    library( 'Others/Inside.pm', "package Others::Inside;\nuse lib \$ENV{INSIDE};\nrequire Mine;\n1;\n" );
    library( 'Others/End.pm',    "package Others::End;\nEND { print STDERR \"END of \$\$\\n\" }\n1;\n" );
    my $inside = File::Temp->newdir;
    spew( "$inside/Mine.pm", "package Mine;\nsub is { 1 }\n1;\n" );
    my $dev = dev(
        <<'APP', { env => { PERL5LIB => "$library", INSIDE => "$inside" } }, '--watch', "$inside", '--workers', 1 );
BEGIN { $Others::First = 1; srand 1 }
use FindBin;
use Others::Data; use Others::Die; use Others::Socket; use Others::Exit; use Others::Inside; use Others::End; use Others::Slow;
my $pid = $$;
my $text = Others::Data::text();
my $rand = rand;
sub { [ 200, [ 'Content-Type', 'text/plain' ], [ join ' ', length $text, $text =~ /(\w{3})\n\z/, $FindBin::Bin, Mine::is(), $Others::Slow::PID == $pid ? 'own' : 'shared', $rand ] ] }
APP
    my $folder = $dev->folder;
    my $want   = qr{\A20004 end \Q$folder\E 1};
    like $dev->ask('GET /')->body, $want, 'the first';
    ok preloaded( $dev, sub { $dev->ask('GET /')->body =~ /shared/ } ), 'what can be loaded once is'
        or diag $dev->log;

    for ( 1 .. 3 ) {
        my $reloads = $dev->reloads;
        $dev->save( 'again.pm', "# again $_\n" );
        until_true( 20, sub { $dev->reloads > $reloads } );
        like $dev->ask('GET /')->body, qr/$want shared/, 'the same in a later generation';
    }
    like $dev->log, qr{info: sirius dev: Others/$_ is not loaded in advance}, "$_ is left to the application"
        for qw(Die.pm Socket.pm Exit.pm Inside.pm);
    $dev->stop;
};

done_testing;
