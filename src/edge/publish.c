#include "publish.h"

#include "../live/live.h"
#include "../share/reply.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static void dropped(sr_edge *ed)
{
    sr_counters_add(&ed->engine->row->counters.unpublished, 1);
}

/* False: it is no item. */
static bool hand_over(sr_edge *ed, sr_bytes packed)
{
    sr_item_view item;
    if (!sr_item_read(packed, &item))
        return false;
    if (ed->live)
        sr_live_publish(ed->live, packed);
    return true;
}

void sr_publish_forget(sr_edge_worker *m)
{
    sr_buffer_free(&m->item);
    m->unfit = false;
}

bool sr_publish_record(sr_edge *ed, sr_edge_worker *m, const sr_record *rec, sr_bytes payload)
{
    if (rec->kind != SR_REPLY_PUBLISH || rec->number || rec->flags & ~SR_REPLY_MORE ||
        payload.len > SR_ITEM_PACKED_MAX - sr_buffer_len(&m->item))
        return false;
    m->unfit = m->unfit || !sr_buffer_add_bytes(
                               &m->item, payload); /* copied before it is checked: the worker can write it */
    if (rec->flags & SR_REPLY_MORE)
        return true;
    bool sound = m->unfit || hand_over(ed, sr_bytes_of(sr_buffer_at(&m->item), sr_buffer_len(&m->item)));
    if (m->unfit)
        dropped(ed);
    sr_publish_forget(m);
    return sound;
}

void sr_publish_file(sr_edge *ed, int fd)
{
    struct stat st;
    sr_buffer item = {0};
    size_t bytes =
        fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= SR_ITEM_PACKED_MAX ? (size_t)st.st_size : 0;
    bool sound = bytes && sr_buffer_reserve(&item, bytes) &&
                 pread(fd, item.data, bytes, 0) == (ssize_t)bytes &&
                 hand_over(ed, sr_bytes_of(item.data, bytes));
    if (!sound)
        dropped(ed);
    sr_buffer_free(&item);
}
