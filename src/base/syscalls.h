#ifndef SR_SYSCALLS_H
#define SR_SYSCALLS_H
/*
 * syscalls: names of the system calls in which a process may stay for long, by the numbers of the headers.
 * Any thread.
 */

/* "flock"; NULL: another call. */
const char *sr_syscall_name(long number);

#endif
