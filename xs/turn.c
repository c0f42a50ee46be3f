/* turn: whose request is at hand. */
#include "turn.h"

#include "sirius.h"

sirius *sirius_current;

sirius *sirius_own(pTHX)
{
    PERL_UNUSED_CONTEXT;
#ifdef MULTIPLICITY
    if (sirius_current && sirius_current->owner != aTHX)
        return NULL;
#endif
    return sirius_current;
}

sirius *sirius_alive(pTHX_ UV serial)
{
    sirius *s = sirius_own(aTHX);
    return s && s->turn.open && s->turn.serial == serial ? s : NULL;
}

sirius *sirius_serving(pTHX_ UV serial)
{
    sirius *s = sirius_alive(aTHX_ serial);
    return s && !sirius_forked(s) ? s : NULL;
}

bool sirius_answered(pTHX_ UV serial)
{
    sirius *s = sirius_own(aTHX);
    return s && s->turn.serial == serial && s->turn.env.hv && !sirius_forked(s);
}

SV *sirius_closure(pTHX_ XSUBADDR_t body, UV serial)
{
    CV *cv = newXS(NULL, body, __FILE__);
    CvXSUBANY(cv).any_iv = (IV)serial;
    return newRV_noinc((SV *)cv);
}
