#ifndef SR_PARTS_H
#define SR_PARTS_H
/* parts: what the files of src/core use of each other and nobody else may. All need the helm. */
#include "../base/clock.h"
#include "engine.h"

/* engine.c */
void sr_deadline_set(sr_engine *e, sr_conn *c, sr_deadline_kind kind);
static inline void sr_deadline_clear(sr_conn *c)
{
    sr_link_remove(&c->timer);
}
bool sr_conn_watch(sr_engine *e, sr_conn *c,
                   uint32_t events); /* false: epoll_ctl failed, the connection is closed */
void sr_conn_unwatch(sr_engine *e, sr_conn *c);
void sr_conn_close(sr_engine *e, sr_conn *c);
bool sr_engine_draining(const sr_engine *e);
void sr_engine_pause_accept(sr_engine *e); /* no descriptors: the listeners are left alone for 100 ms */

/* intake.c: from readable to a complete request */
typedef enum sr_intake {
    SR_INTAKE_WAIT,  /* nothing to serve; the connection waits for events, or is closed */
    SR_INTAKE_READY, /* a complete request: task is filled */
} sr_intake;

sr_intake sr_intake_accept(sr_engine *e, sr_listener *l, sr_task *task);
sr_intake sr_intake_readable(sr_engine *e, sr_conn *c, sr_task *task);
sr_intake sr_intake_turn(sr_engine *e, sr_conn *c,
                         sr_task *task); /* bytes or a request are in hand already */

/* outflow.c: from a response to the wire, and the end of connections */
void sr_outflow_writable(sr_engine *e, sr_conn *c);
void sr_outflow_refuse(sr_engine *e, sr_conn *c, int status, bool is_head);
void sr_outflow_close(sr_engine *e, sr_conn *c); /* politely: shut down our side and linger */
void sr_outflow_lingering(sr_engine *e, sr_conn *c);
void sr_outflow_expired(sr_engine *e, sr_conn *c, sr_deadline_kind kind);

#endif
