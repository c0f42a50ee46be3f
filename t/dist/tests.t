# "One noun, one file, one test": what CONTRIBUTING.md says under "Order", to the letter. A module of lib has a test of its
# name in t/unit, a file of src one in t/c, a file of xs one in t/psgi. Where a part can only be seen in a running server, or together with others,
# the table says which tests see it. A line of the table that is not needed any more fails, too.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Find     qw(find);
use FindBin;
use Test::More;

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin: $!";

#<<< not in columns: a new row changes no other
my %ELSEWHERE = (
    'lib/Plack/Handler/Sirius.pm' => 'psgi/suite process/cli/compatibility process/cli/options',
    'lib/Plack/Middleware/AccessLog/Compiled.pm' => 'log/middleware',
    'lib/Plack/Middleware/AccessLog/Compiled/Watch.pm' => 'log/middleware',
    'lib/Sirius.pm' => 'dist/meta docs/man',
    'lib/Sirius/Admin/App.pm' => 'admin/app admin/page',
    'lib/Sirius/Admin/Change.pm' => 'unit/top',
    'lib/Sirius/Admin/History.pm' => 'admin/history',
    'lib/Sirius/Admin/Line.pm' => 'admin/memory admin/stack',
    'lib/Sirius/Admin/Memory.pm' => 'admin/memory',
    'lib/Sirius/Admin/Metrics.pm' => 'admin/metrics',
    'lib/Sirius/Admin/Port.pm' => 'admin/process admin/edge',
    'lib/Sirius/Admin/Profile.pm' => 'admin/app admin/stack',
    'lib/Sirius/Admin/Sampling.pm' => 'admin/stack',
    'lib/Sirius/Admin/Server.pm' => 'admin/process admin/edge',
    'lib/Sirius/Admin/Status.pm' => 'admin/app',
    'lib/Sirius/Admin/Verdict.pm' => 'admin/verdict admin/hanging',
    'lib/Sirius/App/Forked.pm' => 'process/workers/app_children',
    'lib/Sirius/App/Discard.pm' => 'process/start/warmup',
    'lib/Sirius/App/Hooks.pm' => 'process/workers/hooks',
    'lib/Sirius/App/Isolation.pm' => 'process/workers/isolation process/workers/global_state',
    'lib/Sirius/App/Loading.pm' => 'process/start/while_loading process/reload/load_timeout',
    'lib/Sirius/App/WarmUp.pm' => 'process/start/warmup',
    'lib/Sirius/Base/Clock.pm' => 'faults/clock',
    'lib/Sirius/CLI/Check.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Addresses.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Application.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Files.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Limits.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Middleware.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Modules.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Report.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Request.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Check/Shared.pm' => 'process/cli/check',
    'lib/Sirius/CLI/Completion.pm' => 'process/cli/completion',
    'lib/Sirius/CLI/Ctl.pm' => 'process/cli/ctl',
    'lib/Sirius/CLI/Ctl/Status.pm' => 'process/cli/ctl',
    'lib/Sirius/CLI/Dev.pm' => 'dev/reload dev/watch',
    'lib/Sirius/CLI/Profile.pm' => 'process/cli/profile',
    'lib/Sirius/CLI/Top/Client.pm' => 'unit/top process/cli/top',
    'lib/Sirius/CLI/Top/Picture.pm' => 'unit/top',
    'lib/Sirius/CLI/Top/Screen.pm' => 'process/cli/top',
    'lib/Sirius/Config/NoEffect.pm' => 'unit/options process/cli/without_effect',
    'lib/Sirius/Config/Values.pm' => 'unit/options unit/sources',
    'lib/Sirius/Config/Shown.pm' => 'process/cli/environment',
    'lib/Sirius/Config/Type.pm' => 'unit/options fuzz/options',
    'lib/Sirius/Config/Usage.pm' => 'unit/options unit/command',
    'lib/Sirius/Control/Client.pm' => 'process/cli/ctl',
    'lib/Sirius/Control/Commands.pm' => 'process/cli/ctl',
    'lib/Sirius/Dev/Audience.pm' => 'dev/terminal',
    'lib/Sirius/Dev/Base.pm' => 'dev/preload dev/reload',
    'lib/Sirius/Dev/Broken.pm' => 'dev/page',
    'lib/Sirius/Dev/ErrorPage.pm' => 'dev/page dev/exceptions',
    'lib/Sirius/Dev/Keys.pm' => 'dev/keys',
    'lib/Sirius/Dev/LiveReload.pm' => 'dev/terminal',
    'lib/Sirius/Dev/Loader.pm' => 'dev/page dev/reload',
    'lib/Sirius/Dev/Preloader.pm' => 'dev/preload',
    'lib/Sirius/Dev/Reload.pm' => 'dev/reload dev/page',
    'lib/Sirius/Dev/RequestLog.pm' => 'dev/terminal',
    'lib/Sirius/Dev/Session.pm' => 'dev/terminal dev/watch',
    'lib/Sirius/Dev/Trap.pm' => 'dev/exceptions',
    'lib/Sirius/Edge/Beside.pm' => 'process/workers/zero',
    'lib/Sirius/Edge/Group.pm' => 'process/edges/killed process/edges/replaced',
    'lib/Sirius/Edge/Keeper.pm' => 'tls/keys tls/reload',
    'lib/Sirius/Edge/Place.pm' => 'process/edges/killed process/edges/replaced',
    'lib/Sirius/Edge/Program.pm' => 'unit/edge_setup process/edges/replaced log/renewal',
    'lib/Sirius/Edge/Programs.pm' => 'process/edges/fallback',
    'lib/Sirius/Edge/Shared.pm' => 'process/edges/killed process/edges/replaced',
    'lib/Sirius/Edge/Types.pm' => 'unit/static http/static',
    'lib/Sirius/LogFormat.pm' => 'log/logformat_golden log/logformat_errors',
    'lib/Sirius/OS/Inotify.pm' => 'unit/dev_watcher',
    'lib/Sirius/OS/Invocation.pm' => 'process/reload/release_link process/start/non_ascii_names process/workers/global_state',
    'lib/Sirius/OS/Limits.pm' => 'faults/descriptors faults/limits',
    'lib/Sirius/OS/Memory.pm' => 'process/workers/exit_counts',
    'lib/Sirius/OS/Passing.pm' => 'dev/preload admin/memory',
    'lib/Sirius/OS/Reaper.pm' => 'unit/child',
    'lib/Sirius/OS/Signals.pm' => 'process/start/while_loading faults/signals',
    'lib/Sirius/OS/Syscall.pm' => 'process/workers/request_timeout',
    'lib/Sirius/Process/Alerts.pm' => 'log/trouble',
    'lib/Sirius/Process/Companion.pm' => 'process/workers/companions process/workers/companions_moments',
    'lib/Sirius/Process/Companions.pm' => 'process/workers/companions process/workers/companions_moments',
    'lib/Sirius/Process/Generation.pm' => 'process/reload/generation_ends process/reload/reload',
    'lib/Sirius/Process/Launch.pm' => 'process/reload/reload process/start/broken_app',
    'lib/Sirius/Process/Reload.pm' => 'process/reload/reload process/start/broken_app',
    'lib/Sirius/Process/Renewal.pm' => 'log/renewal unit/scoreboard',
    'lib/Sirius/Process/Single.pm' => 'process/workers/zero',
    'lib/Sirius/Process/Succession.pm' => 'process/reload/succession',
    'lib/Sirius/Process/SlowLog.pm' => 'log/slow unit/slow_log',
    'lib/Sirius/Process/StopDelay.pm' => 'process/stop/drain_delay',
    'lib/Sirius/Process/Supervisor.pm' => 'process/workers/signals process/stop/stop process/reload/reload',
    'lib/Sirius/Process/WorkerHandle.pm' => 'unit/recycling process/workers/respawn',
    'lib/Sirius/Profile/Collector.pm' => 'process/cli/profile',
    'lib/Sirius/Profile/Dump.pm' => 'process/cli/profile',
    'lib/Sirius/Profile/Server.pm' => 'process/cli/profile',
    'lib/Sirius/Profile/Table.pm' => 'process/cli/profile',
    'lib/Sirius/PSGI/Cleanup.pm' => 'psgi/cleanup psgi/anywhere',
    'lib/Sirius/PSGI/Response.pm' => 'psgi/body psgi/anywhere security/misuse',
    'lib/Sirius/PSGI/Socket.pm' => 'psgi/io psgi/looking',
    'lib/Sirius/PSGI/Writer.pm' => 'psgi/streaming',
    'lib/Sirius/Service/Starter.pm' => 'process/reload/starter',
    'lib/Sirius/Worker.pm' => 'process/workers/respawn process/stop/stop log/reopen',
    'lib/Sirius/Worker/RequestLoop.pm' => 'psgi/suite log/reopen',

    'src/conn/spools.c' => 'fair/temporary_files c/output',
    'src/conn/accept.c' => 'c/conn fair/room',
    'src/conn/accesslog.c' => 'log/server log/values',
    'src/conn/capacity.c' => 'fair/room faults/descriptors',
    'src/conn/connection.c' => 'c/conn',
    'src/conn/engine.c' => 'c/conn c/deadline',
    'src/conn/extra.c' => 'tls/hsts http/request_id',
    'src/conn/expire.c' => 'c/conn http/slow',
    'src/conn/linger.c' => 'c/conn http/lingering',
    'src/conn/handshake.c' => 'tls/handshakes',
    'src/conn/intake.c' => 'c/conn fair/queue',
    'src/h1/decode.c' => 'c/body c/conn',
    'src/h1/end.c' => 'c/conn http/lingering',
    'src/h1/h1.c' => 'c/conn',
    'src/h1/put.c' => 'c/edge c/joined',
    'src/h1/read.c' => 'c/conn http/pipelining',
    'src/h1/refuse.c' => 'c/conn http/slow',
    'src/h2/flood.c' => 'http2/attacks',
    'src/live/channel.c' => 'c/live',
    'src/live/clients.c' => 'c/live',
    'src/live/fanout.c' => 'c/live',
    'src/live/hold.c' => 'live/hold',
    'src/live/subscriber.c' => 'c/live',
    'src/live/timer.c' => 'c/live',
    'src/share/item.c' => 'c/live',
    'src/h2/numbers.c' => 'http2/streams',
    'src/h2/put.c' => 'c/h2 http2/requests',
    'src/h2/read.c' => 'c/h2 http2/limits',
    'src/h2/refuse.c' => 'c/h2 http2/limits',
    'src/h2/allocator.c' => 'c/h2 http2/memory',
    'src/h2/session.c' => 'c/h2 http2/limits http2/workers',
    'src/h2/state.c' => 'c/h2 http2/workers',
    'src/http/page.c' => 'c/response',
    'src/conn/lifetime.c' => 'c/conn process/stop/stop',
    'src/conn/listener.c' => 'fair/room faults/descriptors',
    'src/conn/proxyhead.c' => 'c/client',
    'src/conn/pump.c' => 'tls/io',
    'src/conn/relay.c' => 'tls/io',
    'src/conn/identity.c' => 'http/request_id',
    'src/conn/send.c' => 'c/conn faults/io',
    'src/conn/slowest.c' => 'fair/temporary_files',
    'src/conn/trouble.c' => 'log/trouble',
    'src/edge/answer.c' => 'http/static tls/redirect',
    'src/edge/crew.c' => 'c/edge fair/kill',
    'src/edge/deliver.c' => 'c/edge c/joined',
    'src/edge/dispatch.c' => 'c/edge fair/queue',
    'src/edge/entry.c' => 'c/edge c/mend',
    'src/edge/files.c' => 'http/static fair/static process/edges/static',
    'src/edge/heir.c' => 'process/edges/replaced',
    'src/edge/holder.c' => 'c/edge c/mend',
    'src/edge/keeper.c' => 'tls/keys tls/reload tls/keeper',
    'src/edge/keys.c' => 'tls/keys tls/reload',
    'src/edge/limits.c' => 'c/waiting process/workers/request_timeout',
    'src/edge/log.c' => 'log/server log/values',
    'src/edge/others.c' => 'process/edges/replaced',
    'src/edge/plain.c' => 'tls/redirect',
    'src/edge/presence.c' => 'c/waiting process/workers/request_timeout',
    'src/edge/report.c' => 'process/workers/request_timeout fair/kill',
    'src/edge/rights.c' => 'security/rights',
    'src/edge/slow.c' => 'log/slow',
    'src/edge/stop.c' => 'process/stop/stop fair/stop',
    'src/edge/text.c' => 'log/slow process/workers/request_timeout',
    'src/http/coding.c' => 'c/static http/static',
    'src/http/condition.c' => 'c/static http/static',
    'src/http/range.c' => 'c/static http/static',
    'src/http1/head.c' => 'c/request c/facts c/framing',
    'src/http1/write.c' => 'c/response',
    'src/http/target.c' => 'c/request http/target',
    'src/log/parse.c' => 'c/log_format',
    'src/log/values.c' => 'log/values',
    'src/net/beside.c' => 'process/workers/zero',
    'src/net/descriptors.c' => 'c/loop c/failures',
    'src/static/fields.c' => 'http/static',
    'src/static/find.c' => 'http/static security/static',
    'src/static/mount.c' => 'c/static process/edges/static',
    'src/static/path.c' => 'c/static security/static',
    'src/static/types.c' => 'c/static http/static',
    'src/transport/keyfiles.c' => 'tls/keys',
    'src/transport/keyset.c' => 'tls/keys tls/reload',
    'src/transport/pair.c' => 'tls/keys tls/serve',
    'src/transport/tlsset.c' => 'tls/serve tls/clients tls/reload',
    'src/worker/line.c' => 'c/edge c/joined',
    'src/worker/reply.c' => 'c/edge c/joined',
    'src/worker/worker.c' => 'c/edge c/stress',

    'xs/accesslog.c' => 'log/values',
    'xs/ending.c' => 'process/workers/recycling psgi/harakiri',
    'xs/alone.c' => 'process/workers/zero tls/alone',
    'xs/requestloop.c' => 'psgi/suite',
    'xs/envpool.c' => 'psgi/env psgi/leavings',
    'xs/file.c' => 'http/sendfile psgi/body',
    'xs/forwarded.c' => 'proxy/forwarded',
    'xs/judge.c' => 'unit/sampler',
    'xs/known.c' => 'unit/sampler',
    'xs/lazy.c' => 'psgi/looking',
    'xs/leaf.c' => 'unit/sampler',
    'xs/loading.c' => 'process/reload/load_timeout',
    'xs/log.c' => 'log/layers log/blocked',
    'xs/logformat.c' => 'log/logformat_golden log/logformat_errors',
    'xs/logview.c' => 'log/values',
    'xs/lookup.c' => 'unit/sampler',
    'xs/memory.c' => 'process/workers/exit_counts',
    'xs/naming.c' => 'unit/slow_log unit/sampler',
    'xs/pass.c' => 'dev/preload dev/terminal',
    'xs/place.c' => 'process/workers/request_timeout',
    'xs/poll.c' => 'unit/loop',
    'xs/remote.c' => 'unit/slow_log faults/stack',
    'xs/requestid.c' => 'psgi/request_id',
    'xs/response.c' => 'psgi/body psgi/anywhere security/misuse',
    'xs/row.c' => 'unit/scoreboard process/workers/scoreboard',
    'xs/sampler.c' => 'unit/sampler',
    'xs/scoreboard.c' => 'unit/scoreboard process/workers/scoreboard',
    'xs/serve.c' => 'psgi/anywhere psgi/leavings',
    'xs/shared.c' => 'process/edges/killed process/edges/replaced',
    'xs/site.c' => 'psgi/env proxy/forwarded',
    'xs/snapshot.c' => 'unit/sampler',
    'xs/socket.c' => 'psgi/io',
    'xs/spawn.c' => 'unit/child',
    'xs/target.c' => 'unit/sampler',
    'xs/calls.c' => 'admin/calls',
    'xs/said.c' => 'admin/calls',
    'xs/call.c' => 'psgi/anywhere security/misuse',
    'xs/report.c' => 'psgi/errors psgi/anywhere',
    'xs/responder.c' => 'psgi/streaming',
    'xs/signals.c' => 'psgi/timer process/workers/signals',
    'xs/text.c' => 'psgi/errors psgi/anywhere',
    'xs/trim.c' => 'psgi/errors',
    'xs/turn.c' => 'psgi/leavings psgi/streaming',
    'xs/stream.c' => 'psgi/streaming',
    'xs/title.c' => 'unit/title process/workers/titles',
    'xs/unchunk.c' => 'psgi/input',
    'xs/grip.c' => 'live/hold',
    'xs/wire.c' => 'psgi/streaming psgi/waits',
    'xs/work.c' => 'process/workers/recycling psgi/timer',
);
#>>>

# Log/Access.pm has t/unit/log_access.t, OS/Loop.pm t/unit/loop.t, net/cidr.c t/c/cidr.c, xs/input.c t/psgi/input.t
my %PLACE = ( lib => [qw(t/unit t)], src => [qw(t/c c)], xs => [qw(t/psgi t)] );

sub own_tests {
    my $file   = shift;
    my $name   = lc basename( $file, '.pm', '.c' );
    my $folder = lc basename( dirname $file);
    my ( $dir, $ending ) = @{ $PLACE{ $file =~ s{/.*}{}r } };
    return grep {-e} "$dir/$name.$ending", "$dir/${folder}_$name.$ending";
}

# What is wrong with the tests of this file; nothing when all is well
sub wrong {
    my ( $file, $elsewhere ) = @_;
    my @own = own_tests($file);
    return @own ? () : "$file: no test has its name, and the table does not say which tests see it"
        if !defined $elsewhere;
    return "$file has @own: it needs no line in the table" if @own;
    return map {"$file: there is no t/$_"} grep { !-e "t/$_.t" && !-e "t/$_.c" } split q( ), $elsewhere;
}

my @files;
find(
    {   wanted   => sub { push @files, $_ if /\.(?:pm|c)\z/ && $_ ne 'xs/Sirius.c' },
        no_chdir => 1
    },
    qw(lib src xs)
);
@files = sort grep { $_ ne 'src/sirius-edge.c' } @files;  # main: t/process/edges and all that starts a server
cmp_ok scalar @files, '>', 150, scalar(@files) . ' files';

my @wrong = map { wrong( $_, $ELSEWHERE{$_} ) } @files;
is join( "\n", @wrong ), '', 'each has a test of its name, or tests that the table names';
my %there = map { $_ => 1 } @files;
is join( "\n", grep { !$there{$_} } sort keys %ELSEWHERE ), '', 'no line is about a file that is gone';
note scalar( grep { own_tests($_) } @files ) . ' of ' . @files . ' files have a test of their name';

# The test itself
like wrong( 'lib/Sirius/Fly.pm', undef ), qr/no test has its name/, 'a file without a test is told';
like wrong( 'lib/Sirius/OS/Loop.pm', 'process/stop/stop' ), qr/needs no line/,
    'and a line that is not needed';
like join( q( ), wrong( 'src/edge/fly.c', 'c/edge c/fly' ) ), qr{there is no t/c/fly\z},
    'and a test that is not there';
is join( q( ), wrong( 'lib/Sirius/Log/Access.pm', undef ) ), '', 'and nothing else';

done_testing;
