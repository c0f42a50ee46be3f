/*
 * room: the bound on connections, of this process and of all. When it is reached, the oldest idle connection of the whole
 * server is closed for the new one; it may be another worker's, which is then asked through its row and its bell.
 */
#include "parts.h"

#include <unistd.h>

static bool full(const sr_engine *e)
{
    uint64_t sum = e->n_conns;
    if (sum > e->config.max_connections)
        return true;
    for (uint32_t i = 0; e->scoreboard && i < e->scoreboard->slots; i++)
        if (&e->scoreboard->rows[i] != e->row)
            sum += atomic_load_explicit(&e->scoreboard->rows[i].connections, memory_order_relaxed);
    return sum > e->config.max_connections;
}

bool sr_room_close_oldest(sr_engine *e)
{
    sr_link *idle = &e->deadlines[SR_DEADLINE_IDLE];
    if (sr_link_alone(idle))
        return false;
    sr_conn_close(e, SR_LIST_ENTRY(idle->next, sr_conn, timer), SR_CLOSED_ROOM);
    return true;
}

/* The row whose idle connection is the oldest; NULL: no other worker has one that is not asked for already. */
static sr_row *oldest_elsewhere(const sr_engine *e)
{
    sr_row *found = NULL;
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; e->scoreboard && i < e->scoreboard->slots; i++) {
        sr_row *row = &e->scoreboard->rows[i];
        int64_t oldest = atomic_load_explicit(&row->oldest, memory_order_relaxed);
        uint64_t idle = atomic_load_explicit(&row->idle, memory_order_relaxed);
        if (row == e->row || !oldest || oldest >= first ||
            idle <= atomic_load_explicit(&row->shed, memory_order_relaxed))
            continue;
        found = row;
        first = oldest;
    }
    return found;
}

bool sr_room_make(sr_engine *e)
{
    if (!full(e))
        return true;
    sr_row *other = oldest_elsewhere(e);
    int64_t ours = sr_deadline_first(e, SR_DEADLINE_IDLE);
    if (!other || (ours && ours <= atomic_load_explicit(&other->oldest, memory_order_relaxed)) ||
        e->n_conns > e->config.max_connections)
        return sr_room_close_oldest(e);
    atomic_fetch_add_explicit(&other->shed, 1, memory_order_relaxed);
    sr_scoreboard_ring(other);
    return true;
}

void sr_room_asked(sr_engine *e)
{
    uint64_t rings;
    ssize_t n = read(e->bell.fd, &rings, sizeof rings);
    (void)n;
    uint32_t shed = atomic_exchange_explicit(&e->row->shed, 0, memory_order_relaxed);
    while (shed-- && sr_room_close_oldest(e))
        ;
}
