#include "leaf.h"

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

static bool is_xs(pid_t pid, const void *at)
{
    CV cv;
    XPVCV body;
    return sirius_remote_copy(pid, &cv, at, sizeof cv) && SvTYPE(&cv) == SVt_PVCV &&
           sirius_remote_copy(pid, &body, cv.sv_any, sizeof body) && body.xcv_flags & CVf_ISXSUB;
}

/*
 * The sub itself was on top of the stack when it was called, and is above its arguments as long as nothing was put there. It is
 * that one if it has the name.
 */
static bool add_method(pTHX_ sirius_known *k, pid_t pid, const sirius_point *p, const sirius_finding *op,
                       sr_buffer *out, bool *fresh)
{
    SV name;
    char text[METHOD_MAX];
    const void *at = operand(pid, p, op), *above;
    if (!at || !sirius_remote_copy(pid, &name, at, sizeof name) || !SvPOK(&name))
        return false;
    size_t len = sirius_remote_string(pid, text, sizeof text, name.sv_u.svu_pv);
    if (!len || !sirius_remote_at(pid, &above, p->sp, sizeof above, sizeof above))
        return false;
    if (!is_xs(pid, above)) /* it may be a closure that has ended */
        return false;
    sirius_finding sub = sirius_known_sub(aTHX_ k, above);
    *fresh = *fresh || sub.fresh;
    return sub.found && sub.xs && ends_with(&sub, text, len) && add_sub(out, &sub);
}

bool sirius_leaf_add(pTHX_ sirius_known *k, pid_t pid, const sirius_point *p, bool lasts, sr_buffer *out,
                     bool *fresh)
{
    sirius_finding op = sirius_known_operation(aTHX_ k, p->op);
    *fresh = op.fresh && !lasts;
    if (!op.found)
        return false;
    if (op.leaf == SIRIUS_LEAF_PERL)
        return sr_buffer_add(out, op.text, op.len) && sr_buffer_add(out, " (C)", 4);
    if (op.leaf == SIRIUS_LEAF_METHOD)
        return add_method(aTHX_ k, pid, p, &op, out, fresh);
    sirius_finding sub = sirius_known_sub(aTHX_ k, sub_of(pid, operand(pid, p, &op)));
    *fresh = *fresh || sub.fresh;
    return sub.found && sub.xs && add_sub(out, &sub);
}
