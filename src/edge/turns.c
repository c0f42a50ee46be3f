#include "turns.h"

#include "slots.h"

/*
 * What is in the queue beside the requests that workers have: they find the next one while the edge is about
 * to hear of the last.
 */
#define AHEAD_NS (300 * 1000)
/* Calls that take less are short: their responses may wait for each other (conn/protocol.h). */
#define BRISK_NS (50 * 1000)
/*
 * Since its last turn: then a connection gets the next one although all workers are busy, as those that it
 * has may take long.
 */
#define OVERDUE_NS SR_SECOND

enum { WEIGHT = 8 }; /* the time of a call is an average of about so many */

sr_turn *sr_turns_of(sr_conn *c)
{
    sr_turn *t = c->turn;
    if (!t) {
        if (!(t = c->turn = calloc(1, sizeof *t)))
            return NULL;
        sr_link_init(&t->link);
        sr_link_init(&t->waiting);
        t->owners = 1;
    }
    t->owners++;
    return t;
}

static sr_entry *first(const sr_turn *t)
{
    return SR_LIST_ENTRY(t->waiting.next, sr_entry, link);
}

static void put(sr_edge *ed, sr_entry *en)
{
    sr_turn *t = en->turn;
    t->slot = (uint32_t)(en - ed->entries);
    t->at = ed->engine->now;
    t->given++;
    /*
     * when its turn has come, so that workers do not prefer it to what has waited for longer in the queues of
     * other edges
     */
    atomic_store_explicit(&sr_queue_at(&ed->queue, t->slot)->placed_at, t->at, memory_order_relaxed);
    sr_turns_put(ed, t->slot);
    t->number = en->number;
}

/* Whether the connection gets its turn however busy the workers are. */
static bool is_due(const sr_edge *ed, const sr_turn *t)
{
    return !t->given ||
           (ed->engine->now - t->at >= OVERDUE_NS && !sr_queue_waits(&ed->queue, t->slot, t->number));
}

/*
 * Whether workers could use more than they have been given, so that one that is about to be free finds
 * something.
 */
static bool is_short(sr_edge *ed, uint64_t given)
{
    uint64_t workers = ed->n_workers > ed->others.running ? ed->n_workers - ed->others.running : 0;
    uint64_t ahead = ed->turns.call_ns > 0 ? workers * AHEAD_NS / (uint64_t)ed->turns.call_ns : workers;
    if (given < workers + (ahead > 1 ? ahead : 1))
        return true;
    return !sr_queue_waiting(&ed->queue) && sr_sleepers_sleeping(ed->sleepers); /* whatever the numbers say */
}

/* Behind those of its connection that are as urgent (RFC 9218). */
static void append(sr_turn *t, sr_entry *en)
{
    sr_link *before = t->waiting.prev;
    while (before != &t->waiting &&
           SR_LIST_ENTRY(before, sr_entry, link)->exchange->urgency > en->exchange->urgency)
        before = before->prev;
    sr_link_append(before->next, &en->link);
}

static void wait_for_turn(sr_edge *ed, sr_entry *en)
{
    sr_turn *t = en->turn;
    en->number = 0;
    en->waits_for = SR_ENTRY_TURN;
    ed->turns.unnumbered++;
    ed->turns.n++;
    append(t, en);
    if (sr_link_alone(&t->link))
        sr_link_append(&ed->turns.line, &t->link);
    sr_deadline_set_exchange(ed->engine, en->exchange, SR_DEADLINE_LOOK);
}

/* It waits no longer. */
static void take_out(sr_edge *ed, sr_entry *en)
{
    sr_turn *t = en->turn;
    en->waits_for = SR_ENTRY_NOTHING;
    ed->turns.unnumbered--;
    ed->turns.n--;
    sr_link_remove(&en->link);
    if (sr_link_alone(&t->waiting))
        sr_link_remove(&t->link);
}

void sr_turns_wait(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    sr_turn *t = en->turn;
    bool now = is_due(ed, t) || (sr_link_alone(&ed->turns.line) && is_short(ed, sr_slots_given(ed) - 1));
    if (now && sr_link_alone(&t->waiting) && sr_queue_room(&ed->queue))
        put(ed, en);
    else
        wait_for_turn(ed, en);
}

static void measure(sr_edge *ed, sr_edge_worker *m, int64_t ns)
{
    ed->turns.call_ns += (ns - ed->turns.call_ns) / WEIGHT;
    ed->engine->brisk = ed->turns.call_ns > 0 && ed->turns.call_ns < BRISK_NS;
    m->call.from = 0;
}

void sr_turns_begun(sr_edge *ed, sr_edge_worker *m, int64_t at)
{
    if (m->call.from)
        measure(ed, m, at - m->call.from < m->call.most ? at - m->call.from : m->call.most);
}

static void ended(sr_edge *ed, const sr_entry *en, const sr_exchange *x)
{
    sr_edge_worker *m = &ed->workers[en->row - 1];
    if (m->call.from)
        measure(ed, m, m->call.most);
    m->call.from = x->given_at;
    m->call.most = ed->engine->now - x->given_at;
}

void sr_turns_leave(sr_edge *ed, sr_entry *en)
{
    sr_turn *t = en->turn;
    const sr_exchange *x = en->exchange;
    en->turn = NULL;
    if (sr_turns_holds(en)) {
        en->turn = t;
        take_out(ed, en);
        en->turn = NULL;
    } else if (en->number) {
        if (x && x->given_at && en->row)
            ended(ed, en, x);
        if (!--t->given && !sr_link_alone(&t->waiting) && ed->turns.line.next != &t->link)
            sr_link_append(ed->turns.line.next, &t->link); /* in front of those that have one */
    }
    sr_turn_drop(t);
}

void sr_turns_feed(sr_edge *ed)
{
    while (!sr_link_alone(&ed->turns.line) && sr_queue_room(&ed->queue)) {
        sr_turn *t = SR_LIST_ENTRY(ed->turns.line.next, sr_turn, link);
        if (!is_due(ed, t) && !is_short(ed, sr_slots_given(ed)))
            return;
        sr_entry *en = first(t);
        take_out(ed, en);
        put(ed, en);
        if (!sr_link_alone(&t->waiting))
            sr_link_append(&ed->turns.line, &t->link);
    }
}
