#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred */
#endif
#include "lobby.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { NAME_AT = offsetof(struct sockaddr_un, sun_path) + 1 };

/* Without a name: the kernel chooses one. */
int sr_lobby_bind(int fd)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    return bind(fd, (struct sockaddr *)&any, sizeof any.sun_family);
}

uint64_t sr_lobby_name(const struct sockaddr_un *at, socklen_t len)
{
    uint64_t name = 0;
    size_t bytes = len > NAME_AT ? len - NAME_AT : 0;
    if (at->sun_family != AF_UNIX || !bytes || bytes > sizeof name)
        return 0;
    memcpy(&name, at->sun_path + 1, bytes);
    return name;
}

socklen_t sr_lobby_address(uint64_t name, struct sockaddr_un *at)
{
    char text[sizeof name + 1] = {0};
    memcpy(text, &name, sizeof name);
    size_t bytes = strlen(text);
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(at->sun_path + 1, text, bytes);
    return (socklen_t)(NAME_AT + bytes);
}

void sr_lobby_remove(uint64_t name)
{
    (void)name; /* it is gone with the socket */
}

int sr_lobby_name_senders(int line)
{
    int on = 1;
    return setsockopt(line, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 ? 0 : errno;
}

bool sr_lobby_user(int line, uid_t *user)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return false;
    *user = peer.uid;
    return true;
}
#endif
