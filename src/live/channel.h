#ifndef SR_CHANNEL_H
#define SR_CHANNEL_H
/*
 * channel: the table of channels by name. Channels that nobody uses are forgotten, those whose last
 * publication had an id after a while.
 *
 * Owner: sr_live. Called by: the files of this folder.
 */
#include "timer.h"

static inline sr_bytes sr_channel_name(const sr_channel *c)
{
    return sr_bytes_of(c->name, c->name_len);
}

static inline sr_bytes sr_channel_last(const sr_channel *c)
{
    return sr_bytes_of(c->last, c->last_len);
}

sr_channel *sr_channel_find(const sr_live *live, sr_bytes name); /* NULL: there is none */
sr_channel *sr_channel_make(sr_live *live, sr_bytes name);       /* finds or makes it. NULL: no memory */

/* It gets a subscription or a publication. */
void sr_channel_used(sr_live *live, sr_channel *c);
/* It has lost one: frees it, or remembers it, if it has no other. */
void sr_channel_unused(sr_live *live, sr_channel *c);

/* What is kept of an id in a subscription: 30 bits of its hash, never 0. */
uint32_t sr_channel_mark(const sr_live *live, sr_bytes id);

/* The id of its last publication. */
void sr_channel_remember(sr_channel *c, sr_bytes id);

void sr_channels_expire(sr_live *live);
void sr_channels_free(sr_live *live);

#endif
