#ifndef SR_NEEDED_H
#define SR_NEEDED_H
/*
 * needed: system calls without which an edge or its workers would wait for ever, and which a filter of a
 * container or an older kernel may refuse. Each is tried with a descriptor that cannot be: the kernel says so
 * (EBADF), a filter says something else, and nothing is done. Any thread.
 */

/* The name of the first that is refused, with *err why; NULL: none is. */
const char *sr_needed_missing(int *err);

#endif
