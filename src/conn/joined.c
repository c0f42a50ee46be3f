#include "joined.h"

#include "send.h"

void sr_joined_flush(sr_engine *e)
{
    sr_joined *j = &e->joined;
    struct iovec iov = {sr_buffer_at(&j->bytes), sr_buffer_len(&j->bytes)};
    sr_conn *c = j->of;
    j->of = NULL;
    if (c && iov.iov_len)
        sr_send(e, c, &iov, 1);
    sr_buffer_reset(&j->bytes);
}
