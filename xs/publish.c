/* publish: hands items to the worker. */
#include "publish.h"

#include "turn.h"

bool sirius_publish(pTHX_ SV *packed)
{
    STRLEN len;
    const char *at = SvPVbyte(packed, len);
    sirius *s = sirius_current;
    if (!s || !s->grip || s->grip->channel_len || sirius_forked(s) ||
        !pthread_equal(pthread_self(), s->thread))
        return false;
#ifdef MULTIPLICITY
    if (aTHX != s->owner)
        return false;
#endif
    bool entered = sirius_enter(&s->inside);
    bool done = sr_worker_publish(&s->worker, sr_bytes_of(at, len));
    sirius_leave(&s->inside, entered);
    return done;
}
