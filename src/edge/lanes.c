#include "lanes.h"

#include "../conn/deadline.h"
#include "../conn/protocol.h"
#include "../conn/trouble.h"
#include "others.h"
#include "turns.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * How long a place is left to an older request of another edge, which may be stopped or about to be cleared.
 */
#define YIELD_NS (20 * SR_MILLISECOND)
/*
 * An edge whose loop has not turned for so long hangs: with a request that waits it turns every 20 ms. No
 * place is left to it.
 */
#define HANGS_NS SR_SECOND
/*
 * How long no place is left to an edge that has not taken one. One that lacked a CPU meanwhile gets its turn
 * then.
 */
#define SPURNED_NS (200 * SR_MILLISECOND)

enum {
    TRIES = 8,
    EXPIRED_PER_LOOK = 128, /* to refuse one takes 10 to 30 us */
};

/* What another edge had published when it had not taken the place that was left to it. */
typedef struct spurned {
    int64_t first; /* 0: it takes them */
    uint64_t taken;
    int64_t until; /* monotonic ns; before, if one of the others has changed */
} spurned;

typedef struct lane {
    sr_link held; /* entries that wait for a place, in the order in which they have come */
    sr_lane_share *ours;
    sr_lane_row *row;    /* in the scoreboard, or own */
    int64_t yielded_at;  /* monotonic ns since which a place is left to another edge; 0: none is */
    uint32_t yielded_to; /* that edge */
    spurned by[SR_EDGES_MAX];
} lane;

struct sr_lanes {
    const sr_lanerules *rules;
    uint64_t n_held; /* in all lanes */
    lane at[SR_LANES_MAX];
    sr_lane_share alone[SR_LANES_MAX]; /* without other edges */
    sr_lane_row own[SR_LANES_MAX];     /* without a scoreboard */
};

static void show(_Atomic uint64_t *n, uint64_t value)
{
    atomic_store_explicit(n, value, memory_order_relaxed);
}

typedef struct lane_text {
    uint64_t words[(SR_LANE_TEXT_MAX + 1) / sizeof(uint64_t)];
} lane_text;

/* NULL: of no lane. */
static lane_text text_of(const sr_lanerule *rule)
{
    lane_text t = {{0}};
    if (rule)
        memcpy(t.words, rule->text.at, rule->text.len);
    return t;
}

static bool row_is_of(const sr_lane_row *row, const sr_lanerule *rule)
{
    lane_text t = text_of(rule);
    bool same = true;
    for (size_t i = 0; i < sizeof t.words / sizeof t.words[0]; i++)
        same = same && atomic_load_explicit(&row->text[i], memory_order_relaxed) == t.words[i];
    return same;
}

/* Rows stay when an edge ends: what it has counted goes on if it is of the same lane. */
static void row_begin(sr_lane_row *row, const sr_lanerule *rule)
{
    lane_text t = text_of(rule);
    if (!row_is_of(row, rule)) {
        show(&row->requests, 0);
        show(&row->waited_ns, 0);
        show(&row->full, 0);
        show(&row->late, 0);
    }
    for (size_t i = 0; i < sizeof t.words / sizeof t.words[0]; i++)
        show(&row->text[i], t.words[i]);
    show(&row->limit, rule ? rule->limit : 0);
    show(&row->queue_limit, rule ? rule->queue : 0);
    show(&row->timeout_ns, rule ? (uint64_t)rule->timeout_ns : 0);
    show(&row->running, 0);
    show(&row->waiting, 0);
    atomic_store_explicit(&row->first, 0, memory_order_relaxed);
}

/*
 * Gives each rule the row that the edge before had for this lane, or else one of no lane any more; the order
 * of rules changes with their number. `which` gets the number of each.
 */
static void rows_begin(sr_lane_row rows[SR_LANES_MAX], const sr_lanerules *rules,
                       uint32_t which[SR_LANES_MAX])
{
    const sr_lanerule *has[SR_LANES_MAX] = {NULL};
    for (uint32_t i = 0; i < rules->n; i++) {
        which[i] = SR_LANES_MAX;
        for (uint32_t j = 0; which[i] == SR_LANES_MAX && j < SR_LANES_MAX; j++)
            if (!has[j] && row_is_of(&rows[j], &rules->at[i])) {
                has[j] = &rules->at[i];
                which[i] = j;
            }
    }
    for (uint32_t i = 0, j = 0; i < rules->n; i++) {
        if (which[i] < SR_LANES_MAX)
            continue;
        while (has[j])
            j++;
        has[j] = &rules->at[i];
        which[i] = j;
    }
    for (uint32_t j = 0; j < SR_LANES_MAX; j++)
        row_begin(&rows[j], has[j]);
}

int sr_lanes_open(sr_edge *ed, const sr_lanerules *rules)
{
    sr_scoreboard *board = ed->engine->scoreboard;
    sr_lane_row *rows = board ? board->shared->lanes[ed->number] : NULL;
    uint32_t which[SR_LANES_MAX];
    if (rows)
        rows_begin(rows, rules, which);
    if (!rules->n)
        return 0;
    struct sr_lanes *all = ed->lanes = calloc(1, sizeof *all);
    if (!all)
        return ENOMEM;
    all->rules = rules;
    for (uint32_t i = 0; i < rules->n; i++) {
        lane *l = &all->at[i];
        sr_link_init(&l->held);
        l->ours = ed->others.common ? &ed->others.common->row[ed->number].lanes[i] : &all->alone[i];
        l->row = rows ? &rows[which[i]] : &all->own[i];
        atomic_store(&l->ours->key, rules->at[i].key);
    }
    return 0;
}

void sr_lanes_close(sr_edge *ed)
{
    free(ed->lanes);
    ed->lanes = NULL;
}

uint8_t sr_lanes_find(const sr_edge *ed, const sr_task *task)
{
    return (uint8_t)(sr_lanerules_find(ed->lanes->rules, task->request, task->base, task->exchange->trusted) +
                     1);
}

/* --- what all edges have --- */

typedef struct sums {
    uint64_t running, waiting;
    /*
     * of the others to which a place may be left: when the oldest request that waits was complete; INT64_MAX:
     * none does
     */
    int64_t first;
    uint32_t edge; /* which has that */
} sums;

/* The share of another edge in the lane. NULL: it has none. */
static const sr_lane_share *theirs(const sr_edge *ed, uint32_t edge, uint64_t key)
{
    const sr_lane_share *lanes = ed->others.common->row[edge].lanes;
    for (uint32_t i = 0; i < SR_LANES_MAX; i++)
        if (atomic_load(&lanes[i].key) == key)
            return &lanes[i];
    return NULL;
}

/* Whether a place is left to that edge, whose oldest request has waited since `first`. */
static bool may_take(const sr_edge *ed, const lane *l, uint32_t edge, const sr_lane_share *share,
                     int64_t first)
{
    int64_t turned = atomic_load_explicit(&ed->others.common->row[edge].turned, memory_order_relaxed);
    const spurned *by = &l->by[edge];
    return ed->engine->now - turned < HANGS_NS &&
           (by->first != first || ed->engine->now >= by->until || by->taken != atomic_load(&share->taken));
}

static sums sum(const sr_edge *ed, uint32_t i)
{
    const lane *l = &ed->lanes->at[i];
    sums s = {atomic_load(&l->ours->running), atomic_load(&l->ours->waiting), INT64_MAX, 0};
    for (uint32_t edge = 0; ed->others.common && edge < ed->others.n_bells; edge++) {
        const sr_lane_share *share =
            edge == ed->number ? NULL : theirs(ed, edge, ed->lanes->rules->at[i].key);
        if (!share)
            continue;
        s.running += atomic_load(&share->running);
        s.waiting += atomic_load(&share->waiting);
        int64_t first = atomic_load(&share->first);
        if (first && first < s.first && may_take(ed, l, edge, share, first)) {
            s.first = first;
            s.edge = edge;
        }
    }
    return s;
}

static sr_entry *first_held(const lane *l)
{
    return sr_link_alone(&l->held) ? NULL : SR_LIST_ENTRY(l->held.next, sr_entry, link);
}

static int64_t ready_at(const sr_edge *ed, const sr_entry *en)
{
    return atomic_load_explicit(&sr_queue_at(&ed->queue, (uint32_t)(en - ed->entries))->ready_at,
                                memory_order_relaxed);
}

/* Somebody has joined or left the list. */
static void publish(sr_edge *ed, lane *l, int change)
{
    const sr_entry *en = first_held(l);
    int64_t first = en ? ready_at(ed, en) : 0;
    ed->lanes->n_held += (uint64_t)change;
    atomic_fetch_add(&l->ours->waiting, (uint64_t)change);
    atomic_store(&l->ours->first, first);
    show(&l->row->waiting, atomic_load(&l->ours->waiting));
    atomic_store_explicit(&l->row->first, first, memory_order_relaxed);
}

/* --- places --- */

/*
 * Says that it has the place, and then looks whether there was one: of two edges that do so for the last
 * place, one or both give it back. An edge that gives it back looks again, so the later of the two gets the
 * place.
 */
static bool enter(sr_edge *ed, uint32_t i)
{
    lane *l = &ed->lanes->at[i];
    uint64_t limit = ed->lanes->rules->at[i].limit;
    for (int tries = 0; tries < TRIES; tries++) {
        atomic_fetch_add(&l->ours->running, 1);
        if (sum(ed, i).running <= limit)
            return true;
        atomic_fetch_sub(&l->ours->running, 1);
        if (sum(ed, i).running >= limit)
            return false;
    }
    return false; /* sr_lanes_look tries again */
}

static void put(sr_edge *ed, lane *l, sr_entry *en)
{
    sr_engine *e = ed->engine;
    uint32_t slot = (uint32_t)(en - ed->entries);
    sr_link_remove(&en->link);
    en->waits_for = SR_ENTRY_NOTHING;
    ed->turns.unnumbered--;
    en->due_at = e->now;
    if (en->turn)
        en->turn->placed_at = e->now;
    sr_turns_enter(ed, slot);
    publish(ed, l, -1);
    int64_t waited = e->now - ready_at(ed, en);
    atomic_fetch_add(&l->ours->taken, 1);
    show(&l->row->running, atomic_load(&l->ours->running));
    sr_counters_add(&l->row->requests, 1);
    sr_counters_add(&l->row->waited_ns, waited > 0 ? (uint64_t)waited : 0);
}

/*
 * Who gets the next place: the first that has come, where the next request of a connection with several
 * streams counts as having come when the last one got its place. So one client with many of them does not
 * have all places one after the other.
 */
static sr_entry *next_of(const sr_edge *ed, const lane *l)
{
    sr_entry *best = NULL;
    int64_t first = INT64_MAX;
    for (const sr_link *at = l->held.next; at != &l->held; at = at->next) {
        sr_entry *en = SR_LIST_ENTRY(at, sr_entry, link);
        int64_t came = ready_at(ed, en),
                joined = en->turn && en->turn->placed_at > came ? en->turn->placed_at : came;
        if (came >= first)
            break;
        if (joined < first) {
            first = joined;
            best = en;
        }
    }
    return best;
}

/*
 * A place is free for an older request of another edge: leaves it to that, for a while. False: it has had the
 * time to take it, and is not waited for any longer.
 */
static bool yield(sr_edge *ed, lane *l, uint32_t i, const sums *s)
{
    int64_t now = ed->engine->now;
    if (!l->yielded_at || l->yielded_to != s->edge) {
        l->yielded_at = now;
        l->yielded_to = s->edge;
    }
    const sr_lane_share *share = theirs(ed, s->edge, ed->lanes->rules->at[i].key);
    if (share && now - l->yielded_at >= YIELD_NS) {
        l->by[s->edge] = (spurned){s->first, atomic_load(&share->taken), now + SPURNED_NS};
        l->yielded_at = 0;
        return false;
    }
    sr_others_ring(ed, s->edge);
    return true;
}

/* Fills free places, with the oldest of all edges first. */
static void let_in(sr_edge *ed, uint32_t i)
{
    lane *l = &ed->lanes->at[i];
    for (;;) {
        sr_entry *en = first_held(l);
        sums s = sum(ed, i);
        if (s.running >= ed->lanes->rules->at[i].limit)
            break;
        if (!en && s.first != INT64_MAX)
            sr_others_ring(ed, s.edge);
        if (en && s.first < ready_at(ed, en)) {
            if (yield(ed, l, i, &s))
                return;
            continue;
        }
        if (!en || !sr_queue_room(&ed->queue) || !enter(ed, i))
            break;
        put(ed, l, next_of(ed, l));
    }
    l->yielded_at = 0;
}

sr_lane_state sr_lanes_state(const sr_edge *ed, uint8_t lane)
{
    const sr_lanerule *rule = &ed->lanes->rules->at[lane - 1];
    sums s = sum(ed, lane - 1u);
    if (!s.waiting && s.running < rule->limit)
        return SR_LANE_FREE;
    return s.waiting < rule->queue ? SR_LANE_BUSY : SR_LANE_FULL;
}

void sr_lanes_refused(sr_edge *ed, uint8_t lane)
{
    sr_counters_add(&ed->lanes->at[lane - 1].row->full, 1);
    sr_trouble_count(ed->engine, SR_TROUBLE_LANE, 1, 0);
}

/* --- requests --- */

void sr_lanes_hold(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    lane *l = &ed->lanes->at[en->lane - 1];
    en->number = 0;
    en->waits_for = SR_ENTRY_LANE;
    ed->turns.unnumbered++;
    sr_queue_at(&ed->queue, slot)->in_lane = true;
    sr_link_append(&l->held, &en->link);
    sr_deadline_set_exchange(ed->engine, en->exchange, SR_DEADLINE_LOOK);
    publish(ed, l, 1); /* then look for a place: who gives one back looks here */
    let_in(ed, en->lane - 1u);
}

static void give(sr_edge *ed, uint8_t number)
{
    lane *l = &ed->lanes->at[number - 1];
    atomic_fetch_sub(&l->ours->running, 1);
    show(&l->row->running, atomic_load(&l->ours->running));
    let_in(ed, number - 1u);
}

/*
 * Whether the worker has begun with this request, and with no other since. Of what it has for other edges
 * nothing is known.
 */
static bool still_at(const sr_edge_worker *m, uint64_t number)
{
    const sr_ring *ring = m->reader.ring;
    return ring && atomic_load(&ring->began) == number && atomic_load(&ring->done) != number;
}

void sr_lanes_ended(sr_edge *ed, sr_edge_worker *m)
{
    uint8_t number = m->lane;
    m->lane = 0;
    give(ed, number);
}

void sr_lanes_heard(sr_edge *ed, sr_edge_worker *m)
{
    if (!m->broken && !still_at(m, m->lane_number)) /* a broken one says nothing that counts */
        sr_lanes_ended(ed, m);
}

void sr_lanes_leave(sr_edge *ed, sr_entry *en, sr_edge_worker *m)
{
    uint8_t number = en->lane;
    bool held = sr_lanes_holds(en);
    en->lane = 0;
    if (!held && m && !m->broken && still_at(m, en->number)) {
        if (m->lane)
            sr_lanes_ended(ed, m); /* it has begun with this one since */
        m->lane = number;
        m->lane_number = en->number;
        return;
    }
    if (!held) {
        give(ed, number);
        return;
    }
    ed->turns.unnumbered--;
    sr_link_remove(&en->link);
    publish(ed, &ed->lanes->at[number - 1], -1);
}

bool sr_lanes_wait(const sr_edge *ed)
{
    return ed->lanes->n_held;
}

/* The list is in the order of arrival, so the first has waited for longest. */
static void expire(sr_edge *ed, uint32_t i)
{
    lane *l = &ed->lanes->at[i];
    int64_t timeout = ed->lanes->rules->at[i].timeout_ns;
    for (int n = 0; timeout && n < EXPIRED_PER_LOOK; n++) {
        const sr_entry *en = first_held(l);
        if (!en || ed->engine->now - ready_at(ed, en) < timeout)
            return;
        sr_counters_add(&l->row->late, 1);
        sr_trouble_count(ed->engine, SR_TROUBLE_LANE_TIMEOUT, 1, 0);
        sr_exchange_refuse(ed->engine, en->exchange, 503, SR_REFUSED_LANE_TIMEOUT);
    }
}

void sr_lanes_look(sr_edge *ed)
{
    for (uint32_t row = 0; row < ed->rows; row++)
        if (ed->workers[row].lane)
            sr_lanes_heard(ed, &ed->workers[row]);
    for (uint32_t i = 0; i < ed->lanes->rules->n; i++) {
        expire(ed, i);
        let_in(ed, i);
    }
}
