#ifndef SR_ANSWER_H
#define SR_ANSWER_H
/*
 * answer: what all answers of the edge itself have in common: they are counted, logged and ended like those
 * of a worker. So keep-alive, pipelining and time limits are the same.
 *
 * Called by: files and plain. Order of calls: begin, then sr_protocol.piece or file with all of the body,
 * then sr_protocol.end.
 */
#include "../conn/protocol.h"
#include "edge.h"

/*
 * Makes the head. Takes over the task, and the descriptor of its body; the request is no longer valid
 * afterwards. False: there is no memory, and the task is as it was.
 */
bool sr_answer_begin(sr_edge *ed, sr_task *task, const sr_head *head);

/* There is no memory (ENOMEM), no descriptor, or no way to open a file for an answer: the client gets 503. */
void sr_answer_refuse(sr_edge *ed, sr_task *task, int err);

#endif
