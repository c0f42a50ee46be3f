#include "leaf.h"

#include "base/fnv.h"
#include "log/text.h"
#include "operand.h"
#include "remote.h"

#include <string.h>

enum {
    METHOD_MAX = 200,
    POINT_MAX = 256, /* bytes of the interpreter that have operation and stack: 16, more without threads */
    SURE = 3,        /* times that the same sub was seen to be called by an operation, and no other */
};

static bool is_sub(pid_t pid, const void *at, bool *xs)
{
    CV cv;
    XPVCV body;
    *xs = false;
    if (!at || !sirius_remote_copy(pid, &cv, at, sizeof cv) || SvTYPE(&cv) != SVt_PVCV)
        return false;
    *xs = sirius_remote_copy(pid, &body, cv.sv_any, sizeof body) && body.xcv_flags & CVf_ISXSUB;
    return true;
}

/* --- what it calls --- */

static void saw(sirius_callee *c, const CV *sub, bool perl)
{
    c->perl = c->perl || perl;
    if (!perl && !c->sub)
        c->sub = sub;
    c->varies = c->varies || (c->sub && (c->perl || c->sub != sub));
    c->times += !perl && c->times < SURE;
}

/*
 * Both are read later than the stack, so what is seen once may be another call: what was always the same is
 * not.
 */
static void look_at_glob(pid_t pid, const sirius_point *p, const sirius_finding *op, sirius_callee *c)
{
    bool xs;
    const CV *sub = sirius_operand_sub(pid, op, p->pad);
    if (is_sub(pid, sub, &xs))
        saw(c, sub, !xs);
}

/*
 * Where perl is, and what is on its stack there, several times. In between a loop of two short calls may come
 * to the same place again, even each time with what the other one has on the stack, were both read in turn:
 * so in an order that no period fits.
 */
static const char order[] = "PPSSPSPPPSPSSSPSP"; /* P: the place, S: the stack */

enum { LOOKS = sizeof order - 1 };

typedef struct looks {
    char place[LOOKS][POINT_MAX];
    const void *top[LOOKS][2];
} looks;

/* Whether all were the same; then *top is what was on the stack. */
static bool stood(pTHX_ const sirius_target *t, const sirius_point *p, const void *top[2])
{
    const char *op = (const char *)&PL_op, *sp = (const char *)&PL_stack_sp, *from = op < sp ? op : sp;
    size_t len = (size_t)(op < sp ? sp - op : op - sp) + sizeof(void *);
    sirius_piece pieces[LOOKS];
    looks l;
    PERL_UNUSED_CONTEXT;
    if (len > POINT_MAX)
        return false;
    for (int i = 0; i < LOOKS; i++)
        pieces[i] = order[i] == 'P'
                        ? (sirius_piece){l.place[i], (const void *)((uintptr_t)from + t->away), len}
                        : (sirius_piece){l.top[i], p->sp, sizeof l.top[i]};
    if (!sirius_remote_pieces(t->pid, pieces, LOOKS))
        return false;
    memcpy(top, l.top[strchr(order, 'S') - order], sizeof l.top[0]);
    for (int i = 0; i < LOOKS; i++) {
        bool same = order[i] == 'S' ? memcmp(l.top[i], top, sizeof l.top[i]) == 0
                                    : memcmp(l.place[i] + (op - from), &p->op, sizeof p->op) == 0 &&
                                          memcmp(l.place[i] + (sp - from), &p->sp, sizeof p->sp) == 0;
        if (!same)
            return false;
    }
    return true;
}

/*
 * The sub itself was on top of the stack when it was called, and is above its arguments as long as nothing
 * was put there. It is that one if it has the name, and if perl is still where it was. Subs in C that call
 * others put something there, as DBI's selectall_arrayref does. A sub in Perl has a context of its own, but
 * for the moment in which it is entered.
 */
static bool look_at_stack(pTHX_ sirius_known *k, const sirius_target *t, const sirius_point *p, sr_bytes name,
                          sirius_callee *c)
{
    const void *top[2];
    bool xs;
    if (!stood(aTHX_ t, p, top))
        return false;
    if (is_sub(t->pid, top[0], &xs)) { /* it is about to be called */
        if (!xs)
            saw(c, top[0], true);
        return false;
    }
    if (!is_sub(t->pid, top[1], &xs) || !xs)
        return false;
    c->varies = c->varies || (c->sub && c->sub != top[1]); /* it may have another name, as an alias */
    sirius_finding sub = sirius_known_sub(aTHX_ k, top[1]);
    if (!sub.found || !sub.xs || !sirius_operand_names(&sub, name))
        return false;
    saw(c, top[1], false);
    return true;
}

static bool add_sub(pTHX_ sirius_known *k, const CV *at, sr_buffer *out, bool *fresh)
{
    sirius_finding sub = sirius_known_sub(aTHX_ k, at);
    *fresh = *fresh || sub.fresh;
    return sub.found && sub.xs && sr_buffer_add(out, sub.text, sub.len) && sr_buffer_add(out, " (XS)", 5);
}

static bool add_method(pTHX_ sirius_known *k, const sirius_target *t, const sirius_leaf_at *l,
                       const sirius_finding *op, sr_buffer *out, bool *fresh)
{
    char text[METHOD_MAX];
    sr_bytes name = sr_bytes_of(text, sirius_operand_method(t->pid, op, l->point->pad, text, sizeof text));
    sirius_callee seen = {NULL}, *c = name.len ? sirius_known_callee(aTHX_ k, l->point->op) : NULL;
    if (!c)
        return false;
    uint32_t method = (uint32_t)sr_fnv(SR_FNV_START, name.at, name.len);
    if (c->method == method) /* else other code is there now */
        seen = *c;
    seen.method = method;
    bool looked = look_at_stack(aTHX_ k, t, l->point, name, &seen);
    c = sirius_known_callee(aTHX_ k, l->point->op); /* subs were looked up meanwhile */
    if (!c)
        return false;
    *c = seen;
    if (seen.sub && !seen.varies && seen.times >= SURE)
        return add_sub(aTHX_ k, seen.sub, out, fresh);
    *fresh = *fresh || (looked && !seen.varies); /* the next look makes it surer */
    return l->stands && (!seen.perl || seen.varies) && sr_buffer_add(out, "->", 2) &&
           sr_logtext_add(out, name) && sr_buffer_add(out, " (method)", 9);
}

static bool add_function(pTHX_ sirius_known *k, const sirius_target *t, const sirius_point *p,
                         const sirius_finding *op, sr_buffer *out, bool *fresh)
{
    sirius_callee *c = sirius_known_callee(aTHX_ k, p->op);
    if (!c)
        return false;
    U32 before = c->times;
    look_at_glob(t->pid, p, op, c);
    if (!c->sub || c->varies)
        return false;
    if (before >= SURE)
        return add_sub(aTHX_ k, c->sub, out, fresh);
    *fresh = *fresh || c->times > before;
    return false;
}

bool sirius_leaf_add(pTHX_ sirius_known *k, const sirius_target *t, const sirius_leaf_at *l, sr_buffer *out,
                     bool *fresh)
{
    sirius_finding op = sirius_known_operation(aTHX_ k, l->point->op);
    *fresh = op.fresh && !l->lasts;
    if (!op.found)
        return false;
    if (op.leaf == SIRIUS_LEAF_PERL)
        return sr_buffer_add(out, op.text, op.len) && sr_buffer_add(out, " (C)", 4);
    return op.leaf == SIRIUS_LEAF_METHOD ? add_method(aTHX_ k, t, l, &op, out, fresh)
                                         : add_function(aTHX_ k, t, l->point, &op, out, fresh);
}
