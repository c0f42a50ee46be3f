/*
 * stack: in which subs of Perl a worker is, read from its memory (remote.h) while it runs on.
 *
 * Perl keeps its calls in arrays of contexts, one for each level of the interpreter: a context has the sub that was called,
 * and the statement that has called it. These are copied, then the names of the subs are looked up, and then the contexts are
 * copied again: frames that are the same in both, from the outside in, were there all the time, so their pointers were good.
 * A worker that calls and returns quickly makes the inner ones differ; after a few tries these are left out, and the line of the
 * innermost one may be that of a call which is over.
 *
 * Whatever is read may be garbage, since the worker goes on, and its application may have destroyed its memory. So each copy
 * has a fixed size or a limit, no number that was read is used as an index here, and each walk has an end: a stack costs at
 * most some 5,000 small copies, 5 ms.
 */
#include "stack.h"

#include "naming.h"
#include "remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    FRAMES_MAX = 50,     /* that are returned */
    CONTEXTS_MAX = 4096, /* that are looked at: also loops and blocks are such */
    CONTEXTS_AT_ONCE = 16,
    LEVELS_MAX = 64, /* of the interpreter: sort, overload, tie, DESTROY ... begin a new one */
    TRIES_MAX = 8,
};

typedef enum kind { SUB, STRING_EVAL, REQUIRE, BLOCK_EVAL, LEFT } kind;

typedef struct frame {
    kind kind;
    const CV *sub;
    const COP *called_at;
} frame;

typedef struct calls {
    frame frames[2 * FRAMES_MAX]; /* innermost first; blocks of eval, which are not shown, are among them */
    int n;
    bool more;     /* there are others further out */
    const COP *at; /* the statement that runs */
} calls;

/* --- the calls --- */

static void add(calls *c, const PERL_CONTEXT *cx)
{
    frame f = {.sub = NULL, .called_at = cx->blk_oldcop};
    switch (CxTYPE(cx)) {
    case CXt_SUB:
        f.sub = cx->blk_sub.cv;
        f.kind = f.sub ? SUB : LEFT; /* on its way out */
        break;
    case CXt_EVAL:
        f.kind = CxTRYBLOCK(cx) ? BLOCK_EVAL : CxOLD_OP_TYPE(cx) == (int)OP_ENTEREVAL ? STRING_EVAL : REQUIRE;
        break;
    default:
        return;
    }
    c->frames[c->n++] = f;
}

/* Of one level, from the top. False: they are not readable, or no numbers of contexts. */
static bool copy_level(pid_t pid, calls *c, const PERL_SI *si, int *looked_at)
{
    if (si->si_cxix < -1 || si->si_cxix > si->si_cxmax || (si->si_cxix >= 0 && !si->si_cxstack))
        return false;
    for (I32 i = si->si_cxix; i >= 0 && !c->more;) {
        PERL_CONTEXT block[CONTEXTS_AT_ONCE];
        I32 from = i >= CONTEXTS_AT_ONCE ? i - CONTEXTS_AT_ONCE + 1 : 0;
        if (!sirius_remote_at(pid, block, si->si_cxstack, (size_t)from * sizeof block[0],
                              (size_t)(i - from + 1) * sizeof block[0]))
            return false;
        for (; i >= from && !c->more; i--) {
            add(c, &block[i - from]);
            c->more = c->n == (int)(sizeof c->frames / sizeof c->frames[0]) || ++*looked_at == CONTEXTS_MAX;
        }
    }
    return true;
}

/* False with errno: nothing is readable, or it makes no sense. */
static bool copy_calls(pTHX_ pid_t pid, calls *c)
{
    const PERL_SI *at;
    int looked_at = 0;
    memset(c, 0, sizeof *c); /* also between the members: two of them are compared */
    if (!sirius_remote_copy(pid, &at, &PL_curstackinfo, sizeof at))
        return false;
    for (int level = 0; at && !c->more; level++) {
        PERL_SI si;
        if (level == LEVELS_MAX) {
            c->more = true;
        } else {
            if (!sirius_remote_copy(pid, &si, at, sizeof si))
                return false;
            if (!copy_level(pid, c, &si, &looked_at)) {
                errno = EFAULT;
                return false;
            }
            at = si.si_prev;
        }
    }
    return sirius_remote_copy(pid, &c->at, &PL_curcop, sizeof c->at);
}

static bool same(const frame *a, const frame *b)
{
    return a->kind == b->kind && a->sub == b->sub && a->called_at == b->called_at;
}

/* How many of a, from the outside, are in b as well. */
static int common(const calls *a, const calls *b)
{
    int n = 0;
    if (a->more || b->more) { /* where they end is unknown */
        while (a->n == b->n && n < a->n && same(&a->frames[a->n - 1 - n], &b->frames[b->n - 1 - n]))
            n++;
        return n;
    }
    while (n < a->n && n < b->n && same(&a->frames[a->n - 1 - n], &b->frames[b->n - 1 - n]))
        n++;
    return n;
}

/* --- the texts --- */

/* " at FILE line N" */
static bool add_place(pTHX_ pid_t pid, sr_buffer *out, const COP *at)
{
    COP cop;
    char line[32];
    if (!at || !sirius_remote_copy(pid, &cop, at, sizeof cop) || !sr_buffer_add(out, " at ", 4) ||
        !sirius_naming_file(aTHX_ pid, out, &cop))
        return false;
    int n = snprintf(line, sizeof line, " line %lu", (unsigned long)CopLINE(&cop));
    return sr_buffer_add(out, line, (size_t)n);
}

typedef struct texts {
    sr_buffer bytes;
    size_t from[FRAMES_MAX + 2]; /* of text i, which ends where the next one begins */
    int of[FRAMES_MAX + 1];      /* the frame of text i */
    int n;
    bool more;
} texts;

static bool is_own(const texts *t)
{
    static const char own[] = "Sirius::Worker::run"; /* and whatever has called that */
    sr_bytes text =
        sr_bytes_of(sr_buffer_at(&t->bytes) + t->from[t->n], sr_buffer_len(&t->bytes) - t->from[t->n]);
    return sr_bytes_equal(text, sr_bytes_of(own, sizeof own - 1));
}

static void describe(pTHX_ pid_t pid, const calls *c, texts *t)
{
    const COP *at = c->at;
    sr_buffer_reset(&t->bytes);
    t->n = 0;
    t->more = false;
    for (int i = 0; i < c->n; i++) {
        const frame *f = &c->frames[i];
        if (f->kind == LEFT)
            at = f->called_at;
        if (f->kind == LEFT || f->kind == BLOCK_EVAL) /* a block shows nothing that its sub does not */
            continue;
        if (t->n == FRAMES_MAX) {
            t->more = true;
            return;
        }
        t->from[t->n] = sr_buffer_len(&t->bytes);
        bool named = f->kind == SUB           ? sirius_naming_sub(pid, &t->bytes, f->sub)
                     : f->kind == STRING_EVAL ? sr_buffer_add(&t->bytes, "(eval)", 6)
                                              : sr_buffer_add(&t->bytes, "require", 7);
        if (!named)
            sr_buffer_add(&t->bytes, "(unknown)", 9);
        if (is_own(t)) {
            t->bytes.end = t->bytes.from + t->from[t->n];
            return;
        }
        size_t before = t->bytes.end;
        if (!add_place(aTHX_ pid, &t->bytes, at))
            t->bytes.end = before;
        t->of[t->n++] = i;
        t->from[t->n] = sr_buffer_len(&t->bytes);
        at = f->called_at;
    }
    t->more = c->more;
}

AV *sirius_stack(pTHX_ IV pid)
{
    calls before = {.n = 0}, after;
    texts t = {.n = 0};
    int good = -1;
    sr_buffer_init(&t.bytes);
    for (int i = 0; i < TRIES_MAX; i++) {
        if (!copy_calls(aTHX_(pid_t) pid, &before)) {
            good = -1;
            continue;
        }
        describe(aTHX_(pid_t) pid, &before, &t);
        if (!copy_calls(aTHX_(pid_t) pid, &after)) {
            good = -1;
            continue;
        }
        good = common(&before, &after);
        if (good == before.n && good == after.n && before.at == after.at)
            break;
    }
    if (good < 0) {
        int err = errno;
        sr_buffer_free(&t.bytes);
        errno = err;
        return NULL;
    }
    AV *list = newAV();
    bool left_out = false;
    for (int i = 0; i < t.n; i++) {
        if (t.of[i] < before.n - good) { /* it has returned meanwhile */
            if (!left_out)
                av_push(list, newSVpvs("(calls that come and go)"));
            left_out = true;
            continue;
        }
        av_push(list, newSVpvn(sr_buffer_at(&t.bytes) + t.from[i], t.from[i + 1] - t.from[i]));
    }
    if (t.more)
        av_push(list, newSVpvs("..."));
    sr_buffer_free(&t.bytes);
    return list;
}
