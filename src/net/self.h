#ifndef SR_SELF_H
#define SR_SELF_H
/*
 * self: what a process says to the kernel about itself (prctl(2)). Where a system has nothing of the kind,
 * these do nothing. Any thread.
 */
#include <stdbool.h>

/* The name of the thread that ps shows: 15 bytes of it. */
void sr_self_name(const char *name);

/* Whether processes of the same user may read its memory, and whether a core may be written. */
void sr_self_readable(bool readable);

/* Whether the kernel refuses sr_self_name, as a filter of system calls may say: errno, or 0. */
int sr_self_nameless(void);

/*
 * From now on children of children that have lost their parent are this process's. False: they are not, init
 * adopts them.
 */
bool sr_self_adopt(void);

/* Whether the kernel kills this process when its parent ends. */
void sr_self_ends_with_parent(bool ends);

/* Closes the descriptors from `first` to `last`, as far as the system has a call for that. */
void sr_self_close(int first, int last);

#endif
