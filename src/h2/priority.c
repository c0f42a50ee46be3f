#ifdef SR_HTTP2

#include "priority.h"

#if NGHTTP2_VERSION_NUM >= 0x013200

void sr_h2_priority_options(nghttp2_option *option)
{
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
}

size_t sr_h2_priority_settings(nghttp2_settings_entry *to)
{
    *to = (nghttp2_settings_entry){NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1};
    return 1;
}

static void tell(const sr_h2_stream *st)
{
    const nghttp2_extpri p = {st->priority.urgency, st->priority.incremental};
    nghttp2_session_change_extpri_stream_priority(st->session->ng, st->id, &p, 0);
}

void sr_h2_priority_request(sr_h2_stream *st)
{
    sr_session *s = st->session;
    st->priority = s->priority;
    if (s->says_priority || s->updates)
        return; /* nghttp2 knows */
    st->priority.incremental = true;
    tell(st);
}

void sr_h2_priority_update(sr_session *s, const nghttp2_frame *f)
{
    if (f->hd.type != NGHTTP2_PRIORITY_UPDATE)
        return;
    const nghttp2_ext_priority_update *u = f->ext.payload;
    sr_h2_stream *st = nghttp2_session_get_stream_user_data(s->ng, u->stream_id);
    s->updates = true;
    if (!st)
        return;
    st->priority = SR_PRIORITY_DEFAULT;
    sr_priority_read(&st->priority, sr_bytes_of((const char *)u->field_value, u->field_value_len));
}

void sr_h2_priority_response(const sr_h2_stream *st)
{
    tell(st);
}

#else

void sr_h2_priority_options(nghttp2_option *option)
{
    (void)option;
}

size_t sr_h2_priority_settings(nghttp2_settings_entry *to)
{
    (void)to;
    return 0;
}

void sr_h2_priority_request(sr_h2_stream *st)
{
    st->priority = st->session->priority;
}

void sr_h2_priority_update(sr_session *s, const nghttp2_frame *f)
{
    (void)s, (void)f;
}

void sr_h2_priority_response(const sr_h2_stream *st)
{
    (void)st;
}

#endif

#endif
