#ifndef SR_UNSENT_H
#define SR_UNSENT_H
/* unsent: what the kernel knows of the bytes that were written to a socket. Any thread. */
#include <stdint.h>

/* How many the peer has not acknowledged yet (SIOCOUTQ). 0: unknown. */
int sr_unsent_bytes(int fd);

/* A number that changes with each byte that is written to a TCP socket (TCP_INFO). 0: unknown. */
uint64_t sr_unsent_total(int fd);

#endif
