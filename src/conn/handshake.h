#ifndef SR_HANDSHAKE_H
#define SR_HANDSHAKE_H
/*
 * handshake: connections whose transport is not ready yet (SR_CONN_HANDSHAKE).
 *
 * A handshake costs as much as ten to a hundred requests. So those that can go on wait in a list, in the
 * order in which they became able to, and the loop of the edge lets a few of them go on in each step
 * (sr_handshake_turn), after all other events. Such a connection is watched by edges (EPOLLET): however many
 * wait in the list, epoll reports each change once. Those that need one message more (ends) go first: in a
 * flood of ClientHellos they would wait twice, and they are the clients that have done their part.
 *
 * With the PROXY protocol its header comes first, outside of the encryption.
 *
 * Called by: accept and the loop of the edge. All functions but sr_handshake_event may close and free the
 * connection. Failure: it is closed.
 */
#include "intake.h"

typedef struct sr_handshakes {
    sr_link ready;   /* connections in HANDSHAKE that can go on */
    sr_link endings; /* those of them that need one message more: they go first */
    uint32_t n;      /* all in HANDSHAKE */
} sr_handshakes;

enum { SR_HANDSHAKES_MAX = 1024 }; /* at a time, in one edge */
#define SR_HANDSHAKE_TURN_MIN_NS (SR_MILLISECOND / 10)
#define SR_HANDSHAKE_TURN_MAX_NS SR_MILLISECOND

void sr_handshake_begin(struct sr_engine *e, struct sr_conn *c); /* was just accepted, and has a transport */
void sr_handshake_event(struct sr_engine *e, struct sr_conn *c); /* it can go on */

/* One of them can go on. Asked in each step of the loop. */
static inline bool sr_handshake_waits(const sr_handshakes *h)
{
    return h->n && (!sr_link_alone(&h->ready) || !sr_link_alone(&h->endings));
}

/*
 * ns after which no further one begins in a step that has spent `others` ns on all else: a quarter of that,
 * so that a busy edge still lets new clients in. A quiet one does a single signature (0.3 ms), and looks
 * whether a request has come.
 */
static inline int64_t sr_handshake_turn(int64_t others)
{
    int64_t turn = others / 4;
    turn = turn > SR_HANDSHAKE_TURN_MIN_NS ? turn : SR_HANDSHAKE_TURN_MIN_NS;
    return turn < SR_HANDSHAKE_TURN_MAX_NS ? turn : SR_HANDSHAKE_TURN_MAX_NS;
}

/* Lets the first of the list go on. Requires that one waits. A request may be complete with the handshake. */
sr_intake sr_handshake_next(struct sr_engine *e, sr_task *task);

#endif
