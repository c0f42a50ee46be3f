#include "capacity.h"

#include "engine.h"

#include "../net/descriptors.h"
#include "deadline.h"
#include "listener.h"
#include "trouble.h"

#include <errno.h>

bool sr_capacity_close_oldest(sr_engine *e)
{
    if (sr_link_alone(&e->deadlines.list[SR_DEADLINE_IDLE]))
        return false;
    sr_conn_close(e, sr_deadline_head(&e->deadlines, SR_DEADLINE_IDLE), SR_CLOSED_ROOM);
    return true;
}

static const sr_deadline_kind UNFINISHED[] = {SR_DEADLINE_HANDSHAKE, SR_DEADLINE_HEAD, SR_DEADLINE_BODY,
                                              SR_DEADLINE_LINGER, SR_DEADLINE_WRITE};
enum { N_UNFINISHED = sizeof UNFINISHED / sizeof *UNFINISHED };

/*
 * For sheds_unfinished: closes the oldest of the connections that send a request, linger, or read a response.
 * The new connection counts as the youngest of those that send a head.
 */
static bool close_unfinished(sr_engine *e)
{
    for (size_t i = 0; e->config.sheds_unfinished && i < N_UNFINISHED; i++) {
        const sr_link *list = &e->deadlines.list[UNFINISHED[i]];
        bool first = UNFINISHED[i] == SR_DEADLINE_HEAD || UNFINISHED[i] == SR_DEADLINE_HANDSHAKE;
        bool newcomer = first && list->next == list->prev;
        if (!sr_link_alone(list) && !newcomer) {
            sr_conn_close(e, sr_deadline_head(&e->deadlines, UNFINISHED[i]), SR_CLOSED_ROOM);
            return true;
        }
    }
    return false;
}

bool sr_capacity_make(sr_engine *e)
{
    uint64_t most = e->config.max_connections;
    bool full = e->n_conns > most;
    if (!full && (!e->others || e->n_conns + e->others(e->with) <= most))
        return true;
    if (!full && e->shed && e->shed(e->with, sr_deadline_first(&e->deadlines, SR_DEADLINE_IDLE)))
        return true;
    return sr_capacity_close_oldest(e) || close_unfinished(e);
}

enum { SPARE = 66, SPARE_PART = 8 }; /* descriptors kept free; with a low limit, an eighth of it */

void sr_capacity_init(sr_engine *e)
{
    int limit = sr_descriptors_limit();
    e->capacity.spare = limit / SPARE_PART < SPARE ? limit / SPARE_PART : SPARE;
    e->capacity.scarce = limit - e->capacity.spare;
}

/*
 * The kernel only tells the lowest free descriptor, which equals the number in use if all below are taken. So
 * descriptors are counted when a new connection gets a scarce one; until that connection ends, more than
 * `scarce` may be in use. If other things have filled the table, a few connections are still served rather
 * than none.
 */
void sr_capacity_taken(sr_engine *e, int fd)
{
    int used = fd + 1, conns = (int)e->n_conns;
    if (fd >= e->capacity.scarce)
        e->capacity.besides = used - conns;
    while (e->capacity.high && conns > e->capacity.spare &&
           conns + e->capacity.besides > e->capacity.scarce) {
        if (!sr_capacity_close_oldest(e)) {
            sr_trouble_count(e, SR_TROUBLE_DESCRIPTORS, 1, EMFILE);
            sr_listeners_pause(e);
            return;
        }
        conns = (int)e->n_conns;
    }
}

/* Counts the descriptors in use. */
static void recount(sr_engine *e)
{
    sr_capacity_taken(e, sr_descriptors_lowest(e->loop.epoll) - 1);
}

bool sr_capacity_awaits(const sr_engine *e)
{
    if (!e->config.sheds_unfinished || e->n_conns < e->config.max_connections ||
        !sr_link_alone(&e->deadlines.list[SR_DEADLINE_IDLE]))
        return false;
    for (size_t i = 0; i < N_UNFINISHED; i++)
        if (!sr_link_alone(&e->deadlines.list[UNFINISHED[i]]))
            return false;
    return true;
}

void sr_capacity_resume(sr_engine *e)
{
    if (e->listeners.again > e->now)
        return;
    e->listeners.again = 0;
    e->capacity.made_room = false;
    recount(e);
    sr_listeners_watch(e, e->listeners.watched);
}
