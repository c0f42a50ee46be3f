#include "sirius.h"

#include "accesslog.h"
#include "requestloop.h"
#include "env.h"
#include "file.h"
#include "lazy.h"
#include "requestid.h"
#include "loading.h"
#include "log.h"
#include "logformat.h"
#include "memory.h"
#include "pass.h"
#include "place.h"
#include "poll.h"
#include "publish.h"
#include "sampler.h"
#include "serve.h"
#include "shared.h"
#include "signals.h"
#include "socket.h"
#include "spawn.h"
#include "stream.h"
#include "turn.h"
#include "work.h"
#include "calls.h"
#include "scoreboard.h"
#include "title.h"

#include "share/common.h"
#include "share/door.h"
#include "share/item.h"
#include "share/layout.h"
#include "share/lobby.h"
#include "share/memory.h"
#include "share/words.h"

#include "base/syscalls.h"
#include "net/bell.h"
#include "net/descriptors.h"
#include "net/gate.h"
#include "net/inotify.h"
#include "net/memfile.h"
#include "net/packets.h"
#include "net/self.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

XS(sirius_xs_writer_write);
XS(sirius_xs_writer_close);

/* CLONE_SKIP: a new thread has undef instead of a copy, whose DESTROY would free what the original uses. */
XS(sirius_xs_skip);
XS(sirius_xs_skip)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    XSRETURN_YES;
}

/* The first argument of a method that does not need it. */
typedef SV *sirius_class __attribute__((unused));

/* Dies. The exit status of a start is 1, not errno. */
static void sirius_not_created(pTHX_ const char *what, int err, const char *calls)
{
    const char *why = Strerror(err);
    errno = 1;
    croak("sirius: cannot create %s: %s (%s)\n", what, why, calls);
}

MODULE = Sirius    PACKAGE = Sirius::Worker::RequestLoop

PROTOTYPES: DISABLE

BOOT:
    sirius_env_boot(aTHX);
    sirius_log_boot(aTHX);
    sirius_stream_boot(aTHX);
    sirius_serve_boot(aTHX);
    sirius_file_boot(aTHX);
    sirius_lazy_boot(SIRIUS_LAZY_IO, sirius_socket);
    sirius_lazy_boot(SIRIUS_LAZY_INFORMATIONAL, sirius_informational);
    sirius_lazy_boot(SIRIUS_LAZY_ID, sirius_requestid_value);
    CvXSUBANY(newXS("Sirius::PSGI::Writer::write", sirius_xs_writer_write, __FILE__)).any_i32 = 0;
    CvXSUBANY(newXS("Sirius::PSGI::Writer::put", sirius_xs_writer_write, __FILE__)).any_i32 = 1;
    newXS("Sirius::PSGI::Writer::close", sirius_xs_writer_close, __FILE__);
    newXS("Sirius::Worker::RequestLoop::CLONE_SKIP", sirius_xs_skip, __FILE__);
    newXS("Sirius::Scoreboard::CLONE_SKIP", sirius_xs_skip, __FILE__);
    newXS("Sirius::OS::Sampler::CLONE_SKIP", sirius_xs_skip, __FILE__);
    newXS("Sirius::PSGI::Writer::CLONE_SKIP", sirius_xs_skip, __FILE__);
    sirius_signals_boot(aTHX);

SV *
new(sirius_class class, HV *conf)
CODE:
    RETVAL = SvREFCNT_inc(sirius_new(aTHX_ conf));
OUTPUT:
    RETVAL

const char *
serve(sirius *self, SV *app)
CODE:
    if (sirius_current)
        croak("this process already serves requests");
    RETVAL = sirius_work(aTHX_ self, app);
OUTPUT:
    RETVAL

void
drain(sirius *self)
CODE:
    sr_worker_drain(&self->worker);

void
stop(sirius *self)
CODE:
    sr_worker_stop(&self->worker);

bool
publish(sirius_class class, SV *packed)
CODE:
    RETVAL = sirius_publish(aTHX_ packed);
OUTPUT:
    RETVAL

void
abandon(sirius *self, const char *why)
CODE:
    sirius_abandon(aTHX_ self, why);

void
watch_edge(sirius *self, int pidfd)
CODE:
    sirius_work_watch(self, pidfd);

void
DESTROY(sirius *self)
CODE:
    sirius_free(aTHX_ self);

MODULE = Sirius    PACKAGE = Sirius::App::Loading

void
_begin(sirius_class class, NV limit, NV soon, int stopped_status)
CODE:
    sirius_loading_begin(aTHX_ limit, soon, stopped_status);

AV *
_end(sirius_class class)
CODE:
    RETVAL = (AV *)sv_2mortal((SV *)sirius_loading_end(aTHX));
OUTPUT:
    RETVAL

MODULE = Sirius    PACKAGE = Sirius::OS::Memory::Watch

void
DESTROY(sirius_class self)
CODE:
    sirius_memory_look(aTHX_ NULL);

MODULE = Sirius    PACKAGE = Sirius::OS::Memory

SV *
watch(sirius_class class)
CODE:
    RETVAL = sv_bless(newRV_noinc(newSV(0)), gv_stashpvs("Sirius::OS::Memory::Watch", GV_ADD));
OUTPUT:
    RETVAL

bool
over(sirius_class class)
CODE:
    RETVAL = sirius_memory_over();
OUTPUT:
    RETVAL

MODULE = Sirius    PACKAGE = Sirius::OS::Reaper

bool
adopt(sirius_class class)
CODE:
    RETVAL = sr_self_adopt();
OUTPUT:
    RETVAL

MODULE = Sirius    PACKAGE = Sirius::OS::Child

void
end_with(sirius_class class, int parent)
CODE:
    sr_self_ends_with_parent(parent != 0);
    if (parent && getppid() != parent) /* it has ended before this */
        raise(SIGKILL);

void
stopped(sirius_class class)
PPCODE:
    siginfo_t info = {0};
    int what;
    do /* perl's waitpid does not tell what has happened. No WEXITED: processes that have ended are left to waitpid */
        what = waitid(P_ALL, 0, &info, WSTOPPED | WCONTINUED | WNOHANG);
    while (what < 0 && errno == EINTR);
    if (what == 0 && info.si_pid) {
        EXTEND(SP, 2);
        mPUSHi(info.si_pid);
        mPUSHi(info.si_code == CLD_CONTINUED ? 0 : info.si_status);
    }

int
_spawn(sirius_class class, const char *path, AV *words, AV *descriptors)
CODE:
    RETVAL = sirius_spawn(aTHX_ path, words, descriptors);
OUTPUT:
    RETVAL

MODULE = Sirius    PACKAGE = Sirius::OS::Limits

UV
descriptors(sirius_class class)
CODE:
    RETVAL = sr_descriptors_raise();
OUTPUT:
    RETVAL

NV
file_size(sirius_class class)
CODE:
    struct rlimit limit;
    RETVAL = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (NV)limit.rlim_cur : -1;
OUTPUT:
    RETVAL

MODULE = Sirius    PACKAGE = Sirius::OS::Loop

void
_poll(sirius_class class, AV *descriptors, AV *events, NV seconds, AV *signals)
CODE:
    sirius_poll(aTHX_ descriptors, events, seconds, signals);

MODULE = Sirius    PACKAGE = Sirius::OS::Signals

void
restart(sirius_class class, ...)
CODE:
    for (I32 i = 1; i < items; i++) {
        struct sigaction now;
        int sig = (int)SvIV(ST(i));
        if (sig > 0 && sig < NSIG && sigaction(sig, NULL, &now) == 0) {
            now.sa_flags |= SA_RESTART;
            sigaction(sig, &now, NULL);
        }
    }

MODULE = Sirius    PACKAGE = Sirius::OS::Inotify

int
_open(sirius_class class)
CODE:
    RETVAL = sr_inotify_open();
OUTPUT:
    RETVAL

int
_watch(sirius_class class, int fd, const char *path, U32 events)
CODE:
    RETVAL = sr_inotify_add(fd, path, events);
OUTPUT:
    RETVAL

void
_unwatch(sirius_class class, int fd, int number)
CODE:
    sr_inotify_remove(fd, number);

MODULE = Sirius    PACKAGE = Sirius::OS::Passing

void
_pair(sirius_class class)
PPCODE:
    int fds[2];
    if (sr_packets_pair(fds) == 0) {
        EXTEND(SP, 2);
        mPUSHi(fds[0]);
        mPUSHi(fds[1]);
    }

bool
send(sirius_class class, int line, SV *bytes, ...)
CODE:
    int fds[SIRIUS_PASSED_MAX];
    if (items - 3 > SIRIUS_PASSED_MAX)
        croak("Sirius::OS::Passing->send: more than %d descriptors", SIRIUS_PASSED_MAX);
    for (int i = 3; i < items; i++)
        fds[i - 3] = (int)SvIV(ST(i));
    RETVAL = sirius_send(aTHX_ line, bytes, fds, (int)items - 3);
OUTPUT:
    RETVAL

void
receive(sirius_class class, int line)
PPCODE:
    int fds[SIRIUS_PASSED_MAX], n = 0;
    SV *bytes = sirius_receive(aTHX_ line, fds, &n);
    if (bytes) {
        EXTEND(SP, 1 + n);
        mPUSHs(bytes);
        for (int i = 0; i < n; i++)
            mPUSHi(fds[i]);
    }

MODULE = Sirius    PACKAGE = Sirius::OS::Sampler

void
_at(const char *class, IV pid, UV base)
PPCODE:
    sirius_target target;
    int same = sirius_target_at(aTHX_ &target, pid, base);
    sirius_sampler *sampler = same > 0 ? sirius_sampler_new(aTHX_ &target) : NULL;
    if (sampler)
        XPUSHs(sv_2mortal(sv_setref_pv(newSV(0), class, sampler)));
    else if (same)
        XPUSHs(&PL_sv_undef); /* not readable: see $! */

void
of_child(const char *class, IV pid)
PPCODE:
    sirius_target target = {.pid = (pid_t)pid};
    sirius_sampler *sampler = sirius_sampler_new(aTHX_ &target);
    if (sampler)
        XPUSHs(sv_2mortal(sv_setref_pv(newSV(0), class, sampler)));

void
permit(sirius_class class)
CODE:
    sr_self_readable(true);

void
stack(sirius_sampler *self, SV *below = NULL)
PPCODE:
    sirius_sample sample;
    below = below && SvOK(below) ? sv_2mortal(newSVsv(below)) : NULL;
    if (below)
        SvPV_force_nolen(below);
    if (sirius_sampler_take(aTHX_ self, below, &sample)) {
        EXTEND(SP, 3);
        mPUSHs(newRV_noinc((SV *)sample.labels));
        mPUSHp(&sample.state, 1);
        PUSHs(boolSV(sample.moved));
    }

void
DESTROY(sirius_sampler *self)
CODE:
    sirius_sampler_free(aTHX_ self);

MODULE = Sirius    PACKAGE = Sirius::Listen::Listener

void
_shut_gate(sirius_class class, int fd)
CODE:
    sr_gate_shut(fd); /* if it fails, a few new connections are reset */

MODULE = Sirius    PACKAGE = Sirius::Edge::Beside

void
_run(sirius_class class, const char *path, AV *words, AV *descriptors)
PPCODE:
    int pidfd, pid;
    pid = sirius_spawn_beside(aTHX_ path, words, descriptors, &pidfd);
    EXTEND(SP, 2);
    mPUSHi(pid);
    mPUSHi(pidfd);

MODULE = Sirius    PACKAGE = Sirius::OS::Syscall

const char *
_name(sirius_class class, long number)
CODE:
    RETVAL = sr_syscall_name(number);
OUTPUT:
    RETVAL

MODULE = Sirius    PACKAGE = Sirius::OS::Title

void
_name(sirius_class class, const char *text)
CODE:
    sirius_title_name(text);

int
_refused(sirius_class class)
CODE:
    RETVAL = sirius_title_refused();
OUTPUT:
    RETVAL

void
_show(sirius_class class, const char *text)
CODE:
    sirius_title_show(aTHX_ text);

void
_keep(sirius_class class)
CODE:
    sirius_title_keep();

MODULE = Sirius    PACKAGE = Sirius::Edge::Shared

int
sleepers(sirius_class class, UV rows)
CODE:
    RETVAL = sirius_sleepers_new(aTHX_ (uint32_t)rows);
OUTPUT:
    RETVAL

void
over(sirius_class class, int fd)
CODE:
    sirius_sleepers_over(aTHX_ fd);

void
hold(sirius_class class, int fd, UV generation)
CODE:
    sirius_sleepers_hold(aTHX_ fd, (uint32_t)generation);

void
part(sirius_class class, int sleepers, int common, UV edge)
CODE:
    if (edge >= SR_EDGES_MAX)
        croak("Sirius::Edge::Shared->part: there is no edge %" UVuf, edge);
    sirius_common_clear(aTHX_ common, (uint32_t)edge);
    sirius_sleepers_part(aTHX_ sleepers, (uint32_t)edge);

int
common(sirius_class class)
CODE:
    RETVAL = sirius_common_new(aTHX);
OUTPUT:
    RETVAL

NV
turned(sirius_class class, int common, UV edge)
CODE:
    int64_t ns = 0;
    if (edge < SR_EDGES_MAX &&
        pread(common, &ns, sizeof ns, (off_t)(offsetof(sr_common, row) + edge * sizeof(sr_common_row) + offsetof(sr_common_row, turned))) != (ssize_t)sizeof ns)
        ns = 0;
    RETVAL = (NV)ns;
OUTPUT:
    RETVAL

SV *
layout(sirius_class class)
CODE:
    char text[SR_LAYOUT_TEXT];
    sr_layout_text(text);
    RETVAL = newSVpv(text, 0);
OUTPUT:
    RETVAL

int
bell(sirius_class class)
CODE:
    RETVAL = sr_bell_new();
    if (RETVAL < 0)
        sirius_not_created(aTHX_ "a bell for an edge", errno, SR_BELL_CALLS);
OUTPUT:
    RETVAL

int
lobby(sirius_class class)
CODE:
    int fd, err = sr_door_lobby(&fd);
    if (err)
        sirius_not_created(aTHX_ "the lobby of an edge", err, "socket, bind, listen");
    RETVAL = fd;
OUTPUT:
    RETVAL

void
name_senders(sirius_class class, int line)
CODE:
    sr_lobby_name_senders(line);

void
remove_lobby(sirius_class class, int fd)
CODE:
    uint64_t name = sr_door_name(fd);
    if (name)
        sr_lobby_remove(name);

void
line(sirius_class class)
PPCODE:
    int pair[2], err = sr_door_pair(pair);
    if (err)
        sirius_not_created(aTHX_ "a pair of sockets for an edge", err, "socketpair");
    EXTEND(SP, 2);
    mPUSHi(pair[0]);
    mPUSHi(pair[1]);

bool
pass(sirius_class class, int line, const char *what, int fd)
CODE:
    static const struct {
        const char *name;
        sr_message_kind kind;
    } whats[] = {{"log", SR_MESSAGE_LOG}, {"retire", SR_MESSAGE_RETIRE}, {"legacy", SR_MESSAGE_LEGACY},
                 {"errors", SR_MESSAGE_ERRORS}, {"keys", SR_MESSAGE_KEYS},
                 {"publish", SR_MESSAGE_PUBLISH}, {"channels", SR_MESSAGE_CHANNELS}};
    sr_message note = {.kind = 0};
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++)
        if (strEQ(what, whats[i].name))
            note.kind = whats[i].kind;
    if (!note.kind)
        croak("Sirius::Edge::Shared->pass: '%s' is not a message for an edge", what);
    RETVAL = sr_door_send(line, &note, &fd, 1, false) == 0;
OUTPUT:
    RETVAL

int
page(sirius_class class)
CODE:
    RETVAL = sr_memfile("sirius-page", NULL, 0, false);
OUTPUT:
    RETVAL

int
item(sirius_class class, SV *packed)
CODE:
    STRLEN len;
    const char *at = SvPVbyte(packed, len);
    sr_item_view ignored;
    struct iovec iov = {(void *)(uintptr_t)at, len};
    errno = EINVAL;
    RETVAL = sr_item_read(sr_bytes_of(at, len), &ignored) ? sr_memfile("sirius-item", &iov, 1, true) : -1;
OUTPUT:
    RETVAL

void
words(sirius_class class)
PPCODE:
#define NAME_AND_FROM(name, kind, to, most, from) {name, #from},
    static const char *const words[][2] = {SR_WORDS(NAME_AND_FROM)};
#undef NAME_AND_FROM
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strEQ(words[i][1], "own"))
            continue;
        SV *name = newSVpv(words[i][0], 0);
        for (char *c = SvPVX(name); *c; c++)
            *c = *c == '-' ? '_' : *c;
        mXPUSHs(name);
        mXPUSHp(words[i][1], strlen(words[i][1]));
    }

MODULE = Sirius    PACKAGE = Sirius::Scoreboard

SV *
new(sirius_class class, UV rows, UV edges = 0)
CODE:
    sr_scoreboard *s = sr_scoreboard_new((uint32_t)rows, (uint32_t)edges);
    if (!s)
        sirius_not_created(aTHX_ "the memory that processes share", errno, SR_MEMORY_CALLS);
    RETVAL = sirius_board_new(aTHX_ s);
OUTPUT:
    RETVAL

SV *
adopt(sirius_class class, int memfd)
ALIAS:
    look = 1
CODE:
    sr_scoreboard *s = ix ? sr_scoreboard_look(memfd) : sr_scoreboard_adopt(memfd);
    if (!s && errno == EINVAL) {
        uint32_t theirs = 0;
        char text[2][24];
        if (pread(memfd, &theirs, sizeof theirs, 0) != (ssize_t)sizeof theirs)
            theirs = 0;
        sr_layout_number(theirs, text[0]);
        sr_layout_number(SR_SCOREBOARD_LAYOUT, text[1]);
        croak("sirius: the scoreboard of this server has layout %s, and the installed version of Sirius layout %s; a reload is not enough, restart the server\n", text[0], text[1]);
    }
    if (!s)
        croak("Sirius::Scoreboard->%s(%d): %s\n", ix ? "look" : "adopt", memfd, Strerror(errno));
    RETVAL = ix ? sirius_board_seen(aTHX_ s) : sirius_board_new(aTHX_ s);
OUTPUT:
    RETVAL

SV *
current(sirius_class class)
CODE:
    RETVAL = sirius_board_current(aTHX);
OUTPUT:
    RETVAL

SV *
layout(sirius_class class)
CODE:
    RETVAL = newSVpvf("%d-%d", (int)SR_SCOREBOARD_LAYOUT, (int)sizeof(sr_board));
OUTPUT:
    RETVAL

void
mark(sirius_class class, SV *text)
CODE:
    sirius_mark(aTHX_ text);

UV
edges(sr_scoreboard *self)
CODE:
    RETVAL = self->edges;
OUTPUT:
    RETVAL

UV
rows(sr_scoreboard *self)
CODE:
    RETVAL = self->slots;
OUTPUT:
    RETVAL

HV *
row(sr_scoreboard *self, UV number)
CODE:
    if (number >= self->slots)
        croak("Sirius::Scoreboard: there is no row %" UVuf, number);
    RETVAL = sirius_board_row(aTHX_ &self->rows[number]);
OUTPUT:
    RETVAL

HV *
edge_row(sr_scoreboard *self, UV number)
CODE:
    if (number >= self->edges)
        croak("Sirius::Scoreboard: there is no edge %" UVuf, number);
    RETVAL = sirius_board_edge(aTHX_ &self->rows[self->slots + number]);
OUTPUT:
    RETVAL

void
edge_hangs(sr_scoreboard *self, UV number, NV since)
CODE:
    if (number >= self->edges)
        croak("Sirius::Scoreboard: there is no edge %" UVuf, number);
    atomic_store_explicit(&self->rows[self->slots + number].hangs_since, (int64_t)(since * 1e9), memory_order_relaxed);

void
occupied(sr_scoreboard *self)
PPCODE:
    for (uint32_t i = 0; i < self->slots; i++)
        if (atomic_load_explicit(&self->rows[i].pid, memory_order_relaxed) > 0)
            mXPUSHu(i);

void
requests(sr_scoreboard *self, SV *only = NULL)
PPCODE:
    UV i = only ? SvUV(only) : 0, end = only && i < self->slots ? i + 1 : self->slots;
    for (; i < end; i++) {
        AV *request = sirius_board_request(aTHX_ & self->rows[i], i);
        if (request)
            mXPUSHs(newRV_noinc((SV *)request));
    }

HV *
totals(sr_scoreboard *self)
CODE:
    RETVAL = sirius_board_totals(aTHX_ self);
OUTPUT:
    RETVAL

void
release(sr_scoreboard *self, UV number)
CODE:
    if (number >= self->slots + self->edges)
        croak("Sirius::Scoreboard: there is no row %" UVuf, number);
    sr_scoreboard_release(self, (uint32_t)number);

void
ask_place(sr_scoreboard *self, UV number)
CODE:
    if (number >= self->slots)
        croak("Sirius::Scoreboard: there is no row %" UVuf, number);
    sr_row_place_ask(&self->rows[number]);

void
place(sr_scoreboard *self, UV number)
PPCODE:
    if (number >= self->slots)
        croak("Sirius::Scoreboard: there is no row %" UVuf, number);
    char told[SR_PLACE_MAX];
    const sr_row *row = &self->rows[number];
    uint32_t line = 0;
    UV read_line = 0;
    SV *file = sirius_place(aTHX_ atomic_load_explicit(&row->pid, memory_order_relaxed), &read_line);
    size_t len = file ? 0 : sr_row_place(row, told, &line);
    if (file || len) {
        EXTEND(SP, 2);
        PUSHs(sv_2mortal(file ? file : newSVpvn(told, len)));
        mPUSHu(file ? read_line : line);
    }

void
exited(sr_scoreboard *self, const char *cause)
ALIAS:
    edge_exited = 1
CODE:
    if (!sirius_board_exited(self, cause, ix))
        croak("Sirius::Scoreboard->exited: there is no cause '%s'", cause);

bool
tell(sr_scoreboard *self, SV *bytes)
ALIAS:
    keep = SR_NOTE_ADMIN
CODE:
    STRLEN len;
    const char *at = SvPVbyte(bytes, len);
    RETVAL = sr_scoreboard_tell(self, (sr_note_of)ix, at, len);
OUTPUT:
    RETVAL

SV *
told(sr_scoreboard *self)
ALIAS:
    kept = SR_NOTE_ADMIN
CODE:
    char text[SR_NOTE_MAX];
    size_t len = sr_scoreboard_told(self, (sr_note_of)ix, text);
    RETVAL = newSVpvn(text, len);
OUTPUT:
    RETVAL

IV
claim(sr_scoreboard *self, UV generation)
CODE:
    RETVAL = sr_scoreboard_claim(self, (uint32_t)generation);
OUTPUT:
    RETVAL

bool
occupy(sr_scoreboard *self, UV number, IV claimer)
CODE:
    RETVAL = sr_scoreboard_occupy(self, (uint32_t)number, (int32_t)claimer);
OUTPUT:
    RETVAL

UV
waiting(sr_scoreboard *self)
CODE:
    RETVAL = sr_scoreboard_waiting(self);
OUTPUT:
    RETVAL

UV
workers(sr_scoreboard *self, SV *set = NULL)
CODE:
    if (set)
        atomic_store_explicit(&self->shared->workers, (uint32_t)SvUV(set), memory_order_relaxed);
    RETVAL = atomic_load_explicit(&self->shared->workers, memory_order_relaxed);
OUTPUT:
    RETVAL

AV *
lanes(sr_scoreboard *self)
CODE:
    RETVAL = sirius_board_lanes(aTHX_ self);
OUTPUT:
    RETVAL

HV *
calls(sr_scoreboard *self)
CODE:
    RETVAL = sirius_board_calls(aTHX_ self);
OUTPUT:
    RETVAL

HV *
exceptions(sr_scoreboard *self)
CODE:
    RETVAL = sirius_board_exceptions(aTHX_ self);
OUTPUT:
    RETVAL

HV *
troubles(sr_scoreboard *self)
CODE:
    RETVAL = sirius_board_troubles(aTHX_ self);
OUTPUT:
    RETVAL

NV
longest_wait(sr_scoreboard *self)
CODE:
    RETVAL = (NV)atomic_exchange_explicit(&self->shared->longest_wait, 0, memory_order_relaxed) / 1e9;
OUTPUT:
    RETVAL

int
watched(sr_scoreboard *self, SV *set = NULL)
CODE:
    if (set)
        atomic_store_explicit(&self->shared->watched, (uint32_t)SvUV(set), memory_order_seq_cst);
    RETVAL = (int)atomic_load_explicit(&self->shared->watched, memory_order_relaxed);
OUTPUT:
    RETVAL

int
descriptor(sr_scoreboard *self)
CODE:
    sr_scoreboard_mend(self); /* the caller passes it to another process */
    RETVAL = self->memfd;
OUTPUT:
    RETVAL

bool
stopping(sr_scoreboard *self)
ALIAS:
    stopping = SR_STOPPING_SOON
    stopped = SR_STOPPING_NOW
CODE:
    RETVAL = atomic_load_explicit(&self->shared->stopping, memory_order_relaxed) >= (uint32_t)ix;
OUTPUT:
    RETVAL

void
stop(sr_scoreboard *self)
ALIAS:
    stop_soon = SR_STOPPING_SOON
    stop = SR_STOPPING_NOW
CODE:
    atomic_store_explicit(&self->shared->stopping, (uint32_t)ix, memory_order_relaxed);

void
DESTROY(sr_scoreboard *self)
CODE:
    sirius_board_free(aTHX_ ST(0), self);

MODULE = Sirius    PACKAGE = Sirius::Log

void
_put(sirius_class class, SV *line, bool printed = false)
CODE:
    STRLEN len;
    const char *at = SvPV(line, len);
    sirius_log_put(aTHX_ at, len, printed ? "error" : "notice");

void
hurry(sirius_class class)
CODE:
    sirius_log_hurry();

UV
lost(sirius_class class, UV more = 0)
CODE:
    RETVAL = (UV)sirius_log_lost(more);
OUTPUT:
    RETVAL

MODULE = Sirius    PACKAGE = Sirius::LogFormat

void
_compile(const char *class, SV *format, HV *char_handlers, HV *block_handlers)
PPCODE:
    sr_logformat_error err;
    sirius_logformat *f = sirius_logformat_new(aTHX_ format, char_handlers, block_handlers, &err);
    if (f)
        XPUSHs(sv_2mortal(sv_setref_pv(newSV(0), class, f)));
    else {
        EXTEND(SP, 3);
        PUSHs(&PL_sv_undef);
        mPUSHp(err.message, strlen(err.message));
        mPUSHu(err.offset);
    }

SV *
log_line(sirius_logformat *self, SV *env, SV *res, SV *length = NULL, SV *microseconds = NULL, SV *epoch = NULL)
CODE:
    SV *args[] = {env, res, length, microseconds, epoch};
    RETVAL = sirius_logformat_line(aTHX_ ST(0), self, args);
OUTPUT:
    RETVAL

void
DESTROY(sirius_logformat *self)
CODE:
    sirius_logformat_free(aTHX_ self);
