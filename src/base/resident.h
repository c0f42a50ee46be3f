#ifndef SR_RESIDENT_H
#define SR_RESIDENT_H
/*
 * resident: how much memory this process has in RAM, as the kernel counts it (/proc/self/statm). Open it in the
 * process that is meant; a child that is forked later reads its parent's. Thread: any. One system call a look.
 */
#include <stdint.h>

typedef struct sr_resident {
    int fd; /* close-on-exec; -1: not open */
    uint64_t page;
} sr_resident;

void sr_resident_open(sr_resident *r); /* without /proc it stays closed */
void sr_resident_close(sr_resident *r);
uint64_t sr_resident_bytes(const sr_resident *r); /* 0: not known */

#endif
