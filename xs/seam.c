#include "seam.h"

enum {
    SEEN_MOST = 256, /* times: then the older half is forgotten */
    RARELY = 16,     /* one of so many */
    OFTEN = 3,       /* times that a sub was called at a place */
};

/* --- what is outside --- */

/* NULL: the place where frame i begins its level is unknown. */
static sirius_torn *torn_at(sirius_seams *s, const sirius_calls *c, int i)
{
    const sirius_callframe *f = &c->frames[i];
    const COP *at = !f->called_at && i > 0 ? f[-1].called_at : f->called_at;
    sirius_torn *t = &s->torn[((uintptr_t)at / sizeof(COP)) % SIRIUS_SEAMS];
    if (!f->begins || !at)
        return NULL;
    if (t->at != at)
        *t = (sirius_torn){.at = at};
    return t;
}

void sirius_seams_count(sirius_seams *s, const sirius_calls *c)
{
    for (int i = 0; i < c->n; i++) {
        sirius_torn *t = torn_at(s, c, i);
        if (!t)
            continue;
        if (c->frames[i].torn)
            t->torn++;
        else
            t->whole++;
        if (t->torn + t->whole >= SEEN_MOST) {
            t->torn /= 2;
            t->whole /= 2;
        }
    }
}

/*
 * Where calls are shorter than it takes to read them, another one may have come and gone meanwhile, and it
 * would be tried again until that looks whole. If the innermost sub is over as well, a short call between
 * long ones may have done so.
 */
bool sirius_seams_torn(sirius_seams *s, const sirius_calls *c, int i)
{
    const sirius_torn *t = torn_at(s, c, i);
    if (c->frames[i].torn || !t)
        return c->frames[i].torn;
    return c->moved ? t->whole < RARELY || t->torn > t->whole / RARELY : t->torn > t->whole;
}

/* --- what perl calls for --- */

/* As perl itself does: the tree of operations does not tell where */
static bool is_called_by_c(const sirius_callframe *f)
{
    return f->call == SIRIUS_CALL_SUB && f->sub && !f->retop;
}

static sirius_purpose *purpose_of(sirius_seams *s, const sirius_callframe *f)
{
    uintptr_t slot = (uintptr_t)f->called_at / sizeof(COP) + (uintptr_t)f->sub / sizeof(CV);
    sirius_purpose *p = &s->purposes[slot % SIRIUS_PURPOSES];
    if (p->at != f->called_at || p->sub != f->sub)
        *p = (sirius_purpose){.at = f->called_at, .sub = f->sub};
    return p;
}

static bool is_level(const sirius_calls *c, int i)
{
    return i < c->n && c->frames[i].call == SIRIUS_CALL_LEVEL;
}

/* What the level of frame i is for, as a number from 1; 0: it is none, or perl may have begun another one */
static int kind_of(const sirius_calls *c, int i)
{
    const sirius_callframe *f = &c->frames[i];
    int kind = is_level(c, i) && !f->unsure ? f->level - PERLSI_UNKNOWN : 0;
    return kind < 0 || kind >= SIRIUS_LEVEL_KINDS ? 0 : kind;
}

static void count_purposes(sirius_seams *s, const sirius_calls *c)
{
    for (int i = 0; i < c->n; i++) {
        const sirius_callframe *f = &c->frames[i];
        if (!is_called_by_c(f) || f->mixed)
            continue;
        sirius_purpose *p = purpose_of(s, f);
        p->times[kind_of(c, i + 1)]++;
        if (++p->all < SEEN_MOST)
            continue;
        p->all /= 2;
        for (int k = 0; k < SIRIUS_LEVEL_KINDS; k++)
            p->times[k] /= 2;
    }
}

/*
 * Whether perl was all the time in what it calls on the innermost level: a sub in C, of which nothing else
 * tells
 */
static bool stays_on(const sirius_calls *c)
{
    return c->before.level == c->after.level && c->before.op == c->after.op && c->before.sp == c->after.sp &&
           c->before.statement == c->after.statement;
}

/*
 * Whether it is known what the level of frame i is for: the same before and behind its contexts. Where levels
 * begin and end so fast that this may be by chance, it has to be what is seen there in most stacks.
 */
static bool has_purpose(sirius_seams *s, const sirius_calls *c, int i)
{
    int kind = kind_of(c, i);
    if (i == 0)
        return kind && stays_on(c);
    if (!is_called_by_c(&c->frames[i - 1]))
        return false;
    const sirius_purpose *p = purpose_of(s, &c->frames[i - 1]);
    return kind && p->times[kind] * 2 > p->all;
}

void sirius_seams_hide(sirius_seams *s, sirius_calls *c)
{
    count_purposes(s, c);
    for (int i = 0; i < c->n; i++)
        if (is_level(c, i))
            c->frames[i].hidden = !has_purpose(s, c, i);
}

bool sirius_seams_mixed(sirius_seams *s, const sirius_callframe *f)
{
    return is_called_by_c(f) && f->mixed && purpose_of(s, f)->all < OFTEN;
}
