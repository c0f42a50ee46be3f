#include "row.h"

void sirius_row_open(pTHX_ sirius_row *r, SV *scoreboard, uint32_t slot)
{
    if (scoreboard && SvROK(scoreboard) && sv_derived_from(scoreboard, "Sirius::Scoreboard")) {
        r->board = INT2PTR(sr_scoreboard *, SvIV(SvRV(scoreboard)));
        r->object = SvREFCNT_inc(SvRV(scoreboard)); /* counted, as global destruction frees in any order */
    }
    r->of = r->board && slot < r->board->slots ? &r->board->rows[slot] : &r->none;
}

void sirius_row_close(pTHX_ sirius_row *r)
{
    PERL_UNUSED_CONTEXT;
    SvREFCNT_dec(r->object);
}
