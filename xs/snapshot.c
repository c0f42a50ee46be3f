#include "snapshot.h"

#include "base/clock.h"
#include "remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS_MAX = 40, /* of the interpreter: sort, overload, tie, DESTROY ... begin a new one */
    CONTEXTS_MAX = 2000,
    ROOM = 16,        /* contexts for calls that come */
    INNER = 4 * ROOM, /* contexts that come and go most: they are copied in one piece, and at least */
    INNER_USED = 8,   /* so many of those in use are of them */
    NEAR = 2 * ROOM, /* contexts of an outer level that are copied right before and after the innermost one */
    POINT_MAX = 8192,    /* bytes of the interpreter */
    DEPTH_MAX = 1 << 26, /* contexts of a level, 7 GB: more is no stack, and would overflow what is counted */
    TRIES_MAX = 4,
    SLACK = 300, /* ns */
    ENDED = 2,   /* inner levels that may have ended when perl is on one further out */
    UNUSED = 64, /* snapshots, until levels that have ended are read no more: each makes a copy slower */
};

typedef struct level {
    const PERL_SI *at;
    const PERL_CONTEXT *contexts;
    I32 from, n; /* which of them are read */
} level;

struct sirius_snapshot {
    sirius_target target;
    const char *members; /* of the interpreter, all that sirius_point has: in this process */
    size_t members_len;
    int n; /* levels, innermost first; 0: unknown */
    bool more;
    level levels[LEVELS_MAX];
    int top;       /* perl is on this one: those further in have ended, and will be used again */
    int unused;    /* snapshots in a row since the innermost one was in use */
    int64_t usual; /* ns that a copy takes when nothing interrupts it, about; 0: unknown */

    /* what was read last */
    U32 next_seq;
    char before[POINT_MAX];
    PERL_SI infos[LEVELS_MAX];
    PERL_CONTEXT contexts[CONTEXTS_MAX + ROOM * LEVELS_MAX];
    PERL_CONTEXT near_after[LEVELS_MAX][NEAR]; /* of outer levels */
    PERL_CONTEXT near_last[LEVELS_MAX][NEAR];
    PERL_SI infos_after[LEVELS_MAX];
    struct {                       /* of a level on which perl may be, right behind each other */
        PERL_CONTEXT inner[INNER]; /* of level 0: not used */
        char point[POINT_MAX];
        PERL_CONTEXT last[INNER];
        PERL_SI info; /* once more: what the level is for */
    } at[ENDED + 1];
    PERL_CONTEXT far_last[CONTEXTS_MAX]; /* those further out of these levels, once more */
};

/* --- the interpreter --- */

#define MEMBER(s, bytes, variable, to)                                                                       \
    memcpy(&(to), (bytes) + ((const char *)&(variable) - (s)->members), sizeof(to))

static sirius_point point_of(pTHX_ const sirius_snapshot *s, const char *bytes)
{
    sirius_point p;
    PERL_UNUSED_CONTEXT;
    MEMBER(s, bytes, PL_op, p.op);
    MEMBER(s, bytes, PL_curpad, p.pad);
    MEMBER(s, bytes, PL_stack_sp, p.sp);
    MEMBER(s, bytes, PL_curcop, p.statement);
    MEMBER(s, bytes, PL_comppad, p.variables);
    MEMBER(s, bytes, PL_curstackinfo, p.level);
    return p;
}

static void find_members(pTHX_ sirius_snapshot *s)
{
    const void *all[] = {&PL_op, &PL_curpad, &PL_stack_sp, &PL_curcop, &PL_comppad, &PL_curstackinfo};
    uintptr_t low = UINTPTR_MAX, high = 0;
    PERL_UNUSED_CONTEXT;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        uintptr_t at = (uintptr_t)all[i];
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    s->members = (const char *)low;
    s->members_len = high - low + sizeof(void *);
}

/* --- where the levels are --- */

static bool senseless(void)
{
    errno = EFAULT;
    return false;
}

static bool find_levels(pTHX_ sirius_snapshot *s)
{
    const PERL_SI *at;
    I32 left = CONTEXTS_MAX;
    s->n = 0;
    s->more = false;
    if (!sirius_remote_copy(s->target.pid, &at, SIRIUS_THERE(&s->target, PL_curstackinfo), sizeof at))
        return false;
    while (at) {
        PERL_SI info;
        level *l = &s->levels[s->n];
        if (s->n == LEVELS_MAX || !left) {
            s->more = true;
            break;
        }
        if (!sirius_remote_copy(s->target.pid, &info, at, sizeof info))
            return false;
        if (info.si_cxix < -1 || info.si_cxix > info.si_cxmax || info.si_cxmax > DEPTH_MAX ||
            !info.si_cxstack)
            return senseless();
        I32 used = info.si_cxix + 1, to = used + ROOM;
        if (to > info.si_cxmax + 1)
            to = info.si_cxmax + 1;
        l->at = at;
        l->contexts = info.si_cxstack;
        l->from = used > left ? used - left : 0;
        l->n = to - l->from;
        left -= used - l->from;
        s->more = s->more || l->from > 0;
        s->n++;
        at = info.si_prev;
        if (l->from > 0)
            break;
    }
    return s->n ? true : senseless();
}

/* Where the inner contexts of a level begin */
static I32 inner_of(const level *l)
{
    return l->n > INNER ? l->n - INNER : 0;
}

/* Where those of an outer level begin that are called from next */
static I32 near_of(const level *l)
{
    return l->n > NEAR ? l->n - NEAR : 0;
}

/* Whether it is as deep as when it was found: else the calls that come and go are not copied last */
static bool is_as_deep(const level *l, const PERL_SI *info)
{
    I32 inner = inner_of(l);
    return !inner || info->si_cxix + 1 - l->from >= inner + INNER_USED;
}

/* Whether what was read is there where it was looked for */
static bool found(pTHX_ const sirius_snapshot *s)
{
    if (s->top == s->n)
        return false;
    for (int i = s->top; i < s->n; i++) {
        const PERL_SI *info = &s->infos[i];
        const level *l = &s->levels[i];
        const PERL_SI *next = i + 1 < s->n ? s->levels[i + 1].at : NULL;
        if (info->si_cxstack != l->contexts || (info->si_prev != next && (next || !s->more)) ||
            info->si_cxix < l->from - 1 || info->si_cxix >= l->from + l->n || !is_as_deep(l, info))
            return false;
    }
    return true;
}

/* Where a context is there, whatever it says that its stack begins with */
static const void *context_at(const level *l, I32 i)
{
    return (const void *)((uintptr_t)l->contexts + (size_t)(l->from + i) * sizeof *l->contexts);
}

static sirius_piece contexts_of(const level *l, I32 from, I32 to, PERL_CONTEXT *into)
{
    return (sirius_piece){into, context_at(l, from), (size_t)(to - from) * sizeof *into};
}

/* Where those further out of a level are in far_last */
static I32 far_of(const sirius_snapshot *s, int i)
{
    I32 at = 0;
    while (i > 0)
        at += inner_of(&s->levels[--i]);
    return at;
}

/*
 * Adds what is read of a level on which perl may be: its inner contexts, the place, and these contexts again,
 * since the place may be that of the next call. It takes 0.4 us from piece to piece, so nothing is between
 * these three: a call that fits there is not noticed. The contexts further out, of a deep stack, are read
 * before and behind them.
 */
static size_t add_level_at(sirius_snapshot *s, int i, const void *members, PERL_CONTEXT *contexts,
                           sirius_piece *pieces)
{
    const level *l = &s->levels[i];
    I32 inner = inner_of(l);
    size_t n = 0;
    pieces[n++] = contexts_of(l, 0, inner, contexts);
    if (i == 0)
        pieces[n++] = (sirius_piece){s->before, members, s->members_len};
    pieces[n++] = (sirius_piece){i ? &s->infos_after[i] : &s->infos[i], l->at, sizeof s->infos[i]};
    pieces[n++] = contexts_of(l, inner, l->n, i ? s->at[i].inner : contexts + inner);
    pieces[n++] = (sirius_piece){s->at[i].point, members, s->members_len};
    pieces[n++] = contexts_of(l, inner, l->n, s->at[i].last);
    pieces[n++] = (sirius_piece){&s->at[i].info, l->at, sizeof s->at[i].info};
    pieces[n++] = contexts_of(l, 0, inner, s->far_last + far_of(s, i));
    return n;
}

/*
 * What moves most comes last: the level on which perl is. What is outside of that may be of another moment:
 * what of it calls further in is read right before and right after it, and if it is the same, it has not
 * changed but for a call that was over meanwhile. Calls in turn may fit between the two each time, so it is
 * read once more at the end. Perl may be on a level further out than the time before: the first ones of these
 * are read as the innermost one is.
 */
static bool copy(pTHX_ sirius_snapshot *s)
{
    sirius_piece pieces[6 * LEVELS_MAX + 8 * (ENDED + 1) + 1];
    size_t n = 0;
    PERL_CONTEXT *contexts[LEVELS_MAX], *to = s->contexts;
    const level *l = s->levels;
    const void *members = (const void *)((uintptr_t)s->members + s->target.away);
    PERL_UNUSED_CONTEXT;
    pieces[n++] = (sirius_piece){&s->next_seq, SIRIUS_THERE(&s->target, PL_cop_seqmax), sizeof s->next_seq};
    for (int i = 0; i < s->n; i++) {
        contexts[i] = to;
        to += l[i].n;
    }
    for (int i = s->n - 1; i > 0; i--) {
        I32 from = i > ENDED ? 0 : inner_of(&l[i]);
        pieces[n++] = (sirius_piece){&s->infos[i], l[i].at, sizeof s->infos[i]};
        pieces[n++] = contexts_of(&l[i], from, near_of(&l[i]), contexts[i] + from);
    }
    for (int i = s->n - 1; i > 0; i--)
        pieces[n++] = contexts_of(&l[i], near_of(&l[i]), l[i].n, contexts[i] + near_of(&l[i]));
    n += add_level_at(s, 0, members, contexts[0], pieces + n);
    for (int i = 1; i < s->n; i++)
        pieces[n++] = contexts_of(&l[i], near_of(&l[i]), l[i].n, s->near_after[i]);
    for (int i = 1; i < s->n && i <= ENDED; i++)
        n += add_level_at(s, i, members, contexts[i], pieces + n);
    for (int i = ENDED + 1; i < s->n; i++) {
        pieces[n++] = contexts_of(&l[i], near_of(&l[i]), l[i].n, s->near_last[i]);
        pieces[n++] = (sirius_piece){&s->infos_after[i], l[i].at, sizeof s->infos_after[i]};
    }
    return sirius_remote_pieces(s->target.pid, pieces, n);
}

/* Whether those in use from `from` on are the same in `again`, which begins there */
static bool are_same(const level *l, const PERL_SI *info, const PERL_CONTEXT *contexts, I32 from,
                     const PERL_CONTEXT *again)
{
    I32 used = info->si_cxix + 1 - l->from;
    return used <= from || memcmp(contexts + from, again, (size_t)(used - from) * sizeof *contexts) == 0;
}

/*
 * Whether those of a deep level that are further out than its inner ones were not the same before and behind
 * these
 */
static bool is_far_torn(const sirius_snapshot *s, int i, const PERL_CONTEXT *contexts)
{
    I32 inner = inner_of(&s->levels[i]), used = s->infos[i].si_cxix + 1 - s->levels[i].from;
    used = used < inner ? used : inner;
    return used > 0 && memcmp(contexts, s->far_last + far_of(s, i), (size_t)used * sizeof *contexts) != 0;
}

/*
 * Whether a level outside of the innermost one, of which these are the contexts, was not the same each time.
 */
static bool is_torn(const sirius_snapshot *s, int i, const PERL_CONTEXT *contexts)
{
    const level *l = &s->levels[i];
    const PERL_SI *info = &s->infos[i];
    if (info->si_cxix != s->infos_after[i].si_cxix || info->si_type != s->infos_after[i].si_type ||
        !are_same(l, info, contexts, near_of(l), s->near_after[i]))
        return true;
    if (i > ENDED)
        return !are_same(l, info, contexts, near_of(l), s->near_last[i]);
    return !are_same(l, info, contexts, inner_of(l), s->at[i].inner) ||
           !are_same(l, info, contexts, inner_of(l), s->at[i].last) || is_far_torn(s, i, contexts);
}

/*
 * On which level perl is: if it is not the innermost one, its inner contexts are those that were read second.
 */
static void find_top(pTHX_ sirius_snapshot *s)
{
    const PERL_SI *at = point_of(aTHX_ s, s->before).level;
    PERL_CONTEXT *contexts = s->contexts;
    for (s->top = 0; s->top < s->n && s->levels[s->top].at != at; s->top++)
        contexts += s->levels[s->top].n;
    if (s->top > ENDED)
        s->top = s->n;
    if (s->top == 0 || s->top == s->n)
        return;
    const level *l = &s->levels[s->top];
    I32 inner = inner_of(l);
    s->infos[s->top] = s->infos_after[s->top];
    memcpy(contexts + inner, s->at[s->top].inner, (size_t)(l->n - inner) * sizeof *contexts);
}

/* --- frames --- */

bool sirius_frame_is(const sirius_callframe *a, const sirius_callframe *b)
{
    return a->call == b->call && a->level == b->level && a->sub == b->sub && a->called_at == b->called_at &&
           a->retop == b->retop;
}

static const PAD *caller_of(const PERL_CONTEXT *cx)
{
#if PERL_VERSION >= 24
    return cx->blk_sub.prevcomppad;
#else
    (void)cx;
    return NULL;
#endif
}

static sirius_callframe *add(sirius_calls *c, sirius_call call, const COP *called_at)
{
    if (c->n == SIRIUS_FRAMES_MAX) {
        c->more = true;
        return NULL;
    }
    sirius_callframe *f = &c->frames[c->n++];
    memset(f, 0, sizeof *f); /* also between the members: two of them are compared */
    f->call = call;
    f->called_at = called_at;
    return f;
}

static void add_sub(sirius_calls *c, const PERL_CONTEXT *cx)
{
    sirius_call call = SIRIUS_CALL_SUB;
#ifdef CXp_SUB_RE
    if (cx->cx_type & CXp_SUB_RE_FAKE)
        call = SIRIUS_CALL_REGEX_HERE;
    else if (cx->cx_type & CXp_SUB_RE)
        call = SIRIUS_CALL_REGEX;
#endif
    if (call != SIRIUS_CALL_SUB && !cx->blk_sub.cv) /* it is over, or has not begun */
        return;
    sirius_callframe *f = add(c, call, cx->blk_oldcop);
    if (!f)
        return;
    f->sub = cx->blk_sub.cv;
    f->depth = cx->blk_sub.olddepth + (call != SIRIUS_CALL_REGEX_HERE);
    f->retop = cx->blk_sub.retop;
    f->caller = caller_of(cx);
}

static void add_context(sirius_calls *c, const PERL_CONTEXT *cx, bool sort_block)
{
    sirius_callframe *f = NULL;
    switch (CxTYPE(cx)) {
    case CXt_SUB:
        add_sub(c, cx);
        return;
    case CXt_FORMAT:
        f = add(c, SIRIUS_CALL_FORMAT, cx->blk_oldcop);
        if (f)
            f->sub = cx->blk_format.cv;
        return;
    case CXt_EVAL:
        if (CxTRYBLOCK(cx))
            return;
        f = add(c, CxOLD_OP_TYPE(cx) == (int)OP_ENTEREVAL ? SIRIUS_CALL_EVAL : SIRIUS_CALL_REQUIRE,
                cx->blk_oldcop);
        if (!f)
            return;
#if PERL_VERSION >= 18
        f->sub = cx->blk_eval.cv;
#endif
        f->retop = cx->blk_eval.retop;
        f->depth = 1;
        return;
    default:
        f = sort_block ? add(c, SIRIUS_CALL_SORT, cx->blk_oldcop) : NULL;
        if (f)
            f->torn = CxTYPE(cx) != CXt_NULL; /* it has not been written yet */
    }
}

/* sure: perl has not begun one for something else meanwhile, with the same memory. */
static void add_level(sirius_calls *c, int type, bool sure)
{
    sirius_callframe *f = NULL;
    if (type == PERLSI_MAGIC || type == PERLSI_SIGNAL || type == PERLSI_OVERLOAD || type == PERLSI_DESTROY ||
        type == PERLSI_WARNHOOK || type == PERLSI_DIEHOOK)
        f = add(c, SIRIUS_CALL_LEVEL, NULL);
    if (f) {
        f->level = type;
        f->unsure = !sure;
    }
}

#if PERL_VERSION >= 24
/* A sub that has returned has none in its context. */
static bool is_sub(const PERL_CONTEXT *cx)
{
    return CxTYPE(cx) == CXt_SUB && cx->blk_sub.cv;
}

#endif

/*
 * The number of contexts was read before they were. A sub that has returned since has a context without a
 * sub; one that was called since has one with a sub behind them, and then those below it are in use as well.
 * Without the latter, short subs would be seen too rarely.
 */
static I32 top_of(const PERL_CONTEXT *contexts, const level *l, I32 cxix)
{
#if PERL_VERSION >= 24
    for (I32 at = l->from + l->n - 1; at > cxix; at--)
        if (is_sub(&contexts[at - l->from]))
            return at;
#else
    (void)contexts, (void)l;
#endif
    return cxix;
}

#if PERL_VERSION >= 24
/* Whether they are of the same call, as far as it shows */
static bool is_same_call(const PERL_CONTEXT *a, const PERL_CONTEXT *b)
{
    if (!is_sub(a) || !is_sub(b))
        return is_sub(a) == is_sub(b);
    return a->blk_oldcop == b->blk_oldcop && a->blk_sub.cv == b->blk_sub.cv &&
           a->blk_sub.retop == b->blk_sub.retop && a->blk_sub.olddepth == b->blk_sub.olddepth;
}

static bool has_block(int type)
{
#ifdef PERLSI_MULTICALL
    if (type == PERLSI_MULTICALL)
        return true;
#endif
    return type == PERLSI_SORT;
}

/*
 * Whether another sort, or code of a pattern, has begun: a context tells where its block is. The last one
 * stays there until then.
 */
static bool is_other_block(const sirius_snapshot *s, const PERL_CONTEXT *contexts)
{
    const level *l = &s->levels[s->top];
    const PERL_CONTEXT *last = s->at[s->top].last;
    int type = s->infos[s->top].si_type, later = s->at[s->top].info.si_type;
    if (type != later)
        return has_block(type) || has_block(later);
    return has_block(type) && l->from == 0 && inner_of(l) == 0 &&
           (CxTYPE(last) != CxTYPE(contexts) || last->blk_oldcop != contexts->blk_oldcop);
}

/*
 * Whether the place behind the contexts is one of the calls in them, of which the innermost context is at
 * `top`: they were the same behind it. Blocks and loops come and go within a call.
 */
static void compare_last(const sirius_snapshot *s, const PERL_CONTEXT *contexts, I32 top, sirius_calls *c)
{
    const level *l = &s->levels[s->top];
    const PERL_CONTEXT *last = s->at[s->top].last;
    I32 inner = inner_of(l), at = top - l->from;
    while (at >= 0 && !is_sub(&contexts[at]))
        at--;
    c->moved = (at >= 0 && at < inner) || is_other_block(s, contexts);
    for (I32 i = inner; i <= at && !c->moved; i++)
        c->moved = !is_same_call(&contexts[i], &last[i - inner]);
    for (I32 i = at < inner ? inner : at + 1; i < l->n && !c->moved && !c->calls_at; i++)
        if (is_sub(&last[i - inner]) && !is_same_call(&contexts[i], &last[i - inner]))
            c->calls_at = last[i - inner].blk_oldcop;
}

/*
 * Whether the call of `was` was over when it was read again. Not one that was left by goto to a sub in C: it
 * stays in its context until the next call comes.
 */
static bool is_over(const PERL_CONTEXT *was, const PERL_CONTEXT *last)
{
    return is_sub(was) && CxTYPE(last) == CXt_SUB && !last->blk_sub.cv &&
           last->blk_oldcop == was->blk_oldcop && last->blk_sub.retop == was->blk_sub.retop;
}

/* What reading a context of the level on which perl is once more says of its call */
static void look_again(const sirius_snapshot *s, const PERL_CONTEXT *contexts, I32 at, sirius_callframe *f)
{
    const level *l = &s->levels[s->top];
    I32 i = at - l->from, inner = inner_of(l);
    if (i < inner)
        return;
    const PERL_CONTEXT *was = &contexts[i], *last = &s->at[s->top].last[i - inner];
    f->over = is_over(was, last);
    f->mixed = !f->over && !is_same_call(was, last);
}
#else
static void compare_last(const sirius_snapshot *s, const PERL_CONTEXT *contexts, I32 top, sirius_calls *c)
{
    (void)s, (void)contexts, (void)top, (void)c;
}

static void look_again(const sirius_snapshot *s, const PERL_CONTEXT *contexts, I32 at, sirius_callframe *f)
{
    (void)s, (void)contexts, (void)at, (void)f;
}
#endif

/*
 * The contexts of a level lie in several lines of the CPU's memory, which another CPU hands over one by one:
 * the outer ones may be of a call before. What calls a sub that has been there all the time is there as well.
 */
static void look_for_torn(sirius_calls *c)
{
    bool stays = false;
    for (int i = 0; i < c->n && (i == 0 || !c->frames[i - 1].begins); i++) {
        sirius_callframe *f = &c->frames[i];
        if (f->call != SIRIUS_CALL_SUB || !f->sub)
            continue;
        f->torn = f->torn || (stays && f->mixed);
        stays = stays || (!f->mixed && !f->over);
    }
}

static void add_all(const sirius_snapshot *s, sirius_calls *c)
{
    const PERL_CONTEXT *contexts = s->contexts;
    c->n = 0;
    c->more = s->more;
    c->moved = c->left_out = false;
    c->calls_at = NULL;
    for (int i = 0; i < s->n; i++) {
        const PERL_SI *info = &s->infos[i];
        const level *l = &s->levels[i];
        if (i < s->top) {
            contexts += l->n;
            continue;
        }
        bool torn = i > s->top && is_torn(s, i, contexts);
        if (i > s->top && c->n > 0) {
            sirius_callframe *f = &c->frames[c->n - 1];
            f->begins = true;
            f->torn = f->torn || torn;
        } else if (torn) { /* no call has begun on the level where perl is */
            c->moved = true;
        }
        I32 top = i == s->top ? top_of(contexts, l, info->si_cxix) : info->si_cxix;
        if (i == s->top)
            compare_last(s, contexts, top, c);
        for (I32 at = top; at >= l->from; at--) {
            int before = c->n;
            if (i == s->top && at - l->from == inner_of(l) - 1 && c->n > 0)
                c->frames[c->n - 1].torn = is_far_torn(s, i, contexts);
            add_context(c, &contexts[at - l->from], at == 0 && info->si_type == PERLSI_SORT);
            if (c->n > before) {
                c->frames[before].late = at > info->si_cxix;
                if (i == s->top)
                    look_again(s, contexts, at, &c->frames[before]);
            }
        }
        add_level(c, info->si_type, i > s->top || info->si_type == s->at[i].info.si_type);
        contexts += l->n;
    }
    look_for_torn(c);
}

/*
 * Whether this process was interrupted while it copied: what was copied before that, and what behind it, are
 * of other moments. It says nothing about the other process, so leaving the copy out favours no sub.
 */
static bool was_interrupted(sirius_snapshot *s, int64_t took)
{
    bool slow = s->usual && took > s->usual + s->usual / 4 + SLACK;
    s->usual = s->usual && s->usual + s->usual / 16 < took ? s->usual + s->usual / 16 : took;
    return slow;
}

bool sirius_snapshot_take(pTHX_ sirius_snapshot *s, sirius_calls *c)
{
    if (s->unused >= UNUSED)
        s->n = s->unused = 0;
    for (int i = 0; i < TRIES_MAX; i++) {
        int64_t from = 0;
        bool whole = s->n || find_levels(aTHX_ s);
        if (whole) {
            from = sr_clock_monotonic();
            whole = copy(aTHX_ s);
        }
        if (!whole) {
            int err = errno;
            s->n = 0;
            errno = err;
            if (err != EFAULT)
                return false;
            continue;
        }
        if (was_interrupted(s, sr_clock_monotonic() - from) && i + 1 < TRIES_MAX)
            continue;
        find_top(aTHX_ s);
        if (found(aTHX_ s)) {
            s->unused = s->top ? s->unused + 1 : 0;
            add_all(s, c);
            c->next_seq = s->next_seq;
            c->before = point_of(aTHX_ s, s->before);
            c->after = point_of(aTHX_ s, s->at[s->top].point);
            c->moved = c->moved || c->after.level != s->levels[s->top].at;
            if (c->moved)
                c->calls_at = NULL;
            return true;
        }
        s->n = 0;
    }
    errno = EFAULT;
    return false;
}

sirius_snapshot *sirius_snapshot_new(pTHX_ const sirius_target *t)
{
    sirius_snapshot *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->target = *t;
    find_members(aTHX_ s);
    if (s->members_len <= sizeof s->before)
        return s;
    free(s);
    errno = ENOSYS;
    return NULL;
}

void sirius_snapshot_free(sirius_snapshot *s)
{
    free(s);
}
