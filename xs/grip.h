#ifndef SIRIUS_GRIP_H
#define SIRIUS_GRIP_H
/*
 * grip: the Grip fields of a response, by which the application leaves it with the edge (http/grip.h). With
 * --hold no client gets them; without it the server may hold responses of its own, by a channel that only
 * these have. Inside.
 */
#include "perlapi.h"

#include "base/buffer.h"

typedef struct sirius_grip {
    sr_buffer fields; /* of the response at hand, as lines */
    sr_buffer others; /* its other fields */
    size_t channel_len;
    char channel[]; /* the only one that is held; none: all are */
} sirius_grip;

/* `channel`: the only one that is held, len 0: all are. NULL: no memory. */
sirius_grip *sirius_grip_new(sr_bytes channel);
void sirius_grip_free(sirius_grip *g);

/*
 * Takes them out of sirius.head, which is complete but not sent, and tells the edge whether to hold the
 * response. NULL, or what is wrong with them: static.
 */
const char *sirius_grip_take(sirius *s);

#endif
