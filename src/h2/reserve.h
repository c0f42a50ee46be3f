#ifndef SR_H2_RESERVE_H
#define SR_H2_RESERVE_H
/*
 * reserve: memory for libnghttp2, which frees twice what it could not put into its queue for lack of memory (1.52, with the priorities
 * of RFC 9218). So its small requests are served from a reserve of the process when there is no other, and the session ends.
 */
#include "state.h"

/* The functions with which libnghttp2 asks for memory for this session. */
nghttp2_mem sr_reserve_mem(sr_session *s);

#endif
