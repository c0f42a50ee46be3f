#include "leaf.h"

#include "log/text.h"
#include "remote.h"

#include <string.h>

enum { METHOD_MAX = 200 };

/* What stands at that place in the pad, or at `at` */
static const void *operand(pid_t pid, const sirius_point *p, const sirius_finding *op)
{
    const void *at;
    if (!op->in_pad)
        return op->at;
    return sirius_remote_at(pid, &at, p->pad, (size_t)op->in_pad * sizeof at, sizeof at) ? at : NULL;
}

/* The sub of a glob, or that a reference in its place refers to */
static const CV *sub_of(pid_t pid, const void *at)
{
    SV sv;
    GP gp;
    if (!at || !sirius_remote_copy(pid, &sv, at, sizeof sv))
        return NULL;
    if (SvROK(&sv))
        return (const CV *)sv.sv_u.svu_rv;
    if (!isGV_with_GP(&sv) || !sirius_remote_copy(pid, &gp, sv.sv_u.svu_gp, sizeof gp))
        return NULL;
    return gp.gp_cv;
}

static bool add_sub(sr_buffer *out, const sirius_finding *sub)
{
    return sr_buffer_add(out, sub->text, sub->len) && sr_buffer_add(out, " (XS)", 5);
}

static bool ends_with(const sirius_finding *sub, const char *name, size_t len)
{
    return sub->len > len + 2 && memcmp(sub->text + sub->len - len, name, len) == 0 &&
           memcmp(sub->text + sub->len - len - 2, "::", 2) == 0;
}

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

/*
 * The sub itself was on top of the stack when it was called, and is above its arguments as long as nothing was put there. It is
 * that one if it has the name. A sub in C that calls others puts something there, as DBI's selectall_arrayref does: then what is
 * known is the method that was called. A sub in Perl has a context of its own, but for the moment in which it is entered.
 */
static bool add_method(pTHX_ sirius_known *k, pid_t pid, const sirius_leaf_at *l, const sirius_finding *op,
                       sr_buffer *out, bool *fresh)
{
    SV name;
    char text[METHOD_MAX];
    const void *at = operand(pid, l->point, op), *top[2];
    bool xs;
    if (!at || !sirius_remote_copy(pid, &name, at, sizeof name) || !SvPOK(&name))
        return false;
    size_t len = sirius_remote_string(pid, text, sizeof text, name.sv_u.svu_pv);
    if (!len || !sirius_remote_copy(pid, top, l->point->sp, sizeof top) || is_sub(pid, top[0], &xs))
        return false;
    if (is_sub(pid, top[1], &xs) && !xs)
        return false;
    if (xs) {
        sirius_finding sub = sirius_known_sub(aTHX_ k, top[1]);
        *fresh = *fresh || sub.fresh;
        if (sub.found && sub.xs && ends_with(&sub, text, len))
            return add_sub(out, &sub);
    }
    return l->stands && sr_buffer_add(out, "->", 2) && sr_logtext_add(out, sr_bytes_of(text, len)) &&
           sr_buffer_add(out, " (method)", 9);
}

bool sirius_leaf_add(pTHX_ sirius_known *k, pid_t pid, const sirius_leaf_at *l, sr_buffer *out, bool *fresh)
{
    sirius_finding op = sirius_known_operation(aTHX_ k, l->point->op);
    *fresh = op.fresh && !l->lasts;
    if (!op.found)
        return false;
    if (op.leaf == SIRIUS_LEAF_PERL)
        return sr_buffer_add(out, op.text, op.len) && sr_buffer_add(out, " (C)", 4);
    if (op.leaf == SIRIUS_LEAF_METHOD)
        return add_method(aTHX_ k, pid, l, &op, out, fresh);
    sirius_finding sub = sirius_known_sub(aTHX_ k, sub_of(pid, operand(pid, l->point, &op)));
    *fresh = *fresh || sub.fresh;
    return sub.found && sub.xs && add_sub(out, &sub);
}
