#ifndef SIRIUS_MEMORY_H
#define SIRIUS_MEMORY_H
/*
 * memory: perl exits because it gets no memory ("Out of memory!", status 1).
 *
 * Owner: the request loop; the descriptor is that of its generation. Thread: that of perl.
 */
#include "perlapi.h"

typedef struct sirius_memory {
    int report; /* pipe to the generation; -1: there is none */
} sirius_memory;

/*
 * Called when a scope is left, by SAVEDESTRUCTOR_X: finds out whether that is so, and tells the generation.
 */
void sirius_memory_look(pTHX_ void *unused);
bool sirius_memory_over(void); /* whether memory ran out, for END blocks */

#endif
