#include "holder.h"

int32_t sr_holder(const sr_edge *ed, uint32_t slot)
{
    const sr_entry *en = &ed->entries[slot];
    int32_t row = en->row      ? (int32_t)en->row - 1
                  : en->number ? sr_queue_owner(&ed->queue, slot, en->number)
                               : -1;
    return row >= 0 && ed->workers[row].line.fd >= 0 ? row : -1;
}

bool sr_holder_bind(sr_edge *ed, sr_edge_worker *m, uint32_t slot, uint64_t number)
{
    sr_entry *en = &ed->entries[slot];
    if (en->number != number || (en->row && en->row != m->row + 1))
        return false;
    if (en->row)
        return true;
    if (m->bound || (!en->doubted && sr_queue_owner(&ed->queue, slot, number) != (int32_t)m->row &&
                     atomic_load(&m->reader.ring->began) != number))
        return false;
    en->row = m->row + 1;
    m->bound = slot + 1;
    return true;
}
