#ifndef SR_DEADLINE_H
#define SR_DEADLINE_H
/*
 * deadline: time limits as lists in order of time, one for each kind, since the time limit of a kind is constant: setting
 * one is an append, looking for the next due one is a look at a few heads. A connection has at most one.
 */
#include "engine.h"

void sr_deadlines_init(sr_engine *e);                                  /* from its config */
void sr_deadline_set(sr_engine *e, sr_conn *c, sr_deadline_kind kind); /* its whole time from now on */
void sr_deadline_keep(sr_engine *e, sr_conn *c, sr_deadline_kind kind,
                      int64_t deadline); /* monotonic ns; one that runs already */
void sr_deadline_clear(sr_engine *e, sr_conn *c);
void sr_deadline_shorten(sr_engine *e, sr_deadline_kind kind,
                         int64_t limit); /* ns; as if it had always been so */
int64_t sr_deadline_first(const sr_engine *e,
                          sr_deadline_kind kind); /* monotonic ns of the one that is due first; 0: none */
void sr_deadlines_expire(sr_engine *e);
int sr_deadlines_timeout(sr_engine *e); /* ms until something is due, for epoll_wait; -1: nothing is */

#endif
