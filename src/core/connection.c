#include "connection.h"

#include "engine.h"

#include <stdlib.h>
#include <unistd.h>

sr_conn *sr_conn_new(int fd, const sr_peer *peer, uint8_t listener)
{
    sr_conn *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->source = (sr_source){.fd = fd, .kind = SR_SOURCE_CONN};
    c->state = SR_CONN_IDLE;
    c->listener = listener;
    c->peer = *peer;
    sr_link_init(&c->timer);
    sr_link_init(&c->all);
    sr_link_init(&c->turn);
    return c;
}

void sr_conn_free(sr_conn *c)
{
    if (c->source.fd >= 0)
        close(c->source.fd);
    sr_buffer_free(&c->in);
    free(c->parse);
    sr_body_free(c->body);
    sr_output_free(c->out);
    free(c);
}

void sr_conn_forget_request(sr_conn *c, size_t used)
{
    if (c->parse) {
        free(c->parse);
        c->parse = NULL;
    }
    if (c->body) {
        sr_body_free(c->body);
        c->body = NULL;
    }
    if (used)
        sr_buffer_take(&c->in, used);
    if (c->in.data && !sr_buffer_len(&c->in))
        sr_buffer_free(&c->in);
}
