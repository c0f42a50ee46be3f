#ifndef SR_EDGE_FAILURES_H
#define SR_EDGE_FAILURES_H
/*
 * failures: tells the log why TLS handshakes fail, so that an operator finds out why a client does not get
 * in, and which client of HTTP/2 is stopped for what it does too often. There is at most one line for a
 * reason in SR_FAILURE_QUIET_NS, with the number left out since the last one: each of them costs the client
 * less than a line costs the disk. Clients that go away within a handshake, or say nothing, are in the
 * counters only, as scanners do that all day.
 */
#include "edge.h"

#define SR_FAILURE_QUIET_NS (10 * SR_SECOND)

void sr_failures_open(sr_edge *ed); /* once, when the edge has its engine */

#endif
