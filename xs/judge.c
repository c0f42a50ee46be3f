/*
 * A frame is in a sample only if it is certain. Its sub was known before the stack was read, and is the same
 * after it (known.h); or the statement at which it was is one of that sub. And it was called by the frame
 * outside of it: that shows in the variables of the caller, which perl keeps in each context of a sub, and by
 * that the statement of the caller has such a call (callsite.h). Where it does not show, the frame and all
 * outside of it must be the same in two stacks that were read one after the other. The line that runs is
 * certain if the statement is one of the innermost sub, or if the variables in use are those of it.
 *
 * A stack that is not certain is read again, but then it is the stack of another moment: subs that are short
 * or made for each call would be in it too rarely. So nearly all of the first ones have to do: 95 of 100 in
 * web frameworks. Of the others, the sampler takes only what has the calls of the first one, at the same
 * places: 1 of 100 stacks is cut by that, a third where strings are evaluated all the time.
 */
#include "judge.h"

#include <string.h>

enum {
    SOON = 4, /* inner frames whose subs are looked at first */
};

static bool has_sub(const sirius_callframe *f)
{
    return f->call != SIRIUS_CALL_SORT && f->call != SIRIUS_CALL_LEVEL;
}

static bool is_eval(const sirius_callframe *f)
{
    return f->call == SIRIUS_CALL_EVAL || f->call == SIRIUS_CALL_REQUIRE;
}

/* Whether it is called as its sub is */
static bool has_name_of_sub(const sirius_callframe *f)
{
    return f->sub && has_sub(f) && !is_eval(f);
}

/* How many frames, from the outside, were the same the last time */
static int steady_frames(const sirius_reading *r)
{
    const sirius_calls *a = r->now, *b = r->last;
    int n = 0;
    if (!r->has_last || ((a->more || b->more) && a->n != b->n))
        return 0;
    while (n < a->n && n < b->n && sirius_frame_is(&a->frames[a->n - 1 - n], &b->frames[b->n - 1 - n]))
        n++;
    return n;
}

static bool has_pad(pTHX_ sirius_reading *r, const sirius_callframe *f, const PAD *variables)
{
    return f->sub && sirius_known_has_pad(aTHX_ r->known, f->sub, f->depth, variables);
}

/* The next frame further out that has a sub; NULL: none */
static const sirius_callframe *caller_of(const sirius_calls *c, int i)
{
    while (++i < c->n)
        if (has_sub(&c->frames[i]))
            return &c->frames[i];
    return NULL;
}

/* Whether the statement is one of that sub; -1: unknown */
static int belongs(pTHX_ sirius_reading *r, const COP *statement, const CV *sub)
{
    sirius_finding of = sirius_known_statement(aTHX_ r->known, statement);
    const OP *its = of.root, *root = sub ? sirius_known_sub(aTHX_ r->known, sub).root : NULL;
    if (root && (of.main || of.eval))
        return 0;
    if (its && root && its != root) /* another one may be there now */
        root = sirius_known_sub_again(aTHX_ r->known, sub).root;
    return its && root ? its == root : -1;
}

/* Whether a statement is one of the main program; while that is compiled, perl has none. */
static bool is_of_main(pTHX_ sirius_reading *r, const COP *statement)
{
#if PERL_VERSION >= 26
    sirius_finding its = sirius_known_statement(aTHX_ r->known, statement);
    return its.main || !its.found;
#else
    PERL_UNUSED_CONTEXT;
    (void)r, (void)statement;
    return true;
#endif
}

static bool has_left(const sirius_callframe *f)
{
    return f->call == SIRIUS_CALL_SUB && !f->sub;
}

/*
 * Whether a statement may be one of frame i: of the block of a sort, if it is one. What is outside of that
 * may have other blocks.
 */
static bool is_of_block(pTHX_ sirius_reading *r, int i, const COP *at)
{
    const sirius_callframe *f = &r->now->frames[i];
    return i == r->now->n || f->call != SIRIUS_CALL_SORT || !at ||
           sirius_callsite_is_within(aTHX_ r->sites, r->known, at, f->called_at);
}

/* Whether frame i was called by the frames outside of it */
static bool is_linked(pTHX_ sirius_reading *r, int i, int steady)
{
    const sirius_callframe *f = &r->now->frames[i], *caller = caller_of(r->now, i);
    if (sirius_seams_torn(&r->seams, r->now, i) || sirius_seams_mixed(&r->seams, f) ||
        !is_of_block(aTHX_ r, i + 1, f->called_at))
        return false;
    if (f->call == SIRIUS_CALL_SORT && !sirius_callsite_sorts(aTHX_ r->sites, r->known, f->called_at))
        return false;
    if (is_eval(f) && !sirius_callsite_evals(aTHX_ r->sites, r->known, f))
        return false;
    if (f->call == SIRIUS_CALL_SUB && !has_left(f) && !sirius_callsite_has(aTHX_ r->sites, r->known, f)) {
        if (i < r->now->n - steady || (i == 0 && r->now->moved)) /* it may be of two calls */
            return false;
        sirius_callsite_learn(aTHX_ r->sites, r->known, f);
    }
    if (f->call == SIRIUS_CALL_LEVEL)
        return true;
    if (!caller)
        return r->now->more || r->now->left_out || is_of_main(aTHX_ r, f->called_at);
    if (has_left(caller) &&
        f[1].call != SIRIUS_CALL_LEVEL) /* only a DESTROY is called by one that has left */
        return false;
    int belongs_to = caller->call == SIRIUS_CALL_SUB ? belongs(aTHX_ r, f->called_at, caller->sub) : -1;
    if (belongs_to == 0)
        return false;
    if (!has_sub(f) || i >= r->now->n - steady)
        return true;
    if (f->call == SIRIUS_CALL_SUB || f->call == SIRIUS_CALL_REGEX)
        return has_pad(aTHX_ r, caller, f->caller);
    return belongs_to > 0;
}

/* The innermost frame with a sub. *from: the frame behind those that have left */
static int innermost(const sirius_calls *c, int *from)
{
    int i = 0;
    for (*from = 0; i < c->n && (!has_sub(&c->frames[i]) || has_left(&c->frames[i])); i++)
        *from = has_left(&c->frames[i]) ? i + 1 : *from;
    return i;
}

/*
 * Whether the statement of *p is one of that call of that sub. What is at the address of a closure may be
 * another one than when its context was read; not if the statements before and after that are of it.
 */
static bool runs_in(pTHX_ sirius_reading *r, const sirius_point *p, const CV *sub)
{
    const sirius_calls *c = r->now;
    return p == &c->after && !c->moved && belongs(aTHX_ r, p->statement, sub) > 0 &&
           (!sirius_known_sub(aTHX_ r->known, sub).reused || belongs(aTHX_ r, c->before.statement, sub) > 0);
}

/*
 * Whether a statement may be one of the text that was evaluated there, or a file: when that begins and ends,
 * it is one of its caller.
 */
static bool is_of_text(pTHX_ sirius_reading *r, const COP *statement, const COP *called_at)
{
#if PERL_VERSION >= 26
    const OP *its = sirius_known_statement(aTHX_ r->known, statement).eval;
    return its && its != sirius_known_statement(aTHX_ r->known, called_at).eval;
#else
    return !sirius_known_statement(aTHX_ r->known, statement).root && statement != called_at;
#endif
}

/*
 * What runs, as *p has it. For some nanoseconds at the begin and the end of a call, context, variables and
 * statement are not of the same sub; and while a closure is made, its variables are in use.
 */
static bool judge_statement(pTHX_ sirius_reading *r, const sirius_point *p, sirius_judgement *j)
{
    const sirius_calls *c = r->now;
    int from, first = innermost(c, &from);
    const COP *left_at = from ? c->frames[from - 1].called_at : NULL; /* where it had called them */
    *j = (sirius_judgement){.from = from, .at = p->statement, .within = p};
    if (first == c->n) {
        bool in_main = is_of_main(aTHX_ r, p->statement);
        if (left_at && !is_of_main(aTHX_ r, left_at)) /* they are about to be called by another sub */
            return false;
        if (!in_main || (c->moved && from < c->n)) /* of another sort block? */
            *j = (sirius_judgement){.from = from, .at = left_at};
        return in_main || left_at;
    }
    const sirius_callframe *f = &c->frames[first];
    if (is_eval(f)) { /* its variables change while it is compiled */
        if (!is_of_text(aTHX_ r, p->statement, f->called_at) || c->before.statement != c->after.statement ||
            c->before.variables != c->after.variables)
            *j = (sirius_judgement){.from = from};
        return true;
    }
    if (f->call != SIRIUS_CALL_SUB)
        return false;
    if (runs_in(aTHX_ r, p, f->sub)) {
        if (!has_pad(aTHX_ r, f, p->variables))
            j->within = NULL;
        return true;
    }
    const COP *called_at = left_at ? left_at : c->calls_at;
    *j = (sirius_judgement){.from = from, .at = called_at};
    return belongs(aTHX_ r, called_at, f->sub) > 0;
}

/*
 * The same by the variables, if it is not known which sub has the statement, or if the sub has not begun its
 * first one.
 */
static bool judge_variables(pTHX_ sirius_reading *r, const sirius_point *p, sirius_judgement *j)
{
    const sirius_calls *c = r->now;
    int from, first = innermost(c, &from);
    if (first == c->n)
        return false;
    const sirius_callframe *f = &c->frames[first], *caller = caller_of(c, first);
    bool own = has_pad(aTHX_ r, f, p->variables);
    bool at_call = p->statement == f->called_at && (!caller || caller->sub != f->sub);
    *j = (sirius_judgement){.from = from, .at = p->statement, .within = p};
    if (f->call == SIRIUS_CALL_SUB && at_call && (own || !caller || has_pad(aTHX_ r, caller, p->variables))) {
        *j = (sirius_judgement){.from = first, .at = p->statement, .entering = true};
        return true;
    }
    if (own && f->call != SIRIUS_CALL_SUB) /* what it has called may be over, and that statement be of it */
        return !sirius_known_statement(aTHX_ r->known, p->statement).root ||
               belongs(aTHX_ r, p->statement, f->sub) > 0;
    return own && ((belongs(aTHX_ r, p->statement, f->sub) < 0 && c->before.statement == c->after.statement &&
                    c->before.variables == c->after.variables));
}

/* Whether the innermost frame may be at that statement, of which nothing else is known */
static bool may_be_at(pTHX_ sirius_reading *r, const COP *statement)
{
    const sirius_callframe *f = r->now->n ? &r->now->frames[0] : NULL;
    if (!f)
        return is_of_main(aTHX_ r, statement);
    if (f->call != SIRIUS_CALL_SUB)
        return false;
    int belongs_to = belongs(aTHX_ r, statement, f->sub);
    return belongs_to > 0 || (belongs_to < 0 && statement != f->called_at);
}

static bool is_there(pTHX_ sirius_reading *r, const sirius_callframe *f)
{
    return !has_name_of_sub(f) || sirius_known_sub(aTHX_ r->known, f->sub).there;
}

/*
 * Whether perl was at the same place all the time, the last time included, in whichever variables: as when it
 * compiles
 */
static bool stands(const sirius_reading *r)
{
    const sirius_calls *c = r->now;
    return r->has_last && r->last->n == c->n && steady_frames(r) == c->n && c->before.op == c->after.op &&
           c->after.op == r->last->after.op && c->after.statement == r->last->after.statement;
}

/*
 * Whether it was there when the stack was read, though it was looked up later: statements have rising
 * numbers. So code that runs once, as that of a string or of BEGIN, is seen as often as it runs.
 */
static bool has_existed(const sirius_reading *r, const sirius_finding *statement)
{
    return statement->there && (I32)(statement->seq - r->now->next_seq) < 0;
}

/* Whether it may have been something else when the stack was read */
static bool is_new(pTHX_ sirius_reading *r, const COP *at)
{
    sirius_finding statement = sirius_known_statement(aTHX_ r->known, at);
    return statement.fresh && !has_existed(r, &statement);
}

/*
 * Whether frame i, which was at that statement, may have been something else when the stack was read: it was
 * looked up later. It was not if the statement is of the sub, but for code that comes and goes, as that of a
 * string does, and for a sub that has lost its name.
 */
static bool is_fresh(pTHX_ sirius_reading *r, int i, const COP *at)
{
    const sirius_callframe *f = &r->now->frames[i];
    sirius_finding statement = sirius_known_statement(aTHX_ r->known, at);
    bool existed = has_existed(r, &statement), new = statement.fresh && !existed;
    if (!has_name_of_sub(f))
        return new;
    sirius_finding sub = sirius_known_sub(aTHX_ r->known, f->sub);
    bool fresh = new || sub.fresh;
    if (belongs(aTHX_ r, at, f->sub) <= 0)
        return fresh || sub.reused || (f->call == SIRIUS_CALL_SUB && !sub.found); /* an eval of a string? */
    bool goes = !existed && (sub.of_text || statement.reused);
    if (sub.found && !goes && !new)
        sirius_known_trust(aTHX_ r->known, f->sub);
    return fresh && (goes || !sub.found || sub.given || (sub.reused && !sub.sure && !existed));
}

static void look_up(pTHX_ sirius_reading *r, sirius_judgement *j)
{
    const sirius_calls *c = r->now;
    const COP *at = j->at;
    int from = j->from;
    if (j->entering) { /* it has not been at any of its statements yet */
        sirius_finding sub = sirius_known_sub(aTHX_ r->known, c->frames[from++].sub);
        j->fresh = sub.fresh || sub.reused || sirius_known_statement(aTHX_ r->known, sub.start).fresh;
    }
    for (int i = from; i < c->n; i++) {
        if (c->frames[i].call == SIRIUS_CALL_LEVEL)
            continue;
        j->fresh = is_fresh(aTHX_ r, i, at) || j->fresh;
        at = c->frames[i].called_at;
    }
    j->fresh = (at && is_new(aTHX_ r, at)) || j->fresh;
    sirius_finding statement = sirius_known_statement(aTHX_ r->known, j->at);
    j->lasts = j->from == c->n || has_existed(r, &statement);
}

/* Whether frame i, which was at that statement, was not the same all the time */
static bool has_changed(pTHX_ sirius_reading *r, int i, const COP *at)
{
    const sirius_callframe *f = &r->now->frames[i];
    return is_fresh(aTHX_ r, i, at) || sirius_known_statement(aTHX_ r->known, at).stale ||
           (has_name_of_sub(f) && sirius_known_sub(aTHX_ r->known, f->sub).stale);
}

void sirius_judge_steady(pTHX_ sirius_reading *r, sirius_judgement *j)
{
    const sirius_calls *c = r->now;
    int from = j->from;
    const COP *at = j->at, *last = at;
    if (j->entering) /* of the first frame, no statement tells */
        last = at = c->frames[from++].called_at;
    for (int i = from; i < c->n; i++) {
        if (c->frames[i].call == SIRIUS_CALL_LEVEL)
            continue;
        if (has_changed(aTHX_ r, i, last)) {
            from = i + 1;
            at = c->frames[i].called_at;
        }
        last = c->frames[i].called_at;
    }
    sirius_finding main = sirius_known_statement(aTHX_ r->known, last);
    *j = (sirius_judgement){.from = main.fresh || main.stale ? -1 : from, .at = at};
}

static void drop(sirius_calls *c, int n)
{
    c->n -= n;
    memmove(c->frames, c->frames + n, (size_t)c->n * sizeof c->frames[0]);
}

/*
 * Leaves out subs that have gone to one in C by goto: what they have left in their context looks as if they
 * were called, until the next call. One that runs has its variables in use.
 */
static void drop_gone(pTHX_ sirius_reading *r)
{
    sirius_calls *c = r->now;
    int n = 0;
    for (int i = 0; i < c->n && c->frames[i].call == SIRIUS_CALL_SUB; i++) {
        const sirius_callframe *f = &c->frames[i];
        if (has_left(f))
            continue;
        if (f->over || !sirius_known_sub(aTHX_ r->known, f->sub).goes ||
            has_pad(aTHX_ r, f, c->after.variables))
            break;
        n = i + 1;
    }
    drop(c, n);
}

/* Leaves out what is behind the contexts in use and has not been called by them. */
static void drop_late(pTHX_ sirius_reading *r)
{
    sirius_calls *c = r->now;
    int n = 0;
    while (n < c->n && c->frames[n].late)
        n++;
    while (n > 0 && is_linked(aTHX_ r, n - 1, 0) && is_there(aTHX_ r, &c->frames[n - 1]))
        n--;
    drop(c, n);
}

sirius_judgement sirius_judge(pTHX_ sirius_reading *r)
{
    const sirius_calls *c = r->now;
    sirius_judgement j = {.from = 0};
    for (int i = 0; i < c->n && i < SOON; i++) /* a closure may live for microseconds */
        sirius_known_sub(aTHX_ r->known, c->frames[i].sub);
    sirius_seams_count(&r->seams, c);
    drop_gone(aTHX_ r);
    drop_late(aTHX_ r);
    sirius_seams_hide(&r->seams, r->now);
    int steady = steady_frames(r);
    j.whole = judge_statement(aTHX_ r, &c->after, &j) || judge_statement(aTHX_ r, &c->before, &j) ||
              judge_variables(aTHX_ r, &c->before, &j) || judge_variables(aTHX_ r, &c->after, &j);
    if (!j.whole && stands(r)) {
        bool at = may_be_at(aTHX_ r, c->after.statement);
        j = (sirius_judgement){.at = at ? c->after.statement : NULL, .whole = true};
    } else if (!j.whole) { /* a sub that is shorter than it takes to read all: its line is unknown */
        int from, first = innermost(c, &from);
        bool is_sub = first < c->n && c->frames[first].call == SIRIUS_CALL_SUB;
        j = (sirius_judgement){.from = is_sub ? from : 0, .whole = is_sub};
    }
    if (!is_of_block(aTHX_ r, j.from, j.at)) /* or its context is counted, but has not been written yet */
        j = (sirius_judgement){.from = j.from + 1};
    for (int i = c->n - 1; i >= j.from; i--) {
        if (!is_linked(aTHX_ r, i, steady) || !is_there(aTHX_ r, &c->frames[i])) {
            j = (sirius_judgement){.from = i + 1};
            break;
        }
    }
    look_up(aTHX_ r, &j); /* last: what was not there may be by now, as something else */
    return j;
}
