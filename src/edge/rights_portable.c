#ifdef SR_PORTABLE
#include "rights.h"

#include <errno.h>
#include <grp.h>
#include <sys/resource.h>
#include <unistd.h>

bool sr_rights_drop(const sr_setup *s)
{
    gid_t gid = (gid_t)s->gid;
    uid_t uid = s->uid < 0 ? geteuid() : (uid_t)s->uid;
    if (s->gid < 0)
        return true;
    /* of root these change the saved ids as well */
    if (geteuid() == 0 &&
        (setgroups((int)s->n_groups, s->groups) != 0 || setgid(gid) != 0 || setuid(uid) != 0))
        return false;
    errno = EPERM;
    return getgid() == gid && getegid() == gid && getuid() == uid && geteuid() == uid &&
           (uid == 0 || setuid(0) != 0);
}

void sr_rights_guard(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}
#endif
