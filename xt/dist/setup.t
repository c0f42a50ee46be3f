use strict;
use warnings;
use File::Temp ();
use Test::More;

# dev/setup, with programs that only say how they are called: packages are installed, and no service of theirs
# is started

my $dir = File::Temp->newdir;
my ( $bin, $log ) = ( "$dir/bin", "$dir/log" );
mkdir $bin or die "$bin: $!";

sub script {
    my ( $name, $text ) = @_;
    open my $out, '>', "$bin/$name" or die "$name: $!";
    print {$out} "#!/bin/sh\n$text\n";
    close $out or die "$name: $!";
    return chmod 0755, "$bin/$name";
}

sub slurp {
    open my $in, '<', shift or return '';
    local $/ = undef;
    return scalar readline $in;
}

script( 'apt-get',
    qq{test -x $dir/policy && $dir/policy || echo "policy \$?" >>$log\necho "apt-get \$*" >>$log\nexit 0} );
script( 'systemctl', qq{echo "systemctl \$*" >>$log} );
script( 'sudo',      'shift; exec "$@"' );

# The functions of the script, called with these packages
sub installed {
    my @packages = @_;
    unlink $log;
    my $text        = slurp('dev/setup');
    my ($functions) = $text =~ /^(as_root\(\) \{.*?)^install_modules/ms or die 'dev/setup has no functions';
    $functions =~ s{^policy=.*}{policy=$dir/policy}m;
    local $ENV{PATH} = "$bin:/usr/bin:/bin";    # where no server is found
    open my $out, '>', "$dir/script" or die $!;
    print {$out}
        "set -euo pipefail\n${functions}command() { case \$2 in caddy|haproxy|nginx|pushpin|varnishd) return 1 ;; *) builtin command \"\$@\" ;; esac; }\n",
        "install_packages @packages\n";
    close $out or die $!;
    is system( 'bash', "$dir/script" ), 0, "@packages: success";
    return slurp($log);
}

my $log_of = installed(qw(curl nginx-light haproxy varnish));
like $log_of, qr/^policy 101$/m, 'while packages are installed, no service may be started';
like $log_of, qr/^apt-get .*install .*curl nginx-light haproxy varnish$/m, 'they are installed';
like $log_of, qr/^systemctl .*disable \Q$_\E$/m, "$_ does not start at the next boot"
    for qw(haproxy nginx varnish);
unlike $log_of, qr/caddy/, 'nothing else is touched';
ok !-e "$dir/policy", 'then services may be started again';

$log_of = installed('pushpin');
like $log_of, qr/^systemctl .*disable \Q$_\E$/m, "$_ does not start at the next boot" for qw(pushpin zurl);

$log_of = installed(qw(curl wrk nginx-doc));
unlike $log_of, qr/systemctl.*haproxy|policy 101.*policy/s, 'nothing is disabled without need';

open my $out, '>', "$dir/policy" or die $!;
print {$out} "#!/bin/sh\nexit 7\n";
close $out;
chmod 0755, "$dir/policy";
like installed('nginx-light'), qr/^policy 7$/m, 'a policy of the machine stays';
ok -e "$dir/policy", 'afterwards, too';

done_testing;
