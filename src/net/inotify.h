#ifndef SR_INOTIFY_H
#define SR_INOTIFY_H
/*
 * inotify: hears of changes in folders (inotify(7)). Failure: -1 with errno, ENOSYS where the system has
 * nothing of the kind.
 */
#include <stdint.h>

/* A descriptor above 2, close-on-exec, whose reads do not block. */
int sr_inotify_open(void);

/* The number of the watch. */
int sr_inotify_add(int fd, const char *path, uint32_t events);

/* Fails if the folder is gone, which is harmless. */
void sr_inotify_remove(int fd, int number);

#endif
