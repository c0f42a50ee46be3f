#include "publish.h"

#include "../live/live.h"
#include "../net/tempfile.h"
#include "../share/reply.h"

#include <stdlib.h>
#include <sys/stat.h>

/* One that has come. */
typedef struct sr_published {
    sr_link link; /* in sr_edge.published */
    uint64_t
        order; /* its number, or the time at which it came, if that can't be the time at which it was made */
    size_t place; /* in that list, when it is sorted */
    size_t bytes;
    char packed[];
} sr_published;

/*
 * How far from now an item may have been made, in units of numbers (lib/Sirius/Channel/Item.pm): microseconds
 * above 22 bits.
 */
#define LATE (INT64_C(60000000) << 22)
#define EARLY (INT64_C(1000000) << 22)

static uint64_t order_of(const sr_edge *ed, uint64_t number)
{
    uint64_t now = (uint64_t)(ed->engine->now / 1000) << 22;
    int64_t age = (int64_t)(now - number);
    return age > LATE || age < -EARLY ? now : number;
}

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
    p->order = order_of(ed, item.number);
    p->bytes = packed.len;
    memcpy(p->packed, packed.at, packed.len);
    sr_link_init(&p->link);
    sr_link_append(&ed->published, &p->link);
    ed->n_published++;
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
    *last = first(ed)->order;
    for (const sr_link *l = ed->published.next; l != &ed->published; l = l->next) {
        const sr_published *p = SR_LIST_ENTRY(l, sr_published, link);
        if ((int64_t)(p->order - *last) > 0)
            *last = p->order;
    }
    return true;
}

static int compare(const void *one, const void *other)
{
    const sr_published *a = *(sr_published *const *)one, *b = *(sr_published *const *)other;
    int64_t differ = (int64_t)(a->order - b->order);
    if (!differ) /* not every qsort is stable */
        return a->place < b->place ? -1 : 1;
    return differ < 0 ? -1 : 1;
}

/* Without memory they stay as they came. */
static void sort(sr_edge *ed)
{
    sr_published **all = malloc(ed->n_published * sizeof(sr_published *));
    size_t n = 0;
    if (!all)
        return;
    for (sr_link *l = ed->published.next; l != &ed->published; l = l->next) {
        all[n] = SR_LIST_ENTRY(l, sr_published, link);
        all[n]->place = n;
        n++;
    }
    qsort(all, n, sizeof *all, compare);
    for (size_t i = 0; i < n; i++)
        sr_link_append(&ed->published, &all[i]->link);
    free(all);
}

static void drop(sr_edge *ed, sr_published *p)
{
    sr_link_remove(&p->link);
    ed->n_published--;
    free(p);
}

void sr_publish_until(sr_edge *ed, uint64_t last)
{
    if (ed->n_published > 1)
        sort(ed);
    for (sr_link *l = ed->published.next, *next; l != &ed->published; l = next) {
        sr_published *p = SR_LIST_ENTRY(l, sr_published, link);
        next = l->next;
        if ((int64_t)(p->order - last) > 0)
            continue;
        sr_live_publish(ed->live, sr_bytes_of(p->packed, p->bytes));
        drop(ed, p);
    }
}

void sr_publish_end(sr_edge *ed)
{
    while (!sr_link_alone(&ed->published))
        drop(ed, first(ed));
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
    bool sound = m->unfit || keep(ed, sr_buffer_bytes(&m->item));
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
                 sr_tempfile_read(fd, item.data, bytes, 0) == (ssize_t)bytes &&
                 keep(ed, sr_bytes_of(item.data, bytes));
    if (!sound)
        dropped(ed);
    sr_buffer_free(&item);
}
