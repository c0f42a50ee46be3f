#ifndef SR_OTHERS_H
#define SR_OTHERS_H
/*
 * others: what the edges of one server do together: --max-connections and --max-queue hold for all of them.
 * Each publishes its counts in share/common.h and reads those of the others; an eventfd for each edge, its
 * bell, wakes it when others need it.
 *
 * An edge that is alone publishes nothing. Relaxed: edges that act in the same moment may exceed a limit by
 * what they do then.
 */
#include "edge.h"

int sr_others_open(sr_edge *ed, const sr_setup *s); /* 0 or errno */
void sr_others_close(sr_edge *ed);                  /* also when open has failed or was not called */

/*
 * In each step of the loop: before the wait, if there are others, with the number of requests in the queue
 * that nobody has; and after it, which also tells the supervisor that the loop goes on.
 */
void sr_others_publish(sr_edge *ed, uint64_t queued);
void sr_others_look(sr_edge *ed);
/*
 * So many of its connections count in another edge from now on, to which they are passed; the edge itself
 * counts them still.
 */
void sr_others_passed(sr_edge *ed, uint32_t n);

/* Wakes another edge, by its number. */
void sr_others_ring(const sr_edge *ed, uint32_t edge);

/* The bell has rung: closes as many idle connections as others ask for, and looks at the listeners again. */
void sr_others_asked(sr_edge *ed);

#endif
