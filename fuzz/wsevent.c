/*
 * wsevent: events of an application, and the control messages in them: what was read is written as events,
 * and read again.
 * Judges: src/websocket/wsevent.c src/websocket/wscontrol.c src/websocket/json.c src/base/base64.c
 */
#include "websocket/wsevent.h"
#include "websocket/wscontrol.h"

#include "fuzz.h"

static void wsevent_control(sr_bytes json)
{
    sr_wscontrol c;
    const char *why = NULL;
    char *at = fuzz_copy(json.at, json.len), *scratch = fuzz_copy(json.at, json.len);
    bool valid = sr_wscontrol_read(&c, sr_bytes_of(at, json.len), scratch, &why);
    MUST(valid == !why && c.n_filters <= SR_WSCONTROL_FILTERS_MAX);
    if (valid) {
        MUST(sr_is_utf8(c.channel) && sr_is_utf8(c.prev_id) && sr_is_utf8(c.name) && c.channel.len <= 255);
        MUST(c.timeout > 0 && (c.channel.len || c.kind > SR_WSCONTROL_UNSUBSCRIBE));
        for (unsigned i = 0; i < c.n_filters; i++)
            MUST(sr_is_utf8(c.filters[i]));
    }
    free(at);
    free(scratch);
}

FUZZ_TARGET(wsevent)
{
    sr_bytes in = sr_bytes_of((const char *)data, size), again;
    sr_wsevent event, same;
    sr_wsevent_result r;
    sr_buffer out = {0};
    unsigned n = 0;
    while ((r = sr_wsevent_next(&in, &event)) == SR_WSEVENT_NEXT) {
        MUST(event.content.len <= size && sr_wsevent_add(&out, event.kind, event.content));
        if (event.content.len >= 2 && memcmp(event.content.at, "c:", 2) == 0)
            wsevent_control(sr_bytes_of(event.content.at + 2, event.content.len - 2));
        n++;
    }
    MUST(r == SR_WSEVENT_BAD || !in.len);
    again = sr_bytes_of(n ? sr_buffer_at(&out) : "", sr_buffer_len(&out));
    in = sr_bytes_of((const char *)data, size);
    for (; n; n--) {
        MUST(sr_wsevent_next(&in, &event) == SR_WSEVENT_NEXT &&
             sr_wsevent_next(&again, &same) == SR_WSEVENT_NEXT);
        MUST(event.kind == same.kind && sr_bytes_equal(event.content, same.content));
    }
    MUST(!again.len);
    sr_buffer_free(&out);
    wsevent_control(sr_bytes_of((const char *)data, size));
    return 0;
}
