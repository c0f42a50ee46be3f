#ifndef SIRIUS_SAMPLER_H
#define SIRIUS_SAMPLER_H
/*
 * sampler: reads the stack of another perl again and again, some 99 times a second. The other process runs
 * on: nothing stops or interrupts it, and it has nothing to do for it.
 *
 * Owner: the object Sirius::OS::Sampler. An object for each process that is looked at.
 */
#include "target.h"

typedef struct sirius_sampler sirius_sampler;

sirius_sampler *sirius_sampler_new(pTHX_ const sirius_target *t); /* NULL with errno */
void sirius_sampler_free(pTHX_ sirius_sampler *s);

typedef struct sirius_sample {
    AV *labels; /* of Sirius::Profile::Samples, outermost first; a new array */
    char state; /* of the process meanwhile: R, S and so on, as in proc_pid_stat(5) */
    bool moved; /* the inner frames changed too fast, so they are not in it */
} sirius_sample;

/*
 * The stack now. If `below` is not NULL, the sub of that name and whatever has called it are left out, and
 * there are no labels if nothing else runs. False with errno: the process has ended, or its memory is not
 * readable, or makes no sense.
 */
bool sirius_sampler_take(pTHX_ sirius_sampler *s, SV *below, sirius_sample *to);

#endif
