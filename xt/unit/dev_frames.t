use strict;
use warnings;
use lib 't/lib';
use Test::More;
use Plack::Middleware::StackTrace;
use Sirius::Dev::Frames;

# Frames of the application, and none of those in which the server has called it

package Sirius::Pretended {
    sub call { return $_[1]->( $_[2] ) }
}

package My::Model {
    sub find { die "oops\n" }
}

sub trace {
    my $app = Plack::Middleware::StackTrace->wrap( sub { My::Model->find(@_) }, no_print_errors => 1 );
    my $env = { HTTP_ACCEPT => 'text/plain' };
    Sirius::Pretended->call( $app, $env );
    return $env->{'plack.stacktrace.text'};
}

like trace(), qr/Sirius::Pretended/, 'before';
ok( Sirius::Dev::Frames->install, 'installed' );
for ( 1, 2 ) {
    my $text = trace();
    like $text,   qr/\Aoops/,              'the message';
    like $text,   qr/My::Model::find/,     'frames of the application';
    unlike $text, qr/Sirius::Pretended::/, 'none of the server';
    ok !Sirius::Dev::Frames->install, 'once is enough';
}

done_testing;
