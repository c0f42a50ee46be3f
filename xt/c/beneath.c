/* beneath: by openat2 and by steps, nothing is opened but what lies below the folder */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/beneath.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/sirius-beneath-XXXXXX", path[256];

static const char *in(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *name)
{
    int fd = open(in(name), O_WRONLY | O_CREAT, 0600);
    if (fd >= 0)
        close(fd);
}

static int folder;

/* 0, or errno */
static int tries(const char *name, sr_links links)
{
    int fd = sr_beneath_open(folder, name, links);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static bool denied(int err)
{
    return err == ELOOP || err == EXDEV || err == ENOTDIR || err == EINVAL;
}

static void look(const char *how, bool whole)
{
    is_int(tries("a", SR_LINKS_NONE), 0, how);
    is_int(tries("d/b", SR_LINKS_NONE), 0, "a file of a folder");
    is_int(tries("d", SR_LINKS_NONE), 0, "a folder");
    is_int(tries("none", SR_LINKS_NONE), ENOENT, "one that is not there");
    is_int(tries("none/a", SR_LINKS_NONE), ENOENT, "in a folder that is not there");
    is_int(tries("a/b", SR_LINKS_NONE), ENOTDIR, "a file is no folder");
    is_int(tries("fifo", SR_LINKS_NONE), 0, "a FIFO without a wait");
    ok(denied(tries("link", SR_LINKS_NONE)) && denied(tries("dir/b", SR_LINKS_NONE)) &&
           denied(tries("out", SR_LINKS_NONE)) && denied(tries("up/secret", SR_LINKS_NONE)) &&
           denied(tries("abs", SR_LINKS_NONE)) && denied(tries("magic/etc/passwd", SR_LINKS_NONE)),
       "no link is followed");
    ok(denied(tries("out", SR_LINKS_BENEATH)) && denied(tries("up/secret", SR_LINKS_BENEATH)) &&
           denied(tries("abs", SR_LINKS_BENEATH)) && denied(tries("magic/etc/passwd", SR_LINKS_BENEATH)),
       "no link that leads outside");
    ok(denied(tries("magic/etc/passwd", SR_LINKS_ALL)), "no magic link");
    is_int(!tries("link", SR_LINKS_BENEATH), whole, "a link that stays inside");
    is_int(!tries("dir/b", SR_LINKS_BENEATH), whole, "to a folder");
    is_int(!tries("out", SR_LINKS_ALL), whole, "one that leads outside, on request");
}

int main(void)
{
    if (!mkdtemp(root) || mkdir(in("f"), 0700) || mkdir(in("f/d"), 0700) || mkfifo(in("f/fifo"), 0600))
        return 1;
    put("secret");
    put("f/a");
    put("f/d/b");
    if (symlink("a", in("f/link")) || symlink("d", in("f/dir")) || symlink("../secret", in("f/out")) ||
        symlink("..", in("f/up")) || symlink("/etc/passwd", in("f/abs")) ||
        symlink("/proc/self/root", in("f/magic")))
        return 1;
    folder = sr_beneath_folder(in("f"));
    ok(folder >= 0, "a folder");
    is_int(sr_beneath_folder(in("secret")), -1, "a file is none");
    is_int(sr_beneath_folder(in("none")), -1, "nor what is not there");
    bool whole = sr_beneath_whole(folder);
    look("openat2", whole);
    if (whole)
        ok(denied(tries("../secret", SR_LINKS_NONE)) && denied(tries("../secret", SR_LINKS_BENEATH)) &&
               denied(tries("/etc/passwd", SR_LINKS_NONE)),
           "nor by its name");
    sr_beneath_pretend(true);
    look("by steps", false);
    static const char *const bad[] = {
        "", "/", "/a", "d/", "d//b", ".", "..", "../secret", "d/../../secret", "d/./b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        is_int(sr_beneath_walk(folder, bad[i]) < 0 ? errno : 0, EINVAL, bad[i]);
    char longer[400];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    is_int(sr_beneath_walk(folder, longer) < 0 ? errno : 0, ENAMETOOLONG, "a name that is too long");
    int before = dup(folder);
    close(before);
    for (int i = 0; i < 100; i++) {
        tries("d/b", SR_LINKS_NONE);
        tries("d/none/x", SR_LINKS_NONE);
        tries("up/secret", SR_LINKS_NONE);
    }
    int after = dup(folder);
    close(after);
    is_int(after, before, "no descriptor is left open");
    static const char *const gone[] = {"f/link",  "f/dir",  "f/out", "f/up",  "f/abs",
                                       "f/magic", "f/fifo", "f/a",   "f/d/b", "secret"};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        unlink(in(gone[i]));
    rmdir(in("f/d"));
    rmdir(in("f"));
    rmdir(root);
    return done_testing();
}
