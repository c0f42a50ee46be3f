#ifndef SR_LOG_H
#define SR_LOG_H
/*
 * log: the access log of the edge. The values of a line come from three places: the request in its slot, the
 * connection (conn/accesslog.h), and records that the worker has sent, as %env and response may differ from
 * the request.
 *
 * Owner: the edge; made by open, freed by close. Without --access-log no function but open does anything.
 * Trust: what a worker sends appears in the line of its own request only, escaped as any other value.
 * Failure: a value for which there is no memory is missing in its line.
 */
#include "../conn/intake.h"
#include "edge.h"

int sr_log_open(sr_edge *ed, const sr_setup *s); /* 0 or errno. Takes over s->log.fd */
void sr_log_close(sr_edge *ed);                  /* after sr_engine_free, which writes the last lines */

/* `head` is that of this response, as lines: keeps the fields that the format asks for. */
void sr_log_head(sr_edge *ed, sr_entry *en, sr_bytes head);

/* The worker has sent values of the line (SR_REPLY_LOG). False: more than is allowed. */
bool sr_log_values(sr_edge *ed, sr_entry *en, const char *at, size_t len);

/*
 * The response of this slot is about to end: its values can be asked for until the slot is used for another
 * request.
 */
void sr_log_offer(sr_edge *ed, uint32_t slot);

/* The same for a request that no worker gets, with the head of its response: until the request is taken. */
void sr_log_offer_task(sr_edge *ed, const sr_task *task, sr_bytes head);

/* The log file was rotated: from now on lines go to fd, which is taken over. */
void sr_log_replace(sr_edge *ed, int fd);

#endif
