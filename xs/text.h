#ifndef SIRIUS_TEXT_H
#define SIRIUS_TEXT_H
/*
 * text: values of the application as bytes, and what is wrong with them in words. Runs no code of the
 * application.
 */
#include "perlapi.h"

#include "http/response.h"

/* As below, of any value. */
bool sirius_bytes_of(pTHX_ SV *sv, sr_bytes *out);

/* Bytes of a scalar. False: it has characters above 0xff. A copy that is needed for that is mortal. */
static inline bool sirius_bytes(pTHX_ SV *sv, sr_bytes *out)
{
    if ((SvFLAGS(sv) & (SVf_POK | SVf_ROK | SVs_GMG | SVf_UTF8)) != SVf_POK)
        return sirius_bytes_of(aTHX_ sv, out);
    *out = sr_bytes_of(SvPVX_const(sv), SvCUR(sv));
    return true;
}

/* A message with a value, escaped as in the access log, since it may come from a client. Mortal. */
const char *sirius_quote(pTHX_ const char *before, sr_bytes value, const char *after);

/* What is wrong with a header, with its name or value, as a mortal text. NULL: there is no error. */
const char *sirius_header_error(pTHX_ sr_response_error err, sr_bytes name, sr_bytes value);

#endif
