#ifndef SR_ANSWER_H
#define SR_ANSWER_H
/*
 * answer: what all answers of the edge itself have in common: they are counted, logged and ended like those of a worker. So
 * keep-alive, pipelining and time limits are the same.
 *
 * Called by: files and plain. Order of calls: begin, then one call of conn/send.h that sends the response, then end.
 */
#include "../conn/intake.h"
#include "edge.h"

/*
 * The first `len` bytes of ed->head are the head of the response. Takes over the task, and the descriptor of its body; the request
 * is no longer valid afterwards.
 */
void sr_answer_begin(sr_edge *ed, sr_task *task, const sr_response *r, size_t len);

/* The response was passed to conn/send.h as a whole. The connection may be closed and freed. */
void sr_answer_end(sr_edge *ed, sr_exchange *x);

/* There is no memory (ENOMEM), no descriptor, or no way to open a file for an answer: the client gets 503. */
void sr_answer_refuse(sr_edge *ed, sr_task *task, int err);

#endif
