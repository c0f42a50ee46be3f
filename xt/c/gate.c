/* gate: who is inside is accepted, newcomers are not let in, and are refused once the socket is shut down */
#include "net/gate.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address = {.sin_family = AF_INET};

static int newcomer(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, (struct sockaddr *)&address, sizeof address);
    return fd;
}

/* The error of a connection under way, -1 when nothing has come of it in that time */
static int outcome(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int err = -1;
    socklen_t len = sizeof err;
    if (poll(&p, 1, ms) == 1)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
    return err;
}

int main(void)
{
    if (!on_linux("all of it", "socket filters"))
        return done_testing();
    char text[8];
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0)
        return 99;

    if (sr_gate_shut(socket(AF_INET, SOCK_STREAM, 0)) == EPERM) {
        printf("1..0 # SKIP only root may attach a filter to a socket here\n");
        return 0;
    }

    int inside = newcomer();
    is_int(outcome(inside, 5000), 0, "it lets in");
    is_int(sr_gate_shut(listener), 0, "it is shut");
    int outside = newcomer();
    is_int(outcome(outside, 200), -1, "a newcomer is neither let in nor refused");

    int accepted = accept(listener, NULL, NULL);
    ok(accepted >= 0, "who is inside is accepted");
    ok(write(inside, "hello", 5) == 5 && read(accepted, text, sizeof text) == 5 && !memcmp(text, "hello", 5),
       "and heard");

    shutdown(listener, SHUT_RDWR);
    is_int(outcome(newcomer(), 5000), ECONNREFUSED, "once it is shut down a newcomer is refused");
    is_int(outcome(outside, 10000), ECONNREFUSED, "and so is the one outside, when it tries again");
    ok(write(accepted, "you", 3) == 3 && read(inside, text, sizeof text) == 3, "who is inside stays");
    is_int(sr_gate_shut(-1), EBADF, "no socket");
    return done_testing();
}
