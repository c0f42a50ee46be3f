#include "sampler.h"

#include "base/clock.h"
#include "judge.h"
#include "leaf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES_MAX = 12,
    /* Then it is not tried again: */
    CPU_MAX_NS = 20 * 1000 * 1000, /* a process can make each try last */
    WALL_MAX_NS =
        200 * 1000 *
        1000, /* its memory may be slow to read, as from swap; longer, as this process may wait for a CPU */
};

struct sirius_sampler {
    sirius_target target;
    int stat;        /* of /proc; of that process alone: another one of its number is not read by it */
    int system_call; /* of /proc: in which it waits; -1: unknown */
    clockid_t clock; /* of the time that it has run */
    bool has_clock;
    bool settles; /* see settle */
    sirius_snapshot *snapshot;
    sirius_reading read;
    sirius_calls stacks[2];
    struct {
        sirius_callframe frames[SIRIUS_FRAMES_MAX]; /* outermost first */
        int n, certain;
    } first;         /* the first stack of a sample */
    const CV *below; /* where the sub that is left out with all outside of it was last */
    sr_buffer label;
};

/* --- labels --- */

static const char *level_name(int level)
{
    switch (level) {
    case PERLSI_SIGNAL:
        return "(signal handler)";
    case PERLSI_OVERLOAD:
        return "(overload)";
    case PERLSI_DESTROY:
        return "(destroy)";
    case PERLSI_WARNHOOK:
        return "(warn handler)";
    case PERLSI_DIEHOOK:
        return "(die handler)";
    default:
        return "(tie)";
    }
}

static bool add_text(sr_buffer *to, const char *text)
{
    return sr_buffer_add(to, text, strlen(text));
}

static bool add_name(pTHX_ sirius_sampler *s, const sirius_callframe *f)
{
    sirius_finding sub;
    switch (f->call) {
    case SIRIUS_CALL_EVAL:
        return add_text(&s->label, "(eval)");
    case SIRIUS_CALL_REQUIRE:
        return add_text(&s->label, "(require)");
    case SIRIUS_CALL_FORMAT:
        return add_text(&s->label, "(format)");
    case SIRIUS_CALL_REGEX:
    case SIRIUS_CALL_REGEX_HERE:
        return add_text(&s->label, "(regex code)");
    case SIRIUS_CALL_SORT:
        return add_text(&s->label, "(sort block)");
    case SIRIUS_CALL_LEVEL:
        return add_text(&s->label, level_name(f->level));
    default:
        sub = sirius_known_sub(aTHX_ s->read.known, f->sub);
        return sub.found ? sr_buffer_add(&s->label, sub.text, sub.len) : add_text(&s->label, "(unknown)");
    }
}

/* " FILE:LINE" */
static void add_place(pTHX_ sirius_sampler *s, const sirius_callframe *f, const COP *at, bool entering)
{
    if (entering)
        at = sirius_known_sub(aTHX_ s->read.known, f->sub).start;
    sirius_finding place = sirius_known_statement(aTHX_ s->read.known, at);
    if (place.found && sr_buffer_add(&s->label, " ", 1))
        sr_buffer_add(&s->label, place.text, place.len);
}

static void push_label(pTHX_ sirius_sampler *s, AV *to)
{
    av_push(to, newSVpvn(sr_buffer_at(&s->label), sr_buffer_len(&s->label)));
}

static bool is_below(const sirius_sampler *s, SV *below)
{
    return below && sr_buffer_len(&s->label) == SvCUR(below) &&
           memcmp(sr_buffer_at(&s->label), SvPVX(below), SvCUR(below)) == 0;
}

/* Innermost first. Whether it came to the sub `below` */
static bool add_frames(pTHX_ sirius_sampler *s, const sirius_judgement *j, SV *below, AV *to)
{
    const sirius_calls *c = s->read.now;
    const COP *at = j->at;
    for (int i = j->from; i < c->n; i++) {
        const sirius_callframe *f = &c->frames[i];
        if (f->call == SIRIUS_CALL_SUB && !f->sub) { /* it has left */
            at = f->called_at;
            continue;
        }
        if (f->hidden)
            continue;
        sr_buffer_reset(&s->label);
        add_name(aTHX_ s, f);
        if (f->call == SIRIUS_CALL_SUB && is_below(s, below)) {
            s->below = f->sub;
            return true;
        }
        if (f->call != SIRIUS_CALL_LEVEL) {
            add_place(aTHX_ s, f, at, j->entering && i == j->from);
            at = f->called_at;
        }
        push_label(aTHX_ s, to);
    }
    sr_buffer_reset(&s->label);
    add_text(&s->label, c->more ? "..." : "(main program)");
    if (!c->more)
        add_place(aTHX_ s, NULL, at, false);
    push_label(aTHX_ s, to);
    return false;
}

static void reverse(AV *list)
{
    SV **of = AvARRAY(list);
    for (SSize_t i = 0, k = AvFILLp(list); i < k; i++, k--) {
        SV *first = of[i];
        of[i] = of[k];
        of[k] = first;
    }
}

/* NULL: not even whether it is within the sub `below` is certain */
static AV *labels(pTHX_ sirius_sampler *s, const sirius_judgement *j, SV *below, bool has_leaf, SV *leaf)
{
    AV *list = newAV();
    bool inside = add_frames(aTHX_ s, j, below, list);
    bool of_server =
        below && !inside && !s->read.now->more; /* it is not in the application, as far as is certain */
    if (of_server && !j->whole) {
        SvREFCNT_dec((SV *)list);
        return NULL;
    }
    if (of_server)
        av_clear(list);
    reverse(list);
    if (av_len(list) >= 0 && has_leaf) {
        /* what it is for has not begun, or is over: it is called by the leaf */
        const sirius_callframe *f = &s->read.now->frames[j->from];
        if (j->from < s->read.now->n && f->call == SIRIUS_CALL_LEVEL && !f->hidden)
            SvREFCNT_dec(av_pop(list));
        av_push(list, SvREFCNT_inc(leaf));
    }
    if (!j->whole)
        av_push(list, newSVpvs("(moved)"));
    return list;
}

/* --- what was certain first --- */

/*
 * The innermost frame that may be of the sub that is left out, as it was there the last time; c->n: none. One
 * that is late may be none
 */
static int find_below(const sirius_sampler *s, const sirius_calls *c)
{
    int i = 0;
    while (i < c->n && !(c->frames[i].call == SIRIUS_CALL_SUB && c->frames[i].sub &&
                         c->frames[i].sub == s->below && !c->frames[i].late))
        i++;
    return i;
}

/*
 * A stack that is read again is one of another moment: by that, code that is over soon would be seen too
 * rarely. So it has to go on from what was certain of the first one, of which these are the labels; else they
 * are what is shown. NULL: nothing was.
 */
static AV *keep(pTHX_ sirius_sampler *s, const sirius_judgement *j, SV *below)
{
    const sirius_calls *c = s->read.now;
    AV *list = j->from < 0 ? NULL : labels(aTHX_ s, j, below, false, NULL);
    if (list) {
        sv_2mortal((SV *)list);
        int outermost = below ? find_below(s, c) : c->n; /* what is read again has no others: see leave_out */
        s->first.n = outermost < c->n ? outermost + 1 : c->n;
        s->first.certain = s->first.n - j->from;
        for (int i = 0; i < s->first.n; i++)
            s->first.frames[i] = c->frames[s->first.n - 1 - i];
    }
    return list;
}

/*
 * Whether the last stack has all calls of the first one: what was certain, and else maybe other subs, but
 * called at the same places.
 */
static bool goes_on(const sirius_sampler *s)
{
    const sirius_calls *c = s->read.now;
    int i = 0;
    while (i < s->first.n && i < c->n) {
        const sirius_callframe *a = &s->first.frames[i], *b = &c->frames[c->n - 1 - i];
        if (i < s->first.certain ? !sirius_frame_is(a, b)
                                 : a->called_at != b->called_at || a->retop != b->retop)
            return false;
        i++;
    }
    return i == s->first.n;
}

/* --- reading --- */

/* What will not be shown need not be certain: 20 frames of the server lie outside of the application. */
static void leave_out(pTHX_ sirius_sampler *s, sirius_calls *c, SV *below)
{
    int i = find_below(s, c);
    if (i == c->n)
        return;
    sr_buffer_reset(&s->label);
    add_name(aTHX_ s, &c->frames[i]);
    if (!is_below(s, below)) /* another one is there now */
        return;
    c->n = i + 1;
    c->more = false;
    c->left_out = true;
}

/* Whether the operation that runs is one of the innermost frame; not if code in a pattern has not begun. */
static bool has_operation(pTHX_ sirius_sampler *s, const sirius_judgement *j)
{
    const sirius_calls *c = s->read.now;
    const sirius_point *p = j->within;
    const sirius_callframe *f = j->from >= 0 && j->from < c->n ? &c->frames[j->from] : NULL;
    bool in_pattern = f && (f->call == SIRIUS_CALL_REGEX || f->call == SIRIUS_CALL_REGEX_HERE);
    return p && !(in_pattern && p->statement == f->called_at) &&
           sirius_callsite_is(aTHX_ s->read.sites, s->read.known, p->statement, p->op);
}

/*
 * Tries once. 1: all of it is certain; 0: *j says how much, or nothing if from is -1; -1 with errno: not
 * readable
 */
static int try(pTHX_ sirius_sampler *s, bool again, SV *below, sirius_judgement *j, SV *leaf, bool *has_leaf)
{
    sirius_calls *spare = s->read.last;
    j->from = -1;
    *has_leaf = false;
    sirius_known_begin(aTHX_ s->read.known, again);
    if (s->settles)
        sirius_known_settle(s->read.known);
    sirius_callsites_begin(s->read.sites);
    if (!sirius_snapshot_take(aTHX_ s->snapshot, spare)) {
        s->read.has_last = false;
        return -1;
    }
    leave_out(aTHX_ s, spare, below);
    s->read.last = s->read.now;
    s->read.now = spare;
    *j = sirius_judge(aTHX_ & s->read);
    if (has_operation(aTHX_ s, j)) {
        bool fresh = false;
        const sirius_calls *c = s->read.now;
        const sirius_leaf_at at = {.point = j->within,
                                   .lasts = j->lasts,
                                   .stands = c->before.op == c->after.op && c->before.sp == c->after.sp};
        sr_buffer_reset(&s->label);
        *has_leaf = sirius_leaf_add(aTHX_ s->read.known, &s->target, &at, &s->label, &fresh);
        if (*has_leaf)
            sv_setpvn(leaf, sr_buffer_at(&s->label), sr_buffer_len(&s->label));
        j->fresh = j->fresh || fresh;
    }
    s->read.has_last = true;
    if (!sirius_known_same(aTHX_ s->read.known) || j->fresh) {
        sirius_judge_steady(aTHX_ & s->read, j);
        *has_leaf = false;
    }
    return j->whole;
}

/* 0 with errno: it is gone */
static char state_of(const sirius_sampler *s)
{
    char line[256]; /* the name of a program has at most 15 bytes, maybe with parentheses */
    ssize_t n = pread(s->stat, line, sizeof line - 1, 0);
    const char *end = n > 0 ? sr_bytes_last(sr_bytes_of(line, (size_t)n), ')') : NULL;
    if (end && end + 2 < line + n && !strchr("ZX", end[2]))
        return end[2];
    if (n >= 0)
        errno = ESRCH;
    return 0;
}

/* Nanoseconds that its threads had run when they stopped last; they may run since. -1: unknown */
static int64_t run_time(const sirius_sampler *s)
{
    struct timespec t;
    if (!s->has_clock || clock_gettime(s->clock, &t) < 0)
        return -1;
    return (int64_t)t.tv_sec * SR_SECOND + t.tv_nsec;
}

/* Whether it is off the CPU: its state does not tell, as one that is about to sleep may run on instead. */
static bool has_stopped(const sirius_sampler *s)
{
    char line[256];
    ssize_t n = pread(s->system_call, line, sizeof line, 0);
    return n > 0 && line[0] != 'r'; /* "running" */
}

/*
 * A sub that may have been given another name since the stack was read is called by its code. If the process
 * has not run since before that, it was not: then these are the labels. It has not if it was off the CPU
 * twice, with the same time that it had run.
 */
static void settle(pTHX_ sirius_sampler *s, int64_t ran, SV *below, AV **to)
{
    sirius_judgement j;
    SV *leaf = sv_2mortal(newSVpvs(""));
    bool has_leaf;
    if (!has_stopped(s) || run_time(s) != ran)
        return;
    s->settles = true;
    bool good = try(aTHX_ s, true, below, &j, leaf, &has_leaf) == 1;
    s->settles = false;
    if (!good || !has_stopped(s) || run_time(s) != ran)
        return;
    SvREFCNT_dec((SV *)*to);
    *to = labels(aTHX_ s, &j, below, has_leaf, leaf);
}

bool sirius_sampler_take(pTHX_ sirius_sampler *s, SV *below, sirius_sample *to)
{
    sirius_judgement j = {.from = -1};
    SV *leaf = sv_2mortal(newSVpvs(""));
    AV *kept = NULL;
    bool has_leaf = false, done = false;
    int good = 0, err = 0;
    int64_t ran = -1;
    int64_t cpu_until = sr_clock_thread_cpu() + CPU_MAX_NS, until = sr_clock_monotonic() + WALL_MAX_NS;
    s->read.has_last = false;
    to->state = state_of(s);
    for (int i = 0; i < TRIES_MAX && to->state && !done && (!err || err == EFAULT); i++) {
        if (i && (sr_clock_thread_cpu() >= cpu_until || sr_clock_monotonic() >= until))
            break;
        char before = to->state;
        ran = before == 'R' ? -1 : run_time(s);
        good = try(aTHX_ s, i > 0, below, &j, leaf, &has_leaf);
        err = good < 0 ? errno : 0;
        to->state = state_of(s);
        if (good == 0 && !kept)
            kept = keep(aTHX_ s, &j, below);
        else if (good == 1 && kept && !goes_on(s))
            good = 0;
        done = good == 1 && to->state == before;
    }
    to->moved = good != 1;
    if (!to->state)
        return false;
    if (err && !(kept && err == EFAULT)) { /* a later try may fail where stacks change fast */
        errno = err;
        return false;
    }
    to->labels = good == 1 ? labels(aTHX_ s, &j, below, has_leaf, leaf) : (AV *)SvREFCNT_inc((SV *)kept);
    if (done && ran >= 0 && sirius_known_doubts(s->read.known))
        settle(aTHX_ s, ran, below, &to->labels);
    if (!to->labels) {
        to->labels = newAV();
        av_push(to->labels, newSVpvs("(moved)"));
    }
    return true;
}

static int open_proc(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

sirius_sampler *sirius_sampler_new(pTHX_ const sirius_target *t)
{
    sirius_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->target = *t;
    s->read.now = &s->stacks[0];
    s->read.last = &s->stacks[1];
    sr_buffer_init(&s->label);
    s->read.known = sirius_known_new(aTHX_ t);
    s->read.sites = sirius_callsites_new(aTHX_ t);
    s->snapshot = sirius_snapshot_new(aTHX_ t);
    s->stat = open_proc(t->pid, "stat");
    s->system_call = open_proc(t->pid, "syscall");
    s->has_clock = clock_getcpuclockid(t->pid, &s->clock) == 0;
    if (s->stat >= 0 && s->read.known && s->read.sites && s->snapshot)
        return s;
    int err = errno == ENOENT ? ESRCH : errno;
    sirius_sampler_free(aTHX_ s);
    errno = err;
    return NULL;
}

void sirius_sampler_free(pTHX_ sirius_sampler *s)
{
    if (s->read.known)
        sirius_known_free(aTHX_ s->read.known);
    sirius_callsites_free(aTHX_ s->read.sites);
    sirius_snapshot_free(s->snapshot);
    if (s->stat >= 0)
        close(s->stat);
    if (s->system_call >= 0)
        close(s->system_call);
    sr_buffer_free(&s->label);
    free(s);
}
