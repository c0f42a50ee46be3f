#ifndef SR_LOGPROGRAM_H
#define SR_LOGPROGRAM_H
/* program: a compiled format, which parse.c makes and format.c runs. Only they include this. */
#include "format.h"

enum { SR_LOG_PAD = 16 }; /* bytes after each text, so that a short one can be copied without a loop */

struct sr_logformat {
    sr_logitem *items;
    size_t count;
    char *bytes;    /* texts and names of the items, and SR_LOG_PAD */
    uint64_t kinds; /* 1 << kind of each item */
    bool json;      /* each item is a JSON value */
};

#endif
