#ifndef SR_EXPIRE_H
#define SR_EXPIRE_H
/*
 * expire: what happens when a time limit of a connection is over. Called by deadline.c; may close and free
 * the connection.
 */
#include "engine.h"

void sr_expire(sr_engine *e, sr_conn *c, sr_deadline_kind kind);

#endif
