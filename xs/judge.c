/*
 * A frame is in a sample only if it is certain: its sub was known before the stack was read, and is the same after it (known.h);
 * and it was called by the frame outside of it. That shows in the variables of the caller, which perl keeps in each context of
 * a sub. Where it does not show, as for the eval of a string, the frame and all outside of it must be the same in two
 * stacks that were read one after the other. The line that runs is certain if the variables in use are those of the innermost sub.
 */
#include "judge.h"

static bool has_sub(const sirius_callframe *f)
{
    return f->call != SIRIUS_CALL_SORT && f->call != SIRIUS_CALL_LEVEL;
}

static bool is_eval(const sirius_callframe *f)
{
    return f->call == SIRIUS_CALL_EVAL || f->call == SIRIUS_CALL_REQUIRE;
}

static bool same_frame(const sirius_callframe *a, const sirius_callframe *b)
{
    return a->call == b->call && a->level == b->level && a->sub == b->sub && a->called_at == b->called_at;
}

/* How many frames, from the outside, were the same the last time */
static int steady_frames(const sirius_reading *r)
{
    const sirius_calls *a = r->now, *b = r->last;
    int n = 0;
    if (!r->has_last || ((a->more || b->more) && a->n != b->n))
        return 0;
    while (n < a->n && n < b->n && same_frame(&a->frames[a->n - 1 - n], &b->frames[b->n - 1 - n]))
        n++;
    return n;
}

static const PAD *pad_of(pTHX_ sirius_reading *r, const sirius_callframe *f)
{
    return f->sub ? sirius_known_pad(aTHX_ r->known, f->sub, f->depth) : NULL;
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
    const OP *its = sirius_known_statement(aTHX_ r->known, statement).root;
    const OP *root = sub ? sirius_known_sub(aTHX_ r->known, sub).root : NULL;
    return its && root ? its == root : -1;
}

/* Whether frame i was called by the frames outside of it */
static bool is_linked(pTHX_ sirius_reading *r, int i, int steady)
{
    const sirius_callframe *f = &r->now->frames[i], *caller = caller_of(r->now, i);
    if (!has_sub(f) || !caller)
        return true;
    int belongs_to = caller->call == SIRIUS_CALL_SUB ? belongs(aTHX_ r, f->called_at, caller->sub) : -1;
    if (belongs_to == 0)
        return false;
    if (i >= r->now->n - steady)
        return true;
    if (f->call == SIRIUS_CALL_SUB || f->call == SIRIUS_CALL_REGEX)
        return f->caller && f->caller == pad_of(aTHX_ r, caller);
    return belongs_to > 0;
}

/* The innermost frame whose variables are in use, from i on; -1: it is none of the first two */
static int in_use(pTHX_ sirius_reading *r, const sirius_point *p)
{
    const sirius_calls *c = r->now;
    int seen = 0;
    for (int i = 0; i < c->n && seen < 2; i++) {
        if (!has_sub(&c->frames[i]))
            continue;
        if (pad_of(aTHX_ r, &c->frames[i]) == p->variables)
            return i;
        seen++;
    }
    return -1;
}

/*
 * What runs, as *p has it. For some nanoseconds at the begin and the end of a call, context, variables and statement are not of
 * the same sub.
 */
static bool judge_statement(pTHX_ sirius_reading *r, const sirius_point *p, sirius_judgement *j)
{
    const sirius_calls *c = r->now;
    const sirius_point *a = &c->before, *b = &c->after;
    bool steady = a->statement == b->statement && a->variables == b->variables;
    int first = 0;
    while (first < c->n && !has_sub(&c->frames[first]))
        first++;
    *j = (sirius_judgement){.at = p->statement, .within = p};
    bool in_sub = sirius_known_statement(aTHX_ r->known, p->statement).root != NULL;
    if (first == c->n)
        return !in_sub;
    if (is_eval(&c->frames[first])) { /* its variables change while it is compiled */
        if (!steady || in_sub)
            *j = (sirius_judgement){.from = 0};
        return true;
    }
    int i = in_use(aTHX_ r, p);
    if (i < 0)
        return false;
    const sirius_callframe *f = &c->frames[i], *caller = caller_of(c, i);
    if (i > first) { /* that one has no variables yet, or has left */
        j->from = i;
        const sirius_callframe *inner = &c->frames[first];
        j->within = NULL;
        if (!inner->sub) {
            if (belongs(aTHX_ r, p->statement, f->sub) <= 0)
                j->at = inner->called_at;
            return belongs(aTHX_ r, j->at, f->sub) > 0; /* the call that begins may have an old one here */
        }
        if (!steady || p->statement != inner->called_at)
            return false; /* most likely it has run in between */
    }
    if (f->call != SIRIUS_CALL_SUB)
        return true;
    j->entering = i == first && p->statement == f->called_at && (!caller || caller->sub != f->sub);
    if (j->entering) {
        j->within = NULL;
        return true;
    }
    int belongs_to = belongs(aTHX_ r, j->at, f->sub);
    return belongs_to > 0 || (belongs_to < 0 && steady);
}

/* Whether the innermost frame may be at that statement, of which nothing else is known */
static bool may_be_at(pTHX_ sirius_reading *r, const COP *statement)
{
    const sirius_callframe *f = r->now->n ? &r->now->frames[0] : NULL;
    if (!f || f->call != SIRIUS_CALL_SUB)
        return !f;
    int belongs_to = belongs(aTHX_ r, statement, f->sub);
    return belongs_to > 0 || (belongs_to < 0 && statement != f->called_at);
}

static bool is_there(pTHX_ sirius_reading *r, const sirius_callframe *f)
{
    return !f->sub || !has_sub(f) || is_eval(f) || sirius_known_sub(aTHX_ r->known, f->sub).there;
}

/* Whether perl was at the same place all the time, the last time included, in whichever variables: as when it compiles */
static bool stands(const sirius_reading *r)
{
    const sirius_calls *c = r->now;
    return r->has_last && r->last->n == c->n && steady_frames(r) == c->n && c->before.op == c->after.op &&
           c->after.op == r->last->after.op && c->after.statement == r->last->after.statement;
}

static bool look_up(pTHX_ sirius_reading *r, const sirius_judgement *j)
{
    const sirius_calls *c = r->now;
    bool fresh = j->at && sirius_known_statement(aTHX_ r->known, j->at).fresh;
    for (int i = j->from; i < c->n; i++) {
        const sirius_callframe *f = &c->frames[i];
        if (f->sub && has_sub(f) && !is_eval(f)) {
            sirius_finding sub = sirius_known_sub(aTHX_ r->known, f->sub);
            fresh = fresh || sub.fresh;
            if (j->entering && i == j->from)
                fresh = sirius_known_statement(aTHX_ r->known, sub.start).fresh || fresh;
        }
        if (f->called_at)
            fresh = sirius_known_statement(aTHX_ r->known, f->called_at).fresh || fresh;
    }
    return fresh;
}

sirius_judgement sirius_judge(pTHX_ sirius_reading *r)
{
    const sirius_calls *c = r->now;
    sirius_judgement j = {.from = 0};
    int steady = steady_frames(r);
    j.whole = judge_statement(aTHX_ r, &c->after, &j) || judge_statement(aTHX_ r, &c->before, &j);
    if (!j.whole)
        j = (sirius_judgement){.whole = stands(r)};
    if (j.whole && !j.within && !j.at && may_be_at(aTHX_ r, c->after.statement))
        j.at = c->after.statement;
    j.fresh = look_up(aTHX_ r, &j);
    for (int i = c->n - 1; i >= j.from; i--) {
        if (!is_linked(aTHX_ r, i, steady) || !is_there(aTHX_ r, &c->frames[i])) {
            j = (sirius_judgement){.from = i + 1, .fresh = j.fresh};
            break;
        }
    }
    return j;
}
