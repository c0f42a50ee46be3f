#ifndef SR_RESIDENT_H
#define SR_RESIDENT_H
/*
 * resident: how much memory this process has in RAM, as the kernel counts it (/proc/self/statm). Open it in
 * the process that is to be measured: a child that is forked later reads the figure of its parent. Any
 * thread. Each look is one system call.
 */
#include <stdint.h>

typedef struct sr_resident {
    int fd; /* close-on-exec; -1: not open */
    uint64_t page;
} sr_resident;

void sr_resident_open(sr_resident *r); /* stays closed without /proc */
void sr_resident_close(sr_resident *r);
uint64_t sr_resident_bytes(const sr_resident *r); /* 0: unknown */

#endif
