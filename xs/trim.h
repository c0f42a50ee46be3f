#ifndef SIRIUS_TRIM_H
#define SIRIUS_TRIM_H
/* trim: newlines at the end of a value of a response field. */
#include "perlapi.h"

#include "base/bytes.h"

/*
 * Removes newlines at the end of a value. False: there are none. *trimmed becomes the name of the first such
 * field, a mortal. 'X-Error' => $@ is common, and other servers send it. A newline at the end can't begin a
 * header that a client has injected. One in the middle can, and stays an error.
 */
bool sirius_trim(pTHX_ SV **trimmed, sr_bytes name, sr_bytes *value);

/* Logs that. Not while a head is half made: the log may run code of Perl. */
void sirius_trim_log(pTHX_ sirius *s, SV *name);

#endif
