#ifndef SR_LOGPROGRAM_H
#define SR_LOGPROGRAM_H
/* logprogram: what logparse.c makes and logformat.c runs. For these two alone. */
#include "logformat.h"
#include "logtime.h"

enum { SR_LOG_PAD = 16 }; /* bytes of ours behind each text, so that a short one is copied without a loop */

struct sr_logformat {
    sr_logitem *items;
    size_t count;
    char *bytes;    /* texts and names of the items, and SR_LOG_PAD */
    uint64_t kinds; /* 1 << kind of each item */
    bool json;      /* each item is a JSON value */
};

#endif
