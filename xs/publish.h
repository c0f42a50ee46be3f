#ifndef SIRIUS_PUBLISH_H
#define SIRIUS_PUBLISH_H
/* publish: what the application of a worker publishes. */
#include "sirius.h"

/*
 * Hands an item to the edges (src/share/item.h). False: this is no worker of a server with --hold, or not its
 * thread of perl; or the edges can't be reached.
 */
bool sirius_publish(pTHX_ SV *packed);

#endif
