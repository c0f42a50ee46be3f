/* pass: notes with descriptors between two processes of the server. */
#include "pass.h"

#include "net/descriptors.h"

#include <sys/socket.h>

typedef union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(SIRIUS_PASSED_MAX * sizeof(int))];
} control;

bool sirius_send(pTHX_ int line, SV *bytes, const int *fds, int n)
{
    STRLEN len;
    control c;
    struct iovec iov = {SvPVbyte(bytes, len), 0};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;
    iov.iov_len = len;
    if (n > 0) {
        memset(&c, 0, sizeof c);
        msg.msg_control = c.space;
        msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        *h = (struct cmsghdr){
            .cmsg_len = CMSG_LEN((size_t)n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(h), fds, (size_t)n * sizeof(int));
    }
    do
        sent = sendmsg(line, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

/* What application code reads from, as STDIN, must not be one of ours. */
static int take(int fds[SIRIUS_PASSED_MAX], const struct cmsghdr *h)
{
    int n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int)), kept = 0;
    memcpy(fds, CMSG_DATA(h), (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) {
        int fd = sr_descriptors_above(fds[i]);
        if (fd >= 0)
            fds[kept++] = fd;
    }
    return kept;
}

SV *sirius_receive(pTHX_ int line, int fds[SIRIUS_PASSED_MAX], int *n)
{
    control c;
    SV *bytes = newSV(SIRIUS_PASSED_BYTES);
    struct iovec iov = {SvPVX(bytes), SIRIUS_PASSED_BYTES};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.space, .msg_controllen = sizeof c.space};
    ssize_t got;
    *n = 0;
    do {
        errno = 0;
        got = recvmsg(line, &msg, MSG_CMSG_CLOEXEC);
        /* ECONNRESET, once: the other end was closed and had not read all. What it had written is still there */
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    for (struct cmsghdr *h = got >= 0 ? CMSG_FIRSTHDR(&msg) : NULL; h; h = CMSG_NXTHDR(&msg, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
            *n = take(fds, h);
    if (got > 0) {
        SvPOK_only(bytes);
        SvCUR_set(bytes, got);
        *SvEND(bytes) = 0;
        return bytes;
    }
    SvREFCNT_dec(bytes);
    return NULL;
}
