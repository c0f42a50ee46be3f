#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "accept.h"

#include "../net/descriptors.h"
#include "../net/sockets.h"
#include "capacity.h"
#include "client.h"
#include "deadline.h"
#include "handshake.h"
#include "listener.h"
#include "protocol.h"
#include "proxyhead.h"
#include "trouble.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool out_of_descriptors(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

/*
 * Closes one idle connection. If that did not help, pauses: the listener stays readable, and the loop would
 * spin.
 */
static void no_descriptor(sr_engine *e, int err)
{
    if (e->capacity.made_room || !sr_capacity_close_oldest(e)) {
        sr_trouble_count(e, SR_TROUBLE_DESCRIPTORS, 1, err);
        sr_listeners_pause(e);
    } else {
        e->capacity.made_room = true;
    }
}

/* Nobody can be told why: an answer would need a handshake. */
static sr_intake accept_encrypted(sr_engine *e, sr_conn *c)
{
    if (!(c->transport = sr_tls_accept(e->tls, c->source.fd))) {
        sr_trouble_count(e, SR_TROUBLE_RESET, 1, ENOMEM);
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return SR_INTAKE_WAIT;
    }
    sr_handshake_begin(e, c);
    if (!sr_capacity_make(e)) {
        sr_trouble_count(e, SR_TROUBLE_CONNECTIONS, 1, 0);
        sr_conn_close(e, c, SR_CLOSED_ROOM);
    }
    return SR_INTAKE_WAIT;
}

/*
 * --max-connections: 503. The request is read as far as it is here, most often all of it, so that HEAD gets
 * no body, and the log has a line of the request.
 */
static void no_room(sr_engine *e, sr_conn *c)
{
    ssize_t n = recv(c->source.fd, e->intake.scratch, SR_SCRATCH, MSG_DONTWAIT);
    sr_bytes view = sr_bytes_of(e->intake.scratch, n > 0 ? (size_t)n : 0);
    sr_trouble_count(e, SR_TROUBLE_CONNECTIONS, 1, 0);
    if (view.len && c->proxy_header && sr_proxyhead_take(c, &view, true) == SR_PROXYHEAD_BAD) {
        sr_conn_close(e, c, SR_CLOSED_PROXY);
        return;
    }
    sr_buffer_free(&c->in); /* a part of a PROXY header is no request */
    e->intake.fresh = c->proxy_header ? sr_bytes_of(e->intake.scratch, 0) : view;
    e->intake.fresh_of = c;
    sr_conn_refuse(e, c, 503, SR_REFUSED_CONNECTIONS);
}

sr_intake sr_accept(sr_engine *e, sr_listener *l, sr_task *task)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    if (sr_capacity_awaits(e)) {
        sr_listeners_pause(e);
        return SR_INTAKE_WAIT;
    }
    int fd = sr_descriptors_above(sr_sockets_accept(l->source.fd, (struct sockaddr *)&from, &len));
    if (fd < 0) {
        if (errno == EINVAL) {
            l->over = true;
            sr_listeners_watch(e, e->listeners.watched);
        } else if (out_of_descriptors(errno)) {
            no_descriptor(e, errno);
        }
        return SR_INTAKE_WAIT;
    }
    e->capacity.made_room = false;
    sr_peer peer;
    if (l->is_unix)
        memset(&peer, 0, sizeof peer);
    else
        sr_peer_init(&peer, &from);
    sr_conn *c = sr_conn_new(fd, &peer, (uint8_t)(l - e->listeners.at));
    if (!c) {
        sr_trouble_count(e, SR_TROUBLE_RESET, 1, ENOMEM);
        close(fd);
        return SR_INTAKE_WAIT;
    }
    sr_conn_enter(e, c);
    sr_capacity_taken(e, fd);
    sr_counters_add(&e->row->counters.accepted, 1);
    c->proxy_header = e->config.proxy_protocol;
    if (!sr_client_welcome(e, &peer)) {
        sr_conn_close(e, c, SR_CLOSED_PROXY);
        return SR_INTAKE_WAIT;
    }
    if (l->is_tls)
        return accept_encrypted(e, c);
    sr_deadline_set(e, c, SR_DEADLINE_HEAD);
    if (!sr_capacity_make(e)) {
        no_room(e, c);
        return SR_INTAKE_WAIT;
    }
    return c->protocol->read(e, c, task); /* TCP_DEFER_ACCEPT: the first bytes are already here */
}
