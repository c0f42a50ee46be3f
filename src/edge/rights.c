#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setresuid, syscall */
#endif
#include "rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAPABILITIES_MAX = 64 };

static bool become(const sr_setup *s)
{
    gid_t gid = (gid_t)s->gid, gids[3];
    uid_t uid = s->uid < 0 ? geteuid() : (uid_t)s->uid, uids[3];
    if (s->gid < 0)
        return true;
    if (geteuid() == 0 && (setgroups(s->n_groups, s->groups) != 0 || setresgid(gid, gid, gid) != 0 ||
                           setresuid(uid, uid, uid) != 0))
        return false;
    if (getresgid(&gids[0], &gids[1], &gids[2]) != 0 || getresuid(&uids[0], &uids[1], &uids[2]) != 0)
        return false;
    errno = EPERM;
    return gids[0] == gid && gids[1] == gid && gids[2] == gid && uids[0] == uid && uids[1] == uid &&
           uids[2] == uid && (uid == 0 || setuid(0) != 0);
}

/*
 * Root has them all, and a service manager may have given some to bind low ports (AmbientCapabilities=). None
 * is needed: the supervisor has opened what needs rights. Where a filter of a container forbids these calls,
 * it stays as it is.
 */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct self = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {0}, none[_LINUX_CAPABILITY_U32S_3] = {0};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capget, &self, has) != 0 || memcmp(has, none, sizeof has) != 0)
        syscall(SYS_capset, &self, none);
}

bool sr_rights_drop(const sr_setup *s)
{
    /* while this is root: CAP_SETPCAP is needed. EINVAL: there are no more of them */
    for (int i = 0; i < CAPABILITIES_MAX && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
        ;
    if (!become(s))
        return false;
    drop_capabilities();
    return true;
}

void sr_rights_guard(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
#endif
