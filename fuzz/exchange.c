/*
 * exchange: any message that could lie in the queue between workers, one of another build or a broken one. It is
 * refused, or what is taken adds up; no descriptor is left open either way.
 * Judges: src/net/exchange.c
 *
 * Input: one byte, how many descriptors come along; then the message.
 */
#include "net/exchange.h"

#include "fuzz.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FDS_MOST = 80 };

/* As sr_exchange_give would, but for what it promises. False: the kernel does not send it. */
static bool put_message(const sr_exchange *x, const uint8_t *at, size_t len, int n_fds)
{
    static int null = -1;
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(FDS_MOST * sizeof(int))];
    } control;
    struct iovec iov = {(void *)at, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (null < 0)
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (n_fds) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.room;
        msg.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
        for (int i = 0; i < n_fds; i++)
            memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &null, sizeof(int));
    }
    return sendmsg(x->give, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* The lowest descriptor that is free: the same before and after, so nothing was left open. */
static int lowest(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static void adds_up(const sr_parcel *parcels, int n, int n_fds, size_t n_bytes)
{
    int want = n;
    MUST(n >= 1 && n <= SR_PARCELS_MAX && n_bytes <= SR_PARCEL_BYTES_MAX);
    for (int i = 0; i < n; i++) {
        const sr_parcel *p = &parcels[i];
        want += p->body == SR_PARCEL_FILE;
        MUST(p->format == SR_PARCEL_FORMAT && p->body <= SR_PARCEL_FILE &&
             (n == 1 ? p->bytes == n_bytes : p->bytes == 0));
        MUST(p->body == SR_PARCEL_RAW || p->head <= p->bytes);
        MUST(p->body != SR_PARCEL_DECODED || p->body_length <= p->bytes - p->head);
    }
    MUST(want == n_fds);
}

FUZZ_TARGET(exchange)
{
    static sr_exchange x = {-1, -1};
    static char bytes[SR_PARCEL_BYTES_MAX];
    sr_parcel *parcels = malloc(SR_PARCELS_MAX * sizeof *parcels);
    int n = 0, n_fds = 0, fds[SR_PARCELS_MAX + 1];
    size_t n_bytes = 0;
    if (x.give < 0)
        MUST(sr_exchange_open(&x) == 0);
    if (size > 1 && put_message(&x, data + 1, size - 1, data[0] % FDS_MOST)) {
        int before = lowest();
        if (sr_exchange_take(&x, parcels, &n, fds, &n_fds, bytes, &n_bytes) == SR_EXCHANGE_OK)
            adds_up(parcels, n, n_fds, n_bytes);
        while (n_fds > 0)
            close(fds[--n_fds]);
        MUST(lowest() == before);
        MUST(sr_exchange_take(&x, parcels, &n, fds, &n_fds, bytes, &n_bytes) == SR_EXCHANGE_FULL);
    }
    free(parcels);
    return 0;
}
