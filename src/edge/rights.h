#ifndef SR_RIGHTS_H
#define SR_RIGHTS_H
/*
 * rights: what an edge and a keeper give up before they serve. In this order:
 *
 *   sr_rights_drop    user, groups, capabilities: for good
 *   sr_rights_guard   nobody of the same user can look into the process, and it gets no rights back
 *   sr_sandbox_enter  only the system calls and the files that are needed from then on (sandbox.h)
 */
#include "setup.h"

/*
 * Changes user and groups as the setup says, and checks that it worked; the caller may have done so before.
 * Drops all capabilities, even for root. False with errno.
 */
bool sr_rights_drop(const sr_setup *s);

/* No new rights by exec; no core, and no ptrace, /proc/PID/mem or /proc/PID/fd but for root. */
void sr_rights_guard(void);

#endif
