#ifndef SR_PARTING_H
#define SR_PARTING_H
/*
 * parting: pairs of sockets whose stream is over, while the application has not read all that the client had
 * sent to the end of it (h2/tunnel.h). The application gets that, and then an end of file; what it still
 * writes fails with EPIPE. If it takes nothing for --write-timeout, the end of file comes at once.
 *
 * They count in sr_engine.passing and n_lent until they are over, so their number and bytes have the limits
 * of tunnels.
 */
#include "pump.h"

/* Nothing is left, and all is closed. */
void sr_partings_free(sr_engine *e);

/* Takes over the pump, with bytes in `up` and their share of sr_engine.passing. */
void sr_parting_begin(sr_engine *e, sr_pump *p);

/* The application takes more, or is gone. */
void sr_parting_step(sr_engine *e, sr_pump *p);

/*
 * Monotonic ns at which the time of the first is over; INT64_MAX: there are none. All have the same limit, so
 * they are in order.
 */
int64_t sr_partings_at(const sr_engine *e);

/* Ends those whose time is over. */
void sr_partings_expire(sr_engine *e);

#endif
