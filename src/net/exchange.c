#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#endif
#include "exchange.h"

#include "descriptors.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FDS_MAX = SR_PARCELS_MAX + 1, PARTS_MAX = 4 };

/*
 * What does not fit waits in its worker, and joins the others a little out of order. The kernel's default has room for
 * 200 messages; here is room for 2,000 where the process may exceed net.core.wmem_max, and else as much as there can be.
 */
static const int room = 2 * 1024 * 1024;

int sr_exchange_open(sr_exchange *x)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        return errno;
    if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0)
        setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    *x = (sr_exchange){.give = pair[0], .take = pair[1]};
    return 0;
}

void sr_exchange_close(sr_exchange *x)
{
    if (x->give >= 0)
        close(x->give);
    if (x->take >= 0)
        close(x->take);
    *x = (sr_exchange){-1, -1};
}

sr_exchange_result sr_exchange_give(sr_exchange *x, sr_parcel *parcels, int n, const int *fds, int n_fds,
                                    const sr_bytes *parts, int n_parts)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec iov[1 + PARTS_MAX] = {{parcels, (size_t)n * sizeof *parcels}};
    if (n > SR_PARCELS_MAX || n_parts > PARTS_MAX || n_fds > FDS_MAX) {
        errno = EMSGSIZE;
        return SR_EXCHANGE_FAILED;
    }
    for (int i = 0; i < n; i++)
        parcels[i].format = SR_PARCEL_FORMAT;
    for (int i = 0; i < n_parts; i++)
        iov[1 + i] = (struct iovec){(void *)parts[i].at, parts[i].len};
    struct msghdr msg = {.msg_iov = iov,
                         .msg_iovlen = 1 + (size_t)n_parts,
                         .msg_control = control.room,
                         .msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int))};
    memset(&control, 0, sizeof control);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
    memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
    for (;;) {
        if (sendmsg(x->give, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return SR_EXCHANGE_OK;
        if (errno == EINTR)
            continue;
        /* ETOOMANYREFS: as many descriptors are in flight as RLIMIT_NOFILE allows; takers will end that */
        bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM ||
                    errno == ETOOMANYREFS;
        return full ? SR_EXCHANGE_FULL : SR_EXCHANGE_FAILED;
    }
}

/* At most FDS_MAX. One more may come: room is counted in steps of 8 bytes. */
static int take_fds(struct msghdr *msg, int *fds)
{
    int n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (char *)c + at, sizeof fd);
            if (n < FDS_MAX && (fd = sr_descriptors_above(fd)) >= 0)
                fds[n++] = fd;
            else if (fd >= 0)
                close(fd);
        }
    }
    return n;
}

/* How many parcels are in a message of `len` bytes: several without bytes, or one with. 0: broken. */
static int parcels_in(const sr_parcel *parcels, size_t len, bool cut)
{
    if (cut || len < sizeof *parcels)
        return 0;
    if (parcels[0].bytes)
        return len == sizeof *parcels + parcels[0].bytes ? 1 : 0;
    size_t n = len / sizeof *parcels;
    return len % sizeof *parcels == 0 && n <= SR_PARCELS_MAX ? (int)n : 0;
}

/* What the parcels say of bytes and descriptors is what unpacking relies on, and another build may have given them. */
static bool adds_up(const sr_parcel *parcels, int n, size_t bytes, int n_fds)
{
    int want = n;
    for (int i = 0; i < n; i++) {
        const sr_parcel *p = &parcels[i];
        want += p->body == SR_PARCEL_FILE;
        if (p->format != SR_PARCEL_FORMAT || p->bytes != bytes || p->body > SR_PARCEL_FILE ||
            (p->body != SR_PARCEL_RAW && p->head > bytes) ||
            (p->body == SR_PARCEL_DECODED && p->body_length > bytes - p->head))
            return false;
    }
    return n > 0 && want == n_fds;
}

bool sr_exchange_peek(const sr_exchange *x, sr_parcel *parcel)
{
    return recv(x->take, parcel, sizeof *parcel, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof *parcel &&
           parcel->format == SR_PARCEL_FORMAT;
}

sr_exchange_result sr_exchange_take(sr_exchange *x, sr_parcel *parcels, int *n, int *fds, int *n_fds,
                                    char *bytes, size_t *n_bytes)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec iov[2] = {{parcels, sizeof *parcels}, {bytes, SR_PARCEL_BYTES_MAX}};
    struct msghdr msg = {
        .msg_iov = iov, .msg_iovlen = 2, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t len;
    while ((len = recvmsg(x->take, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (len < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? SR_EXCHANGE_FULL : SR_EXCHANGE_FAILED;
    if (len == 0) { /* nobody is left to give */
        errno = EPIPE;
        return SR_EXCHANGE_FAILED;
    }
    *n_fds = take_fds(&msg, fds);
    *n = parcels_in(parcels, (size_t)len, msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    *n_bytes = *n == 1 ? parcels[0].bytes : 0;
    if (*n > 1) /* the first lies in parcels, the others behind it in bytes */
        memcpy(parcels + 1, bytes, (size_t)(*n - 1) * sizeof *parcels);
    if (adds_up(parcels, *n, *n_bytes, *n_fds))
        return SR_EXCHANGE_OK;
    while (*n_fds > 0) /* no descriptor free here when it was taken (MSG_CTRUNC): what did arrive is closed */
        close(fds[--*n_fds]);
    errno = msg.msg_flags & MSG_CTRUNC ? EMFILE : EBADMSG;
    return SR_EXCHANGE_FAILED;
}
