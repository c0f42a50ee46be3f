#ifndef SR_PRIORITY_H
#define SR_PRIORITY_H
/*
 * priority: the field Priority (RFC 9218): how urgent a response is beside others of the same client, and
 * whether a part of it is of use.
 *
 * Pure: no allocation, no I/O. Any thread.
 */
#include "../base/bytes.h"

enum { SR_URGENCY_DEFAULT = 3, SR_URGENCY_LOW = 7 };

typedef struct sr_priority {
    uint8_t urgency;  /* 0: the most urgent, to 7 */
    bool incremental; /* it can share the connection with others of its urgency; else it is sent in one go */
} sr_priority;

#define SR_PRIORITY_DEFAULT ((sr_priority){SR_URGENCY_DEFAULT, false})

/*
 * What the value says counts instead of what is there. Members that are unknown or have no valid value say
 * nothing.
 */
void sr_priority_read(sr_priority *p, sr_bytes value);

#endif
