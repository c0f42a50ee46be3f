/*
 * grip: the fields by which an application leaves a connection with the server. Names and ids lie in the
 * lines and have their lengths, there are as many channels as were counted, and what keeps a connection alive
 * is made of what was given.
 * Judges: src/http/grip.c
 */
#include "http/grip.h"

#include "fuzz.h"

static void within(sr_bytes lines, sr_bytes text)
{
    MUST(!text.len || (text.at >= lines.at && text.at + text.len <= lines.at + lines.len));
}

FUZZ_TARGET(grip)
{
    sr_grip g;
    char *at = fuzz_copy(data, size);
    const sr_bytes lines = sr_bytes_of(at, size);
    if (!sr_grip_read(lines, &g)) {
        sr_bytes left = lines, value = {NULL, 0};
        sr_grip_channel c;
        sr_buffer content = {0};
        uint32_t channels = 0;
        for (; sr_grip_next(&left, &value, &c); channels++) {
            within(lines, c.name);
            within(lines, c.prev_id);
            MUST(c.name.len && c.name.len <= SR_GRIP_CHANNEL_MAX && c.prev_id.len <= SR_GRIP_CHANNEL_MAX);
        }
        MUST(channels == g.channels && channels <= SR_GRIP_CHANNELS && (channels || !g.hold));
        MUST(g.timeout && g.timeout <= SR_GRIP_SECONDS_MAX && g.keep_alive <= SR_GRIP_SECONDS_MAX);
        MUST(sr_grip_content(&g, &content) && sr_buffer_len(&content) <= g.content.len);
        sr_buffer_free(&content);
    }
    free(at);
    return 0;
}
