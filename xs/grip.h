#ifndef SIRIUS_GRIP_H
#define SIRIUS_GRIP_H
/*
 * grip: the Grip fields of a response, by which the application leaves it with the edge (http/grip.h). With --hold no client gets
 * them. Inside.
 */
#include "perlapi.h"

#include "base/buffer.h"

typedef struct sirius_grip {
    sr_buffer fields; /* of the response at hand, as lines */
    sr_buffer others; /* its other fields */
} sirius_grip;

sirius_grip *sirius_grip_new(void); /* NULL: no memory */
void sirius_grip_free(sirius_grip *g);

/*
 * Takes them out of sirius.head, which is complete but not sent, and tells the edge whether to hold the response. NULL, or what is
 * wrong with them: static.
 */
const char *sirius_grip_take(sirius *s);

#endif
