#ifndef SIRIUS_JUDGE_H
#define SIRIUS_JUDGE_H
/* judge: how much of a stack that was read is certain. */
#include "callsite.h"
#include "known.h"
#include "seam.h"
#include "snapshot.h"

typedef struct sirius_reading {
    sirius_known *known;
    sirius_callsites *sites;
    sirius_calls *now, *last; /* the last two stacks that were read */
    bool has_last;
    sirius_seams seams;
} sirius_reading;

/* What is certain of r->now, besides its frames */
typedef struct sirius_judgement {
    int from;                   /* frames further in are not certain; -1: nothing is */
    const COP *at;              /* the statement that runs in the innermost certain frame; NULL: unknown */
    const sirius_point *within; /* whose operation belongs to that frame; NULL: none */
    bool entering;              /* that sub has not begun its first statement */
    bool fresh;                 /* something was looked up just now, and may not be what it was */
    bool lasts;                 /* code of the innermost certain frame is not freed while it runs */
    bool whole;                 /* all of it is certain */
} sirius_judgement;

/* Asks r->known for all that the frames and the statement have. */
sirius_judgement sirius_judge(pTHX_ sirius_reading *r);

/*
 * After sirius_known_same, if that or the judgement says that not all is what it was: leaves in *j what is,
 * from the outside.
 */
void sirius_judge_steady(pTHX_ sirius_reading *r, sirius_judgement *j);

#endif
