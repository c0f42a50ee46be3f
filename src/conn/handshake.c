#include "handshake.h"

#include "engine.h"

#include "../net/hangup.h"
#include "../net/proxyline.h"
#include "../net/sockets.h"
#include "deadline.h"
#include "linger.h"
#include "protocol.h"
#include "trouble.h"

#include <errno.h>
#include <sys/socket.h>

enum { LOOKS = 16 }; /* at connections, for one that is silent */

/* It is complete, or has failed: from here on its end does not count as that of a handshake. */
static void over(sr_engine *e, sr_conn *c)
{
    sr_link_remove(&c->buffered);
    e->handshakes.n--;
    c->state = SR_CONN_IDLE;
}

static bool is_silent(sr_link *l)
{
    return sr_link_alone(&sr_deadline_conn(l, SR_DEADLINE_HANDSHAKE)->buffered);
}

/*
 * Closes one of too many: that which has been silent for longest, or, if the first of all are not, the first.
 */
static void make_room(sr_engine *e)
{
    const sr_link *list = &e->deadlines.list[SR_DEADLINE_HANDSHAKE];
    sr_link *l = list->next;
    for (int i = 0; i < LOOKS && l != list; i++, l = l->next)
        if (is_silent(l))
            break;
    if (l == list || !is_silent(l))
        l = list->next;
    if (l != list)
        sr_conn_close(e, sr_deadline_conn(l, SR_DEADLINE_HANDSHAKE), SR_CLOSED_ROOM);
}

void sr_handshake_begin(sr_engine *e, sr_conn *c)
{
    if (e->handshakes.n >= SR_HANDSHAKES_MAX)
        make_room(e);
    c->state = SR_CONN_HANDSHAKE;
    e->handshakes.n++;
    sr_deadline_set(e, c, SR_DEADLINE_HANDSHAKE);
    sr_link_append(&e->handshakes.ready, &c->buffered); /* TCP_DEFER_ACCEPT: its first bytes are here */
}

void sr_handshake_event(sr_engine *e, sr_conn *c)
{
    if (!sr_link_alone(&c->buffered))
        return;
    bool ends = !c->proxy_header && c->transport->ops->ends(c->transport);
    sr_link_append(ends ? &e->handshakes.endings : &e->handshakes.ready, &c->buffered);
}

/*
 * Reads the header of the PROXY protocol, and nothing behind it. EAGAIN: it is not complete; 0; or why not.
 */
static int proxy_header(sr_engine *e, sr_conn *c)
{
    ssize_t n = recv(c->source.fd, e->intake.scratch, SR_SCRATCH, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0)
        return n == 0 ? ECONNRESET : errno == EINTR || errno == EWOULDBLOCK ? EAGAIN : errno;
    sr_proxyline line;
    switch (sr_proxyline_feed(&line, sr_bytes_of(e->intake.scratch, (size_t)n))) {
    case SR_PROXYLINE_MORE:
        if (sr_hangup(c->source.fd)) /* nothing more will come */
            return ECONNRESET;
        sr_sockets_readable_at(c->source.fd, (size_t)n + 1);
        return EAGAIN;
    case SR_PROXYLINE_BAD:
        return EPROTO;
    case SR_PROXYLINE_DONE:
        break;
    }
    if (recv(c->source.fd, e->intake.scratch, line.len, MSG_DONTWAIT) != (ssize_t)line.len)
        return EPROTO;
    sr_sockets_readable_at(c->source.fd, 1);
    c->proxy_header = false;
    if (line.named)
        c->peer = line.peer;
    return 0;
}

static void go_on_later(sr_engine *e, sr_conn *c)
{
    if (sr_conn_watch(e, c, EPOLLIN | EPOLLET) && sr_transport_holds(c->transport))
        sr_link_append(&e->handshakes.ready, &c->buffered);
}

sr_intake sr_handshake_next(sr_engine *e, sr_task *task)
{
    const sr_link *list =
        sr_link_alone(&e->handshakes.endings) ? &e->handshakes.ready : &e->handshakes.endings;
    sr_conn *c = SR_LIST_ENTRY(list->next, sr_conn, buffered);
    sr_link_remove(&c->buffered);
    int err = c->proxy_header ? proxy_header(e, c) : 0;
    bool of_proxy = err && err != EAGAIN;
    if (!err)
        err = c->transport->ops->handshake(c->transport, c->source.fd);
    if (err == EAGAIN) {
        go_on_later(e, c);
        return SR_INTAKE_WAIT;
    }
    if (err && !of_proxy) {
        const char *words;
        sr_failure why = c->transport->ops->failure(c->transport, &words);
        sr_trouble_handshake(e, c, why, words);
    }
    if (err ==
        EPROTONOSUPPORT) { /* tells it so in plain HTTP: what the user sees would be a broken connection */
        over(e, c);
        sr_transport_free(c->transport);
        c->transport = NULL;
        sr_conn_refuse(e, c, 400, SR_REFUSED_NOT_TLS);
        return SR_INTAKE_WAIT;
    }
    if (err && !of_proxy && recv(c->source.fd, e->intake.scratch, SR_SCRATCH, MSG_DONTWAIT) > 0) {
        over(e, c); /* it is still sending: a reset could take the alert with it */
        sr_linger(e, c, SR_CLOSED_HANDSHAKE);
        return SR_INTAKE_WAIT;
    }
    if (err) {
        sr_conn_close(e, c, of_proxy ? SR_CLOSED_PROXY : SR_CLOSED_HANDSHAKE);
        return SR_INTAKE_WAIT;
    }
    over(e, c);
    sr_counters_add(&e->row->counters.handshakes, 1);
    sr_deadline_set(e, c, SR_DEADLINE_HEAD);
    if (c->transport->h2) {
        c->protocol = e->streams;
        if (!c->protocol->begin(e, c)) {
            sr_trouble_lost(e, ENOMEM);
            sr_conn_close(e, c, SR_CLOSED_ERROR);
            return SR_INTAKE_WAIT;
        }
    }
    return c->protocol->read(e, c, task); /* the first request may have come with the end of the handshake */
}
