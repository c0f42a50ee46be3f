#include "operand.h"

#include "remote.h"

#include <string.h>

/* What stands at that place among the values, or at `at` */
static const void *operand(pid_t pid, const sirius_finding *call, SV *const *values)
{
    const void *at;
    if (!call->in_pad)
        return call->at;
    return sirius_remote_at(pid, &at, values, (size_t)call->in_pad * sizeof at, sizeof at) ? at : NULL;
}

const CV *sirius_operand_sub(pid_t pid, const sirius_finding *call, SV *const *values)
{
    const void *at = operand(pid, call, values);
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

size_t sirius_operand_method(pid_t pid, const sirius_finding *call, SV *const *values, char *to, size_t cap)
{
    const void *at = operand(pid, call, values);
    SV sv;
    if (!at || !sirius_remote_copy(pid, &sv, at, sizeof sv) || !SvPOK(&sv))
        return 0;
    return sirius_remote_string(pid, to, cap, sv.sv_u.svu_pv);
}

bool sirius_operand_names(const sirius_finding *sub, sr_bytes name)
{
    return sub->len > name.len + 2 && memcmp(sub->text + sub->len - name.len, name.at, name.len) == 0 &&
           memcmp(sub->text + sub->len - name.len - 2, "::", 2) == 0;
}
