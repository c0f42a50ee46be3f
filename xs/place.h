#ifndef SIRIUS_PLACE_H
#define SIRIUS_PLACE_H
/* place: where perl is. */
#include "sirius.h"

/*
 * The file that a worker forked by this process executes, and the line. NULL: the kernel does not allow to
 * look.
 */
SV *sirius_place(pTHX_ IV pid, UV *line);

/*
 * The same into `name`; returns the length, or 0. Calls nothing of perl: for any thread, and for this process
 * too.
 */
size_t sirius_place_copy(pTHX_ pid_t pid, char *name, size_t cap, UV *line);

#endif
