#ifndef SR_BELL_H
#define SR_BELL_H
/*
 * bell: one descriptor by which other processes wake an edge (eventfd(2)). To ring it is to write eight
 * bytes, a uint64_t of 1; if that would block, it rings already. Any thread.
 *
 * Owner: the caller, who may pass it to other processes.
 */

/* Makes one, close-on-exec, neither end of which blocks. -1 with errno. */
int sr_bell_new(void);

/*
 * What has rung is taken note of, in an event of it. Not needed where a loop reports each ring once
 * (EPOLLET).
 */
#ifdef SR_PORTABLE
#define SR_BELL_CALLS "mkfifo in /tmp" /* what may have failed, for a message */
void sr_bell_heard(int fd);
#else
#define SR_BELL_CALLS "eventfd2"
static inline void sr_bell_heard(int fd)
{
    (void)fd;
}
#endif

#endif
