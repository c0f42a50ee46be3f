#ifndef SR_CLIENTS_H
#define SR_CLIENTS_H
/*
 * clients: how many connections of each address are held (--hold-per-client). Connections of unix sockets
 * count together.
 *
 * Owner: sr_live.clients. Called by: hold.c.
 */
#include "live.h"

/* One more. False: it has that many, or there is no memory. */
bool sr_clients_came(sr_live *live, const sr_peer *client, uint32_t most);
void sr_clients_left(sr_live *live, const sr_peer *client); /* one of those that came */
void sr_clients_free(struct sr_clients *clients);           /* NULL is fine */

#endif
