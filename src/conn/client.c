#include "client.h"

#include "../http/started.h"
#include "identity.h"

bool sr_client_welcome(const sr_engine *e, const sr_peer *peer)
{
    const sr_config *config = &e->config;
    return !config->proxy_protocol || !config->trusted.n || sr_cidrs_have(&config->trusted, peer);
}

typedef struct walk {
    const sr_cidrs *trusted;
    sr_peer *client;
} walk;

static sr_hop judge(void *with, sr_bytes address)
{
    walk *w = with;
    if (!sr_peer_parse(w->client, address))
        return SR_HOP_NONE;
    return sr_cidrs_have(w->trusted, w->client) ? SR_HOP_PROXY : SR_HOP_CLIENT;
}

const sr_forwarded *sr_client_forwarded(sr_engine *e, sr_exchange *x, const sr_request *r, const char *base)
{
    const sr_config *config = &e->config;
    sr_forwarded *f = &e->intake.forwarded;
    if (!sr_cidrs_have(&config->trusted, &x->conn->peer))
        return NULL;
    x->trusted = true;
    sr_identity_keep(e, x, r, base);
    x->before_ns = sr_started_before(r, base, (x->body ? x->body->pace.began_at : e->now) + e->wall_offset);
    sr_forwarded_read(f, r, base, config->forwarded, judge, &(walk){&config->trusted, &x->client});
    if (f->client.at)
        x->client.port = f->port;
    if (config->forwarded == SR_FORWARDED_X && !config->x_forwarded_host)
        f->host = sr_bytes_of(NULL, 0);
    if (!config->x_forwarded_port)
        f->server_port = 0;
    return f->scheme || f->host.at || f->server_port ? f : NULL;
}

/*
 * Not in response to HEAD: proxies that do not know interim responses take any response to HEAD for the final
 * one, as it has no body, and give the response that follows to the next client on this connection. So
 * --informational can't allow it. Without HEAD they read on until the connection is closed, which only spoils
 * the response; so it can.
 */
bool sr_client_informs(const sr_engine *e, const sr_exchange *x)
{
    const sr_config *config = &e->config;
    if (x->version == SR_HTTP_1_0 || x->is_head) /* never sent to a 1.0 client (RFC 9110 15.2) */
        return false;
    if (config->informational != SR_INFORMATIONAL_DIRECT)
        return config->informational == SR_INFORMATIONAL_ON;
    return !x->proxied && !config->proxy_protocol && !e->listeners.at[x->conn->listener].is_unix;
}
