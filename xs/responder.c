/* responder: the callback of PSGI that takes a response, with a body or for a writer. */
#include "responder.h"

#include "response.h"
#include "sirius.h"
#include "stream.h"
#include "turn.h"
#include "wire.h"

XS(sirius_xs_responder);
XS(sirius_xs_responder)
{
    dXSARGS;
    if (items != 1)
        croak("the responder takes exactly one argument, the response");
    sirius *s = sirius_serving(aTHX_(UV) XSANY.any_iv);
    if (s ? s->turn.wire.phase != SIRIUS_UNANSWERED : sirius_answered(aTHX_(UV) XSANY.any_iv))
        croak("the responder was called twice");
    if (!s)
        croak("the responder was called after its request was over");
    SV *writer = NULL;
    bool outer = sirius_catch(&s->turn.stream);
    bool entered = sirius_enter(&s->inside);
    sirius_respond(aTHX_ s, ST(0), true, &writer);
    sirius_turn *t = &s->turn;
    if (t->wire.phase == SIRIUS_ANSWERED || t->wire.phase == SIRIUS_BROKEN ||
        (t->wire.phase == SIRIUS_STREAMING && sirius_complete(&t->wire)))
        sirius_finish(aTHX_ s, true);
    sirius_leave(&s->inside, entered);
    sirius_catch_end(aTHX_ s, outer);
    if (!writer)
        XSRETURN_EMPTY;
    ST(0) = writer;
    XSRETURN(1);
}

SV *sirius_responder(pTHX_ sirius *s)
{
    return sv_2mortal(sirius_closure(aTHX_ sirius_xs_responder, s->turn.serial));
}
