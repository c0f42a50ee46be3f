#ifndef SIRIUS_TITLE_H
#define SIRIUS_TITLE_H
/*
 * What ps shows of this process, as an assignment to $0 changes it, while the value of $0 stays what the application
 * expects. It belongs to the process: one text, copied. Thread: Perl's. Nothing here fails; where perl could not find the
 * memory of its arguments, ps goes on showing them.
 */
#include "sirius.h"

/* The short name, which top shows. The kernel takes 15 bytes of it. */
void sirius_title_name(const char *text);

/* The command line. An empty text leaves it as it is. */
void sirius_title_show(pTHX_ const char *text);

/* Shows both again when a file is run by the next `do FILE`: Plack::Util::load_psgi assigns to $0 just before it runs
 * that of the application. */
void sirius_title_keep(void);

#endif
