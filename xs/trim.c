/* trim: newlines at the end of a value of a response field. */
#include "trim.h"

#include "report.h"

enum { TRIMMED_MAX = 32 }; /* how many header names a worker remembers as logged */

bool sirius_trim(pTHX_ SV **trimmed, sr_bytes name, sr_bytes *value)
{
    if (!value->len || !memchr("\r\n", value->at[value->len - 1], 2))
        return false;
    while (value->len && memchr("\r\n\t ", value->at[value->len - 1], 4))
        value->len--;
    if (!*trimmed)
        *trimmed = newSVpvn_flags(name.at, name.len, SVs_TEMP);
    return true;
}

void sirius_trim_log(pTHX_ sirius *s, SV *name)
{
    static HV *logged;
    if (!logged)
        logged = newHV();
    if (hv_exists_ent(logged, name, 0) || HvUSEDKEYS(logged) >= TRIMMED_MAX)
        return;
    (void)hv_store_ent(logged, name, newSV(0), 0);
    SV *what =
        sv_2mortal(newSVpvf("the value of the response header %" SVf " ended with a newline, which was "
                            "removed (logged once for each header in each worker)",
                            SVfARG(name)));
    sirius_warn(aTHX_ s, SvPV_nolen(what));
}
