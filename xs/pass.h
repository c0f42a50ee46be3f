#ifndef SIRIUS_PASS_H
#define SIRIUS_PASS_H
/* pass: notes with descriptors, over a pair that keeps them apart (net/packets.h). */
#include "sirius.h"

#include "net/packets.h"

enum { SIRIUS_PASSED_MAX = 4, SIRIUS_PASSED_BYTES = SR_PACKETS_MAX };

/* False with errno: it was not sent. Does not wait for room where the socket does not block. */
bool sirius_send(pTHX_ int line, SV *bytes, const int *fds, int n);

/*
 * The next note and its descriptors, which are the caller's and close-on-exec. NULL: there is none (errno),
 * or the other end is closed (errno 0).
 */
SV *sirius_receive(pTHX_ int line, int fds[SIRIUS_PASSED_MAX], int *n);

#endif
