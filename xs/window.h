#ifndef SIRIUS_WINDOW_H
#define SIRIUS_WINDOW_H
/*
 * window: memory of another process that lies close together, as the operations of a sub do. It is read by
 * the page: a system call takes as long for 4 KiB as for one operation, and a page has some eighty of them.
 *
 * Owner: the caller, for the time of one look: later, something else may be there.
 */
#include "sirius.h"

enum {
    SIRIUS_WINDOW_PAGES = 8, /* that are kept */
    SIRIUS_WINDOW_SIZE = 4096,
};

typedef struct sirius_window {
    pid_t pid;
    int left;                          /* pages that may still be read */
    unsigned next;                     /* the one that is forgotten next */
    uintptr_t at[SIRIUS_WINDOW_PAGES]; /* 0: none */
    char bytes[SIRIUS_WINDOW_PAGES][SIRIUS_WINDOW_SIZE];
} sirius_window;

void sirius_window_open(sirius_window *w, pid_t pid, int pages);

/* False: it is not readable, or no page is left. */
bool sirius_window_copy(sirius_window *w, void *to, const void *from, size_t len);

#endif
