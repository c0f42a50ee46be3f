/* sockets: one that was looked at is readable again when there is more */
#include "net/sockets.h"

#include "tap.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static int ours, theirs;

static void open_tcp(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    theirs = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, len) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0 ||
        connect(theirs, (struct sockaddr *)&at, len) != 0)
        exit(1);
    ours = accept(listener, NULL, NULL);
    close(listener);
}

static bool readable(int patience)
{
    struct pollfd one = {.fd = ours, .events = POLLIN};
    return poll(&one, 1, patience) == 1;
}

int main(void)
{
    open_tcp();
    ok(send(theirs, "PRO", 3, 0) == 3 && readable(10000), "three bytes are there");
    sr_sockets_readable_at(ours, 4);
    is_int(readable(100), ON_LINUX, "without edges, they are not reported again");
    ok(send(theirs, "X", 1, 0) == 1 && readable(10000), "but with one more");
    sr_sockets_readable_at(ours, 5);
    close(theirs);
    ok(readable(10000), "and at the end");
    return done_testing();
}
