use strict;
use warnings;
use Test::More;
use Sirius::OS::Mounts;

my $table = <<'TEXT';
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /srv rw,relatime shared:2 - nfs4 server:/export rw
31 30 8:2 / /srv/local rw - ext4 /dev/sdb1 rw
32 22 0:41 / /mnt/with\040blank rw - cifs //host/share rw
33 22 0:42 / /home/me/share rw shared:3 master:1 - fuse.sshfs me@host: rw
34 22 0:43 / /vm rw - virtiofs tag rw
35 22 0:44 /Users/me/app /app rw,nosuid - fakeowner /run/host_mark/Users rw
TEXT

for my $case (
    [ '/srv/app'          => 'nfs4' ],
    [ '/srv'              => 'nfs4' ],
    [ '/srvx/app'         => undef ],
    [ '/srv/local/app'    => undef ],
    [ '/mnt/with blank/a' => 'cifs' ],
    [ '/home/me/share/a'  => 'fuse.sshfs' ],
    [ '/home/me/app'      => undef ],
    [ '/vm/app'           => 'virtiofs' ],
    [ '/app/lib'          => 'fakeowner' ],
    )
{
    is( Sirius::OS::Mounts->remote( $case->[0], $table ), $case->[1], $case->[0] );
}
is( Sirius::OS::Mounts->remote( '/tmp', '' ), undef, 'without /proc' );

done_testing;
