#include "calls.h"

enum { EXCEPTIONS_SHOWN = 20 };

static NV seconds(uint64_t ns)
{
    return (NV)ns / 1e9;
}

/* Whole calls. */
static NV calls(uint64_t units)
{
    return (NV)(UV)((units + SR_PATHS_UNIT / 2) / SR_PATHS_UNIT);
}

static HV *path_hash(pTHX_ const sr_path_sum *p, NV late)
{
    HV *hv = newHV();
    if (p->len)
        (void)hv_stores(hv, "path", newSVpvn(p->text, p->len));
    (void)hv_stores(hv, "calls", newSVnv(calls(p->calls)));
    (void)hv_stores(hv, "errors", newSVnv(calls(p->errors)));
    (void)hv_stores(hv, "seconds", newSVnv(seconds(p->ns)));
    (void)hv_stores(hv, "waited", newSVnv(seconds(p->waited)));
    (void)hv_stores(hv, "share", newSVnv(late > 0 ? (NV)p->late / late : 0));
    (void)hv_stores(hv, "p50", newSVnv(sr_histogram_quantile(&p->times, 0.5) / 1e9));
    (void)hv_stores(hv, "p99", newSVnv(sr_histogram_quantile(&p->times, 0.99) / 1e9));
    return hv;
}

HV *sirius_board_calls(pTHX_ const sr_scoreboard *s)
{
    HV *hv = (HV *)sv_2mortal((SV *)newHV());
    AV *paths = newAV();
    (void)hv_stores(hv, "paths", newRV_noinc((SV *)paths));
    sr_path_sum *all;
    Newx(all, SR_PATHS_SHOWN_MAX + 1, sr_path_sum);
    size_t n = sr_paths_sum(s->paths, s->edges, all);
    uint64_t late = 0, ns = 0, units = 0;
    for (size_t i = 0; i < n; i++) {
        late += all[i].late;
        ns += all[i].ns;
        units += all[i].calls;
    }
    for (size_t i = 0; i + 1 < n; i++)
        av_push(paths, newRV_noinc((SV *)path_hash(aTHX_ & all[i], (NV)late)));
    if (n)
        (void)hv_stores(hv, "other", newRV_noinc((SV *)path_hash(aTHX_ & all[n - 1], (NV)late)));
    (void)hv_stores(hv, "calls", newSVnv(calls(units)));
    (void)hv_stores(hv, "seconds", newSVnv(seconds(ns)));
    Safefree(all);
    return hv;
}

HV *sirius_board_exceptions(pTHX_ const sr_scoreboard *s)
{
    HV *hv = (HV *)sv_2mortal((SV *)newHV());
    AV *last = newAV();
    (void)hv_stores(hv, "last", newRV_noinc((SV *)last));
    sr_exception_sums *sums;
    Newxz(sums, 1, sr_exception_sums);
    sr_scoreboard_exceptions(s, sums);
    for (size_t i = 0; i < sums->n && i < EXCEPTIONS_SHOWN; i++) {
        const sr_exception_sum *e = &sums->at[i];
        HV *one = newHV();
        (void)hv_stores(one, "text", newSVpvn(e->text, e->len));
        (void)hv_stores(one, "path", newSVpvn(e->path, e->path_len));
        (void)hv_stores(one, "count", newSVuv((UV)e->count));
        (void)hv_stores(one, "first", newSViv((IV)e->first));
        (void)hv_stores(one, "at", newSViv((IV)e->last));
        av_push(last, newRV_noinc((SV *)one));
    }
    (void)hv_stores(hv, "count", newSVuv((UV)sums->count));
    Safefree(sums);
    return hv;
}
