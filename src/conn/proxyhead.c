#include "proxyhead.h"

#include "../net/proxyline.h"

sr_proxyhead sr_proxyhead_take(sr_conn *c, sr_bytes *view, bool in_scratch)
{
    sr_proxyline line;
    switch (sr_proxyline_feed(&line, *view)) {
    case SR_PROXYLINE_MORE:
        return !in_scratch || sr_buffer_add_bytes(&c->in, *view) ? SR_PROXYHEAD_MORE : SR_PROXYHEAD_BAD;
    case SR_PROXYLINE_BAD:
        return SR_PROXYHEAD_BAD;
    case SR_PROXYLINE_DONE:
        break;
    }
    c->proxy_header = false;
    if (line.named)
        c->peer = line.peer;
    *view = sr_bytes_of(view->at + line.len, view->len - line.len);
    if (!in_scratch)
        sr_conn_used(c, line.len);
    return view->len ? SR_PROXYHEAD_DONE : SR_PROXYHEAD_MORE;
}
