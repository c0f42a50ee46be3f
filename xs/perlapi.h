#ifndef SIRIUS_PERLAPI_H
#define SIRIUS_PERLAPI_H
/* perlapi: the headers of perl, as all of xs/ includes them. No other folder knows perl. */
#define PERL_NO_GET_CONTEXT /* must precede perl's headers, or every call looks the interpreter up in TLS */
#include "EXTERN.h"
#include "perl.h"

#include "XSUB.h"

#ifndef SvREFCNT_dec_NN /* perl 5.16 */
#define SvREFCNT_dec_NN(sv) SvREFCNT_dec(sv)
#endif
#ifndef SVf_IsCOW /* perl 5.16: strings of the server are never shared, so the flag is not needed */
#define SVf_IsCOW 0
#endif

typedef struct sirius sirius; /* sirius.h */

#endif
