#ifndef SR_LEASE_H
#define SR_LEASE_H
/*
 * lease: hears of it before somebody changes a file that is being read (fcntl(2), F_SETLEASE). The kernel
 * grants a lease only while nobody has the file open for writing. A process that opens it for writing
 * afterwards, or truncates it, waits in that system call until the lease is given back, for 45 seconds at
 * most (/proc/sys/fs/lease-break-time), and its holder gets a signal at once. After that time the kernel
 * takes the lease away, and tells nobody. To remove the file or to rename it changes no byte, and is not
 * waited for.
 *
 * Owner: a lease belongs to a descriptor of its own, which may be passed to another process, and ends when
 * the last copy of that is closed.
 * Failure: not every file system has leases, and the kernel grants one to the owner of the file only, and to
 * root.
 */
#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether a program with the rights of this process could change the file of `fd`, as far as its owner and
 * mode say. Without that a lease is neither needed nor to be had.
 */
bool sr_lease_needed(int fd);

/*
 * Opens the file of `fd` again and takes a lease on it. `holder` gets `signal` when it is to be given back.
 * Returns a descriptor above 2, which is close-on-exec; -1 with errno: EAGAIN if somebody can write to the
 * file now.
 */
int sr_lease_take(int fd, pid_t holder, int signal);

/*
 * In the process that has received the descriptor: from now on this process gets the signal. False:
 * the lease is to be given back already, or there is none.
 */
bool sr_lease_claim(int fd, int signal);

/* Whether nobody waits for it, and nobody has: no byte of the file has changed since it was taken. */
bool sr_lease_holds(int fd);

typedef enum sr_lease_return {
    SR_LEASE_RETURNED, /* until now no byte has changed */
    SR_LEASE_LOST,     /* the kernel has taken it away */
    /*
     * this process may not return it, as the file belongs to somebody else: it ends with the last descriptor
     */
    SR_LEASE_UNKNOWN,
} sr_lease_return;

/* Gives it back. */
sr_lease_return sr_lease_give_back(int fd);

/* How many seconds the kernel lets others wait: 45 if it can't be read. 0: without an end. */
unsigned sr_lease_patience(void);

#endif
