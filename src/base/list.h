#ifndef SR_LIST_H
#define SR_LIST_H
/*
 * list: an intrusive, circular, doubly linked list. A link is embedded in what it links; the list owns
 * nothing. An unlinked link points to itself, so unlinking twice is harmless. Lock: that of the embedding
 * structure.
 */
#include <stdbool.h>
#include <stddef.h>

typedef struct sr_link {
    struct sr_link *next, *prev;
} sr_link;

#define SR_LIST_ENTRY(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

static inline void sr_link_init(sr_link *l)
{
    l->next = l->prev = l;
}
static inline bool sr_link_alone(const sr_link *l)
{
    return l->next == l;
} /* for a head: the list is empty */

static inline void sr_link_remove(sr_link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    sr_link_init(l);
}

/* At the tail of the list that starts at `head`; removes it from where it was. */
static inline void sr_link_append(sr_link *head, sr_link *l)
{
    sr_link_remove(l);
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

#endif
