#ifndef SR_TRANSPORT_H
#define SR_TRANSPORT_H
/*
 * transport: what a connection reads and writes by. Plain HTTP has none: the pointer is NULL, and each call
 * here is the system call that it names. Another one, such as TLS (tls.h), lies between the connection and
 * the socket, and encrypts.
 *
 * A write that is taken in part, or not at all (EAGAIN), has to be repeated from where it ended, with at
 * least the bytes that were offered before: the transport may have encrypted some of them. The caller may
 * offer them from another place in memory. What is taken lies in the kernel.
 *
 * Owner: the connection, which frees it before it closes the socket. Thread: one.
 * Failure: as those of the system calls, -1 with errno; EAGAIN: wait for events as sr_transport_events says.
 */
#include "../base/buffer.h"
#include "../net/loop.h"
#include "../net/sockets.h"
#include "../share/counters.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

typedef struct sr_transport sr_transport;

typedef struct sr_transport_ops {
    /*
     * Goes on with the handshake. 0: it is complete, though the peer may have gone since; EAGAIN: it needs
     * events; EPROTONOSUPPORT: the peer speaks plain HTTP; otherwise it has failed.
     */
    int (*handshake)(sr_transport *t, int socket);
    /*
     * Why the handshake has just failed, and that in plain words, static: a part of a sentence, which has
     * nothing of what the client has sent.
     */
    sr_failure (*failure)(const sr_transport *t, const char **words);
    bool (*ends)(const sr_transport *t); /* of the handshake only the peer's last message is missing */
    ssize_t (*read)(sr_transport *t, int socket, void *to, size_t len);
    ssize_t (*write)(sr_transport *t, int socket, const struct iovec *iov, int n, int flags);
    bool (*holds)(const sr_transport *t);  /* a read would bring bytes, although epoll reports nothing */
    bool (*unsent)(const sr_transport *t); /* bytes of its own wait for the socket to be writable */
    bool (*clogged)(
        const sr_transport *t); /* so many that a read brings nothing until the socket takes them */
    ssize_t (*peek)(sr_transport *t, int socket);
    int (*end)(sr_transport *t, int socket);
    sr_bytes (*facts)(const sr_transport *t);
    /*
     * Appends all that another process needs to go on with the connection. False: not now, or no memory.
     * NULL: it can't be passed on.
     */
    bool (*pack)(const sr_transport *t, sr_buffer *to);
    void (*free)(sr_transport *t);
} sr_transport_ops;

struct sr_transport {
    const sr_transport_ops *ops;
    bool h2; /* the handshake has chosen HTTP/2 (ALPN, RFC 7301) */
};

/* As recv. 0: the peer has ended its side. */
static inline ssize_t sr_transport_read(sr_transport *t, int socket, void *to, size_t len)
{
    return t ? t->ops->read(t, socket, to, len) : recv(socket, to, len, MSG_DONTWAIT);
}

/* As send and sendmsg. `flags`: 0 or MSG_MORE. */
static inline ssize_t sr_transport_send(sr_transport *t, int socket, const void *at, size_t len, int flags)
{
    if (!t)
        return send(socket, at, len, flags | MSG_NOSIGNAL | MSG_DONTWAIT);
    return t->ops->write(t, socket, &(struct iovec){(void *)(uintptr_t)at, len}, 1, flags);
}

static inline ssize_t sr_transport_write(sr_transport *t, int socket, struct iovec *iov, int n, int flags)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    return t ? t->ops->write(t, socket, iov, n, flags)
             : sendmsg(socket, &msg, flags | MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* As recv of one byte with MSG_PEEK: is the peer there? */
static inline ssize_t sr_transport_peek(sr_transport *t, int socket)
{
    char byte;
    return t ? t->ops->peek(t, socket) : recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

/* Whether a read would bring bytes that epoll does not report. Ask before waiting for events. */
static inline bool sr_transport_holds(const sr_transport *t)
{
    return t && t->ops->holds(t);
}

/* The events to wait for, for a connection that waits for `events`. */
static inline uint32_t sr_transport_events(const sr_transport *t, uint32_t events)
{
    if (!t || !t->ops->unsent(t))
        return events;
    return (t->ops->clogged(t) ? events & ~(uint32_t)EPOLLIN : events) | EPOLLOUT;
}

/*
 * Ends this side: nothing is written any more. Returns 0 or errno; EAGAIN: call it again when the socket is
 * writable.
 */
static inline int sr_transport_end(sr_transport *t, int socket)
{
    int err = t ? t->ops->end(t, socket) : 0;
    return err ? err : shutdown(socket, SHUT_WR) == 0 ? 0 : errno;
}

/*
 * What it knows of the connection (share/facts.h), valid as long as the transport; empty: it is not
 * encrypted.
 */
static inline sr_bytes sr_transport_facts(const sr_transport *t)
{
    return t ? t->ops->facts(t) : (sr_bytes){0};
}

/* Whether another process can go on with the connection. */
static inline bool sr_transport_moves(const sr_transport *t)
{
    return !t || t->ops->pack;
}

/* Appends what that process needs; nothing for plain HTTP. False: not now, or no memory. */
static inline bool sr_transport_pack(const sr_transport *t, sr_buffer *to)
{
    return !t || (t->ops->pack && t->ops->pack(t, to));
}

static inline void sr_transport_free(sr_transport *t)
{
    if (t)
        t->ops->free(t);
}

#endif
