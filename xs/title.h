#ifndef SIRIUS_TITLE_H
#define SIRIUS_TITLE_H
/*
 * title: what ps shows of this process, as an assignment to $0 would set it, while $0 keeps the value that
 * the application expects.
 *
 * Owner: the process, which has one title; it is copied. Thread: that of perl.
 * Failure: none. If perl has not found the memory of its arguments, ps goes on showing them.
 */
#include "sirius.h"

/* Sets the short name, which top shows. The kernel takes 15 bytes of it. */
void sirius_title_name(const char *text);

/*
 * 0, or errno why the name cannot be set. Then perl waits for ever at the second assignment to $0, as the
 * first died.
 */
int sirius_title_refused(void);

/* Sets the command line. An empty text leaves it as it is. */
void sirius_title_show(pTHX_ const char *text);

/*
 * Sets both again when the next `do FILE` runs a file: Plack::Util::load_psgi assigns to $0 just before it
 * runs that of the application.
 */
void sirius_title_keep(void);

#endif
