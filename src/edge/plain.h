#ifndef SR_PLAIN_H
#define SR_PLAIN_H
/*
 * plain: what the edge answers by itself when a request has come without TLS: the challenges of ACME
 * (--acme-webroot), and redirects to https (--https-redirect). This needs no worker.
 *
 * Called by: dispatch.
 * Failure: without memory the client gets 503.
 */
#include "../conn/intake.h"
#include "edge.h"

/* The port of https URLs, as the setup or else the listeners have it. */
uint16_t sr_plain_https_port(const sr_setup *s);

/*
 * Answers a request on a connection without TLS. False: it is for somebody else, and nothing was done. True:
 * the task was taken over, and the connection may be closed and freed.
 */
bool sr_plain_answer(sr_edge *ed, sr_task *task);

#endif
