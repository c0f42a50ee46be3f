#ifndef SIRIUS_SEAM_H
#define SIRIUS_SEAM_H
/*
 * seam: the places where levels begin, which perl does for what it calls itself: a tie, an overload, a signal
 * handler, a sort. All levels of one depth have the same memory, one after the other, and of their parts each
 * is read by itself. Where calls are shorter than it takes to read them all, those of two may look like one:
 * what was seen there before tells.
 *
 * Owner: the caller, for one process; all zero at first.
 */
#include "snapshot.h"

/* How often the calls outside of a level had changed while it was read, for the place where it begins. */
typedef struct sirius_torn {
    const COP *at;
    U32 torn, whole;
} sirius_torn;

/* What perl has called a sub for there, by PERLSI_SIGNAL and so on */
typedef struct sirius_purpose {
    const COP *at;
    const CV *sub;
    U32 all, times[SIRIUS_LEVEL_KINDS];
} sirius_purpose;

enum { SIRIUS_SEAMS = 64, SIRIUS_PURPOSES = 256 };

typedef struct sirius_seams {
    sirius_torn torn[SIRIUS_SEAMS]; /* by place: another one takes its slot */
    sirius_purpose purposes[SIRIUS_PURPOSES];
} sirius_seams;

/* For each stack that is read: counts what is outside of levels. */
void sirius_seams_count(sirius_seams *s, const sirius_calls *c);

/*
 * The same, when only frames are left that are there: counts what levels are for, and hides those of which it
 * is not known.
 */
void sirius_seams_hide(sirius_seams *s, sirius_calls *c);

/* Whether what is outside of frame i, on another level, may be of another moment. */
bool sirius_seams_torn(sirius_seams *s, const sirius_calls *c, int i);

/* Whether a frame may be of two calls of perl itself: of one the statement, of the other one the sub. */
bool sirius_seams_mixed(sirius_seams *s, const sirius_callframe *f);

#endif
