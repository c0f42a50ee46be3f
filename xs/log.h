#ifndef SIRIUS_LOG_H
#define SIRIUS_LOG_H
/* log: the layer :sirius_log. */
#include "perlapi.h"

void sirius_log_boot(pTHX);

/*
 * Writes one line of the server with its "\n", as bytes. `level` is static. Runs code of the application only
 * in a layer.
 */
void sirius_log_put(pTHX_ const char *at, size_t len, const char *level);

/* Whether lines of STDERR begin with the time. */
bool sirius_log_has_time(pTHX);

/* From now on this process waits for a slow reader for 10 ms at most. */
void sirius_log_hurry(void);

/* How many lines this process has lost and not said so, after `more` that it has to answer for. */
uint64_t sirius_log_lost(uint64_t more);

#endif
