#include "mend.h"

#include "deliver.h"
#include "entry.h"
#include "holder.h"
#include "lanes.h"
#include "slots.h"
#include "slow.h"

#define MEND_NS (20 * SR_MILLISECOND)
#define MEND_QUIET_NS (640 * SR_MILLISECOND)

/* After five looks (100 ms) a worker that has taken a request and not begun is taken to be stopped. */
enum { DOUBTS_MAX = 5 };

/*
 * For a worker that has begun with it. Not while its ring has records that were not read: they may be the
 * answer to the request before, which no look has bound to it, and would not be believed any more.
 */
static void bind_heard(sr_edge *ed, sr_edge_worker *m, uint32_t slot)
{
    if (!sr_reader_waits(&m->reader))
        sr_holder_bind(ed, m, slot, ed->entries[slot].number);
}

/* Reads all rings. True: some had records that were not announced. */
static bool hear_all(sr_edge *ed)
{
    bool news = false;
    for (uint32_t row = 0; row < ed->rows; row++) {
        sr_edge_worker *m = &ed->workers[row];
        uint32_t taken = m->reader.taken;
        if (!sr_entry_hears(m))
            continue;
        sr_deliver(ed, m);
        news = news || m->reader.taken != taken;
    }
    return news;
}

/*
 * Grants the request to the worker that says that it has begun, then checks whether the worker still says so.
 */
static bool granted(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    int32_t row = sr_entry_runs(ed, slot);
    if (row < 0)
        return false;
    sr_edge_worker *m = &ed->workers[row];
    sr_queue_grant(&ed->queue, slot, en->number, m->row);
    if (atomic_load(&m->reader.ring->began) == en->number)
        bind_heard(ed, m, slot);
    return true; /* if it no longer says so, the claim will be doubted again */
}

/* The claim is spoiled, or the worker that holds it does not begin. */
static void doubted(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    uint64_t number = en->number;
    en->doubts = 0;
    if (!sr_queue_retake(&ed->queue, slot, number) || granted(ed, slot))
        return;
    en->doubted = true; /* a worker may have begun, replied and continued since its ring was read */
    hear_all(ed);
    en->doubted = false;
    if (en->number == number && !en->row && !sr_entry_requeue(ed, slot))
        sr_deliver_lost(ed, slot, 0);
}

/* The request waits at a place of the ring that workers no longer look at. */
static void hidden(sr_edge *ed, uint32_t slot)
{
    int32_t row = sr_entry_runs(ed, slot);
    if (row >= 0)
        bind_heard(ed, &ed->workers[row], slot);
    else
        sr_entry_requeue(ed, slot);
}

/* Checks a request of which no worker has spoken yet. */
static void look_at(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    int32_t row = sr_queue_owner(&ed->queue, slot, en->number);
    if (sr_queue_waits(&ed->queue, slot, en->number)) {
        en->doubts = 0;
        if (!en->exchange) { /* nobody has it any more, and its client is gone */
            if (sr_entry_runs(ed, slot) < 0 && sr_queue_drop(&ed->queue, slot, en->number))
                sr_entry_forget(ed, slot);
        } else if (sr_queue_hidden(&ed->queue, en->number)) {
            hidden(ed, slot);
        }
    } else if (row >= 0 && sr_entry_begun(ed, &ed->workers[row], slot)) {
        en->doubts = 0;
        bind_heard(ed, &ed->workers[row], slot);
    } else if (++en->doubts >= DOUBTS_MAX) {
        doubted(ed, slot);
    }
}

int64_t sr_mend_at(const sr_edge *ed)
{
    return sr_slots_used(ed) ? ed->mend.at + (ed->mend.each_ns ? ed->mend.each_ns : MEND_NS) : INT64_MAX;
}

void sr_mend(sr_edge *ed)
{
    if (ed->engine->now < sr_mend_at(ed))
        return;
    bool news = hear_all(ed);
    sr_slow_begin(ed);
    for (uint32_t slot = 0, seen = 0, n = sr_slots_used(ed); slot < ed->slots && seen < n; slot++)
        if (ed->entries[slot].number) {
            seen++;
            if (!ed->entries[slot].row)
                look_at(ed, slot);
        }
    if (ed->sleepers->rows != ed->rows || ed->sleepers->words != (ed->rows + 63) / 64)
        sr_sleepers_init(ed->sleepers, ed->rows);
    if (ed->sleepers->key != ed->key)
        atomic_store(&ed->sleepers->key, ed->key);
    if (ed->sleepers->lobby[ed->number] != ed->name)
        sr_sleepers_arrive(ed->sleepers, ed->number, ed->name);
    bool waiting = sr_queue_waiting(&ed->queue) > 0, held = false;
    if (ed->lanes) {
        sr_lanes_look(ed);
        held = sr_lanes_wait(ed);
    }
    held = held || ed->turns.n;
    for (uint32_t row = 0; waiting && row < ed->rows; row++)
        if (sr_entry_hears(&ed->workers[row]) &&
            !ed->workers[row].bound) /* perhaps asleep, whatever the bits say */
            sr_sleepers_wake(ed->sleepers, row);
    ed->mend.at = ed->engine->now;
    ed->mend.each_ns = news || waiting || held || ed->mend.each_ns < MEND_NS ? MEND_NS : ed->mend.each_ns * 2;
    if (ed->mend.each_ns > MEND_QUIET_NS)
        ed->mend.each_ns = MEND_QUIET_NS;
}
