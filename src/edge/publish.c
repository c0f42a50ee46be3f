#include "publish.h"

#include "../live/live.h"
#include "../share/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* One that has come. */
typedef struct sr_published {
    sr_link link; /* in sr_edge.published */
    uint64_t number;
    size_t bytes;
    char packed[];
} sr_published;

static void dropped(sr_edge *ed)
{
    sr_counters_add(&ed->engine->row->counters.unpublished, 1);
}

/* Keeps it for sr_publish_until. False: it is no item. */
static bool keep(sr_edge *ed, sr_bytes packed)
{
    sr_item_view item;
    sr_published *p;
    if (!sr_item_read(packed, &item))
        return false;
    if (!ed->live)
        return true;
    if (!(p = malloc(sizeof *p + packed.len))) {
        dropped(ed);
        return true;
    }
    p->number = item.number;
    p->bytes = packed.len;
    memcpy(p->packed, packed.at, packed.len);
    sr_link *before = ed->published.prev; /* in the order of their numbers: from the end, where most belong */
    while (before != &ed->published &&
           (int64_t)(SR_LIST_ENTRY(before, sr_published, link)->number - p->number) > 0)
        before = before->prev;
    sr_link_init(&p->link);
    sr_link_append(before->next, &p->link);
    return true;
}

static sr_published *first(const sr_edge *ed)
{
    return SR_LIST_ENTRY(ed->published.next, sr_published, link);
}

bool sr_publish_waits(const sr_edge *ed, uint64_t *last)
{
    if (sr_link_alone(&ed->published))
        return false;
    *last = SR_LIST_ENTRY(ed->published.prev, sr_published, link)->number;
    return true;
}

void sr_publish_until(sr_edge *ed, uint64_t last)
{
    while (!sr_link_alone(&ed->published) && (int64_t)(first(ed)->number - last) <= 0) {
        sr_published *p = first(ed);
        sr_link_remove(&p->link);
        sr_live_publish(ed->live, sr_bytes_of(p->packed, p->bytes));
        free(p);
    }
}

void sr_publish_end(sr_edge *ed)
{
    while (!sr_link_alone(&ed->published)) {
        sr_published *p = first(ed);
        sr_link_remove(&p->link);
        free(p);
    }
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
    bool sound = m->unfit || keep(ed, sr_bytes_of(sr_buffer_at(&m->item), sr_buffer_len(&m->item)));
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
                 pread(fd, item.data, bytes, 0) == (ssize_t)bytes && keep(ed, sr_bytes_of(item.data, bytes));
    if (!sound)
        dropped(ed);
    sr_buffer_free(&item);
}
