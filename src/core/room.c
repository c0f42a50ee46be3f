/*
 * room: the bound on connections, of this process and of all. When it is reached, the oldest idle connection of the whole
 * server is closed for the new one; it may be another worker's, which is then asked through its row and its bell.
 */
#include "../net/descriptors.h"
#include "parts.h"

#include <errno.h>
#include <unistd.h>

static bool full(const sr_engine *e)
{
    uint64_t sum = e->n_conns;
    if (sum > e->config.max_connections)
        return true;
    if (e->others)
        return sum + e->others(e->with) > e->config.max_connections;
    for (uint32_t i = 0; i < e->n_rows; i++)
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
    for (uint32_t i = 0; i < e->n_rows; i++) {
        sr_row *row = &e->scoreboard->rows[i];
        int64_t oldest = atomic_load_explicit(&row->oldest, memory_order_relaxed);
        uint64_t idle = atomic_load_explicit(&row->idle, memory_order_relaxed);
        if (row == e->row || !oldest || oldest >= first ||
            atomic_load_explicit(&row->stopped, memory_order_relaxed) || /* it would not do it */
            idle <= atomic_load_explicit(&row->shed, memory_order_relaxed))
            continue;
        found = row;
        first = oldest;
    }
    return found;
}

/* With sheds_unfinished: who has been longest at sending a request, at taking leave, or at reading a response. The newcomer is
 * the last of those that send a head. */
static bool close_unfinished(sr_engine *e)
{
    static const sr_deadline_kind kinds[] = {SR_DEADLINE_HEAD, SR_DEADLINE_BODY, SR_DEADLINE_LINGER,
                                             SR_DEADLINE_WRITE};
    for (size_t i = 0; e->config.sheds_unfinished && i < sizeof kinds / sizeof *kinds; i++) {
        sr_link *list = &e->deadlines[kinds[i]];
        bool newcomer = kinds[i] == SR_DEADLINE_HEAD && list->next == list->prev;
        if (!sr_link_alone(list) && !newcomer) {
            sr_conn_close(e, SR_LIST_ENTRY(list->next, sr_conn, timer), SR_CLOSED_ROOM);
            return true;
        }
    }
    return false;
}

bool sr_room_make(sr_engine *e)
{
    if (!full(e))
        return true;
    int64_t ours = sr_deadline_first(e, SR_DEADLINE_IDLE);
    if (e->shed && e->n_conns <= e->config.max_connections && e->shed(e->with, ours))
        return true;
    sr_row *other = oldest_elsewhere(e);
    if (!other || (ours && ours <= atomic_load_explicit(&other->oldest, memory_order_relaxed)) ||
        e->n_conns > e->config.max_connections)
        return sr_room_close_oldest(e) || close_unfinished(e);
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

/*
 * The kernel drops the descriptors of a message for which the taker's table has no room, and with them connections that
 * nobody else has. So newcomers leave room for the largest message and a little more; where the limit is low, an eighth of
 * it, and messages are that much smaller.
 */
void sr_room_init(sr_engine *e)
{
    int limit = sr_descriptors_limit();
    e->table.spare = limit / 8 < SR_PARCELS_MAX + 2 ? limit / 8 : SR_PARCELS_MAX + 2;
    e->table.scarce = limit - e->table.spare;
}

/*
 * How many descriptors are in use is told only by the lowest that is free, so only when a newcomer gets a scarce one: what
 * are not connections are counted then. While a connection has such a number, more may be in use than `scarce`. Where the
 * application has taken the table, few connections are served rather than none.
 */
void sr_room_taken(sr_engine *e, int fd)
{
    int used = fd + 1, conns = (int)e->n_conns;
    if (fd >= e->table.scarce)
        e->table.others = used - conns;
    while (e->table.high && conns > e->table.spare && conns + e->table.others > e->table.scarce) {
        if (!sr_room_close_oldest(e)) {
            sr_trouble_count(e, SR_TROUBLE_DESCRIPTORS, 1, EMFILE);
            sr_engine_pause(e);
            return;
        }
        conns = (int)e->n_conns;
    }
}

/* Others have the same limit, and keep as much free for us. */
int sr_room_message(const sr_engine *e)
{
    return e->table.spare > 2 ? e->table.spare - 2 : 1;
}

void sr_room_recount(sr_engine *e)
{
    sr_room_taken(e, sr_descriptors_lowest(e->loop.epoll) - 1);
}
