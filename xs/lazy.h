#ifndef SIRIUS_LAZY_H
#define SIRIUS_LAZY_H
/* lazy: values of %env that are made when they are first read, by who is set at the boot. */
#include "perlapi.h"

typedef enum sirius_lazy {
    SIRIUS_LAZY_IO,
    SIRIUS_LAZY_INFORMATIONAL,
    SIRIUS_LAZY_ID,
    SIRIUS_LAZY_KINDS,
} sirius_lazy;
typedef SV *sirius_lazy_make(pTHX_ UV serial); /* a new reference */

void sirius_lazy_boot(sirius_lazy kind, sirius_lazy_make *make); /* before the first sirius_lazy_new */

/*
 * `serial` is an integer that says to which request the value belongs. All values of one %env share it: they
 * hold references.
 */
SV *sirius_lazy_new(pTHX_ sirius_lazy kind, SV *serial);

extern const MGVTBL sirius_lazy_vtbl;

/* 0: neither read nor assigned. For one whose reference count and flags are those that it was made with. */
static inline UV sirius_lazy_touched(const SV *sv)
{
    const MAGIC *mg = SvMAGIC(sv);
    return (PTR2UV(mg->mg_virtual) ^ PTR2UV(&sirius_lazy_vtbl)) | PTR2UV(mg->mg_moremagic);
}

#endif
