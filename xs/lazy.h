#ifndef SIRIUS_LAZY_H
#define SIRIUS_LAZY_H
/* lazy: values of %env that are made when they are first read, by who is set at the boot. */
#include "perlapi.h"

typedef enum sirius_lazy { SIRIUS_LAZY_IO, SIRIUS_LAZY_INFORMATIONAL } sirius_lazy;
typedef SV *sirius_lazy_make(pTHX_ UV serial); /* a new reference */

void sirius_lazy_boot(sirius_lazy kind, sirius_lazy_make *make); /* before the first sirius_lazy_new */
SV *sirius_lazy_new(pTHX_ sirius_lazy kind);
void sirius_lazy_arm(pTHX_ SV *sv, UV serial);                    /* sets the request that it belongs to */
bool sirius_lazy_untouched(pTHX_ const SV *sv, sirius_lazy kind); /* neither read nor assigned */

#endif
