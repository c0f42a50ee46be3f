#ifndef SR_LIST_H
#define SR_LIST_H
/*
 * list: an intrusive, circular, doubly linked list. A link is embedded in what it links; the list owns
 * nothing. A link that is in no list points to itself, so removing it twice is harmless. Thread: one at a
 * time.
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
} /* of a head: the list is empty */

static inline void sr_link_remove(sr_link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    sr_link_init(l);
}

/* Adds it at the tail of the list of `head`, after removing it from where it was. */
static inline void sr_link_append(sr_link *head, sr_link *l)
{
    sr_link_remove(l);
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

#endif
