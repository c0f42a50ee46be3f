#ifndef SIRIUS_INSIDE_H
#define SIRIUS_INSIDE_H
/*
 * inside: whether code of the server runs, or code of the application.
 *
 * "Inside" means that C code of the server runs, and that no handler of a signal may jump out of it. Code of
 * the application (the app itself, overloads, ties, DESTROY, getline) is always called outside, by
 * sirius_call. Handlers of signals read this at any instruction (signals.c).
 */
#include "perlapi.h"

#include <signal.h>

typedef struct sirius_inside {
    volatile sig_atomic_t now;
    volatile sig_atomic_t logging; /* report.c writes a line of the server */
    const void *outer, *frame; /* of perl, around the innermost sirius_call: see `crossing` in signals.c */
    bool held, pending;        /* signals wait until the loop goes on, and some did before: see hold.h */
    sigset_t mask;             /* what was blocked before */
} sirius_inside;

/* Goes inside. True: it was outside before, and the caller has to leave. */
static inline bool sirius_enter(sirius_inside *i)
{
    bool was = i->now;
    i->now = 1;
    return !was;
}

static inline void sirius_leave(sirius_inside *i, bool entered)
{
    if (entered)
        i->now = 0;
}

#endif
