#ifdef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred */
#endif
#include "lobby.h"

#include "../base/random.h"
#include "../net/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SWEPT_MAX = 64, YOUNG = 60 /* s */ };

/*
 * Not TMPDIR, which an application may change. In /tmp nobody but its owner can put another file in the place
 * of one.
 */
static const char before[] = "/tmp/sirius-", after[] = ".lobby";

static void path_of(uint64_t name, char *path, size_t cap)
{
    snprintf(path, cap, "%s%016llx%s", before, (unsigned long long)name, after);
}

/*
 * Removes the names of servers that were killed, where nobody listens any more. A young one may be about to
 * be listened at.
 */
static void sweep(void)
{
    DIR *folder = opendir("/tmp");
    struct stat st;
    int left = SWEPT_MAX;
    for (const struct dirent *it; folder && left > 0 && (it = readdir(folder));) {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        snprintf(at.sun_path, sizeof at.sun_path, "/tmp/%.64s", it->d_name);
        if (!sr_lobby_name(&at, sizeof at) || lstat(at.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode) ||
            st.st_uid != geteuid() || time(NULL) - st.st_mtime < YOUNG)
            continue;
        int fd = sr_sockets_unix(SR_LOBBY_TYPE);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) != 0 && errno == ECONNREFUSED)
            unlink(at.sun_path);
        if (fd >= 0)
            close(fd);
        left--;
    }
    if (folder)
        closedir(folder);
}

int sr_lobby_bind(int fd)
{
    struct sockaddr_un at;
    uint64_t name = 0;
    sweep();
    if (!sr_random(&name, sizeof name))
        return -1;
    socklen_t len = sr_lobby_address(name | 1, &at);
    if (bind(fd, (struct sockaddr *)&at, len) != 0)
        return -1;
    return chmod(at.sun_path, 0666); /* an application may become another user; the key is what lets it in */
}

uint64_t sr_lobby_name(const struct sockaddr_un *at, socklen_t len)
{
    char path[sizeof at->sun_path + 1] = "";
    size_t bytes =
        len > offsetof(struct sockaddr_un, sun_path) ? len - offsetof(struct sockaddr_un, sun_path) : 0;
    if (at->sun_family != AF_UNIX || bytes > sizeof at->sun_path)
        return 0;
    memcpy(path, at->sun_path, bytes);
    if (strncmp(path, before, sizeof before - 1) != 0)
        return 0;
    uint64_t name = strtoull(path + sizeof before - 1, NULL, 16);
    char own[sizeof path];
    path_of(name, own, sizeof own);
    return strcmp(path, own) == 0 ? name : 0; /* another way to write it is no name */
}

socklen_t sr_lobby_address(uint64_t name, struct sockaddr_un *at)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    path_of(name, at->sun_path, sizeof at->sun_path);
    return (socklen_t)sizeof *at;
}

void sr_lobby_remove(uint64_t name)
{
    char path[64];
    path_of(name, path, sizeof path);
    unlink(path);
}

int sr_lobby_name_senders(int line)
{
    (void)line;
    return 0;
}

bool sr_lobby_user(int line, uid_t *user)
{
#ifdef __linux__ /* where this build is tested, there is no getpeereid */
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return false;
    *user = peer.uid;
    return true;
#else
    gid_t group;
    return getpeereid(line, user, &group) == 0;
#endif
}
#endif
