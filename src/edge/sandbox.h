#ifndef SR_SANDBOX_H
#define SR_SANDBOX_H
/*
 * sandbox: what the process may do from now on is what it does while it serves: a filter of system calls
 * (seccomp(2)), and files below a few folders only (landlock(7)). For good. Both leave alone what is open
 * already.
 *
 * The filter is made by libseccomp where the build has it, else by this file, with the numbers of calls that
 * the headers have (auditarch.h). A machine of 32 bits has none (EOPNOTSUPP). On s390x memory can be mapped
 * as code, but not be made code later.
 *
 * A call that is not allowed fails: ENOSYS, so that a library which tries a newer call first takes the older
 * one; EPERM, or ENOSYS too, for one with arguments that are not allowed. The process is never killed: an
 * update of the C library or of OpenSSL that wants something else must not stop a server. Denials of seccomp
 * are in the log of the kernel where that audits.
 *
 * What a filter cannot do is look at paths; Landlock can (Linux 5.13), where the kernel was told to use it.
 * Without it a path can be opened that begins at a descriptor of a folder, and "/etc/passwd" is such a path.
 *
 * Thread: one, and there are no others. Failure: both functions return 0, or errno if the kernel does not
 * have it (ENOSYS, EOPNOTSUPP) or another filter forbids it (EPERM). Call sr_rights_guard first.
 */
#include <stdbool.h>
#include <stddef.h>

typedef struct sr_sandbox {
    bool keeper;        /* it serves no client, and needs much less */
    int tmpdir;         /* folder where files are made and written; -1: none */
    const int *folders; /* whose files are read */
    size_t n_folders;
    bool paths;         /* other files may be read as well, by paths that begin anywhere */
    unsigned reconnect; /* bytes of the address that a socket may connect to again, for syslog; 0: none */
} sr_sandbox;

/* For both: the files first, as the filter allows no Landlock. */
int sr_sandbox_files(const sr_sandbox *s);
int sr_sandbox_calls(const sr_sandbox *s);

#endif
