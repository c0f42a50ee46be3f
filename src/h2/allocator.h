#ifndef SR_H2_ALLOCATOR_H
#define SR_H2_ALLOCATOR_H
/*
 * allocator: memory for libnghttp2.
 * - It frees twice what it could not put into its queue for lack of memory (1.52, with the priorities of RFC
 *   9218). So its small requests are served from a reserve of the process when there is no other, and the
 *   session ends.
 * - To put together one frame at a time, each session allocates 16 KiB when it begins, more than for all
 *   else. There is one such buffer for all: the caller copies a frame as soon as nghttp2_session_mem_send has
 *   returned it, before another session makes one.
 *
 * Owner: the process, which has one thread. Failure: as malloc.
 */
#include "state.h"

/*
 * The functions with which libnghttp2 asks for memory for this session. While s->ng is NULL the session
 * begins.
 */
nghttp2_mem sr_allocator(sr_session *s);

/* A frame was copied. Builds with sanitizers spoil it, so that tests find a session that needs it again. */
void sr_allocator_copied(void);

#endif
