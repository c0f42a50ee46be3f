#include "clients.h"

#include "../base/fnv.h"

#include <stdlib.h>

enum { CHAINS = 4096 };

typedef struct one {
    struct one *next;
    sr_peer peer;
    uint32_t n;
} one;

struct sr_clients {
    one *chains[CHAINS];
};

static bool same(const sr_peer *a, const sr_peer *b)
{
    return a->family == b->family && a->scope == b->scope && memcmp(a->addr, b->addr, sizeof a->addr) == 0;
}

static one **find(struct sr_clients *all, uint64_t seed, const sr_peer *p)
{
    uint64_t h = sr_fnv(seed, p->addr, sizeof p->addr);
    one **at = &all->chains[(h ^ h >> 32) % CHAINS];
    while (*at && !same(&(*at)->peer, p))
        at = &(*at)->next;
    return at;
}

bool sr_clients_came(sr_live *live, const sr_peer *client, uint32_t most)
{
    if (!live->clients && !(live->clients = calloc(1, sizeof *live->clients)))
        return false;
    one **at = find(live->clients, live->seed, client);
    if (!*at) {
        if (!(*at = calloc(1, sizeof **at)))
            return false;
        (*at)->peer = *client;
    }
    if ((*at)->n >= most) /* more may have come from another edge */
        return false;
    (*at)->n++;
    return true;
}

void sr_clients_left(sr_live *live, const sr_peer *client)
{
    one **at = find(live->clients, live->seed, client), *it = *at;
    if (--it->n)
        return;
    *at = it->next;
    free(it);
}

void sr_clients_free(struct sr_clients *clients)
{
    free(clients);
}
