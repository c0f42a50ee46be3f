#include "h2.h"

#ifdef SR_HTTP2

#include "put.h"
#include "read.h"
#include "refuse.h"
#include "session.h"
#include "tunnel.h"

const sr_protocol sr_h2 = {
    .begin = sr_session_begin,
    .over = sr_session_free,
    .drain = sr_session_drain,
    .read = sr_h2_read,
    .taken = sr_h2_taken,
    .writable = sr_session_send,
    .head = sr_tunnel_head,
    .piece = sr_tunnel_piece,
    .file = sr_tunnel_file,
    .output = sr_h2_output,
    .settle = sr_h2_settle,
    .end = sr_tunnel_end,
    .more = sr_h2_more,
    .lend = sr_tunnel_lend,
    .spoken = sr_tunnel_spoken,
    .pumped = sr_tunnel_pumped,
    .detach = sr_tunnel_detach,
    .cut = sr_h2_cut,
    .refuse = sr_h2_refuse,
};

bool sr_h2_built(void)
{
    return true;
}

#else

const sr_protocol sr_h2 = {0};

bool sr_h2_built(void)
{
    return false;
}

#endif
