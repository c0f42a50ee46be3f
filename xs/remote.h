#ifndef SIRIUS_REMOTE_H
#define SIRIUS_REMOTE_H
/*
 * remote: the memory of another process, of the same perl as this one. It takes no part, does not notice, and
 * is neither stopped nor interrupted; what is read may change meanwhile, so it is believed only as far as it
 * can do no harm. In a fork of this process, as a worker is of its generation, the interpreter lies where
 * ours does; target.h finds it in others. The kernel says EPERM where it would not let us debug the process.
 *
 * Calls nothing of perl: for any thread, and for this process too.
 */
#include "sirius.h"

/* False: not all of it is readable, with errno. */
bool sirius_remote_copy(pid_t pid, void *to, const void *from, size_t len);

/* Copies what is at `from` + `offset`, which needs be no valid address. */
static inline bool sirius_remote_at(pid_t pid, void *to, const void *from, size_t offset, size_t len)
{
    return sirius_remote_copy(pid, to, (const void *)((uintptr_t)from + offset), len);
}

typedef struct sirius_piece {
    void *to;
    const void *from;
    size_t len;
} sirius_piece;

/*
 * All pieces, with as few system calls as possible: one after the other, some 0.3 us each. As
 * sirius_remote_copy.
 */
bool sirius_remote_pieces(pid_t pid, const sirius_piece *pieces, size_t n);

/* Up to its NUL, with that. Returns its length; 0: it is longer than cap - 1, or not readable. */
size_t sirius_remote_string(pid_t pid, char *to, size_t cap, const char *from);

/* The name of the file of a statement, which was copied to *cop, as sirius_remote_string. */
size_t sirius_remote_file(pTHX_ pid_t pid, const COP *cop, char *to, size_t cap);

#endif
